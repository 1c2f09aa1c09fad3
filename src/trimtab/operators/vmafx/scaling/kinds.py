"""The kind of a set of nodes: as many as are wished, all made the same way."""

from __future__ import annotations

from typing import Any, Final

from trimtab.api import Column, Conditions, Resource, Rule, Scale, Spec, Status, field
from trimtab.kinds import PodStatus
from trimtab.operators.vmafx.kinds import AGE, GROUP, VERSION

LABEL_SET: Final = "vmafx.dev/node-set"
"""On the pods of a set: which one."""
LABEL_NODE: Final = "vmafx.dev/node"
"""On every pod that is a node: its name is that of its VmafxNode."""
LABEL_REVISION: Final = "vmafx.dev/node-revision"
"""On the pods of a set: which template they were made of."""


class VmafxNodeSetSpec(Spec):
    """How many nodes there should be, and what each is."""

    replicas: int = field(default=1, minimum=0, maximum=1000)
    template: dict[str, Any] = field(
        doc="A PodTemplateSpec; its first container is the node.",
    )
    drainSeconds: int = field(
        default=20,
        minimum=0,
        maximum=86400,
        doc="How long a node that is to go may work on what it has; then it gives "
        "that back.",
    )


class VmafxNodeSetStatus(Status):
    """How many there are."""

    replicas: int = 0
    """Nodes that are not to go."""
    readyReplicas: int = 0
    """Those of them that beat."""
    busy: int = 0
    """Those of them that work on a job."""
    leaving: int = 0
    """Nodes that finish what they have, and then go."""
    selector: str = ""
    observedGeneration: int = 0
    conditions: Conditions = Conditions()


class VmafxNodeSet(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmnodeset",
    columns=[
        Column(name="Wished", path=".spec.replicas", type="integer"),
        Column(name="Nodes", path=".status.replicas", type="integer"),
        Column(name="Ready", path=".status.readyReplicas", type="integer"),
        Column(name="Busy", path=".status.busy", type="integer"),
        Column(name="Leaving", path=".status.leaving", type="integer"),
        AGE,
    ],
    scale=Scale(
        spec_replicas=".spec.replicas",
        status_replicas=".status.replicas",
        label_selector=".status.selector",
    ),
    rules=[
        Rule(
            rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && "
            "size(self.metadata.name) <= 52",
            message="the nodes of a set are named after it: give it at most 52 lower "
            "case letters, digits and hyphens",
        )
    ],
):
    """Nodes that come and go with ``kubectl scale``."""

    spec: VmafxNodeSetSpec
    status: VmafxNodeSetStatus = VmafxNodeSetStatus()


class NodePod(Resource, version="v1", kind="Pod", builtin=True):
    """The pod of a node, with a spec as the template has it, whatever it says."""

    spec: dict[str, Any] = {}
    status: PodStatus = PodStatus()


class MarkedPod(Resource, version="v1", kind="Pod", builtin=True):
    """Any pod that is a node, of which nothing matters but what is written on it."""
