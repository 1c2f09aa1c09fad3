"""Alerts: the rules that Prometheus should have for a pool, made from its metrics.

Each rule names a metric by its definition, so that a rule about one that does not exist
cannot be written.
"""

from __future__ import annotations

from typing import Any, Final

from trimtab.pool.metrics import DEFINITIONS, LABELS, PREFIX
from trimtab.runtime.catalogue import Alert, Catalogue, group

CATALOGUE: Final = Catalogue(PREFIX, DEFINITIONS, LABELS)
series, rate, quantile = CATALOGUE.series, CATALOGUE.rate, CATALOGUE.quantile


def rules() -> tuple[Alert, ...]:
    """All of them."""
    return (*_replicas(), *_requests(), *_workers(), *_server())


def _replicas() -> tuple[Alert, ...]:
    stamp = series("pass_timestamp_seconds", **{"pass": "rows"})
    return (
        Alert(
            name="TrimtabPoolReaperSilent",
            expression=f"time() - max({stamp}) > 300",
            lasting="1m",
            severity="critical",
            summary="No replica has gone over the rows for five minutes.",
            advice="Idle and orphaned workers stay. Look at the gateways' logs and at "
            "what they are denied by the API server.",
        ),
        Alert(
            name="TrimtabPoolNoLeader",
            expression=f"max({series('is_leader')}) < 1",
            lasting="2m",
            severity="warning",
            summary="No replica leads.",
            advice="Nothing leaks, but minIdle and headroom are not kept. Look at the "
            "Lease of the leader.",
        ),
        Alert(
            name="TrimtabPoolCannotAct",
            expression=f"min({series('may_act')}) < 1",
            lasting="1m",
            severity="warning",
            summary="A replica hands out nothing, because it cannot renew its lease.",
            advice="Look at its connection to the API server.",
        ),
    )


def _requests() -> tuple[Alert, ...]:
    slow = quantile(0.99, "acquire_seconds", source="~hot-idle|idle", code="ok")
    return (
        Alert(
            name="TrimtabPoolSlow",
            expression=f"{slow} > 0.5",
            lasting="10m",
            severity="warning",
            summary="One in a hundred warm workers takes more than half a second.",
            advice="Look at trimtab_pool_call_seconds (workers) and at the latency of "
            "the API server.",
        ),
        Alert(
            name="TrimtabPoolRefuses",
            expression=f"{rate('requests', verb='acquire', code='~not-now|full')} > "
            f"0.1 * {rate('requests', verb='acquire')}",
            lasting="10m",
            severity="warning",
            summary="One in ten requests for a worker is refused.",
            advice="Raise maxWorkers or the tenant's limits, or minIdle.",
        ),
    )


def _workers() -> tuple[Alert, ...]:
    return (
        Alert(
            name="TrimtabPoolCallsFail",
            expression=f"{rate('call_seconds', result='failed', call='~begin|clean')}"
            f" > 0.05 * {rate('call_seconds', call='~begin|clean')}",
            lasting="5m",
            severity="critical",
            summary="Workers do not answer, or do not clean up after their clients.",
            advice="Each one is replaced. Look at the workers' own logs.",
        ),
        Alert(
            name="TrimtabPoolWorkersLost",
            expression=f"max({series('ended', reason='pod-gone')}) > 5",
            lasting="1m",
            severity="warning",
            summary="Pods of workers end by themselves.",
            advice="Look for evictions, and for crashes of the worker's program.",
        ),
        Alert(
            name="TrimtabPoolSpawnsFail",
            expression=f"max({series('ended', reason='spawn-failed')}) > 5",
            lasting="5m",
            severity="warning",
            summary="New workers do not become ready.",
            advice="Look at the newest pods of the pool, and at the spawn budget.",
        ),
    )


def _server() -> tuple[Alert, ...]:
    """What the API server does with what it is asked."""
    return (
        Alert(
            name="TrimtabPoolRowsFight",
            expression=f"{rate('transitions', outcome='stale')} > "
            f"0.5 * {rate('transitions')}",
            lasting="10m",
            severity="warning",
            summary="Half of all writes to rows come too late.",
            advice="Replicas work on what others have changed: their watches are late.",
        ),
        Alert(
            name="TrimtabPoolReviewsFail",
            expression=f"{rate('reviews', verdict='failed')} > 0",
            lasting="5m",
            severity="critical",
            summary="Callers cannot be checked.",
            advice="Let the gateway create tokenreviews and subjectaccessreviews.",
        ),
    )


def document() -> dict[str, Any]:
    """The rules as a file that Prometheus reads."""
    return {"groups": [group("trimtab-pool", rules())]}
