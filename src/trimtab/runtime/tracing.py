"""Tracing: OpenTelemetry spans when somebody collects them, and nothing when not.

Whoever wants traces installs the SDK and sets a provider before or while the operator
runs. Until then a span is one shared object that does nothing. Nothing here imports
OpenTelemetry: a process that has not imported it cannot have set a provider.

What causes a piece of work is not its parent, as one change may cause many reconciles
and one reconcile may have many causes: :func:`current` is taken along with the cause,
and the span of the work is *linked* to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, TypeAlias

Link: TypeAlias = Any
"""A span's identity (its ``SpanContext``), to be linked to later."""
Value: TypeAlias = str | bool | int | float


class Span(Protocol):
    """A piece of work, as a context manager."""

    @property
    def link(self) -> Link | None:
        """What later work can be linked to."""

    def set(self, key: str, value: Value) -> None:
        """Say something about the work."""

    def __enter__(self) -> Span: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _Nothing:
    """A span that nobody collects."""

    __slots__ = ()
    link: Link | None = None

    def set(self, key: str, value: Value) -> None:
        return None

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


NOTHING: Span = _Nothing()


class Tracer:
    """Makes the spans of one part of the program."""

    __slots__ = ("_name", "_real")

    def __init__(self, name: str) -> None:
        self._name = name
        # OpenTelemetry takes one provider in the life of a process, so that a tracer
        # of a real one stays right.
        self._real: Any = None

    @property
    def active(self) -> bool:
        """Whether somebody collects spans; ask before preparing costly attributes."""
        if self._real is None:
            provider = _provider()
            if provider is not None:
                self._real = provider.get_tracer(self._name)
        return self._real is not None

    def span(
        self,
        name: str,
        links: Iterable[Link | None] = (),
        attributes: Mapping[str, Value] | None = None,
    ) -> Span:
        """A span below the current one, linked to what caused it (None: to nothing).

        An exception that leaves its block is recorded; a cancellation is no error.
        """
        if not self.active:
            return NOTHING
        return _Span(self._real, name, links, attributes)


class _Span:
    """A span that somebody collects."""

    __slots__ = ("_span", "_token")

    def __init__(
        self,
        real: Any,
        name: str,
        links: Iterable[Link | None],
        attributes: Mapping[str, Value] | None,
    ) -> None:
        from opentelemetry.trace import Link as Linked

        linked = [Linked(link) for link in links if link is not None]
        self._span = real.start_span(name, links=linked, attributes=attributes)
        self._token: Any = None

    @property
    def link(self) -> Link | None:
        return self._span.get_span_context()

    def set(self, key: str, value: Value) -> None:
        self._span.set_attribute(key, value)

    def __enter__(self) -> Span:
        from opentelemetry import context, trace

        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from opentelemetry import context
        from opentelemetry.trace import Status, StatusCode

        context.detach(self._token)
        if isinstance(error, Exception):
            self._span.record_exception(error)
            what = f"{type(error).__name__}: {error}"
            self._span.set_status(Status(StatusCode.ERROR, what))
        self._span.end()


def tracer(name: str) -> Tracer:
    """The tracer of one part of the program; make it once."""
    return Tracer(name)


def current() -> Link | None:
    """The identity of the span that is open here, to be taken along with a cause."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    return context if context.is_valid else None


def trace_id() -> str:
    """The trace that is open here, as people search for it; empty without one."""
    context = current()
    return "" if context is None else f"{context.trace_id:032x}"


def _provider() -> Any | None:
    """The provider that somebody has set; None for the placeholders before that."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    placeholders = (api.ProxyTracerProvider, api.NoOpTracerProvider)
    return None if isinstance(provider, placeholders) else provider
