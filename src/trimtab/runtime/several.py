"""Several operators in one process: their managers, behind one set of endpoints.

Each keeps its own caches, lease and field managers. Health is that of all together,
metrics carry the label ``operator``, and *why* is asked of each. Webhooks are served at
one port for all that have any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from trimtab.runtime import logs
from trimtab.runtime.endpoints import Endpoints
from trimtab.runtime.health import Health, Report
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import CONTENT_TYPE, PREFIX, Metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from trimtab.runtime.webhooks.running import Webhooks

logger = logging.getLogger("trimtab.runtime")

PROCESS = "process_"
"""What begins so is about the process, not about an operator in it."""
WEBHOOKS = f"{PREFIX}webhook_"


class Several:
    """Runs managers until it is stopped, or one of them fails.

    Assumptions: the managers were told to serve nothing themselves (``port=None``), and
    were handed ``webhooks``, if their operators have any.
    """

    def __init__(
        self,
        managers: Sequence[Manager],
        *,
        host: str,
        port: int | None,
        webhooks: Webhooks | None = None,
    ) -> None:
        self.managers = managers
        self.webhooks = webhooks
        self._host = host
        self._port = port
        self.health = Health()
        self._metrics = Metrics()
        for manager in managers:
            name = manager.operator.name
            self.health.add_live(name, partial(_problem, manager.health.live))
            if webhooks is None:
                self.health.add_ready(name, partial(_not_ready, manager))
        if webhooks is not None:
            # As in one operator: no cache's trouble may end that reviews come here.
            self.health.add_ready("webhooks", webhooks.problem)
            self._metrics.add(webhooks.samples)

    def stop(self, why: str = "") -> None:
        """Let ``run`` come to its end."""
        if self.webhooks is not None:
            self.webhooks.stop()
        for manager in self.managers:
            manager.stop(why)

    async def run(self) -> None:
        """Run all until stopped."""
        async with AsyncExitStack() as stack:
            if self._port is not None:
                served = await stack.enter_async_context(self._endpoints(self._port))
                place = f"{served.host}:{served.port}"
                logger.info("Health and metrics are at http://%s.", place)
            async with asyncio.TaskGroup() as group:
                work = [
                    group.create_task(manager.run(), name=manager.operator.name)
                    for manager in self.managers
                ]
                if self.webhooks is not None:
                    task = group.create_task(self.webhooks.run(), name="webhooks")
                    await asyncio.wait(work)
                    await self.webhooks.lingered()
                    task.cancel()

    def _endpoints(self, port: int) -> Endpoints:
        return Endpoints(
            self._host,
            port,
            health=self.health,
            metrics=self.render,
            why=self.why,
            log=logs.level,
        )

    def why(self, kind: str, namespace: str, name: str) -> Any:
        """What each operator knows of an object; None if none has such a kind."""
        begun = [each for each in self.managers if _has_begun(each)]
        answers = [each.why(kind, namespace, name) for each in begun]
        found = [told for each in answers if each for told in each["controllers"]]
        return {"controllers": found} if found else None

    def render(self) -> tuple[str, bytes]:
        """The metrics of all operators, each with its name as a label."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return CONTENT_TYPE, generate_latest(registry)

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry asks this so as not to collect at registration."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        """Each family once, with the samples of all."""
        families: dict[str, Metric] = {}
        for manager in self.managers:
            for metric in manager.metrics.registry.collect():
                first = families.setdefault(metric.name, metric)
                about_process = metric.name.startswith(PROCESS)
                if about_process:
                    continue
                label = {"operator": manager.operator.name}
                added = [
                    each._replace(labels={**each.labels, **label})
                    for each in metric.samples
                ]
                first.samples = added if first is metric else [*first.samples, *added]
        for metric in self._metrics.collect():
            if metric.name.startswith(WEBHOOKS):
                # They are of the process; the name of each says whose it is.
                families[metric.name].samples = metric.samples
        yield from families.values()


def _problem(probe: Callable[[], Report]) -> str | None:
    report = probe()
    return None if report.healthy else report.text


def _has_begun(manager: Manager) -> bool:
    return all(controller.informers for controller in manager.controllers)


def _not_ready(manager: Manager) -> str | None:
    if not _has_begun(manager):
        return "it has not begun to watch"
    return _problem(manager.health.ready)
