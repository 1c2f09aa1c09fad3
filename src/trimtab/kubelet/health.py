"""Health: the probes of a running container, and the hooks at its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from trimtab.api.kinds import LifecycleHandler, Probe
from trimtab.kubelet import checks
from trimtab.kubelet.checks import Checked
from trimtab.kubelet.probing import Kind, Prober, check
from trimtab.kubelet.processes import Process

if TYPE_CHECKING:
    from trimtab.kubelet.containers import ContainerRun

GRACE = 30


class Health:
    """Looks after one container while a process of it runs.

    Flow: ``post_start``, ``start``, ``stop``; ``pre_stop`` before the process is ended.
    """

    def __init__(self, run: ContainerRun) -> None:
        self._run = run
        self._probers: list[asyncio.Task[None]] = []

    def _grace(self) -> float:
        usual = self._run.owner.pod.spec.terminationGracePeriodSeconds
        return float(GRACE if usual is None else usual)

    def start(self, process: Process) -> None:
        """Begin to look: first whether it has started, if it says how."""
        if self._run.spec.startupProbe is not None:
            self._probe("Startup", process, self._startup)
        else:
            self._started_up(process)

    def _started_up(self, process: Process) -> None:
        self._run.started = True
        self._run.began.set()
        self._run.ready = self._run.is_ready_at_once
        self._run.owner.changed()
        if self._run.spec.readinessProbe is not None:
            self._probe("Readiness", process, self._readiness)
        if self._run.spec.livenessProbe is not None:
            self._probe("Liveness", process, self._liveness)

    def _probe(
        self, kind: Kind, process: Process, tell: Callable[[Process, bool], None]
    ) -> None:
        probe = getattr(self._run.spec, f"{kind.lower()}Probe")
        host = self._run.owner.place.address

        async def look() -> Checked:
            return await check(probe, self._run.spec, host, self._run.run)

        prober = Prober(
            kind,
            probe,
            look=look,
            tell=lambda ok: tell(process, ok),
            warn=lambda text: self._run.event("Warning", "Unhealthy", text),
        )
        group: asyncio.TaskGroup = self._run.owner.group
        self._probers.append(group.create_task(prober.run()))

    def _startup(self, process: Process, ok: bool) -> None:
        if ok:
            self._started_up(process)
        else:
            self._unhealthy("startup", self._run.spec.startupProbe)

    def _readiness(self, process: Process, ok: bool) -> None:
        self._run.ready = ok
        self._run.owner.changed()

    def _liveness(self, process: Process, ok: bool) -> None:
        if not ok:
            self._unhealthy("liveness", self._run.spec.livenessProbe)

    def _unhealthy(self, kind: str, probe: Probe | None) -> None:
        own = probe.terminationGracePeriodSeconds if probe else None
        grace = self._grace() if own is None else own
        why = f"Container {self._run.spec.name} failed {kind} probe"
        if self._run.policy != "Never":
            why += ", will be restarted"
        elif self._run.owner.is_last(self._run):
            why = ""  # it is the pod that is ended then
        self._run.interrupt(why, float(grace))

    def stop(self) -> None:
        """Look no more."""
        for task in self._probers:
            task.cancel()
        self._probers.clear()

    async def post_start(self, process: Process) -> bool:
        """Run the hook after the start; False if that is the end of the process."""
        handler = self._run.spec.lifecycle and self._run.spec.lifecycle.postStart
        if not handler:
            return True
        found = await self._hook(handler)
        if found.ok or process.exit.done():
            return True
        self._run.event("Warning", "FailedPostStartHook", "PostStartHook failed")
        self._run.interrupt("FailedPostStartHook", self._grace())
        return False

    async def pre_stop(self, process: Process, grace: float) -> None:
        """Run the hook before the end, within the time that the end may take."""
        handler = self._run.spec.lifecycle and self._run.spec.lifecycle.preStop
        if not handler or not grace or process.exit.done():
            return
        found = Checked(False)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                found = await self._hook(handler)
        if not found.ok:
            self._run.event("Warning", "FailedPreStopHook", "PreStopHook failed")

    async def _hook(self, handler: LifecycleHandler) -> Checked:
        host = self._run.owner.place.address
        if handler.exec is not None:
            return await checks.by_command(handler.exec.command, self._run.run)
        if handler.sleep is not None:
            await asyncio.sleep(handler.sleep.seconds)
            return Checked(True)
        try:
            if handler.httpGet is not None:
                action = handler.httpGet
                port = checks.port_of(self._run.spec, action.port)
                return await checks.by_request(action, action.host or host, port)
            if handler.tcpSocket is not None:
                port = checks.port_of(self._run.spec, handler.tcpSocket.port)
                return await checks.by_connection(handler.tcpSocket.host or host, port)
        except ValueError as error:
            return Checked(False, str(error))
        return Checked(True)
