"""Consoles: the ends of a process's input, output and error that the kubelet holds."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress

CHUNK = 1 << 16
FULL_PAUSE = 0.005
"""Seconds before input that a process does not take is offered again."""

Heard = Callable[[str, bytes], None]
STREAMS = ("stdout", "stderr")


class Console:
    """Pipes, or a terminal, read as they fill until their other ends are closed.

    Flow: hand ``files`` to the process, ``listen``, and ``drain`` when it has ended.
    Whoever is in ``listeners`` hears what is said from then on.

    Guarantees: ``drain`` closes all that was opened; twice is once.
    """

    def __init__(self, hear: Heard, *, stdin: bool = False, tty: bool = False) -> None:
        self.listeners: set[Heard] = {hear}
        self.tty = tty
        self._reading: dict[int, str] = {}
        self._input = -1
        self._theirs: list[int] = []
        if tty:
            self._open_terminal()
        else:
            self._open_pipes(stdin)

    def _open_terminal(self) -> None:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        self._reading[ours] = STREAMS[0]
        self._input = ours
        self._theirs = [theirs]

    def _open_pipes(self, stdin: bool) -> None:
        if stdin:
            reader, self._input = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._input, False)
        else:
            reader = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._theirs.append(reader)
        for stream in STREAMS:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reader, False)
            self._reading[reader] = stream
            self._theirs.append(writer)

    @property
    def files(self) -> list[int]:
        """The input, output and error of the process."""
        return self._theirs * 3 if self.tty else list(self._theirs)

    def listen(self) -> None:
        """The process has its ends: close ours of them, and read."""
        self._close_theirs()
        loop = asyncio.get_running_loop()
        for number in self._reading:
            loop.add_reader(number, self._ready, number)

    def drain(self) -> None:
        """Take what is still to be read, and close everything."""
        self._close_theirs()
        for number in tuple(self._reading):
            while number in self._reading and self._ready(number):
                pass
            self._close(number)
        self.close_input()

    async def write(self, data: bytes) -> None:
        """Give it input; what it can take no more is dropped."""
        while data and self._input >= 0:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await asyncio.sleep(FULL_PAUSE)
            except OSError:
                self.close_input()

    def close_input(self) -> None:
        """There will be no more input; a terminal has only one end for both."""
        if self._input >= 0 and not self.tty:
            os.close(self._input)
        self._input = -1

    def resize(self, height: int, width: int) -> None:
        """Its terminal, if it has one, is so large now."""
        if self.tty and self._input >= 0:
            with suppress(struct.error, OSError):
                packed = struct.pack("HHHH", height, width, 0, 0)
                fcntl.ioctl(self._input, termios.TIOCSWINSZ, packed)

    def _close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def _ready(self, number: int) -> bool:
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # of a terminal: nobody has its other end any more
            data = b""
        if data:
            for hear in tuple(self.listeners):
                hear(self._reading[number], data)
        else:
            self._close(number)
        return bool(data)

    def _close(self, number: int) -> None:
        if number in self._reading:
            asyncio.get_running_loop().remove_reader(number)
            del self._reading[number]
            if number == self._input:
                self._input = -1
            os.close(number)
