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
from trimtab.kubelet.statuses import LOST, LOST_MESSAGE, Plain

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
        over, outcome = self._run.over, self._run.outcome
        inits = [each.status(over=over) for each in self._run.inits]
        mains = [each.status(over=over) for each in self._run.mains]
        guests = [_guest(each.status()) for each in self._run.guests]
        phase = self._phase(inits, mains)
        told = phase == outcome.phase or not over
        stated = statuses.conditions(
            self._run.pod,
            inits,
            mains,
            phase=phase,
            sandbox=self._run.sandbox and not over,
        )
        if over and phase not in statuses.TERMINAL:
            phase = statuses.FAILED
        if over and self._run.initialized:
            _settle(mains, now)
        self._conditions = statuses.stamped(
            stated,
            self._conditions,
            now=now,
            generation=self._run.pod.metadata.generation,
        )
        return {
            "phase": phase,
            "observedGeneration": self._run.pod.metadata.generation or None,
            "reason": (told and outcome.reason) or None,
            "message": (told and outcome.message) or None,
            "conditions": self._conditions,
            "startTime": rfc3339(self._run.started),
            "hostIP": LOOPBACK,
            "hostIPs": [{"ip": LOOPBACK}],
            **self._addresses(),
            "initContainerStatuses": inits or None,
            "containerStatuses": mains,
            **({"ephemeralContainerStatuses": guests} if guests else {}),
        }

    def _addresses(self) -> Plain:
        if not self._run.sandbox:
            return {}
        address = self._run.place.address
        return {"podIP": address, "podIPs": [REPLACE, {"ip": address}]}

    def _phase(self, inits: list[Plain], mains: list[Plain]) -> str:
        outcome = self._run.outcome
        phase = statuses.phase(self._run.pod, inits, mains, over=self._run.over)
        if self._run.over and outcome.phase:
            well = phase == statuses.SUCCEEDED and not outcome.firm
            return phase if well else outcome.phase
        # A phase that is over is only told when nothing runs any more.
        if phase in statuses.TERMINAL and not self._run.over:
            return statuses.RUNNING
        return phase

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


def _guest(status: Plain) -> Plain:
    """Nobody asks an ephemeral container whether it has started."""
    return {**status, "started": None}


def _settle(mains: list[Plain], now: datetime) -> None:
    """Of a pod that is over no container waits: what never ran did not end well."""
    for each in mains:
        if "waiting" in each["state"]:
            each["state"] = statuses.terminated(
                137, reason=LOST, message=LOST_MESSAGE, since=None, now=now
            )
