"""Alerts: the rules that Prometheus should have for a pool, made from its metrics.

Each rule names a metric by its definition, so that a rule about one that does not exist
cannot be written. ``python -m trimtab.pool.alerts`` prints them.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from trimtab.pool.metrics import DEFINITIONS, LABELS, PREFIX

WINDOW: Final = "5m"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One alert: when, for how long, and what to do."""

    name: str
    expression: str
    lasting: str
    severity: Literal["warning", "critical"]
    summary: str
    advice: str


def series(name: str, **labels: str) -> str:
    """The series of a metric, for an expression; a histogram's is its count.

    A value that begins with ``~`` is a pattern of values with ``|`` between.

    Errors: ``ValueError`` for a metric, a label or a value that does not exist.
    """
    found = DEFINITIONS.get(name)
    if found is None:
        raise ValueError(f"there is no metric {name}")
    parts = []
    for label, value in labels.items():
        if label not in found.labels:
            raise ValueError(f"{name} has no label {label}")
        for each in value.removeprefix("~").split("|"):
            if label in LABELS and each not in LABELS[label]:
                raise ValueError(f"{name} has no {label}={each}")
        sign, text = ("=~", value[1:]) if value.startswith("~") else ("=", value)
        parts.append(f'{label}{sign}"{text}"')
    suffix = {"counter": "_total", "histogram": "_count", "gauge": ""}[found.kind]
    return f"{PREFIX}{name}{suffix}" + (f"{{{','.join(parts)}}}" if parts else "")


def rate(name: str, **labels: str) -> str:
    """How often per second something happens, over all replicas."""
    return f"sum(rate({series(name, **labels)}[{WINDOW}]))"


def quantile(part: float, name: str, **labels: str) -> str:
    """A quantile of a histogram, over all replicas."""
    buckets = series(name, **labels).replace("_count", "_bucket", 1)
    return f"histogram_quantile({part}, sum by (le) (rate({buckets}[{WINDOW}])))"


def rules() -> tuple[Rule, ...]:
    """All of them."""
    warm = {"source": "~hot-idle|idle", "code": "ok"}
    stamp = series("pass_timestamp_seconds", **{"pass": "rows"})
    return (
        Rule(
            name="TrimtabPoolReaperSilent",
            expression=f"time() - max({stamp}) > 300",
            lasting="1m",
            severity="critical",
            summary="No replica has gone over the rows for five minutes.",
            advice="Idle and orphaned workers stay. Look at the gateways' logs and at "
            "what they are denied by the API server.",
        ),
        Rule(
            name="TrimtabPoolNoLeader",
            expression=f"max({series('is_leader')}) < 1",
            lasting="2m",
            severity="warning",
            summary="No replica leads.",
            advice="Nothing leaks, but minIdle and headroom are not kept. Look at the "
            "Lease of the leader.",
        ),
        Rule(
            name="TrimtabPoolCannotAct",
            expression=f"min({series('may_act')}) < 1",
            lasting="1m",
            severity="warning",
            summary="A replica hands out nothing, because it cannot renew its lease.",
            advice="Look at its connection to the API server.",
        ),
        Rule(
            name="TrimtabPoolSlow",
            expression=f"{quantile(0.99, 'acquire_seconds', **warm)} > 0.5",
            lasting="10m",
            severity="warning",
            summary="One in a hundred warm workers takes more than half a second.",
            advice="Look at trimtab_pool_call_seconds (workers) and at the latency of "
            "the API server.",
        ),
        Rule(
            name="TrimtabPoolRefuses",
            expression=f"{rate('requests', verb='acquire', code='~not-now|full')} > "
            f"0.1 * {rate('requests', verb='acquire')}",
            lasting="10m",
            severity="warning",
            summary="One in ten requests for a worker is refused.",
            advice="Raise maxWorkers or the tenant's limits, or minIdle.",
        ),
        Rule(
            name="TrimtabPoolCallsFail",
            expression=f"{rate('call_seconds', result='failed', call='~begin|clean')}"
            f" > 0.05 * {rate('call_seconds', call='~begin|clean')}",
            lasting="5m",
            severity="critical",
            summary="Workers do not answer, or do not clean up after their clients.",
            advice="Each one is replaced. Look at the workers' own logs.",
        ),
        Rule(
            name="TrimtabPoolWorkersLost",
            expression=f"max({series('ended', reason='pod-gone')}) > 5",
            lasting="1m",
            severity="warning",
            summary="Pods of workers end by themselves.",
            advice="Look for evictions, and for crashes of the worker's program.",
        ),
        Rule(
            name="TrimtabPoolSpawnsFail",
            expression=f"max({series('ended', reason='spawn-failed')}) > 5",
            lasting="5m",
            severity="warning",
            summary="New workers do not become ready.",
            advice="Look at the newest pods of the pool, and at the spawn budget.",
        ),
        Rule(
            name="TrimtabPoolRowsFight",
            expression=f"{rate('transitions', outcome='stale')} > "
            f"0.5 * {rate('transitions')}",
            lasting="10m",
            severity="warning",
            summary="Half of all writes to rows come too late.",
            advice="Replicas work on what others have changed: their watches are late.",
        ),
        Rule(
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
    return {
        "groups": [
            {
                "name": "trimtab-pool",
                "rules": [
                    {
                        "alert": rule.name,
                        "expr": rule.expression,
                        "for": rule.lasting,
                        "labels": {"severity": rule.severity},
                        "annotations": {
                            "summary": rule.summary,
                            "description": rule.advice,
                        },
                    }
                    for rule in rules()
                ],
            }
        ]
    }
