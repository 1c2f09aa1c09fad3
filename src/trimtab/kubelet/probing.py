"""Probing: a check that is repeated, and what follows when it changes its mind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from trimtab.api.kinds import Container, Probe
from trimtab.kubelet import checks
from trimtab.kubelet.checks import Checked

UNKNOWN = "errored and resulted in unknown state"

Kind = Literal["Startup", "Liveness", "Readiness"]


async def check(
    probe: Probe, container: Container, host: str, run: checks.Run
) -> Checked:
    """One look; what takes too long, or cannot be asked, did not go well."""
    within = float(probe.timeoutSeconds or 1)
    if probe.exec is not None:
        return await _by_command(probe.exec.command, run, within)
    if probe.grpc is not None:
        port, service = probe.grpc.port, probe.grpc.service or ""
        return await checks.by_grpc(host, port, service, within=within)
    try:
        if probe.httpGet is not None:
            action, host = probe.httpGet, probe.httpGet.host or host
            port = checks.port_of(container, action.port)
            return await checks.by_request(action, host, port, within=within)
        if probe.tcpSocket is not None:
            port = checks.port_of(container, probe.tcpSocket.port)
            host = probe.tcpSocket.host or host
            return await checks.by_connection(host, port, within=within)
    except ValueError as error:  # the container has no port of that name
        return Checked(None, str(error))
    return Checked(True)


async def _by_command(
    command: Sequence[str], run: checks.Run, within: float
) -> Checked:
    try:
        async with asyncio.timeout(within):
            return await checks.by_command(command, run)
    except TimeoutError:
        words = " ".join(command)
        return Checked(
            False, f'command timed out: "{words}" timed out after {within:g}s'
        )


class Prober:
    """One probe of one running container.

    ``tell(ok)`` is called when the verdict changes: after ``successThreshold`` good
    looks in a row, or ``failureThreshold`` bad ones.
    """

    def __init__(
        self,
        kind: Kind,
        probe: Probe,
        *,
        look: Callable[[], Awaitable[Checked]],
        tell: Callable[[bool], None],
        warn: Callable[[str], None],
        period: float | None = None,
    ) -> None:
        self._kind = kind
        self._probe = probe
        self._period = float(probe.periodSeconds or 10) if period is None else period
        self._look = look
        self._tell = tell
        self._warn = warn
        self._streak = 0
        self._last: bool | None = None
        self._verdict: bool | None = None

    async def run(self) -> None:
        """Look again and again, until cancelled or, for a startup probe, well."""
        await asyncio.sleep(self._probe.initialDelaySeconds or 0)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._saw(await self._look())
            if self._kind == "Startup" and self._verdict:
                return
            await asyncio.sleep(max(0.0, self._period - (loop.time() - began)))

    def _saw(self, found: Checked) -> None:
        if found.ok is None:
            return self._warn(f"{self._kind} probe {UNKNOWN}: {found.output}")
        if not found.ok:
            self._warn(f"{self._kind} probe failed: {found.output}")
        self._streak = self._streak + 1 if found.ok is self._last else 1
        self._last = found.ok
        needed = (
            self._probe.successThreshold or 1
            if found.ok
            else self._probe.failureThreshold or 3
        )
        if self._streak >= needed and self._verdict is not found.ok:
            self._verdict = found.ok
            self._tell(found.ok)
