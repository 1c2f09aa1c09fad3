"""Tables: pools and workers as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.pool.kinds import Worker, WorkerPool
from trimtab.pool.states import TERMINAL

POOLS = ("NAME", "IDLE", "HOT", "HOT-IDLE", "SPAWNING", "DRAINING", "MIN", "MAX")
WORKERS = ("NAME", "STATE", "TENANT", "SHAPE", "HOLDER", "EPOCH", "REASON")


def pools(found: Sequence[WorkerPool]) -> list[str]:
    """One line for a pool, below a line of titles."""
    rows = [
        (
            each.metadata.name,
            *(str(count) for count in _counts(each)),
            str(each.spec.minIdle),
            str(each.spec.maxWorkers),
        )
        for each in sorted(found, key=lambda pool: pool.key)
    ]
    return table(POOLS, rows)


def workers(found: Sequence[Worker], *, ended: bool) -> list[str]:
    """One line for a worker; those that have ended only if they are asked for."""
    rows = [
        (
            each.metadata.name,
            each.status.state.value,
            each.status.tenant,
            each.spec.shape,
            each.status.checkout.holder if each.status.checkout else "",
            str(each.status.epoch),
            each.status.retireReason,
        )
        for each in sorted(found, key=lambda worker: worker.key)
        if ended or each.status.state not in TERMINAL
    ]
    return table(WORKERS, rows)


def _counts(pool: WorkerPool) -> tuple[int, ...]:
    status = pool.status
    return status.idle, status.hot, status.hotIdle, status.spawning, status.draining


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return [
        "  ".join(
            (cell or "-").ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in (titles, *rows)
    ]
