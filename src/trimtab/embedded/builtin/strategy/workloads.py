"""Workloads as their registries make them: no status at first, Jobs with labels."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.builtin.strategy.common import keep

JSON = dict[str, Any]

_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
_GENERATION: Final = "deprecated.daemonset.template.generation"


def update_deployment_status(obj: JSON, old: JSON) -> None:
    keep(obj, old, "spec")
    keep(obj["metadata"], old["metadata"], "labels")


def create_job(obj: JSON) -> None:
    """Unless its owner chose a selector, a Job finds its pods by its own uid."""
    spec, metadata = obj["spec"], obj["metadata"]
    if not spec["manualSelector"]:
        _generate_selector(spec, metadata)
    labels = spec["template"]["metadata"].get("labels")
    if labels and (not metadata.get("labels") or metadata["labels"] is labels):
        metadata["labels"] = dict(labels)


def _generate_selector(spec: JSON, metadata: JSON) -> None:
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in ("job-name", _NAME):
        labels.setdefault(key, metadata.get("name", ""))
    for key in ("controller-uid", _UID):
        labels.setdefault(key, metadata.get("uid", ""))
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(_UID, metadata.get("uid", ""))


def create_daemon_set(obj: JSON) -> None:
    """The generation of the template has left the API, but is still written there."""
    obj["metadata"].setdefault("annotations", {})[_GENERATION] = "1"


def update_daemon_set(obj: JSON, old: JSON) -> None:
    """Each change of the template counts."""
    keep(obj, old, "status")
    _keep_generation(
        obj, old, changed=obj["spec"]["template"] != old["spec"]["template"]
    )


def update_daemon_set_status(obj: JSON, old: JSON) -> None:
    keep(obj, old, "spec")
    _keep_generation(obj, old, changed=False)


def _keep_generation(obj: JSON, old: JSON, *, changed: bool) -> None:
    before = old["metadata"].get("annotations", {}).get(_GENERATION, "1")
    generation = str(int(before) + changed)
    obj["metadata"].setdefault("annotations", {})[_GENERATION] = generation
