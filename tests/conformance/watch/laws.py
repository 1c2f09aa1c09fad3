"""The laws: what an informer may never do, whatever its server did."""

from __future__ import annotations

from tests.conformance.watch.subjects import Report
from tests.conformance.watch.world import NAMESPACE, World

SHOWN = 3


def broken(report: Report, world: World) -> list[str]:
    """Each law that does not hold, in a few words with examples."""
    truth = world.truth()
    have = report.snapshot
    deleted = {f"{NAMESPACE}/{name}": n for name, n in world.deletions.items()}
    counted = report.added.keys() | report.deleted.keys() | have.keys()
    found = {
        "ghost": have.keys() - truth.keys(),
        "loss": truth.keys() - have.keys(),
        "stale": {key for key in have if truth.get(key, have[key]) != have[key]},
        "flicker": {
            key for key, n in report.deleted.items() if n > deleted.get(key, 0)
        },
        "untold": {
            key
            for key in counted
            if report.added.get(key, 0) - report.deleted.get(key, 0) != (key in have)
        },
    }
    return [_words(law, keys) for law, keys in found.items() if keys]


def _words(law: str, keys: set[str]) -> str:
    some = ", ".join(sorted(keys)[:SHOWN])
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return f"{law}: {some}{more}"
