"""Definitions: what an operator's author declares, checked when it is declared.

A definition is data. Nothing here watches, queues or writes; a mistake in it (a watch
without a scope, a field that the kind does not have) is an error at import, before
anything runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from trimtab.api.names import check_label
from trimtab.api.resource import Info, Resource
from trimtab.cache import Index, Keep, Key, Predicate, Scope
from trimtab.runtime.reconcile import Result


class By(msgspec.Struct, frozen=True):
    """The objects that an index of theirs finds by a value of the changed one."""

    index: str
    values: Callable[[Any], Iterable[str]]


Mapper: TypeAlias = Callable[[Any], Iterable[Key | str]] | By
"""Which objects a change of another one concerns: keys, names in its namespace, or
whatever an index of the reconciled kind finds."""
Handler: TypeAlias = Callable[..., Awaitable[Result | None] | Result | None]
When: TypeAlias = Callable[[Any], bool]
"""Whether there may be anything to do for an object."""

OPERATOR_LABEL = "trimtab.dev/operator"
"""On every object that an operator makes; what it owns is watched by this label."""

CONCURRENCY = 16
BUDGET = 60.0
MANAGER_LIMIT = 96
"""Of the server's 128: an owner of status fields is added to the field manager."""


def check_kind(given: object) -> None:
    """Errors: ``TypeError`` for anything but a class of objects."""
    if not (isinstance(given, type) and issubclass(given, Resource)):
        raise TypeError(
            f"{getattr(given, '__name__', repr(given))} is no kind; name a class of "
            "objects, such as trimtab.kinds.ConfigMap or a Resource of your own."
        )


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A kind whose changes bring reconciles: the kind itself, a child, or another."""

    kind: type[Resource]
    scope: Scope
    on_change: tuple[str, ...] | None = None
    """Fields whose change counts; None: any that the class reads."""
    keep: Keep[Any] | None = None
    indexes: tuple[Index, ...] = ()
    to: Mapper | None = None
    """For kinds that are watched: which objects a change concerns."""

    def __post_init__(self) -> None:
        check_kind(self.kind)
        self.scope.check(self.kind)
        if self.on_change is not None:
            Predicate(self.kind, self.on_change)


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of children, for ``owns=``, where the class alone does not say enough."""

    kind: type[Resource]
    on_change: tuple[str, ...] | None = None
    keep: Keep[Any] | None = None
    indexes: tuple[Index, ...] = ()


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Another kind that matters, for ``watches=``; ``to`` says to which objects."""

    kind: type[Resource]
    scope: Scope
    to: Mapper
    on_change: tuple[str, ...] | None = None
    keep: Keep[Any] | None = None
    indexes: tuple[Index, ...] = ()


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A permission that handlers use and no declaration shows; see ``app.needs``."""

    kind: type[Resource] | Info
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    """Only objects of these names; empty means any."""
    home: bool = False
    """Only in the namespace where the operator itself is."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One controller: what it reconciles, what wakes it, and how it may behave."""

    name: str
    """The handler's name; with the operator's it is the field manager."""
    operator: str
    handler: Handler
    primary: Source
    owns: tuple[Source, ...] = ()
    watches: tuple[Source, ...] = ()
    concurrency: int = CONCURRENCY
    """Reconciles at once, never two of one object. Default 16."""
    budget: float = BUDGET
    """Seconds that one reconcile may take, all its calls included. Default 60."""
    resync: float | None = None
    """Seconds after which each object is looked at again anyway. Default: never."""
    leader: bool = True
    """Only the leader runs it. Default True, if the operator elects one at all."""
    finalizer: str = ""
    """Keeps objects until ``cleanup`` has succeeded."""
    cleanup: Handler | None = None
    when: When | None = None
    """Which objects are ever reconciled. Default: all."""

    @property
    def manager(self) -> str:
        """The field manager of what the controller writes."""
        return f"{self.operator}.{self.name}"

    @property
    def kind(self) -> type[Resource]:
        return self.primary.kind

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.primary, *self.owns, *self.watches)

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"{self.name}: concurrency is at least 1.")
        if len(self.manager) > MANAGER_LIMIT:
            raise ValueError(
                f"{self.manager!r} is too long for a field manager; give the "
                "controller a shorter name=."
            )
        if self.budget <= 0:
            raise ValueError(f"{self.name}: a budget is more than 0 seconds.")
        if self.resync is not None and self.resync <= 0:
            raise ValueError(f"{self.name}: resync is more than 0 seconds, or None.")
        kinds = [source.kind for source in self.sources]
        doubled = {kind.__name__ for kind in kinds if kinds.count(kind) > 1}
        if doubled:
            raise ValueError(
                f"{self.name}: {', '.join(sorted(doubled))} is named twice; reconcile, "
                "own or watch a kind once in a controller."
            )


