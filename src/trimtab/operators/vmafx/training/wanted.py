"""Wanted: which trainers a node's samples go to, as the watch of a gateway shows it.

The trainings are read beside everything else: a cluster without them, or a gateway that
may not read them, gives its jobs away as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from trimtab.cache import Cache, Scope
from trimtab.client import Client
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.wire import controller_pb2 as wire

MOST: Final = 16
"""Trainers that learn from one job."""


class Wanted:
    """Who wants samples of a job's frames; ``run`` in a task group.

    Guarantees: a model learns from no tenant's clips but its own; without tenants, all
    namespaces are one.
    """

    def __init__(
        self,
        client: Client,
        *,
        scope: Scope,
        random: Random,
        tenant_of: Callable[[str], str] = lambda namespace: "",
    ) -> None:
        self._cache = Cache(client, random=random)
        self._trainings = self._cache.informer(VmafxModelTraining, scope)
        self._tenant_of = tenant_of

    async def run(self) -> None:
        """Follow the trainings, until cancelled."""
        await self._cache.run()

    def by(self, node: VmafxNode, job: VmafxJob) -> list[wire.Trainer]:
        """The trainers that learn from what this node finds of this job."""
        tenant = self._tenant_of(job.metadata.namespace)
        found = [
            wire.Trainer(
                name="/".join(each.key),
                address=each.status.address,
                features=each.status.features,
            )
            for each in self._trainings.store.values()
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
