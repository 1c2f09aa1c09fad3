"""The kinds of video scoring: jobs, and the nodes that work on them.

Every field of a status has one writer. Of a job, the *gateway* writes ``run`` (who
works on it, and how that ended), and only by compare-and-swap; the *operator* derives
the rest from it for people and programs to read. Of a node, its own beats write the
report, and the operator writes whether it is healthy.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from trimtab.api import Column, Conditions, Object, Resource, Rule, Spec, Status, field
from trimtab.operators.vmafx.segments import MOST

GROUP: Final = "vmafx.dev"
VERSION: Final = "v1"
GATEWAY_NAME: Final = "vmafx-gateway"
"""The ConfigMap with whom to trust, and its Secret with ``-ca``."""
FRAMES_KEY: Final = "vmaf.json"
"""Where a ConfigMap has the score of each frame."""

Backend = Literal["cpu", "cuda", "sycl", "hip", "metal"]
Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Cancelled"]
Vendor = Literal["nvidia", "amd", "intel", "cpu"]
Outcome = Literal["", "completed", "failed", "released", "expired", "cancelled"]

AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date")
_INPUT: Final = 4096
SUBMITTED_AS: Final = "vmafx.dev/submitted-as"
"""The annotation of a job that a gateway made for a caller: the key that it gave."""
SEGMENT_OF: Final = "vmafx.dev/segment-of"
"""The label of a segment: the name of its job, or what fits of it."""
# Numbers go over a wire that has 32 bits for them, and are added to times.
_INT32: Final = 2**31 - 1


class PartOf(
    Object,
    rules=[Rule(rule="self.index < self.of", message="a segment is one of them")],
):
    """Which part of a job a segment is."""

    index: int = field(minimum=0, maximum=MOST - 1)
    of: int = field(minimum=1, maximum=MOST)


class VmafxJobSpec(
    Spec,
    rules=[
        Rule(
            rule="self.reference == oldSelf.reference && "
            "self.distorted == oldSelf.distorted && "
            "has(self.model) == has(oldSelf.model) && "
            "(!has(self.model) || self.model == oldSelf.model) && "
            "has(self.backend) == has(oldSelf.backend) && "
            "(!has(self.backend) || self.backend == oldSelf.backend)",
            message="what a job scores cannot be changed: create another job",
        ),
        Rule(
            rule="has(self.segments) == has(oldSelf.segments) && "
            "(!has(self.segments) || self.segments == oldSelf.segments) && "
            "has(self.segment) == has(oldSelf.segment) && "
            "(!has(self.segment) || self.segment == oldSelf.segment)",
            message="how a job is split cannot be changed: create another job",
        ),
        Rule(
            rule="!has(self.segments) || !has(self.segment)",
            message="a segment of a job cannot be split again",
        ),
        Rule(
            rule="self.priority == oldSelf.priority && "
            "self.maxAttempts == oldSelf.maxAttempts && "
            "has(self.deadlineSeconds) == has(oldSelf.deadlineSeconds) && "
            "(!has(self.deadlineSeconds) || "
            "self.deadlineSeconds == oldSelf.deadlineSeconds)",
            message="only cancel and ttlSecondsAfterFinished of a job can be changed: "
            "create another job",
        ),
        Rule(
            rule="!oldSelf.cancel || self.cancel",
            message="a job that was cancelled stays so",
        ),
    ],
):
    """Which clip is scored against which. Only ``cancel`` and the TTL ever change."""

    reference: str = field(min_length=1, max_length=_INPUT, doc="The clip as it was.")
    distorted: str = field(min_length=1, max_length=_INPUT, doc="The clip to judge.")
    model: str | None = field(default=None, max_length=253)
    backend: Backend | None = field(default=None, doc="Absent means any.")
    priority: int = field(
        default=0, minimum=0, maximum=_INT32, doc="The higher, the sooner."
    )
    cancel: bool = False
    deadlineSeconds: int | None = field(
        default=None,
        minimum=1,
        maximum=_INT32,
        doc="After which it fails, whatever it is doing.",
    )
    maxAttempts: int = field(
        default=3, minimum=1, maximum=20, doc="How often a lost attempt is made again."
    )
    ttlSecondsAfterFinished: int | None = field(default=None, minimum=0, maximum=_INT32)
    segments: int | None = field(
        default=None,
        minimum=1,
        maximum=MOST,
        doc="In how many parts it is scored at once; absent means as a whole.",
    )
    segment: PartOf | None = field(
        default=None, doc="Which part of another job this is: the operator makes these."
    )


class Scored(Object):
    """Which frames a segment turned out to have."""

    first: int = field(minimum=0)
    count: int = field(minimum=0)
    total: int = field(minimum=0, doc="That the clip should have, by its index.")


class Run(Object):
    """Who works on a job, and how that ended. The gateway's, by compare-and-swap."""

    attempt: int = 0
    """Grows with every claim: a report for a lower one is refused."""
    lost: int = 0
    """How many attempts ended without a report."""
    fence: int = 0
    """Grows when nobody knows what became of a write: then it fails for certain."""
    node: str = ""
    """The VmafxNode that has it, if one has."""
    session: str = ""
    """Which life of that node."""
    since: datetime | None = None
    ended: datetime | None = None
    outcome: Outcome = ""
    """How the last attempt ended; empty while one runs, and before the first."""
    score: float | None = None
    features: dict[str, float] = field(default={}, max_properties=64)
    error: str = field(default="", max_length=1024)
    frames: str = field(
        default="", max_length=253, doc="The ConfigMap with the score of each frame."
    )
    scored: Scored | None = field(default=None, doc="Of a segment: its frames.")
    reused: bool = field(
        default=False, doc="Whether the node had scored the same clips before."
    )


