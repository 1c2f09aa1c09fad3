"""Rule: background work lives in a TaskGroup, so that somebody always cancels it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hack.lints.source import Finding, Function, Source, assignments, identifier

METHODS = frozenset({"create_task", "ensure_future"})
GROUP = frozenset({"asyncio.TaskGroup", "asyncio.taskgroups.TaskGroup"})
FUNCTIONS = frozenset({"asyncio.create_task", "asyncio.ensure_future"})
CALLED = frozenset({"asyncio.Task", "asyncio.run_coroutine_threadsafe"})
ADVICE = (
    "starts a task that nobody cancels: use create_task of an asyncio.TaskGroup that is"
    " open around the task's whole life (`async with`, or one handed in and annotated)."
)


def check(source: Source) -> Iterator[Finding]:
    visitor = _Visitor(source)
    visitor.visit(source.tree)
    yield from visitor.findings
    for node, name in source.calls():
        if name in CALLED:
            yield source.finding(node, f"{name} {ADVICE}")


class _Visitor(ast.NodeVisitor):
    """Walks one file and knows at each place which names hold a TaskGroup.

    Names are known by function, nested functions see their surroundings'. Attributes
    are known by name in the whole file.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings: list[Finding] = []
        self.scopes: list[set[str]] = [set()]
        self.attributes = set(_group_attributes(source))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: Function) -> None:
        self.scopes.append(set(_group_parameters(self.source, node)))
        self.generic_visit(node)
        self.scopes.pop()

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        for item in node.items:
            self._bind(item.optional_vars, item.context_expr)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        is_group = _is_annotated(self.source, node.annotation)
        if isinstance(node.target, ast.Name) and is_group:
            self.scopes[-1].add(node.target.id)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self.source.resolve(node) in FUNCTIONS:
            self._refuse(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in METHODS and not self._is_group(node.value):
            self._refuse(node, ast.unparse(node))
        self.generic_visit(node)

    def _bind(self, target: ast.expr | None, value: ast.expr) -> None:
        """Remembers what a name holds from here on; another value is forgotten."""
        if isinstance(target, ast.Name):
            self.scopes[-1].discard(target.id)
            if _is_made(self.source, value):
                self.scopes[-1].add(target.id)

    def _is_group(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return any(node.id in scope for scope in self.scopes)
        return isinstance(node, ast.Attribute) and node.attr in self.attributes

    def _refuse(self, node: ast.expr, what: str) -> None:
        self.findings.append(self.source.finding(node, f"{what} {ADVICE}"))


def _is_annotated(source: Source, annotation: ast.expr | None) -> bool:
    """Whether an annotation is a TaskGroup, or a union with one in it."""
    if isinstance(annotation, ast.BinOp):
        sides = (annotation.left, annotation.right)
        return any(_is_annotated(source, side) for side in sides)
    return annotation is not None and source.resolve(annotation) in GROUP


def _is_made(source: Source, value: ast.expr) -> bool:
    """Whether a value is a new TaskGroup, entered on an exit stack or not."""
    match value:
        case ast.Await(value=ast.Call(func=ast.Attribute(attr=name), args=[inner])):
            return name == "enter_async_context" and _is_made(source, inner)
        case ast.Call(func=function):
            return source.resolve(function) in GROUP
        case _:
            return False


def _group_parameters(source: Source, node: Function) -> Iterator[str]:
    arguments = node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if _is_annotated(source, argument.annotation):
            yield argument.arg


def _group_attributes(source: Source) -> Iterator[str]:
    """Attributes that hold a TaskGroup: annotated so, or assigned nothing else."""
    for node in source.nodes:
        if isinstance(node, ast.AnnAssign) and _is_annotated(source, node.annotation):
            yield identifier(node.target)
        elif isinstance(node, Function):
            if _is_annotated(source, node.returns):
                yield node.name
            yield from _kept(source, node)


def _kept(source: Source, node: Function) -> Iterator[str]:
    """Attributes to which a function assigns a group that it makes or was given."""
    given = set(_group_parameters(source, node))
    for target, value in assignments(ast.walk(node)):
        is_group = _is_made(source, value) or identifier(value) in given
        if isinstance(target, ast.Attribute) and is_group:
            yield target.attr
