"""The cache: one informer for each kind and scope, however many use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any, TypeVar

import msgspec

from trimtab.api.resource import Resource
from trimtab.cache.accounting import Accountant, AccountantStatistics
from trimtab.cache.indexes import Index
from trimtab.cache.informer import Informer, InformerStatistics
from trimtab.cache.keeping import Keep
from trimtab.cache.options import FeedOptions
from trimtab.cache.scope import Scope
from trimtab.client import Client

R = TypeVar("R", bound=Resource)


class CacheStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds, for each informer and in all."""

    informers: tuple[tuple[str, InformerStatistics], ...]
    """By kind; a kind that is there in several scopes comes several times."""
    objects: int
    bytes: int
    accountant: AccountantStatistics
    """What was demoted to stay within the budget."""


class Shared:
    """An informer and how many use it."""

    __slots__ = ("informer", "keep", "task", "users")

    def __init__(self, informer: Informer[Any], keep: Any) -> None:
        self.informer = informer
        self.keep = keep
        self.users = 1
        self.task: asyncio.Task[None] | None = None
        """While the cache runs."""


class Cache:
    """Hands out informers, runs them, and stops each when its last user leaves.

    Flow: ``informer()`` at any time, before or while ``run()`` runs in the caller's
    task group; ``release()`` once for each.
    Guarantees: one informer for a kind and a scope. Cancelling ``run()`` ends all of
    them and leaves nothing behind.
    Assumptions: an informer that is rescoped is rescoped for all who share it.
    """

    def __init__(
        self,
        client: Client,
        *,
        random: Random,
        budget: int | None = None,
        options: FeedOptions | None = None,
    ) -> None:
        self._client = client
        self._random = random
        self._options = options
        self._accountant = Accountant(budget)
        self._shared: list[Shared] = []
        self._left: list[Shared] = []
        """Those that nobody uses any more and that have not ended yet."""
        self._changed = asyncio.Event()

    def informer(
        self,
        kind: type[R],
        scope: Scope,
        *,
        indexes: Iterable[Index] = (),
        keep: Keep[Any] | None = None,
    ) -> Informer[R]:
        """The informer of a kind and a scope; give it back with :meth:`release`.

        Indexes that it does not have yet are built from what is there.
        Errors: ValueError if others keep the same objects in another form.
        """
        for each in self._shared:
            if each.informer.kind is kind and each.informer.scope == scope:
                return self._join(each, indexes=indexes, keep=keep)
        made = Informer(
            self._client,
            kind,
            scope,
            random=self._random,
            indexes=indexes,
            keep=keep,
            accountant=self._accountant,
            options=self._options,
        )
        self._shared.append(Shared(made, keep))
        self._changed.set()
        return made

    def _join(
        self, shared: Shared, *, indexes: Iterable[Index], keep: Keep[Any] | None
    ) -> Informer[Any]:
        if keep is not None and keep != shared.keep:
            raise ValueError(
                f"{shared.informer} of this scope is cached with keep={shared.keep!r} "
                f"by others, so it cannot be with keep={keep!r}: use the same, or "
                "another scope."
            )
        for index in indexes:
            shared.informer.store.add_index(index)
        shared.users += 1
        return shared.informer

    def release(self, informer: Informer[Any]) -> None:
        """One user leaves; the informer stops with the last. Its store stays as is."""
        for each in self._shared:
            if each.informer is informer:
                each.users -= 1
                if not each.users:
                    self._shared.remove(each)
                    self._left.append(each)
                    self._changed.set()
                return
        raise ValueError(f"{informer} was released more often than it was asked for.")

    async def run(self) -> None:
        """Run every informer until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._changed.clear()
                    self._stop_left()
                    for each in self._shared:
                        if each.task is None:
                            each.task = group.create_task(each.informer.run())
                    await self._changed.wait()
        finally:
            for each in self._shared:
                each.task = None

    def _stop_left(self) -> None:
        for each in self._left:
            if each.task is not None:
                each.task.cancel()
        self._left.clear()

    @property
    def synced(self) -> bool:
        """Whether every informer has read its scope once."""
        return all(each.informer.synced for each in self._shared)

    async def wait_synced(self) -> None:
        for each in tuple(self._shared):
            await each.informer.wait_synced()

    def problem(self, now: float) -> str | None:
        """The first problem of any informer, in one sentence."""
        for each in self._shared:
            if text := each.informer.problem(now):
                return text
        return None

    def statistics(self) -> CacheStatistics:
        found = tuple(
            (str(each.informer), each.informer.statistics()) for each in self._shared
        )
        return CacheStatistics(
            informers=found,
            objects=sum(each.objects for _, each in found),
            bytes=sum(each.bytes for _, each in found),
            accountant=self._accountant.statistics(),
        )
