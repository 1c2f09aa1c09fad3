"""A worker for a test: the real program as a process, and the calls to it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from trimtab.client.calling import Caller, Place, Reply
from trimtab.pool import secrets
from trimtab.pool.calls import Target
from trimtab.pool.httpcalls import HttpCalls
from trimtab.pool.secrets import Authority

NAME, UID = "worker-a", "uid-a"
SOURCE = Path(__file__).resolve().parents[2]


def write_secret(folder: Path, *, authority: Authority) -> bytes:
    """The files that a pod of the worker has; its key."""
    now = datetime.now(UTC)
    data, _ = secrets.worker_data(
        NAME, UID, authority=authority, now=now, random=Random(1)
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in data.items():
        (folder / name).write_bytes(content)
    return data[secrets.KEY]


class Process:
    """One run of the worker program."""

    def __init__(
        self, process: asyncio.subprocess.Process, target: Target, *, grpc: int
    ) -> None:
        self.process = process
        self.target = target
        self.grpc = grpc
        self.caller = Caller()
        self.calls = HttpCalls(self.caller)

    @property
    def place(self) -> Place:
        target = self.target
        return Place(
            host=target.address, port=target.port, name=target.name, ca=target.ca
        )

    async def begin(self, epoch: int, checkout: str, tenant: str = "acme") -> None:
        target = self.target
        await self.calls.begin(target, epoch=epoch, checkout=checkout, tenant=tenant)

    async def clean(self, epoch: int, checkout: str) -> None:
        await self.calls.clean(self.target, epoch=epoch, checkout=checkout)

    def token(self, epoch: int, checkout: str) -> str:
        return secrets.token(self.target.key, UID, checkout, epoch)

    async def use(
        self, epoch: int, checkout: str, path: str = "/echo", body: bytes = b"hello"
    ) -> Reply:
        """What a client with the token of a checkout is answered."""
        headers = (("Authorization", f"Bearer {self.token(epoch, checkout)}"),)
        return await self.caller.call(
            self.place,
            "POST",
            path,
            headers=headers,
            body=body,
            within=10.0,
            safe=False,
        )

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


@asynccontextmanager
async def worker(
    folder: Path, *arguments: str, authority: Authority | None = None
) -> AsyncIterator[Process]:
    """A worker that serves, and is gone at the end."""
    authority = authority or Authority.make("test", now=datetime.now(UTC))
    key = write_secret(folder / "secret", authority=authority)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab.pool.worker"),
        *("--secret", str(folder / "secret"), "--host", "127.0.0.1", "--port", "0"),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{SOURCE / 'src'}:{SOURCE}"},
    )
    assert process.stderr is not None
    line, grpc = b"", 0
    while b"port " not in line:
        line = await process.stderr.readline()
        assert line, "the worker ended before it served"
        if line.startswith(b"INFO gRPC"):
            grpc = int(line.rpartition(b" ")[2].strip(b".\n"))
    target = Target(
        name=NAME,
        uid=UID,
        address="127.0.0.1",
        port=int(line.rpartition(b"port ")[2].strip(b".\n")),
        ca=authority.pem,
        key=key,
        bearer=secrets.control(key, UID),
    )
    made = Process(process, target, grpc=grpc)
    try:
        yield made
    finally:
        await made.caller.close()
        if process.returncode is None:
            process.kill()
        await process.communicate()
