"""Rule: no lock is held across an await.

Whoever waits while holding a lock can wait for somebody who waits for the lock. One
task owns each piece of state instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from hack.lints.source import Finding, Function, Source, assignments, identifier

LOCKS = frozenset(
    f"{module}.{name}"
    for module in ("asyncio", "threading", "multiprocessing", "anyio", "trio")
    for name in ("Lock", "RLock", "Condition")
)
# A semaphore of one is a lock; a larger one is a limit and may be held.
SEMAPHORES = frozenset(
    f"{module}.{name}"
    for module in ("asyncio", "threading", "multiprocessing", "anyio", "trio")
    for name in ("Semaphore", "BoundedSemaphore")
)
WORDS = frozenset({"lock", "locks", "rlock", "mutex", "mutexes"})
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ADVICE = (
    "is held across an await: let one task own this state and send it requests, or"
    " finish the awaiting before the lock is taken."
)


def check(source: Source) -> Iterator[Finding]:
    known = {
        identifier(target)
        for target, value in assignments(source.nodes)
        if _is_made(source, value)
    }
    yield from _Visitor(source, known).walk(source.tree, in_async=False)


class _Visitor:
    """Walks one file; `known` are the names and attributes that hold a lock."""

    def __init__(self, source: Source, known: set[str]) -> None:
        self.source = source
        self.known = known

    def walk(self, node: ast.AST, *, in_async: bool) -> Iterator[Finding]:
        if isinstance(node, Function | ast.Lambda):
            in_async = isinstance(node, ast.AsyncFunctionDef)
        if in_async and isinstance(node, ast.With | ast.AsyncWith):
            yield from self._block(node)
        if in_async and isinstance(node, ast.Call):
            yield from self._acquired(node)
        for child in ast.iter_child_nodes(node):
            yield from self.walk(child, in_async=in_async)

    def _block(self, node: ast.With | ast.AsyncWith) -> Iterator[Finding]:
        for number, item in enumerate(node.items):
            lock = item.context_expr
            if not self._is_lock(lock):
                continue
            # Entering what stands behind the lock in the same line waits as well.
            waits = isinstance(node, ast.AsyncWith) and number + 1 < len(node.items)
            if waits or any(_waits(node.body, lock)):
                yield self.source.finding(node, f"{ast.unparse(lock)} {ADVICE}")

    def _acquired(self, node: ast.Call) -> Iterator[Finding]:
        match node.func:
            case ast.Attribute(attr="acquire", value=lock) if self._is_lock(lock):
                yield self.source.finding(
                    node,
                    f"{ast.unparse(lock)} is acquired without a `with`, so nobody sees"
                    " where it is let go: use `with`, with no await inside.",
                )

    def _is_lock(self, node: ast.expr) -> bool:
        name = identifier(node)
        words = {word.lower() for word in WORD.findall(name)}
        named = name in self.known or not WORDS.isdisjoint(words)
        return named or _is_made(self.source, node)


def _is_made(source: Source, value: ast.expr) -> bool:
    """Whether a value is a new lock."""
    if not isinstance(value, ast.Call):
        return False
    name = source.resolve(value.func)
    if name in SEMAPHORES:
        arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
        return all(isinstance(a, ast.Constant) and a.value == 1 for a in arguments)
    return name in LOCKS


def _waits(nodes: Iterable[ast.AST], lock: ast.expr) -> Iterator[bool]:
    """True for each place below that waits, in this function and not in inner ones."""
    for node in nodes:
        if isinstance(node, Function | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Await) and _lets_go(node, lock):
            continue
        yield isinstance(
            node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.Yield
        ) or (isinstance(node, ast.comprehension) and bool(node.is_async))
        yield from _waits(ast.iter_child_nodes(node), lock)


def _lets_go(node: ast.Await, lock: ast.expr) -> bool:
    """A condition's own wait lets its lock go meanwhile."""
    match node.value:
        case ast.Call(func=ast.Attribute(attr="wait" | "wait_for", value=owner)):
            return ast.dump(owner) == ast.dump(lock)
        case _:
            return False
