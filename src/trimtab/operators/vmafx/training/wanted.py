"""Wanted: which trainers a node's samples go to, as the watch of a gateway shows it.

The trainings, and the key that their tokens are made of, are read beside all else: a
cluster without them, or a gateway that may not read them, gives its jobs away as ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

from trimtab.cache import Cache, Scope
from trimtab.client import Client, TrimtabError
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.training.tokens import LIFETIME, Key
from trimtab.operators.vmafx.wire import controller_pb2 as wire

MOST: Final = 16
"""Trainers that learn from one job."""
_LOOK: Final = 1.0
"""Seconds until the key is looked for again, if there is none yet."""

log = logging.getLogger(__name__)


class Wanted:
    """Who wants samples of a job's frames; ``run`` in a task group.

    Guarantees: a model learns from no tenant's clips but its own; without tenants, all
    namespaces are one. Nobody is named whose token is not known.
    """

    def __init__(
        self,
        client: Client,
        *,
        scope: Scope,
        namespace: str,
        random: Random,
        tenant_of: Callable[[str], str] = lambda namespace: "",
    ) -> None:
        self._cache = Cache(client, random=random)
        trainings = self._cache.informer(VmafxModelTraining, scope)
        self._store = trainings.store
        self._stirred = asyncio.Event()
        trainings.subscribe(lambda change: self._stirred.set())
        self._tenant_of = tenant_of
        self._key = Key(client, namespace=namespace)

    async def run(self) -> None:
        """Follow the trainings and the key, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            group.create_task(self._follow())

    async def _follow(self) -> None:
        """Know the key while there are trainings, if possible before they run."""
        told = ""
        while True:
            self._stirred.clear()
            running = [bool(each.status.address) for each in self._store.values()]
            if running:
                told = await self._read(told, needed=any(running))
            if self._key.is_known:
                await asyncio.sleep(LIFETIME)
                continue
            # The operator makes the first key before it says anything of a training.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK if running else None):
                    await self._stirred.wait()

    async def _read(self, told: str, *, needed: bool) -> str:
        """Read the key; why that failed, which is told once, if somebody needs it."""
        try:
            await self._key.fresh()
        except TrimtabError as error:
            if needed and told != str(error):
                log.warning("The key of trainers' tokens is not known: %s", error)
            return str(error) if needed else ""
        return ""

    def by(self, node: VmafxNode, job: VmafxJob) -> list[wire.Trainer]:
        """The trainers that learn from what this node finds of this job."""
        if not self._key.is_known:
            return []
        tenant = self._tenant_of(job.metadata.namespace)
        found = [
            wire.Trainer(
                name="/".join(each.key),
                address=each.status.address,
                features=each.status.features,
                token=self._key.token(each),
            )
            for each in self._store.values()
            if takes(each, node) and self._tenant_of(each.metadata.namespace) == tenant
        ]
        return sorted(found, key=lambda each: each.name)[:MOST]


def takes(training: VmafxModelTraining, node: VmafxNode) -> bool:
    """Whether a trainer learns now, and from this node."""
    status, labels = training.status, node.metadata.labels
    if status.phase != "Running" or not status.address or not status.features:
        return False
    if training.spec.paused or training.metadata.deletionTimestamp is not None:
        return False
    selector = training.spec.dataSource.nodeSelector
    return all(labels.get(key) == value for key, value in selector.items())
