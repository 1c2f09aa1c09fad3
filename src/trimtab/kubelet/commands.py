"""Commands: programs that run beside a container's process, for a probe or a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from trimtab.kubelet.consoles import Console
from trimtab.kubelet.processes import Order, Process, StartFailed

MOST_HEARD = 1 << 16


class Execute(Protocol):
    """Starts a command beside a container's process."""

    async def __call__(
        self, command: Sequence[str], *, files: Sequence[int], tty: bool = False
    ) -> Process: ...


async def heard(command: Sequence[str], execute: Execute) -> tuple[int, bytes]:
    """Run a command to its end: its exit code, and the beginning of what it said.

    Guarantees: the command is killed when nobody waits for it any more.

    Errors: ``StartFailed``.
    """
    said = bytearray()
    console = Console(lambda _, data: said.extend(data[: MOST_HEARD - len(said)]))
    try:
        process = await execute(command, files=console.files)
    except StartFailed:
        console.drain()
        raise
    console.listen()
    try:
        code = await process.wait()
    finally:
        process.kill()
        console.drain()
    return code, bytes(said)


def beside(order: Order, command: Sequence[str], pid: int, *, tty: bool) -> Order:
    """The same surroundings for another command."""
    return msgspec.structs.replace(
        order,
        argv=command,
        mounts=(),
        hostname="",
        join=pid if order.mounts else 0,
        tty=tty,
    )
