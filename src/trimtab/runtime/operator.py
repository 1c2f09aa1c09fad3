"""The operator: a name, and the controllers that a module declares under it.

``app = Operator("websites")`` and ``@app.reconciles(Website, …)`` are declarations;
importing the module runs nothing. A :class:`~trimtab.runtime.manager.Manager` runs it,
and ``trimtab run FILE`` makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar, Unpack

import msgspec

from trimtab.api.names import check_label_key
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Info, Resource
from trimtab.cache import Index, Keep, Scope
from trimtab.runtime.definitions import (
    BUDGET,
    CONCURRENCY,
    Definition,
    Handler,
    Need,
    Owned,
    Source,
    Watched,
    When,
    check_handler,
    check_operator,
    narrowed,
    owned_source,
    watched_source,
)
from trimtab.runtime.programs import Program
from trimtab.runtime.webhooks.declarations import (
    Conversion,
    Declarations,
    Hook,
    Selecting,
    Verb,
    label_of,
)

H = TypeVar("H", bound=Handler)
W = TypeVar("W", bound=Callable[..., Any])


class Operator:
    """What a module operates, and the settings that its controllers share.

    ``leader``: whether replicas elect one that runs the controllers (those declared
    with ``leader=False`` run in every replica). Default True.
    ``cache_budget``: bytes that all caches may take together (``"256MiB"``); past it
    cold objects are compressed, then forgotten but for their key, and read again when
    they are needed. Default: no bound beyond the scopes.
    ``optional_webhooks``: whether ``trimtab run`` serves the webhooks only where it is
    told how they are reached, and goes on without them elsewhere. Default False: there
    it refuses to run.
    """

    def __init__(
        self,
        name: str,
        *,
        leader: bool = True,
        cache_budget: str | int | None = None,
        optional_webhooks: bool = False,
    ) -> None:
        self.name = check_operator(name)
        self.leader = leader
        self.optional_webhooks = optional_webhooks
        self.cache_budget = None if cache_budget is None else _bytes(cache_budget)
        self._definitions: dict[str, Definition] = {}
        self._cleanups: dict[type[Resource], tuple[str, Handler]] = {}
        self._needs: list[Need] = []
        self._opens: list[Callable[[], AbstractAsyncContextManager[object]]] = []
        self.programs: tuple[Program, ...] = ()
        """What was declared by :meth:`alongside`."""
        self.installed = True
        """Whether its chart installs it unless told otherwise."""
        self.webhooks = Declarations()
        """What was declared by :meth:`validates`, :meth:`mutates`, :meth:`converts`."""

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"

    def reconciles(
        self,
        kind: type[Resource],
        *,
        scope: Scope,
        owns: Iterable[type[Resource] | Owned] = (),
        watches: Iterable[Watched] = (),
        on_change: Sequence[str] | None = None,
        concurrency: int = CONCURRENCY,
        budget: float = BUDGET,
        resync: float | None = None,
        leader: bool = True,
        keep: Keep[Any] | None = None,
        when: When | None = None,
        indexes: Iterable[Index] = (),
        name: str = "",
    ) -> Callable[[H], H]:
        """Declare who brings objects of a kind to what their spec says.

        Flow: the handler is called with the object as it is now and a
        :class:`Context`, at start, on every change of a field that the class reads (or
        of ``on_change``), of a child (``owns``) or of something watched, after a
        failure, and when a result asks for it. It makes what should be, by
        ``ctx.apply``, and says what is, by ``ctx.done(status=…)``.

        Guarantees: never two calls for one object at once; an object that is being
        deleted is not reconciled any more (see :meth:`finalizes`).

        ``when`` says of an object whether there may be anything to do for it. One for
        which there is not is never in the queue: not at start, not when it changes, not
        when something that it owns or watches does. With ``keep`` of "key" for the
        same objects they cost a key each and no call. It must depend on the object
        alone.

        Errors: whatever the handler raises is tried again with growing pauses;
        :class:`Retry` chooses its pause, :class:`Terminal` waits for a change.
        """
        primary = Source(
            kind=kind,
            scope=scope,
            on_change=None if on_change is None else tuple(on_change),
            keep=keep,
            indexes=tuple(indexes),
        )
        children = tuple(
            owned_source(each, operator=self.name, primary=primary) for each in owns
        )
        define = partial(
            Definition,
            operator=self.name,
            primary=primary,
            owns=children,
            watches=tuple(watched_source(each) for each in watches),
            concurrency=concurrency,
            budget=budget,
            resync=resync,
            leader=leader,
            when=when,
        )
        return self._reconciler(kind, name, define)

    def _reconciler(
        self, kind: type[Resource], name: str, define: Callable[..., Definition]
    ) -> Callable[[H], H]:
        def declare(handler: H) -> H:
            check_handler(handler, decorator="@reconciles")
            called = name or getattr(handler, "__name__", kind.kind.lower())
            self._add(define(name=called, handler=handler))
            return handler

        return declare

    def finalizes(self, kind: type[Resource], finalizer: str) -> Callable[[H], H]:
        """Declare what must be done before an object of a kind may go.

        Flow: the finalizer is put on every object before it is first reconciled. When
        somebody deletes the object, the handler is called instead of the reconciler,
        again and again until it succeeds; then the finalizer is removed and the object
        goes.

        Guarantees: no object that was reconciled goes without a cleanup that
        succeeded. The handler may run more than once: a process can end between its
        success and the removal.
        """
        _check_finalizer(finalizer)

        def declare(handler: H) -> H:
            check_handler(handler, decorator="@finalizes")
            if kind in self._cleanups:
                raise ValueError(f"{kind.__name__} has a finalizer already.")
            self._cleanups[kind] = (finalizer, handler)
            return handler

        return declare

    def validates(
        self,
        kind: type[Resource],
        *,
        on: Sequence[str] = ("CREATE", "UPDATE"),
        **options: Unpack[Selecting],
    ) -> Callable[[W], W]:
        """Declare who has a say in what is written to objects of a kind.

        Flow: the function is called with the object as it would be (for ``DELETE``: as
        it is) and a :class:`Review`, by every replica, before anything is kept.
        :class:`Refused` refuses, and its message is what the user reads.

        Guarantees: what removes the finalizers of an object that is being deleted is
        never held back. A plain function runs in a thread.

        Errors: whatever else it raises, and no answer in time, is what
        ``failure_policy`` says: ``"Fail"`` (the default) or ``"Ignore"``.
        """
        return self._asked("validates", kind, on, options)

    def mutates(
        self,
        kind: type[Resource],
        *,
        on: Sequence[str] = ("CREATE", "UPDATE"),
        **options: Unpack[Selecting],
    ) -> Callable[[W], W]:
        """Declare who changes what is written to objects of a kind, before it is.

        Flow: like :meth:`validates`, and the function returns the object as it should
        be, or None.

        Guarantees: only fields that it changed are written; what the class does not
        name stays as the user wrote it. It may be called more than once for a write, so
        it must find nothing to do the second time.
        """
        return self._asked("mutates", kind, on, options)

    def converts(
        self, old: type[Resource], new: type[Resource]
    ) -> Callable[[Callable[[Any], Any]], Conversion]:
        """Declare how objects of one version of a kind become ones of another.

        Flow: decorates the way from ``old`` to ``new``; what it makes decorates the way
        back, ``@up.back``. Versions that are not next to each other are converted over
        those in between.

        Guarantees: what a version has no place for is kept (in the annotation
        ``trimtab.dev/kept``) and put back on the way back. Metadata is carried over.
        """

        def declare(up: Callable[[Any], Any]) -> Conversion:
            made = Conversion(old, new, up)
            self.webhooks = self.webhooks.with_conversion(made)
            return made

        return declare

    def _asked(
        self,
        verb: Verb,
        kind: type[Resource],
        on: Sequence[str],
        options: Selecting,
    ) -> Callable[[W], W]:
        def declare(handler: W) -> W:
            label = options.get("name") or label_of(handler)
            others = {key: each for key, each in options.items() if key != "name"}
            hook = Hook(
                verb=verb,
                label=label,
                kind=kind,
                handler=handler,
                on=(on,) if isinstance(on, str) else tuple(on),
                **others,  # type: ignore[arg-type]
            )
            self.webhooks = self.webhooks.with_hook(hook)
            return handler

        return declare

    def needs(
        self,
        kind: type[Resource] | Info,
        *verbs: str,
        subresource: str = "",
        names: Iterable[str] = (),
        home: bool = False,
    ) -> None:
        """Declare a permission that handlers use and ``trimtab rbac`` cannot see.

        ``app.needs(Secret, "get")``: what the declarations and the source show
        (children, statuses, ``ctx.delete(child)``) needs no such line. With ``names``
        it holds for objects of these names only, and with ``home`` in the operator's
        own namespace only.
        """
        if not verbs or not all(each.isalpha() and each.islower() for each in verbs):
            raise ValueError(
                f"{verbs!r} are not verbs; write app.needs(Secret, 'get', 'list')."
            )
        self._needs.append(
            Need(
                kind=kind,
                verbs=verbs,
                subresource=subresource,
                names=tuple(names),
                home=home,
            )
        )

    def opens(self, context: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        """Declare what is open while the operator runs: a channel to a service, say.

        Flow: it is entered in the loop of the handlers before the first of them runs,
        and left when the last one has ended. Handlers share it: none of them makes a
        connection of its own.
        """
        self._opens.append(context)

    @property
    def opened(
        self,
    ) -> tuple[Callable[[], AbstractAsyncContextManager[object]], ...]:
        """What was declared by :meth:`opens`."""
        return tuple(self._opens)

    def alongside(self, *programs: Program, installed: bool = True) -> None:
        """Declare other programs that its chart has; each is off until enabled.

        ``installed``: whether the chart installs the operator itself by default.
        """
        self.programs = (*self.programs, *programs)
        self.installed = installed

    @property
    def needed(self) -> tuple[Need, ...]:
        """What was declared by :meth:`needs`."""
        return tuple(self._needs)

    def within(self, namespaces: Iterable[str]) -> None:
        """Leave every controller to these namespaces, where Roles are all it has.

        Its webhooks are asked about these namespaces only.

        Errors: ``ValueError`` when a kind is in no namespace, or a scope names others.
        """
        places = tuple(namespaces)
        self._definitions = {
            name: msgspec.structs.replace(
                each,
                primary=narrowed(each.primary, places),
                owns=tuple(narrowed(source, places) for source in each.owns),
                watches=tuple(narrowed(source, places) for source in each.watches),
            )
            for name, each in self._definitions.items()
        }
        self.webhooks = self.webhooks.within(places)

    def controllers(self) -> tuple[Definition, ...]:
        """Every controller, each with the cleanup of its kind.

        Errors: ``ValueError`` if there is none, or a cleanup that no reconciler goes
        with.
        """
        if not self._definitions and not self.webhooks:
            raise ValueError(
                f"The operator {self.name} reconciles nothing; decorate a function "
                "with @app.reconciles(…)."
            )
        kinds = {each.kind for each in self._definitions.values()}
        for kind in self._cleanups:
            if kind not in kinds:
                raise ValueError(
                    f"{kind.__name__} is finalized and not reconciled, so nothing "
                    "would put the finalizer on; declare both."
                )
        left = dict(self._cleanups)
        return tuple(
            msgspec.structs.replace(each, finalizer=finalizer, cleanup=cleanup)
            for each in self._definitions.values()
            # Of several controllers of one kind, the first declared cleans up.
            for finalizer, cleanup in (left.pop(each.kind, ("", None)),)
        )

    def kinds(self) -> tuple[type[Resource], ...]:
        """The kinds that it reconciles or converts; what CRDs are made from."""
        reconciled = [each.kind for each in self._definitions.values()]
        converted = [kind for each in self.webhooks.converted() for kind in each]
        return tuple(dict.fromkeys((*reconciled, *converted)))

    def _add(self, definition: Definition) -> None:
        if definition.name in self._definitions:
            raise ValueError(
                f"The operator {self.name} has a controller {definition.name!r} "
                "already; give one of them another name=."
            )
        self._definitions[definition.name] = definition


def _bytes(size: str | int) -> int:
    """A size as people write it: 256Mi, or 256MiB."""
    return int(Quantity(str(size).removesuffix("B")))


def _check_finalizer(name: str) -> None:
    try:
        check_label_key(name)
        valid = "/" in name
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(
            f"{name!r} cannot be a finalizer; give it a domain and a name, such as "
            "example.com/shop."
        )
