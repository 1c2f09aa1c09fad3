"""The context of a plain function: the same words, each of which waits for its answer.

A handler that is a plain ``def`` runs in a thread of its own, and what it asks of the
context is done by the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ParamSpec, TypeVar

from trimtab.api.conditions import StatusWord
from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.runtime.context import Context
from trimtab.runtime.events import EventType
from trimtab.runtime.logs import Logger
from trimtab.runtime.reconcile import Cause, Result
from trimtab.runtime.threads import from_thread

P = ParamSpec("P")
R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class BlockingContext:
    """See :class:`Context`, method by method."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    @property
    def causes(self) -> Sequence[Cause]:
        return self._ctx.causes

    @property
    def failures(self) -> int:
        return self._ctx.failures

    @property
    def log(self) -> Logger:
        return self._ctx.log

    @property
    def now(self) -> datetime:
        return self._ctx.now

    def get(
        self, kind: type[R], name: str, *, namespace: str | None = None
    ) -> R | None:
        return from_thread(_soon(self._ctx.get, kind, name, namespace=namespace))

    def children(self, kind: type[R]) -> list[R]:
        return from_thread(_soon(self._ctx.children, kind))

    def select(self, kind: type[R], index: str, value: str) -> list[R]:
        return from_thread(_soon(self._ctx.select, kind, index, value))

    def apply(self, obj: R) -> R:
        return from_thread(self._ctx.apply(obj))

    def swap(self, obj: R) -> R:
        return from_thread(self._ctx.swap(obj))

    def delete(self, obj: Resource) -> None:
        from_thread(self._ctx.delete(obj))

    def status(self, status: Object) -> None:
        from_thread(_soon(self._ctx.status, status))

    def condition(
        self,
        type: str,
        status: bool | StatusWord | None,
        *,
        reason: str,
        message: str = "",
    ) -> None:
        from_thread(
            _soon(self._ctx.condition, type, status, reason=reason, message=message)
        )

    def event(self, reason: str, message: str, *, type: EventType = "Normal") -> None:
        from_thread(_soon(self._ctx.event, reason, message, type=type))

    def done(
        self, *, status: Object | None = None, after: float | None = None
    ) -> Result:
        return self._ctx.done(status=status, after=after)

    def flush(self) -> None:
        from_thread(self._ctx.flush())


async def _soon(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What is not asynchronous is done in the loop all the same: it owns the caches."""
    return call(*arguments, **named)
