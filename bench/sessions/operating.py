"""Operating: a program that operates sessions, as a process, watched from outside."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from bench.board.peers import Command, go_program
from bench.measure import ROOT, cpu
from bench.sessions.auditing import USER
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


class Peer(NamedTuple):
    """A program that operates sessions."""

    name: str
    command: Callable[[Path], Command]
    """What starts it, by the kubeconfig that it is to use."""
    patience: float = 600.0
    """Seconds after which it is measured although it has not come to rest."""


def _ours(kubeconfig: Path) -> Command:
    return [
        *(sys.executable, "-m", "trimtab", "run"),
        *("trimtab.operators.sessions.app", "--port", "0"),
        *("--kubeconfig", str(kubeconfig), "--context", USER),
    ]


def _original(kubeconfig: Path) -> Command:
    built = go_program("original", module=ORIGINAL)
    return [str(built), "--path", str(kubeconfig), "--context", USER]


ORIGINAL = ROOT / "bench" / "peers" / "sessions-go"
OURS = Peer("trimtab", _ours)
PEERS = {"original": Peer("model of the original", _original, patience=180.0)}


class Operator:
    """One run of the operator."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    def port(self) -> int:
        text = self._log.read_text(errors="replace")
        assert self.process.returncode is None, text[-3000:]
        found = re.search(r"http://[\d.]+:(\d+)", text)
        return int(found[1]) if found else 0

    def memory(self, field: str = "VmHWM") -> float:
        """MiB; at its peak, or now (``VmRSS``)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else 0.0

    def cpu(self) -> float:
        """Seconds that it has worked."""
        return cpu(self.process.pid)

    async def ready(self) -> None:
        port = await eventually(self.port, within=60.0)

        async def look() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()

        await eventually(look, within=120.0, every=0.1)

    async def stop(self) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        await self.process.wait()
        return time.perf_counter() - began


@asynccontextmanager
async def operating(
    here: Cluster,
    folder: Path,
    *,
    peer: Peer = OURS,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Operator]:
    """A program, from when it is ready until the block ends."""
    log = folder / f"operator-{time.monotonic_ns()}.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *peer.command(here.kubeconfig),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "src"),
                **(environment or {}),
            },
        )
    made = Operator(process, log)
    try:
        await made.ready()
        yield made
    finally:
        if process.returncode is None:
            await made.stop()
