"""What every Python program of the scoreboard shares: the honest work, and its lines.

Standard library only. Of each object the same is read by every peer, in every language:
metadata, labels, annotations, owners, phase, conditions, ``spec.timeout`` and the
repositories' addresses. What is read on the first sight of an object goes into one
checksum; when all objects have been seen, ``SYNCED <ns> <checksum>`` is printed. For an
event that a writer has stamped, ``H <namespace>/<name> <sent> <handled>`` is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

STAMP = "bench/ts"
WORKLOAD = os.environ.get("BENCH_WORKLOAD", "S")
TUNED = os.environ.get("BENCH_VARIANT", "default") == "tuned"
RUNNERS = "app=ambient-code-runner"
GROUP, VERSION = "vteam.ambient-code", "v1alpha1"


def size(
    words: Iterable[str],
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    timeout: int = 0,
) -> int:
    """One number for what is read of one object; the stamp does not count."""
    total = timeout + sum(map(len, words))
    total += sum(map(len, labels)) + sum(map(len, labels.values()))
    total += sum(map(len, annotations)) + sum(map(len, annotations.values()))
    stamp = annotations.get(STAMP)
    return total if stamp is None else total - len(STAMP) - len(stamp)


def words_of(body: Mapping[str, Any]) -> Iterable[str]:
    """The words that are read of an object as JSON has it, without its two maps."""
    metadata, status = body["metadata"], body.get("status") or {}
    yield metadata["namespace"]
    yield metadata["name"]
    for owner in metadata.get("ownerReferences") or ():
        yield owner["name"]
    yield status.get("phase") or ""
    for condition in status.get("conditions") or ():
        yield condition["type"]
        yield condition["status"]
    for repository in (body.get("spec") or {}).get("repos") or ():
        yield repository["url"]


def size_of(body: Mapping[str, Any]) -> int:
    """The same number, of an object as JSON has it."""
    metadata = body["metadata"]
    return size(
        words_of(body),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        timeout=(body.get("spec") or {}).get("timeout") or 0,
    )


class Probe:
    """Counts first sights, adds up what was read, and tells of stamped events."""

    def __init__(self) -> None:
        self._began = time.time_ns()
        self._wanted = int(os.environ["BENCH_WANT"])
        self._seen: set[tuple[str, str, str]] = set()
        self._synced = False
        self._sum = 0

    def note(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        size: int,
        stamp: str | None,
    ) -> None:
        """An object went through a handler, which has read it."""
        now = time.time_ns()
        if not self._synced:
            self._first(kind, namespace, name, size=size, now=now)
        if stamp is not None and int(stamp) > self._began:
            os.write(1, f"H {namespace}/{name} {stamp} {now}\n".encode())

    def note_body(self, kind: str, body: Mapping[str, Any]) -> None:
        """The same, of an object as JSON has it."""
        metadata = body["metadata"]
        self.note(
            kind,
            metadata["namespace"],
            metadata["name"],
            size=size_of(body),
            stamp=(metadata.get("annotations") or {}).get(STAMP),
        )

    def _first(
        self, kind: str, namespace: str, name: str, *, size: int, now: int
    ) -> None:
        before = len(self._seen)
        self._seen.add((kind, namespace, name))
        if len(self._seen) == before:
            return
        self._sum += size
        if len(self._seen) == self._wanted:
            self._synced = True
            self._seen.clear()
            os.write(1, b"SYNCED %d %d\n" % (now, self._sum))
