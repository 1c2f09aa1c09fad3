"""A replica of the soaked operator: a process behind a relay, seen from outside."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.soaking.relay import HOST, Relay
from trimtab.testing import eventually

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = ROOT / "bench" / "soak_operator.py"
ADDRESS = re.compile(r"Health and metrics are at http://[0-9.]+:(\d+)")
SCRAPE_WITHIN = 5.0
STOP_WITHIN = 5.0
PAGE = os.sysconf("SC_PAGE_SIZE")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a process holds at one moment."""

    tasks: int
    threads: int
    descriptors: int
    sockets: int


class Replica:
    """One process at a time, started again after it was killed."""

    def __init__(
        self, name: str, *, relay: Relay, kubeconfig: Path, folder: Path, lease: int
    ) -> None:
        self.name = name
        self.relay = relay
        self.starts = 0
        self._kubeconfig = folder / f"{name}.kubeconfig"
        self._log = folder / f"{name}.log"
        self._lease = lease
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0
        _write_private(self._kubeconfig, _through(kubeconfig, relay.server))

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was not started"
        return self._process.pid

    async def start(self) -> None:
        """Start it; it is not ready when this returns."""
        self.starts += 1
        self._port = 0
        arguments = (
            *("run", str(OPERATOR), f"--kubeconfig={self._kubeconfig}"),
            *("--namespace=default", "--port=0", f"--lease={self._lease}"),
        )
        # Each start has a log of its own: its port is looked up there.
        self._log = self._log.with_name(f"{self.name}-{self.starts}.log")
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "trimtab", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )

    async def ready(self, *, within: float = 60.0) -> None:
        """Wait until its caches are complete."""
        await eventually(
            self._is_ready, within=within, every=0.1, describe=f"{self.name} is ready"
        )

    async def leads(self) -> bool:
        """Whether it says that it leads; a process that says nothing does not."""
        try:
            return (await self.metrics()).get("trimtab_is_leader") == 1.0
        except (OSError, TimeoutError, ValueError):
            return False

    async def metrics(self) -> dict[str, float]:
        """What it says of itself, by the name of the sample with its labels."""
        lines = (await self._get("/metrics")).splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs if name}

    async def held(self) -> Held:
        """What it holds now; this very question is not counted."""
        tasks = int((await self.metrics())["trimtab_loop_tasks"])
        folder = Path(f"/proc/{self.pid}")
        links = [_link(each) for each in (folder / "fd").iterdir()]
        return Held(
            tasks=tasks,
            threads=len(list((folder / "task").iterdir())),
            descriptors=len(links),
            sockets=sum(link.startswith("socket:") for link in links),
        )

    def resident(self) -> int:
        """Bytes in memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> int:
        """Ask it to end, and wait for as long as it may take; its exit code."""
        assert self._process is not None
        self._process.terminate()
        async with asyncio.timeout(STOP_WITHIN):
            return await self._process.wait()

    def trouble(self) -> list[str]:
        """The errors in all its logs that are not about a server out of reach."""
        found = []
        for log in sorted(self._log.parent.glob(f"{self.name}-*.log")):
            for line in log.read_text(errors="replace").splitlines():
                if _is_bad(line):
                    found.append(line)
        return found

    async def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.returncode is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self.name} ended by itself:\n{tail}")
        try:
            return (await self._get("/readyz")).startswith("ok")
        except (OSError, TimeoutError, ValueError):
            return False

    async def _get(self, path: str) -> str:
        """The body of an answer; ValueError if it is not there to answer."""
        async with asyncio.timeout(SCRAPE_WITHIN):
            reader, writer = await asyncio.open_connection(HOST, self._address())
            try:
                head = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n"
                writer.write(f"{head}\r\n".encode())
                answer = await reader.read()
            finally:
                writer.transport.abort()
        first, _, body = answer.decode().partition("\r\n\r\n")
        if " 200 " not in first.partition("\r\n")[0]:
            raise ValueError(f"{self.name} does not answer {path}: {first[:200]}")
        return body

    def _address(self) -> int:
        if not self._port:
            found = ADDRESS.search(self._log.read_text(errors="replace"))
            if found is None:
                raise ValueError(f"{self.name} has not said its port yet")
            self._port = int(found[1])
        return self._port


def _is_bad(line: str) -> bool:
    """Whether a line of a log tells of a mistake in the program."""
    try:
        record: Any = json.loads(line)
    except ValueError:
        return bool(line.strip())  # a warning or a traceback past the log
    return "exception" in record or record.get("level") in ("error", "critical")


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:  # it was open when the folder was read
        return ""


def _through(kubeconfig: Path, server: str) -> bytes:
    """The same credentials, for the server behind a relay."""
    config = json.loads(kubeconfig.read_bytes())
    for each in config["clusters"]:
        each["cluster"]["server"] = server
    return json.dumps(config).encode()


def _write_private(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
