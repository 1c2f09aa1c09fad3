"""Placeholders: pods of low priority that keep room for workers to come.

How many there are is a constant of the pool's spec. It follows neither from demand, nor
from what is free, nor from what is idle: each of these would feed on itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trimtab.api import owner_of, wire
from trimtab.pool.kinds import LABEL_POOL, LABEL_ROLE, Shape, WorkerPool
from trimtab.pool.pods import WorkerPod, seen
from trimtab.pool.templates import canonical

HEADROOM: Final = "headroom"
SIZE: Final = "trimtab.dev/size"
"""An annotation: what a placeholder holds, to tell those of another shape."""
_SCHEDULING: Final = ("nodeSelector", "tolerations", "affinity", "schedulerName")


def wanted(pool: WorkerPool) -> int:
    """How many there should be; none for a pool that is going."""
    headroom = pool.spec.headroom
    going = pool.metadata.deletionTimestamp is not None
    return 0 if headroom is None or going else headroom.count


def sorted_out(
    pool: WorkerPool, found: Iterable[WorkerPod]
) -> tuple[list[WorkerPod], list[WorkerPod]]:
    """Those that stay, and those that go: ended, of another size, or too many."""
    keep: list[WorkerPod] = []
    surplus: list[WorkerPod] = []
    count = wanted(pool)
    size = _size(_shape(pool)) if count else ""
    for pod in sorted(found, key=lambda each: each.metadata.name):
        fits = pod.metadata.annotations.get(SIZE) == size and not seen(pod).ended
        (keep if fits and len(keep) < count else surplus).append(pod)
    return keep, surplus


def pod(pool: WorkerPool, *, name: str) -> dict[str, Any]:
    """One placeholder: where workers go, as large as one of them, doing nothing."""
    headroom, shape = pool.spec.headroom, _shape(pool)
    assert headroom is not None
    template = pool.spec.template.get("spec") or {}
    amounts = {
        "cpu": str(canonical(shape.cpu)),
        "memory": str(canonical(shape.memory)),
    }
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "placeholder",
                "image": headroom.image,
                "resources": {"requests": amounts, "limits": amounts},
            }
        ],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        **{key: template[key] for key in _SCHEDULING if key in template},
    }
    if headroom.priorityClassName:
        spec["priorityClassName"] = headroom.priorityClassName
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": pool.metadata.namespace,
            "labels": {LABEL_POOL: pool.metadata.name, LABEL_ROLE: HEADROOM},
            "annotations": {SIZE: _size(shape)},
            "ownerReferences": [wire(owner_of(pool))],
        },
        "spec": spec,
    }


def _shape(pool: WorkerPool) -> Shape:
    headroom = pool.spec.headroom
    name = headroom.shape if headroom else ""
    shapes = pool.spec.shapes
    return next((each for each in shapes if each.name == name), shapes[0])


def _size(shape: Shape) -> str:
    return f"{canonical(shape.cpu)}/{canonical(shape.memory)}"
