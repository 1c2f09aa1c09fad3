"""Rule: a cache has a bound; a plain map that is called one grows for ever."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hack.lints.source import Finding, Source, assignments, identifier

MAPS = frozenset({"collections.defaultdict", "collections.OrderedDict"})
FIELDS = frozenset({"dataclasses.field", "msgspec.field", "trimtab.api.objects.field"})
ADVICE = "give it a size and a lifetime, or feed it from a watch that also removes."


def check(source: Source) -> Iterator[Finding]:
    for node, name in source.references():
        if name == "functools.cache":
            yield source.finding(node, f"functools.cache has no bound: {ADVICE}")
    for call, name in source.calls():
        if name == "functools.lru_cache" and _is_unbounded(call):
            yield source.finding(call, f"lru_cache without a maxsize: {ADVICE}")
    for target, value in _lasting(source):
        if "cache" in identifier(target).lower() and _is_map(source, target, value):
            name = ast.unparse(target)
            yield source.finding(target, f"{name} is a map without bounds: {ADVICE}")


def _is_unbounded(call: ast.Call) -> bool:
    sizes = [keyword.value for keyword in call.keywords if keyword.arg == "maxsize"]
    return any(
        isinstance(size, ast.Constant) and size.value is None
        for size in [*call.args[:1], *sizes]
    )


def _lasting(source: Source) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Assignments that outlive a call: to a module, a class or an attribute."""
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.Assign | ast.AnnAssign):
                    yield from assignments(ast.walk(statement))
    for target, value in assignments(source.nodes):
        if isinstance(target, ast.Attribute):
            yield target, value


def _is_map(source: Source, target: ast.expr, value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys=keys):
            # A table of constants with `cache` in its name is not a cache.
            return not (keys and identifier(target).isupper())
        case ast.DictComp() | ast.Call(func=ast.Name(id="dict")):
            return True
        case ast.Call(func=function, keywords=keywords):
            name = source.resolve(function)
            return name in MAPS or (name in FIELDS and _makes_map(source, keywords))
        case _:
            return False


def _makes_map(source: Source, keywords: list[ast.keyword]) -> bool:
    for keyword in keywords:
        if keyword.arg == "default_factory":
            name = source.resolve(keyword.value) or identifier(keyword.value)
            return name == "dict" or name in MAPS
    return False