def owned_source(
    each: type[Resource] | Owned, *, operator: str, primary: Source
) -> Source:
    """The children that an operator made: where its objects are, by its label."""
    owned = each if isinstance(each, Owned) else Owned(kind=each)
    check_kind(owned.kind)
    beside = primary.scope if primary.kind.__resource__.namespaced else None
    narrowed = beside if owned.kind.__resource__.namespaced else None
    return Source(
        kind=owned.kind,
        scope=Scope(
            namespaces=narrowed.namespaces if narrowed else (),
            namespaces_where=narrowed.namespaces_where if narrowed else "",
            labels=f"{OPERATOR_LABEL}={operator}",
        ),
        on_change=owned.on_change,
        keep=owned.keep,
        indexes=owned.indexes,
    )


def narrowed(source: Source, namespaces: tuple[str, ...]) -> Source:
    """The same in these namespaces only.

    Errors: ``ValueError`` for a kind that is in none, or a scope that names others.
    """
    scope, kind = source.scope, source.kind.__resource__
    if not kind.namespaced:
        raise ValueError(
            f"{kind.kind} objects are in no namespace, so they cannot be left to a "
            "list of namespaces; run it for the whole cluster."
        )
    outside = sorted(set(scope.namespaces) - set(namespaces))
    if outside:
        raise ValueError(
            f"The scope of {kind.kind} names {', '.join(outside)}, which is not among "
            f"{', '.join(namespaces)}; add it."
        )
    chosen = scope.namespaces or namespaces
    narrow = Scope(namespaces=chosen, labels=scope.labels, fields=scope.fields)
    return msgspec.structs.replace(source, scope=narrow)


def watched_source(each: Watched) -> Source:
    return Source(
        kind=each.kind,
        scope=each.scope,
        on_change=each.on_change,
        keep=each.keep,
        indexes=each.indexes,
        to=each.to,
    )


def check_operator(name: str) -> str:
    """An operator's name goes into labels and field managers, and names its lease."""
    if not name:
        raise ValueError("An operator needs a name: Operator('websites').")
    try:
        check_label(name)
    except ValueError:
        raise ValueError(
            f"{name!r} cannot be the name of an operator, and so of its lease; use "
            "lower case letters, digits and '-', at most 63."
        ) from None
    return name


def is_asynchronous(handler: Handler) -> bool:
    """Whether a handler is awaited; a plain function runs in a thread."""
    called: Any = handler
    # A function, or an object that is called like one.
    return any(map(inspect.iscoroutinefunction, (called, called.__call__)))


def check_handler(handler: Handler, *, decorator: str) -> None:
    """A handler takes the object and the context, and nothing else."""
    if not callable(handler):
        raise TypeError(f"{decorator} decorates a function, not {handler!r}.")
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        name = getattr(handler, "__name__", repr(handler))
        raise TypeError(
            f"{decorator} {name} must take two arguments, the object and the context: "
            f"async def {name}(site, ctx)."
        ) from None
