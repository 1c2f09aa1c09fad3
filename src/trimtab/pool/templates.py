"""Templates: the pod of a worker, made of its pool's template and its shape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from trimtab.api import Metadata, Quantity, hashed, owner_of, wire
from trimtab.api.codec import encode
from trimtab.pool.kinds import (
    LABEL_POOL,
    LABEL_WORKER,
    Shape,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
    WorkerSpec,
)

FOLDER: Final = "/var/run/trimtab/worker"
"""Where a worker finds its Secret."""
VOLUME: Final = "trimtab-worker"

REVISIONS: Final = 256

Plain = dict[str, Any]

_revisions: dict[tuple[int, int], tuple[WorkerPoolSpec, Shape, str]] = {}
"""By the identity of spec and shape, which are held so that it stays theirs."""


def revision(spec: WorkerPoolSpec, shape: Shape) -> str:
    """What tells workers of one template and shape from those of another."""
    key = id(spec), id(shape)
    known = _revisions.get(key)
    if known is None:  # every release asks, and specs hardly ever change
        if len(_revisions) >= REVISIONS:
            _revisions.clear()
        known = _revisions[key] = spec, shape, _revision(spec, shape)
    return known[2]


def _revision(spec: WorkerPoolSpec, shape: Shape) -> str:
    template = encode(_sorted(spec.template)).decode()
    cpu, memory = canonical(shape.cpu), canonical(shape.memory)
    return hashed(shape.name, template, str(cpu), str(memory), str(spec.port))


def canonical(amount: Quantity) -> Quantity:
    """The same amount in the one way in which this pool spells it."""
    return Quantity(str(amount))


def row(pool: WorkerPool, shape: Shape, *, name: str, spawner: str) -> Worker:
    """The row of a new worker."""
    return Worker(
        metadata=Metadata(
            name=name,
            namespace=pool.metadata.namespace,
            labels={LABEL_POOL: pool.metadata.name},
            ownerReferences=[owner_of(pool)],
        ),
        spec=WorkerSpec(
            pool=pool.metadata.name,
            shape=shape.name,
            cpu=canonical(shape.cpu),
            memory=canonical(shape.memory),
            revision=revision(pool.spec, shape),
            spawner=spawner,
        ),
    )


def pod(pool: WorkerPool, worker: Worker) -> Plain:
    """The pod of a worker: the template, sized, labelled, owned, with its Secret."""
    template = deepcopy(pool.spec.template)
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {
        **(metadata.get("labels") or {}),
        LABEL_POOL: pool.metadata.name,
        LABEL_WORKER: worker.metadata.name,
    }
    spec.setdefault("restartPolicy", "Never")
    spec.setdefault("automountServiceAccountToken", False)
    spec["volumes"] = [
        *(spec.get("volumes") or []),
        {"name": VOLUME, "secret": {"secretName": worker.metadata.name}},
    ]
    containers = spec.get("containers") or [{}]
    spec["containers"] = [_main(containers[0], worker), *containers[1:]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": worker.metadata.name,
            "namespace": worker.metadata.namespace,
            "labels": labels,
            "annotations": metadata.get("annotations") or {},
            "ownerReferences": [wire(owner_of(worker))],
        },
        "spec": spec,
    }


def _main(container: Plain, worker: Worker) -> Plain:
    """The first container: what it needs to be this worker, of this shape."""
    amounts = {"cpu": str(worker.spec.cpu), "memory": str(worker.spec.memory)}
    resources = container.get("resources") or {}
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return {
        **container,
        "resources": {
            **resources,
            "requests": {**(resources.get("requests") or {}), **amounts},
            "limits": {**(resources.get("limits") or {}), **amounts},
        },
        "env": [
            *(container.get("env") or []),
            {"name": "POD_IP", "valueFrom": address},
            {"name": "TRIMTAB_WORKER", "value": worker.metadata.name},
            {"name": "TRIMTAB_WORKER_SECRET", "value": FOLDER},
        ],
        "volumeMounts": [
            *(container.get("volumeMounts") or []),
            {"name": VOLUME, "mountPath": FOLDER, "readOnly": True},
        ],
    }


def _sorted(value: Any) -> Any:
    """The same value with its keys in order, however they were written."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
