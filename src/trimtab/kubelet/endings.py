"""Endings: what is found out about a process that has just ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trimtab.api.kinds import Container
from trimtab.kubelet.logs import Log
from trimtab.kubelet.ports import holder_of

MOST_MESSAGE = 4096
TAIL_LINES, TAIL_BYTES = 80, 2048


def last_words(container: Container, code: int, path: Path, log: Log) -> str:
    """What it left to be said of its end; else, if it is so wished, its last lines."""
    with suppress(OSError):
        words = path.read_bytes()[:MOST_MESSAGE]
        if words:
            return words.decode(errors="replace")
    fallback = container.terminationMessagePolicy == "FallbackToLogsOnError"
    if not (code and fallback):
        return ""
    lines = log.path.read_bytes().splitlines()[-TAIL_LINES:]
    texts = [line.split(b" ", 3)[-1] + b"\n" for line in lines]
    return b"".join(texts)[-TAIL_BYTES:].decode(errors="replace")


def taken_ports(container: Container, address: str) -> Iterator[str]:
    """A port that somebody else holds is the usual reason to end at once."""
    for port in container.ports:
        holder = holder_of(port.containerPort, address)
        if holder:
            yield (
                f"Container {container.name} ended, and its port {port.containerPort} "
                f"is held by {holder}: bind to $POD_IP, which every pod has for "
                "itself, not to all addresses."
            )
