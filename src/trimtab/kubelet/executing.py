"""Executing: a command beside a container, or its own process, with kubectl at the end.

Each WebSocket message begins with the number of its channel: input, output, error, how
it ended, the size of the terminal. The fifth version can also close one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.kubelet.consoles import Console
from trimtab.kubelet.containers import ContainerRun
from trimtab.kubelet.processes import Process, StartFailed

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
INPUT, OUTPUT, ERROR, ENDED, SIZE, CLOSE = 0, 1, 2, 3, 4, 255
SIGNALLED = 128
CHANNELS = {"stdout": OUTPUT, "stderr": ERROR}

Send = Callable[[bytes], Awaitable[None]]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is to run, and which of its ends somebody wants."""

    argv: Sequence[str]
    stdin: bool = False
    tty: bool = False


class Session:
    """One client at one console.

    Flow: ``execute`` a command of its own, or ``attach`` to what runs, once.
    """

    def __init__(self, run: ContainerRun, send: Send) -> None:
        self._run = run
        self._send = send
        self._said: asyncio.Queue[bytes] = asyncio.Queue()

    async def execute(self, command: Command, messages: AsyncIterator[bytes]) -> None:
        """Run a command to its end; a client that goes takes it with it."""
        console = Console(self._hear, stdin=command.stdin, tty=command.tty)
        try:
            process = await self._run.execute(
                command.argv, files=console.files, tty=command.tty
            )
        except StartFailed as error:
            console.drain()
            await self._send(bytes([ENDED]) + failure(str(error)))
            return
        console.listen()
        try:
            code = await self._converse(console, process, messages)
        finally:
            process.kill()
            console.drain()
        if code is not None:
            await self._send(bytes([ENDED]) + ending(code))

    async def attach(
        self,
        console: Console,
        process: Process,
        messages: AsyncIterator[bytes],
        *,
        stdin: bool,
    ) -> None:
        """Hear and talk to what runs; it goes on when the client goes.

        Input that is open only once ends with the first who had it.
        """
        console.listeners.add(self._hear)
        try:
            code = await self._converse(console, process, messages)
        finally:
            console.listeners.discard(self._hear)
            if stdin and self._run.spec.stdinOnce:
                console.close_input()
        if code is not None:
            await self._send(bytes([ENDED]) + ending(0))

    def _hear(self, stream: str, data: bytes) -> None:
        self._said.put_nowait(bytes([CHANNELS[stream]]) + data)

    async def _converse(
        self, console: Console, process: Process, messages: AsyncIterator[bytes]
    ) -> int | None:
        """Carry to and fro until it has ended: its exit code. None: the client left."""
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(self._listen(console, messages))
            telling = group.create_task(self._tell())
            ended = group.create_task(process.wait())
            await asyncio.wait((hearing, ended), return_when=asyncio.FIRST_COMPLETED)
            hearing.cancel()
            if not ended.done():
                ended.cancel()
                telling.cancel()
                return None
            console.drain()
            self._said.put_nowait(b"")
        return ended.result()

    async def _tell(self) -> None:
        with suppress(ConnectionError):  # that the client is gone is heard, too
            while message := await self._said.get():
                await self._send(message)

    async def _listen(self, console: Console, messages: AsyncIterator[bytes]) -> None:
        async for message in messages:
            channel, content = message[0], message[1:]
            if channel == INPUT:
                await console.write(content)
            elif channel == SIZE:
                with suppress(msgspec.DecodeError, KeyError):
                    size = msgspec.json.decode(content, type=dict[str, int])
                    console.resize(size["Height"], size["Width"])
            elif channel == CLOSE and content[:1] == bytes([INPUT]):
                console.close_input()


def ending(code: int) -> bytes:
    """How a command ended, as kubectl reads it."""
    if code == 0:
        return msgspec.json.encode({"metadata": {}, "status": "Success"})
    number = SIGNALLED - code if code < 0 else code
    status: dict[str, Any] = {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {number}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(number)}]},
    }
    return msgspec.json.encode(status)


def failure(why: str) -> bytes:
    status = {
        "metadata": {},
        "status": "Failure",
        "message": "Internal error occurred: error executing command in container: "
        f"{why}",
        "reason": "InternalError",
        "code": 500,
    }
    return msgspec.json.encode(status)
