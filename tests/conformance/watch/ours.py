"""Trimtab's informer as a subject, within this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

from tests.conformance.watch.subjects import Report, Way
from tests.conformance.watch.world import GROUP, KIND, VERSION
from trimtab.api.resource import Resource
from trimtab.cache.changes import Change
from trimtab.cache.informer import Informer
from trimtab.cache.options import FeedOptions
from trimtab.cache.scope import Scope
from trimtab.client import Client, load


class Widget(Resource, group=GROUP, version=VERSION, kind=KIND, builtin=True):
    """Only its metadata matters."""


class Ours:
    """The informer with its defaults, but for what the scenario asks for."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self.added: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()

    async def start(self, kubeconfig: Path, *, way: Way, idle: float) -> None:
        client = await self._stack.enter_async_context(
            Client(load(kubeconfig=kubeconfig))
        )
        self.informer = Informer(
            client,
            Widget,
            Scope(everything=True),
            random=Random(7),
            options=FeedOptions(way=way, idle=idle),
        )
        self.informer.subscribe(self._saw)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        task = group.create_task(self.informer.run())
        self._stack.callback(task.cancel)

    def _saw(self, change: Change[Widget]) -> None:
        counts = {"ADDED": self.added, "DELETED": self.deleted}.get(change.type)
        if counts is not None:
            counts["/".join(change.key)] += 1

    async def report(self) -> Report:
        return Report(
            snapshot={
                "/".join(each.key): each.metadata.resourceVersion
                for each in self.informer.store.values()
            },
            added=dict(self.added),
            deleted=dict(self.deleted),
        )

    async def reset(self) -> None:
        """Its memory is not its own."""

    async def stop(self) -> None:
        await self._stack.aclose()
