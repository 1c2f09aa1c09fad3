"""A source file as the lint rules see it: its tree, and what its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """One place that breaks a rule, and the sentence for whoever wrote it."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Source:
    """One file. `path` is relative to the repository and has forward slashes."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tree = ast.parse(text, filename=path)
        # Every rule looks at every node: walking is most of what a rule costs.
        self.nodes = tuple(ast.walk(self.tree))
        self._names: dict[str, str] = {}
        for node in self.nodes:
            self._names.update(self._bound_by(node))

    def finding(self, node: ast.expr | ast.stmt, text: str) -> Finding:
        return Finding(self.path, node.lineno, text)

    def within(self, *places: str) -> bool:
        """Whether this file is one of the places, or below one that ends in `/`."""
        return any(
            self.path.startswith(place) if place.endswith("/") else self.path == place
            for place in places
        )

    def resolve(self, node: ast.AST) -> str | None:
        """The full dotted name that an expression stands for, by this file's imports.

        `monotonic` after `from time import monotonic` is `time.monotonic`. None for
        whatever was not imported: a parameter called `random` is not the module.
        """
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            return owner and f"{owner}.{node.attr}"
        return None

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call of something imported, with its full name."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and (name := self.resolve(node.func)):
                yield node, name

    def references(self) -> Iterator[tuple[ast.expr, str]]:
        """Every mention of something imported, called or not, with its full name."""
        for node in self.nodes:
            if isinstance(node, ast.expr) and (name := self.resolve(node)):
                yield node, name

    def _bound_by(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom):
            module = self._module(node)
            for alias in node.names:
                yield alias.asname or alias.name, f"{module}.{alias.name}"
        elif isinstance(node, ast.Assign) and (name := self.resolve(node.value)):
            # `make = aiohttp.ClientSession` is another name for the same thing.
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, name

    def _module(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        folders = PurePosixPath(self.path).parent.parts
        package = folders[1:] if folders[:1] == ("src",) else folders
        kept = package[: len(package) - node.level + 1]
        return ".".join([*kept, *filter(None, [node.module])])


Rule: TypeAlias = Callable[[Source], Iterator[Finding]]


def identifier(node: ast.AST | None) -> str:
    """The last word of what a place is called: `self.locks[key]` is called `locks`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner) | ast.Await(value=inner):
            return identifier(inner)
        case _:
            return ""


def assignments(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every `target = value` among some nodes, annotated or not."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
            yield node.target, node.value
