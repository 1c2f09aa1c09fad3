"""A command: another program, run to its end within a time and within bounds.

No shell reads it, and it has a process group of its own unless it talks to a person.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any, Final

OUTPUT: Final = 1 << 26
"""Bytes that a command may print, unless the caller says otherwise."""
COMPLAINT: Final = 1 << 16
"""Bytes that are kept of the end of its standard error."""
# A command may leave a child behind that keeps its pipes open; once the command is
# gone, what it wrote is there within this time.
DRAIN: Final = 1.0


class CommandFailed(Exception):
    """Why there is no output, in words that follow the name of the command.

    Its ``__cause__`` is what the system said if the command cannot be started.
    """

    def __init__(self, why: str, *, complaint: str = "") -> None:
        super().__init__(why)
        self.complaint = complaint
        """The end of what it wrote to its standard error; secrets may be in it."""


async def output(
    *command: str,
    within: float,
    environment: Mapping[str, str] | None = None,
    given: bytes | None = None,
    most: int = OUTPUT,
    terminal: bool = False,
) -> bytes:
    """What a command prints that is ``given`` these bytes to read, or nothing.

    ``terminal`` lets it talk to the person at the terminal instead.

    Guarantees: however this ends, cancellation too, the command has ended or was
    killed with all of its process group, and its pipes are closed.

    Errors: :class:`CommandFailed` if it cannot be started, takes longer than ``within``
    seconds, prints more than ``most`` bytes or does not end with code 0.
    """
    loop = asyncio.get_running_loop()
    run = _Run(loop, given=given, most=most, alone=not terminal)
    piped = subprocess.DEVNULL if given is None else subprocess.PIPE
    try:
        async with asyncio.timeout(within):
            begin = run.begin(
                *command,
                stdin=None if terminal else piped,
                stdout=subprocess.PIPE,
                # A person must see the prompt; otherwise we keep the end of it.
                stderr=None if terminal else subprocess.PIPE,
                env=environment,
                start_new_session=not terminal,
            )
            # Given up half-way, its children and its pipes would stay.
            await asyncio.shield(begin)
            await run.finished
    except TimeoutError:
        raise run.failure(
            f"did not finish within {within:g} s and was stopped"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "an argument has a NUL in it"
        raise CommandFailed(f"cannot be started ({reason})") from error
    finally:
        await run.end()
    return run.result()


class _Run(asyncio.SubprocessProtocol):
    """One run of a command: what it printed, within bounds, and its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        given: bytes | None,
        most: int,
        alone: bool,
    ) -> None:
        self.finished: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._begun: asyncio.Future[None] = loop.create_future()
        self._over = False
        """Nobody waits for it any more."""
        self._output = bytearray()
        self._overflow = False
        self._complaint = b""
        self._loop = loop
        self._given = given
        self._most = most
        self._alone = alone  # the leader of a process group of its own
        self._transport: Any = None

    async def begin(self, *command: str, **how: Any) -> None:
        """Start it."""
        try:
            await self._loop.subprocess_exec(lambda: self, *command, **how)
        finally:
            self._begun.set_result(None)

    def result(self) -> bytes:
        """What it printed, once it has ended.

        Errors: :class:`CommandFailed` unless it printed all of it and ended well.
        """
        if self._overflow:
            raise self.failure(f"printed more than {self._most} bytes and was stopped")
        code = self._transport.get_returncode()
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise self.failure(f"failed with {how}")
        return bytes(self._output)

    def failure(self, why: str) -> CommandFailed:
        return CommandFailed(why, complaint=self._complaint.decode(errors="replace"))

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._over:
            self._kill()
            transport.close()
        elif self._given is not None:
            pipe = transport.get_pipe_transport(0)
            pipe.write(self._given)
            pipe.write_eof()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaint = (self._complaint + data)[-COMPLAINT:]
        elif len(self._output) + len(data) > self._most:
            self._overflow = True
            self._finish()
        else:
            self._output += data

    def process_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)
        self._loop.call_later(DRAIN, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    async def end(self) -> None:
        """Leave nothing behind: neither a process that still runs nor an open pipe."""
        self._over = True
        if self._transport is None:
            await asyncio.wait([self._begun], timeout=DRAIN)
            return
        try:
            if not self._exited.done():
                self._kill()
                await asyncio.wait([self._exited], timeout=DRAIN)
        finally:
            self._transport.close()

    def _kill(self) -> None:
        try:
            if self._alone:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()
        except (ProcessLookupError, PermissionError):
            pass  # it is gone already
