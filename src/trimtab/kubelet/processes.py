"""Processes: what the kubelet knows of those that its warden started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.errors import TrimtabError

logger = logging.getLogger("trimtab.kubelet")

WARDEN = Path(__file__).with_name("warden.py")
PACKET = 1 << 16
READY_SECONDS = 10.0
FAREWELL_SECONDS = 3.0


class WardenProblem(TrimtabError):
    """Container processes cannot be started here."""


class StartFailed(TrimtabError):
    """One process could not be started; the message is the system's."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of the machine, and where a process sees it."""

    target: str
    source: str = ""
    readonly: bool = False
    optional: bool = False
    """Without it the process starts all the same."""
    tmpfs: str = ""
    """In place of a source: memory, of this size ("0": any)."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to be."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    mounts: Sequence[Mount] = ()
    hostname: str = ""
    staging: str = ""
    """A folder that may be mounted over."""
    join: int = 0
    """The process whose mounts it enters, in place of mounts of its own."""
    cgroups: Sequence[str] = ()
    """Files that a process writes itself into to be counted there."""
    tty: bool = False
    user: int | None = None
    group: int | None = None


class Process:
    """One process, from its start to its end.

    ``exit`` is its exit code; a negative one is the signal that ended it.
    """

    def __init__(self, number: int, pid: int, warden: Warden) -> None:
        self.pid = pid
        self._number = number
        self._warden = warden
        self.exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def signal(self, number: int, *, group: bool = False) -> None:
        """Signal it, or all of its group, if it is still there."""
        self._warden.order("signal", self._number, signal=number, group=group)

    def kill(self) -> None:
        self.signal(signal.SIGKILL, group=True)

    async def wait(self) -> int:
        """Its exit code; waiting can be given up without harm."""
        return await asyncio.shield(self.exit)


class Warden:
    """The process that starts and reaps all others, and our end of its socket.

    Flow: ``async with Warden(folder)``; ``start`` any number of times.

    Guarantees: no process outlives the block, nor this process, however it ends; nor
    do the folders of cgroups in ``tidy``.
    """

    def __init__(self, folder: Path, *, tidy: Iterable[Path] = ()) -> None:
        self._folder = folder
        self._tidy = [str(each) for each in tidy]
        self._numbers = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._processes: dict[int, Process] = {}
        self.mounts = False
        """Whether processes can have mounts of their own."""
        self.lost = asyncio.Event()
        """Set when the warden is gone, which it never is by itself."""

    def _launch(self) -> socket.socket:
        """Start it, on a socket of whose two ends we keep one."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        staging = str(self._folder / "staging")
        self._popen = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(WARDEN),
                str(number),
                staging,
                *self._tidy,
            ],
            pass_fds=(number,),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
        theirs.close()
        ours.setblocking(False)
        return ours

    async def __aenter__(self) -> Warden:
        ours = self._socket = self._launch()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(READY_SECONDS):
                facts = json.loads(await loop.sock_recv(ours, PACKET) or b"{}")
        except (TimeoutError, OSError, ValueError):
            facts = {}
        if not facts:
            self._popen.kill()
            raise WardenProblem(
                "The process that starts containers did not come up: see its words on "
                "stderr."
            )
        self.mounts = bool(facts["mounts"])
        self.pid = int(facts["pid"])
        loop.add_reader(ours, self._hear)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._popen.wait, FAREWELL_SECONDS)
        self._popen.kill()
        self._popen.wait()

    async def start(self, order: Order, *, files: Sequence[int]) -> Process:
        """Start a process with these three files as its input, output and error.

        Errors: :class:`StartFailed`. The files stay the caller's to close.
        """
        memory = os.memfd_create("order")
        try:
            os.write(memory, msgspec.json.encode(order))
            number, answer = self._expect()
            packet = json.dumps({"do": "spawn", "id": number}).encode()
            await self._send(packet, [memory, *files])
        finally:
            os.close(memory)
        fact = await answer
        if isinstance(fact, Process):
            return fact
        raise StartFailed(fact["error"])

    async def sweep(self, pod: str) -> int:
        """Kill whatever of a pod slipped out of its process groups."""
        number, answer = self._expect()
        self.order("sweep", number, pod=pod)
        fact = await answer
        return int(fact["swept"])

    def order(self, what: str, number: int, **more: Any) -> None:
        """Order something that has no answer of its own."""
        packet = json.dumps({"do": what, "id": number, **more}).encode()
        with contextlib.suppress(OSError):
            self._socket.send(packet)

    async def _send(self, packet: bytes, files: list[int]) -> None:
        while True:
            try:
                socket.send_fds(self._socket, [packet], files)
                return
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError as error:
                raise StartFailed(
                    f"the process that starts containers is gone: {error}"
                ) from error

    def _expect(self) -> tuple[int, asyncio.Future[Any]]:
        self._numbers += 1
        answer = asyncio.get_running_loop().create_future()
        self._answers[self._numbers] = answer
        return self._numbers, answer

    def _hear(self) -> None:
        while True:
            try:
                packet = self._socket.recv(PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                return self._lost()
            self._learn(json.loads(packet))

    def _learn(self, fact: dict[str, Any]) -> None:
        number = fact["id"]
        told: Any = fact
        if "pid" in fact:
            told = self._processes[number] = Process(number, fact["pid"], self)
        elif "exit" in fact:
            done = self._processes.pop(number).exit
            if not done.done():
                done.set_result(fact["exit"])
            return
        answer = self._answers.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_result(told)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        logger.error("The process that starts containers is gone.")
        for process in self._processes.values():
            if not process.exit.done():
                process.exit.set_result(-signal.SIGKILL)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result({"error": "the warden is gone", "swept": 0})
        self._processes.clear()
        self.lost.set()