class PerFrame(Object):
    """Where the score of each frame is kept."""

    configMap: str
    key: str


class VmafxJobStatus(Status):
    """What became of a job."""

    phase: Phase | None = None
    score: float | None = None
    """None until there is one: a score of 0.0 is a score."""
    assignedNode: str = ""
    controllerJobID: str = ""
    startedAt: datetime | None = None
    finishedAt: datetime | None = None
    message: str = field(default="", max_length=1024)
    observedGeneration: int = 0
    attempts: int = 0
    progress: int | None = field(default=None, minimum=0, maximum=100, doc="Percent.")
    features: dict[str, float] = field(default={}, max_properties=64)
    perFrame: PerFrame | None = None
    conditions: Conditions = Conditions()
    run: Run = field(default=Run(), owner="gateway")


class VmafxJob(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmjob",
    columns=[
        Column(name="Phase", path=".status.phase"),
        Column(name="Progress", path=".status.progress", type="integer"),
        Column(name="Score", path=".status.score", type="number"),
        Column(name="Node", path=".status.assignedNode"),
        AGE,
    ],
):
    """One clip scored against another."""

    spec: VmafxJobSpec
    status: VmafxJobStatus = VmafxJobStatus()


class VmafxNodeSpec(Spec):
    """What a node is."""

    gpuVendor: Vendor
    capacity: int = field(default=1, minimum=1)
    image: str | None = None


class Doing(Object):
    """One job that a node works on, as the node said at its last beat."""

    job: str
    """Its uid."""
    attempt: int
    progress: int = field(default=0, minimum=0, maximum=100)
    namespace: str = ""
    name: str = ""


class VmafxNodeStatus(Status):
    """How a node is."""

    healthy: bool = False
    lastHeartbeat: datetime | None = field(default=None, owner="node")
    assignedJobs: int = field(default=0, owner="node")
    detectedDevice: str = field(default="", owner="node")
    session: str = field(
        default="", owner="node", doc="Which life of the node; each start is one."
    )
    tokenHash: str = field(default="", owner="node")
    tenant: str = field(
        default="", owner="node", doc="Whose node it is; empty without tenants."
    )
    backends: list[str] = field(default=[], max_items=16, owner="node")
    beat: int = field(
        default=0,
        owner="node",
        doc="Grows with each beat: silence is measured by who watches.",
    )
    jobs: list[Doing] = field(
        default=[], list_type="map", list_keys=("job",), max_items=64, owner="node"
    )
    draining: bool = field(default=False, owner="node")


class VmafxNode(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmnode",
    columns=[
        Column(name="Vendor", path=".spec.gpuVendor"),
        Column(name="Healthy", path=".status.healthy", type="boolean"),
        Column(name="Jobs", path=".status.assignedJobs", type="integer"),
        Column(name="Device", path=".status.detectedDevice"),
        AGE,
    ],
):
    """A machine that scores."""

    spec: VmafxNodeSpec
    status: VmafxNodeStatus = VmafxNodeStatus()
