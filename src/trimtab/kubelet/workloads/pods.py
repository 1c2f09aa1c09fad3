"""Pods of a controller: made from a template, counted, and chosen to go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from trimtab.api.resource import Metadata
from trimtab.kubelet.workloads.kinds import Plain, TemplatePod

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX = 5
LONGEST = 63 - SUFFIX - 1
OVER = ("Succeeded", "Failed")


def suffix(random: Random) -> str:
    """Letters that make no words, as the server's own names end."""
    return "".join(random.choices(LETTERS, k=SUFFIX))


def safe(number: int) -> str:
    """A number in those letters."""
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(number))


def made_from(
    template: Plain,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Plain | None = None,
) -> TemplatePod:
    """A pod of a template."""
    meta = template.get("metadata") or {}
    return TemplatePod(
        metadata=Metadata(
            name=name,
            namespace=namespace,
            labels={**(meta.get("labels") or {}), **(labels or {})},
            annotations={**(meta.get("annotations") or {}), **(annotations or {})},
            finalizers=list(meta.get("finalizers") or ()),
        ),
        spec=cleaned(spec or template.get("spec") or {}),
    )


def cleaned(value: Any) -> Any:
    """A plain value without the nulls in it, which an apply would own."""
    if isinstance(value, dict):
        return {key: cleaned(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    return value


def is_active(pod: TemplatePod) -> bool:
    going = pod.metadata.deletionTimestamp is not None
    return pod.status.phase not in OVER and not going


def is_ready(pod: TemplatePod) -> bool:
    return pod.status.conditions.is_true("Ready")


def available_in(pod: TemplatePod, seconds: int, now: datetime) -> float | None:
    """In how many seconds a pod counts as available; None while it is not ready."""
    if not is_ready(pod):
        return None
    since = pod.status.conditions["Ready"].lastTransitionTime
    if not seconds or since is None:
        return 0.0
    return max(0.0, (since + timedelta(seconds=seconds) - now).total_seconds())


def chosen_to_go(pods: Sequence[TemplatePod], count: int) -> list[TemplatePod]:
    """Those whose loss is smallest: not scheduled, not ready, the youngest."""

    def worth(pod: TemplatePod) -> tuple[bool, int, bool, float]:
        created = pod.metadata.creationTimestamp
        phases = {"Running": 2, "Pending": 0}
        return (
            bool(pod.spec.get("nodeName")),
            phases.get(pod.status.phase, 1),
            is_ready(pod),
            -created.timestamp() if created else 0.0,
        )

    return sorted(pods, key=worth)[:count]


def restarts(pods: Iterable[TemplatePod]) -> int:
    """How often containers of these pods were started again."""
    return sum(
        status.restartCount
        for pod in pods
        for status in (
            *pod.status.initContainerStatuses,
            *pod.status.containerStatuses,
        )
    )
