"""What tests of contexts share: one reconcile at a time, on caches that a test fills.

The client, the server and the stores are the real ones; only nothing watches, so that a
test decides what a controller has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar

import msgspec

from tests.runtime.operating import Shop, here, shop
from trimtab import Client, Context, Operator, Resource
from trimtab.cache import Informer, owner
from trimtab.runtime.events import Recorder
from trimtab.runtime.handling import Handling
from trimtab.runtime.metrics import ControllerMetrics
from trimtab.runtime.reconcile import Cause, Result
from trimtab.runtime.threads import Threads
from trimtab.runtime.writing import Writer

R = TypeVar("R", bound=Resource)


async def nothing(site: Any, ctx: Context) -> None:
    """A handler for definitions that are never run."""


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Bench:
    """One process's controller of shops; another one is a restart, or a neighbour."""

    def __init__(
        self,
        client: Client,
        *,
        name: str = "shelve",
        kind: type[Resource] = Shop,
        owns: Iterable[type[Resource]] = (),
        fenced: bool = False,
    ) -> None:
        app = Operator("shops")
        scope = here(client.config.namespace)
        app.reconciles(kind, scope=scope, owns=owns, name=name)(nothing)
        (self.definition,) = app.controllers()
        self.client = client
        self.clock = Clock()
        self.metrics = ControllerMetrics(name)
        self.informers: dict[type[Resource], Informer[Any]] = {
            each.kind: Informer(
                client, each.kind, each.scope, random=Random(1), indexes=[owner()]
            )
            for each in self.definition.sources
        }
        self.writer = Writer(
            self.definition,
            client=client,
            informers=self.informers,
            recorder=Recorder(
                client, component="t", instance="t", now=self.clock, random=Random(1)
            ),
            metrics=self.metrics,
            now=self.clock,
            fenced=fenced,
        )

    async def opened(self, name: str = "corner", **spec: Any) -> Shop:
        """A new shop, which the controller has seen."""
        return self.saw(await self.client.create(shop(name, **spec)))

    def saw(self, obj: R) -> R:
        """What the watch would have told."""
        self.informers[type(obj)].store.put(obj)
        return obj

    def context(self, parent: Resource) -> Context:
        return Context(self.writer, parent, causes=(Cause("change"),), failures=0)

    async def reconcile(
        self, parent: Resource, handler: Callable[[Any, Context], Any]
    ) -> Result:
        """One call of a handler, and all that is written at its end."""
        return await self.handling(handler=handler).reconcile(
            parent, self.context(parent)
        )

    def handling(self, **changes: Any) -> Handling:
        definition = msgspec.structs.replace(self.definition, **changes)
        return Handling(definition, writer=self.writer, threads=Threads(1))

    def sent(self, what: str) -> int:
        return self._count("writes", what)

    def skipped(self, what: str) -> int:
        return self._count("writes_skipped", what)

    def _count(self, family: str, what: str) -> int:
        wanted = (family, (self.metrics.name, what))
        return sum(
            int(each.value)
            for each in self.metrics.samples()
            if (each.family, each.labels) == wanted
        )
