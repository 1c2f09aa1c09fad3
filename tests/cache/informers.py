"""Informers that run for the length of a block, and what they told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from trimtab.api.resource import Resource
from trimtab.cache import Change, FeedOptions, Informer, Scope
from trimtab.client import Client
from trimtab.testing import eventually

QUICK = FeedOptions(first_pause=0.01, longest_pause=0.05, patience=0.2)


class Seen:
    """Every change that a subscriber was told of, in order."""

    def __init__(self) -> None:
        self.changes: list[Change[Any]] = []

    def __call__(self, change: Change[Any]) -> None:
        self.changes.append(change)

    def of(self, name: str) -> list[str]:
        """What happened to the objects of a name."""
        return [each.type for each in self.changes if each.key[1] == name]

    @property
    def types(self) -> list[tuple[str, str]]:
        return [(each.type, each.key[1]) for each in self.changes]


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncIterator[Seen]:
    """Run an informer, and be told of what it sees; it is cancelled at the end."""
    seen = Seen()
    informer.subscribe(seen)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        try:
            yield seen
        finally:
            task.cancel()


def informer_of(
    client: Client,
    kind: type[Resource],
    scope: Scope | None = None,
    *,
    options: FeedOptions = QUICK,
    **more: Any,
) -> Informer[Any]:
    scope = scope or Scope(everything=True)
    return Informer(client, kind, scope, random=Random(7), options=options, **more)


async def has(informer: Informer[Any], *names: str) -> None:
    """Wait until the store has exactly the objects of these names."""
    wanted = sorted(names)

    def agrees() -> bool:
        have = sorted(name for _, name in informer.store.keys())  # noqa: SIM118
        assert have == wanted
        return True

    await eventually(agrees)


def kept(informer: Informer[Any], name: str, *, namespace: str = "default") -> Any:
    """The object of this name, which must be there."""
    found = informer.store.get((namespace, name))
    assert found is not None
    return found


def problem_of(informer: Informer[Any]) -> str:
    """What it says of itself now; nothing when all is well."""
    return informer.problem(asyncio.get_running_loop().time()) or ""
