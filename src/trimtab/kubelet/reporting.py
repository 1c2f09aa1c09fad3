"""Reporting: what is said of a pod, written as often as it changes and no more."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trimtab.api.kinds import Pod
from trimtab.api.objects import wire
from trimtab.api.times import rfc3339
from trimtab.client import ApiError, NotFound, TransportError
from trimtab.kubelet import statuses
from trimtab.kubelet.site import LOOPBACK
from trimtab.kubelet.statuses import Plain

if TYPE_CHECKING:
    from trimtab.kubelet.pods import PodRun

logger = logging.getLogger("trimtab.kubelet")

RETRY = 1.0
"""Seconds before a status that could not be written is written again."""
FIRST_WORD = 0.1
"""Seconds after which a pod of which nothing runs yet is told of."""
REPLACE = {"$patch": "replace"}
"""In a list that a strategic patch would merge: what is there before goes."""


class Reporter:
    """Writes the status of one pod.

    Flow: ``run`` in a task, which ends when the pod is over and that is told;
    ``changed`` whenever there is something new.
    """

    def __init__(self, run: PodRun) -> None:
        self._run = run
        self._dirty = asyncio.Event()
        self._dirty.set()
        self._begun = asyncio.Event()
        """Set when there is more to say than that the pod is here."""
        self._sent: Plain = {}
        known = wire(run.pod).get("status", {})
        self._conditions: list[Plain] = known.get("conditions", [])

    def changed(self) -> None:
        """Something is to be said."""
        self._begun.set()
        self._dirty.set()

    def status(self) -> Plain:
        """All that there is to say."""
        now = self._run.site.now()
        inits = [each.status() for each in self._run.inits]
        mains = [each.status() for each in self._run.mains]
        if self._run.over:
            self._settle((*inits, *mains), now)
        phase = self._phase(inits, mains)
        stated = statuses.conditions(
            self._run.pod,
            inits,
            mains,
            phase=phase,
            sandbox=self._run.sandbox and not self._run.over,
        )
        if self._run.outcome.condition:
            stated.append(self._run.outcome.condition)
        self._conditions = statuses.stamped(
            stated,
            self._conditions,
            now=now,
            generation=self._run.pod.metadata.generation,
        )
        return {
            "phase": phase,
            "observedGeneration": self._run.pod.metadata.generation or None,
            "reason": self._run.outcome.reason or None,
            "message": self._run.outcome.message or None,
            "conditions": self._conditions,
            "startTime": rfc3339(self._run.started),
            "hostIP": LOOPBACK,
            "hostIPs": [{"ip": LOOPBACK}],
            **self._addresses(),
            "initContainerStatuses": inits or None,
            "containerStatuses": mains,
        }

    def _addresses(self) -> Plain:
        if not self._run.sandbox:
            return {}
        address = self._run.place.address
        return {"podIP": address, "podIPs": [REPLACE, {"ip": address}]}

    def _phase(self, inits: list[Plain], mains: list[Plain]) -> str:
        if self._run.outcome.phase and self._run.over:
            return self._run.outcome.phase
        phase = statuses.phase(self._run.pod, inits, mains, over=self._run.over)
        # A phase that is over is only told when nothing runs any more.
        if phase in statuses.TERMINAL and not self._run.over:
            return statuses.RUNNING
        return phase

    def _settle(self, all: tuple[Plain, ...], now: datetime) -> None:
        """Of a pod that is over no container waits: what never ran did not end well."""
        for each in all:
            if "waiting" in each["state"] and self._run.ending.is_set():
                ended = each["lastState"] or statuses.terminated(
                    137,
                    reason="ContainerStatusUnknown",
                    message="The container could not be located when the pod was "
                    "terminated",
                    since=None,
                    now=now,
                )
                each["state"], each["lastState"] = ended, {}

    async def run(self) -> None:
        """Write what changed, as often as it changes and no more, until it is over."""
        with suppress(TimeoutError):  # most pods run at once, and one write tells it
            async with asyncio.timeout(FIRST_WORD):
                await self._begun.wait()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            last = self._run.over
            wanted = self.status()
            if not self._run.vanished and wanted != self._sent:
                await self._write(wanted)
            if last and not self._dirty.is_set():
                return

    async def _write(self, wanted: Plain) -> None:
        meta = self._run.pod.metadata
        body: Any = {"metadata": {"uid": meta.uid}, "status": wanted}
        try:
            await self._run.site.client.patch(
                Pod,
                meta.name,
                body,
                how="strategic",
                namespace=meta.namespace,
                subresource="status",
                manager="kubelet",
            )
            self._sent = wanted
        except NotFound:
            self._run.vanish()
        except TransportError as error:
            logger.warning(
                "%s", f"The status of {self._run.pod} was not written: {error}"
            )
            await asyncio.sleep(RETRY)
            self._dirty.set()
        except ApiError as error:
            if error.status == 409:  # another pod has its name by now
                self._run.vanish()
                return
            logger.warning("%s", f"The status of {self._run.pod} was refused: {error}")
            if error.status >= 500 or error.status == 429:
                await asyncio.sleep(RETRY)
                self._dirty.set()
