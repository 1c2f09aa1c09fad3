"""Executing: a command beside a container, with kubectl at the other end.

Each WebSocket message begins with the number of its channel: input, output, error, how
it ended, the size of the terminal. The fifth version can also close one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.kubelet.containers import ContainerRun
from trimtab.kubelet.outputs import Outputs
from trimtab.kubelet.processes import Process, StartFailed

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
INPUT, OUTPUT, ERROR, ENDED, SIZE, CLOSE = 0, 1, 2, 3, 4, 255
SIGNALLED = 128
CHUNK = 1 << 15

Send = Callable[[bytes], Awaitable[None]]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is to run, and which of its ends somebody wants."""

    argv: Sequence[str]
    stdin: bool = False
    tty: bool = False


class Session:
    """One command of one client."""

    def __init__(self, run: ContainerRun, command: Command, send: Send) -> None:
        self._run = run
        self._command = command
        self._send = send
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._terminal = -1
        self._input = -1

    async def serve(self, messages: AsyncIterator[bytes]) -> None:
        """Run it to its end; a client that goes takes the command with it."""
        try:
            process = await self._start()
        except StartFailed as error:
            await self._send(bytes([ENDED]) + failure(str(error)))
            return
        try:
            async with asyncio.TaskGroup() as group:
                hearing = group.create_task(self._hear(messages, process))
                telling = group.create_task(self._tell())
                code = await process.wait()
                self._finish()
                hearing.cancel()
                await telling
            await self._send(bytes([ENDED]) + ending(code))
        finally:
            process.kill()
            self._finish()

    async def _start(self) -> Process:
        if self._command.tty:
            return await self._start_terminal()
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(writing, False)
        channels = {"stdout": OUTPUT, "stderr": ERROR}
        self._outputs = Outputs(
            lambda stream, data: self._said.put_nowait(bytes([channels[stream]]) + data)
        )
        try:
            process = await self._run.execute(
                self._command.argv, files=[reading, *self._outputs.ends]
            )
        except StartFailed:
            os.close(writing)
            self._outputs.drain()
            raise
        finally:
            os.close(reading)
        self._outputs.listen()
        self._input = writing
        if not self._command.stdin:
            self._close_input()
        return process

    async def _start_terminal(self) -> Process:
        ours, theirs = os.openpty()
        try:
            process = await self._run.execute(
                self._command.argv, files=[theirs] * 3, tty=True
            )
        except StartFailed:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(ours, False)
        self._terminal = self._input = ours
        asyncio.get_running_loop().add_reader(ours, self._terminal_ready)
        return process

    def _terminal_ready(self) -> bool:
        try:
            data = os.read(self._terminal, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # its other end is closed
            data = b""
        if data:
            self._said.put_nowait(bytes([OUTPUT]) + data)
        else:
            asyncio.get_running_loop().remove_reader(self._terminal)
        return bool(data)

    def _finish(self) -> None:
        """Take what it said at last, and close what is ours. Twice is once."""
        if self._terminal >= 0:
            while self._terminal_ready():
                pass
            asyncio.get_running_loop().remove_reader(self._terminal)
            os.close(self._terminal)
            self._terminal = self._input = -1
        elif not self._command.tty:
            self._close_input()
            self._outputs.drain()
        self._said.put_nowait(b"")

    def _close_input(self) -> None:
        if self._input >= 0 and self._terminal < 0:
            os.close(self._input)
            self._input = -1

    async def _tell(self) -> None:
        while message := await self._said.get():
            await self._send(message)

    async def _hear(self, messages: AsyncIterator[bytes], process: Process) -> None:
        async for message in messages:
            channel, content = message[0], message[1:]
            if channel == INPUT:
                await self._write(content)
            elif channel == SIZE and self._terminal >= 0:
                self._resize(content)
            elif channel == CLOSE and content[:1] == bytes([INPUT]):
                self._close_input()
        process.kill()

    async def _write(self, content: bytes) -> None:
        while content and self._input >= 0:
            try:
                content = content[os.write(self._input, content) :]
            except BlockingIOError:
                await asyncio.sleep(0.005)
            except OSError:
                return self._close_input()
        return None

    def _resize(self, content: bytes) -> None:
        with suppress(msgspec.DecodeError, KeyError, struct.error, OSError):
            size = msgspec.json.decode(content, type=dict[str, int])
            packed = struct.pack("HHHH", size["Height"], size["Width"], 0, 0)
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, packed)


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
