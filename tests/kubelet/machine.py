"""`trimtab up` with a node, as a process of its own that a test may kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trimtab import Client, load
from trimtab.testing import assets
from trimtab.testing.kubectl import Kubectl
from trimtab.testing.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN = 45.0


class Machine:
    """A cluster on this machine."""

    def __init__(
        self, process: asyncio.subprocess.Process, folder: Path, facts: dict[str, Any]
    ) -> None:
        self.process = process
        self.kubeconfig = Path(facts["kubeconfig"])
        self._folder = folder

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self) -> Client:
        return Client(load(kubeconfig=self.kubeconfig, environ={}))

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(
            program=assets.require("kubectl")["kubectl"],
            kubeconfig=self.kubeconfig,
            cache=self._folder / "cache",
        )

    def warden(self) -> int:
        """The process that starts containers."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        [found] = [
            int(each)
            for each in children.split()
            if b"warden.py" in Path(f"/proc/{each}/cmdline").read_bytes()
        ]
        return found

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def machine(folder: Path, *arguments: str) -> AsyncIterator[Machine]:
    """One that is ready; it is stopped at the end, unless the test has killed it."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "up", f"--data={folder / 'data'}"),
        *("--port=0", f"--ready-file={ready}", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        await eventually(
            lambda: ready.exists() or process.returncode is not None,
            within=READY_WITHIN,
            every=0.05,
        )
        yield Machine(process, folder, json.loads(ready.read_bytes()))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
