"""Outputs: the pipes between a process and whoever keeps what it says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

CHUNK = 1 << 16

Heard = Callable[[str, bytes], None]
STREAMS = ("stdout", "stderr")


class Outputs:
    """Two pipes, read as they fill, until their ends are closed.

    Flow: hand ``ends`` to the process, ``listen``, and ``drain`` when it has ended.
    """

    def __init__(self, hear: Heard) -> None:
        self._hear = hear
        self._reading: dict[int, str] = {}
        self.ends: list[int] = []
        for stream in STREAMS:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reader, False)
            self._reading[reader] = stream
            self.ends.append(writer)

    def listen(self) -> None:
        """The process has its ends: close ours of them, and read."""
        self._close_ends()
        loop = asyncio.get_running_loop()
        for number in self._reading:
            loop.add_reader(number, self._ready, number)

    def drain(self) -> None:
        """Take what is still in the pipes, and close them."""
        self._close_ends()
        for number in tuple(self._reading):
            while number in self._reading and self._ready(number):
                pass
            self._close(number)

    def _close_ends(self) -> None:
        while self.ends:
            os.close(self.ends.pop())

    def _ready(self, number: int) -> bool:
        try:
            data = os.read(number, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._hear(self._reading[number], data)
        else:
            self._close(number)
        return bool(data)

    def _close(self, number: int) -> None:
        if number in self._reading:
            asyncio.get_running_loop().remove_reader(number)
            del self._reading[number]
            with suppress(OSError):
                os.close(number)
