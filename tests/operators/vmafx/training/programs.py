"""The trainer program as a process of a test, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.operators.vmafx.training.school import base
from trimtab.operators.vmafx.training.base import save
from trimtab.operators.vmafx.training.samples import Sample
from trimtab.testing import eventually


class Program:
    """One run of a trainer."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.port = 0

    async def started(self) -> None:
        assert self.process.stdout is not None
        line = (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode()
        self.port = int(line.rstrip(".\n").rpartition(":")[2])

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert await self.process.wait() == -signal.SIGKILL

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(self.process.wait(), 30) == 0

    async def ask(self, path: str, *, method: str = "GET", body: bytes = b"") -> Any:
        """The answer of its HTTP."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])

    async def send(self, samples: Sequence[Sample], *, until: int) -> int:
        """Send samples at once; how many were acknowledged, out of ``until``."""
        where = str(self.folder / "socket")
        reader, writer = await asyncio.open_unix_connection(where)
        lines = (msgspec.json.encode(each) + b"\n" for each in samples)
        writer.write(b"".join(lines))
        taken = 0
        try:
            while taken < until and (line := await reader.readline()):
                taken += msgspec.json.decode(line)["ok"]
        except ConnectionError:
            pass
        writer.close()
        return taken


@asynccontextmanager
async def program(folder: Path, *arguments: str) -> AsyncIterator[Program]:
    """A trainer of a folder, which learns quickly."""
    path = folder / "base.onnx"
    if not path.exists():
        save(base(), path)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab.operators.vmafx.training"),
        *("--directory", str(folder), "--base", str(path), "--address", "127.0.0.1:0"),
        *("--socket", str(folder / "socket"), "--interval", "0", "--samples", "400"),
        *("--rate", "3e-3", "--ema", "0.9", *arguments),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    made = Program(process, folder)
    try:
        await made.started()
        yield made
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def judged(made: Program, *, samples: int) -> dict[str, Any]:
    """What it says when it has taken so many samples and judged what it learned."""

    async def look() -> dict[str, Any]:
        found: dict[str, Any] = await made.ask("/status")
        assert found["current_samples"] >= samples
        return found

    return await eventually(look, within=30)
