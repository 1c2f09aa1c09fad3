"""The pod of a node: the template of its set, with what makes it a node of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import msgspec

from trimtab.api import Metadata, hashed
from trimtab.client import TrimtabError
from trimtab.operators.vmafx.scaling.kinds import (
    LABEL_NODE,
    LABEL_REVISION,
    LABEL_SET,
    NodePod,
    VmafxNodeSet,
)

NODE_ID: Final = "VMAFX_NODE_ID"
PATIENCE: Final = "VMAFX_NODE_PATIENCE"
GRACE: Final = 40
"""Seconds beyond a node's patience in which it says goodbye."""

Plain = dict[str, Any]


class BadTemplate(TrimtabError):
    """No pod can be made of a template."""


def revision(nodes: VmafxNodeSet) -> str:
    """What tells nodes of one template from those of another."""
    # The same template is the same however its keys were written.
    template = msgspec.json.encode(nodes.spec.template, order="deterministic")
    return hashed("r", template.decode(), str(nodes.spec.drainSeconds), limit=20)


def selector(nodes: VmafxNodeSet) -> str:
    """What finds the pods of a set."""
    return f"{LABEL_SET}={nodes.metadata.name}"


def pod(nodes: VmafxNodeSet, name: str) -> NodePod:
    """The pod of one node.

    The template may say everything else; these are what the set itself needs: its
    labels, that the node is called as its pod, and time to finish what it has.

    Errors: :class:`BadTemplate` for what could be no pod.
    """
    template = deepcopy(nodes.spec.template)
    metadata = _mapping(template.get("metadata"), "metadata")
    spec = _mapping(template.get("spec"), "spec")
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        raise BadTemplate("spec.template.spec.containers must have the node's.")
    node = _mapping(containers[0], "spec.containers[0]")
    patience = nodes.spec.drainSeconds
    return NodePod(
        metadata=Metadata(
            name=name,
            labels={
                **(metadata.get("labels") or {}),
                LABEL_SET: nodes.metadata.name,
                LABEL_NODE: "true",
                LABEL_REVISION: revision(nodes),
            },
            annotations=metadata.get("annotations") or {},
        ),
        spec={
            **spec,
            "containers": [_node(node, patience), *containers[1:]],
            "terminationGracePeriodSeconds": patience + GRACE,
        },
    )


def _mapping(value: Any, place: str) -> Plain:
    if isinstance(value or {}, dict):
        return value or {}
    raise BadTemplate(f"spec.template.{place} must be an object.")


def _node(container: Plain, patience: int) -> Plain:
    ours: dict[str, Plain] = {
        NODE_ID: {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        PATIENCE: {"value": str(patience)},
    }
    theirs = [e for e in container.get("env") or () if e.get("name") not in ours]
    mine = [{"name": name, **value} for name, value in ours.items()]
    return {**container, "env": [*theirs, *mine]}
