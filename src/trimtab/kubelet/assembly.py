"""The assembly: a node and what a cluster without a control plane lacks beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

import msgspec

from trimtab.api.kinds import Node, Service, WholePod
from trimtab.cache import Cache, Scope
from trimtab.client import Client, TrimtabError
from trimtab.kubelet.kubelet import Kubelet, scope_of
from trimtab.kubelet.scheduler import NAME as SCHEDULER
from trimtab.kubelet.scheduler import Scheduler
from trimtab.kubelet.services import MANAGER as ENDPOINTS
from trimtab.kubelet.services import Services
from trimtab.kubelet.site import KubeletOptions
from trimtab.kubelet.workloads.jobs import PAUSES
from trimtab.kubelet.workloads.operator import workloads
from trimtab.runtime.events import Recorder
from trimtab.runtime.lease import identity
from trimtab.runtime.manager import Manager, ManagerOptions

if TYPE_CHECKING:
    from trimtab.kubelet.endpoint import Endpoint

logger = logging.getLogger("trimtab.kubelet")

EVERYTHING = Scope(everything=True)


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What runs besides the kubelet, because nobody else in the cluster does it."""

    scheduler: bool = True
    workloads: bool = True
    """Deployments, ReplicaSets, Jobs and CronJobs."""
    services: bool = True
    """EndpointSlices, and ports on the loopback at which Services are reached."""
    endpoint: bool = False
    """Serve logs and commands to an API server outside of this process."""


class Assembly:
    """A kubelet, and the parts that were asked for, on one cache.

    Flow: ``run`` in a task; ``kubelet.ready`` tells when pods can come.
    """

    def __init__(
        self,
        client: Client,
        options: KubeletOptions,
        *,
        random: Random,
        now: Callable[[], datetime],
        parts: Parts | None = None,
    ) -> None:
        self.parts = parts or Parts()
        self.job_pauses = PAUSES
        """After pods of a Job that failed."""
        self._client = client
        self._random = random
        self._now = now
        self._cache = Cache(client, random=random)
        alone = self.parts.scheduler or self.parts.services
        scope = EVERYTHING if alone else scope_of(options.name)
        self._pods = self._cache.informer(WholePod, scope)
        self.kubelet = Kubelet(client, options, pods=self._pods, random=random, now=now)

        self.endpoint: Endpoint | None = None
        if self.parts.endpoint:
            self.kubelet.listen = self._listen

    async def _listen(self) -> int:
        """The port of the endpoint; 0 if the cluster lets us have none."""
        # Here, because HTTP costs memory that a node beside its server shares.
        from trimtab.kubelet.endpoint import Endpoint
        from trimtab.kubelet.serving import Streams

        name = self.kubelet.options.name
        streams = Streams(self.kubelet)
        made = Endpoint(self._client, streams, name=name, now=self._now)
        try:
            port = await made.open()
        except TrimtabError as error:
            logger.warning("%s", error)
            return 0
        self.endpoint = made
        return port

    async def run(self) -> None:
        """Run all of it until cancelled."""
        try:
            await self._run()
        finally:
            if self.endpoint is not None:
                await self.endpoint.close()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            group.create_task(self.kubelet.run())
            if self.parts.scheduler:
                recorder = self._recorder(SCHEDULER)
                scheduler = Scheduler(
                    self._client,
                    pods=self._pods,
                    nodes=self._cache.informer(Node, EVERYTHING),
                    recorder=recorder,
                    now=self._now,
                )
                group.create_task(recorder.run())
                group.create_task(scheduler.run())

            if self.parts.services:
                recorder = self._recorder(ENDPOINTS)
                group.create_task(recorder.run())
                group.create_task(self._services(recorder).run())
            if self.parts.workloads:
                manager = self._manager()
                group.create_task(manager.run())

    def _services(self, recorder: Recorder) -> Services:
        kubelet = self.kubelet
        made = Services(
            self._client,
            pods=self._pods,
            services=self._cache.informer(Service, EVERYTHING),
            recorder=recorder,
            changed=kubelet.rewrite_hosts,
        )
        kubelet.services = made
        return made

    def _manager(self) -> Manager:
        return Manager(
            workloads(self._random, pauses=self.job_pauses),
            self._client,
            connect=_nobody_leads,
            random=self._random,
            now=self._now,
            options=ManagerOptions(port=None),
        )

    def _recorder(self, component: str) -> Recorder:
        return Recorder(
            self._client,
            component=component,
            instance=identity(self._random),
            now=self._now,
            random=self._random,
            pending=4096,
        )


def _nobody_leads() -> Client:
    raise AssertionError("workloads elect no leader")
