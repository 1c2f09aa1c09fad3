"""Metrics: what a server has done and holds, in the text that Prometheus reads."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable

from trimtab.embedded.store import StoreStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, float]


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """By verb and status code; a watch counts when it begins."""
        self.watches = 0
        """Watches under way."""
        self._began = time.time()

    def text(
        self,
        store: StoreStatistics | None,
        *,
        deprecated: Collection[tuple[str, str, str, str]] = (),
    ) -> bytes:
        """All of it; that of the store only if there is one."""
        lines: list[str] = []
        requests = [
            (f'{{verb="{verb}",code="{code}"}}', float(count))
            for (verb, code), count in sorted(self.requests.items())
        ]
        about = "Answered requests, by verb and code."
        lines += _family("apiserver_request_total", "counter", about, requests)
        watches = [('{verb="WATCH"}', float(self.watches))]
        about = "Watches under way."
        lines += _family("apiserver_longrunning_requests", "gauge", about, watches)
        if deprecated:
            lines += _deprecated(deprecated)
        if store is not None:
            lines += _store(store)
        lines += self._process()
        return ("\n".join(lines) + "\n").encode()

    def _process(self) -> list[str]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        facts = (
            ("resident_memory_bytes", "gauge", "Memory in use.", resident_bytes()),
            (
                "cpu_seconds_total",
                "counter",
                "Time on a processor.",
                used.ru_utime + used.ru_stime,
            ),
            ("start_time_seconds", "gauge", "When it began.", self._began),
        )
        lines: list[str] = []
        for name, kind, about, value in facts:
            lines += _family(f"process_{name}", kind, about, [("", value)])
        return lines


def _deprecated(found: Iterable[tuple[str, str, str, str]]) -> list[str]:
    names = ("group", "version", "resource", "subresource")
    samples = []
    for each in sorted(found):
        labels = {**dict(zip(names, each, strict=True)), "removed_release": ""}
        told = ",".join(f'{name}="{text}"' for name, text in sorted(labels.items()))
        samples.append((f"{{{told}}}", 1.0))
    about = "Deprecated APIs that were asked for."
    return _family("apiserver_requested_deprecated_apis", "gauge", about, samples)


def _store(store: StoreStatistics) -> list[str]:
    facts = (
        ("revision", "The newest revision.", store.revision),
        ("compacted_revision", "Changes up to it are forgotten.", store.compacted),
        ("objects", "Objects that are stored.", store.objects),
        ("changes", "Changes that are remembered.", store.changes),
        ("history_bytes", "Values that only the past needs.", store.superseded_bytes),
        ("file_bytes", "The file and its journal.", store.file_bytes),
    )
    lines: list[str] = []
    for name, about, value in facts:
        lines += _family(f"trimtab_store_{name}", "gauge", about, [("", float(value))])
    return lines


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> list[str]:
    head = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return [*head, *(f"{name}{labels} {value!r}" for labels, value in samples)]


def resident_bytes() -> float:
    """The memory that this process holds; at its highest, where no system says."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(peak if sys.platform == "darwin" else peak * 1024)
