"""The kind of training: a model that learns from scores while they are made.

All of its status is the operator's, which says there what the trainer told it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from trimtab.api import Column, Conditions, Object, Resource, Spec, Status, field
from trimtab.operators.vmafx.kinds import AGE, GROUP, VERSION

TrainingPhase = Literal["Initializing", "Running", "Paused", "Failed"]
Outcome = Literal["", "passed", "waiting", "failed"]
PORT: Final = 9091
"""Where a trainer is asked how it is, and given samples."""
LAST_GOOD: Final = "last-good"


class DataSource(Object):
    """Whose samples a model learns from; no labels mean everybody's."""

    nodeSelector: dict[str, str] = {}


class Checkpoint(Object):
    """When a model is kept."""

    interval: str = "10m"
    minSamples: int = field(default=1000, minimum=1)


class AlgorithmConfig(Object):
    """How it learns; what is not said is as the trainer has it."""

    learningRate: float | None = field(default=None, minimum=0, maximum=1)
    emaDecay: float | None = field(default=None, minimum=0, maximum=1)
    batchSize: int | None = field(default=None, minimum=2, maximum=4096)
    replayBufferSize: int | None = field(default=None, minimum=2, maximum=1_000_000)
    replayMixRatio: float | None = field(default=None, minimum=0, maximum=1)
    passes: int | None = field(
        default=None, minimum=1, maximum=64, doc="Steps for each half batch."
    )


class Storage(Object):
    """Where what was learned outlives the trainer's pod; named by one of these."""

    claim: str | None = field(
        default=None, max_length=253, doc="A PersistentVolumeClaim of the namespace."
    )
    hostPath: str | None = field(
        default=None,
        max_length=4096,
        pattern="^/",
        doc="A folder of the machine; namespaces that are restricted refuse it.",
    )


class VmafxModelTrainingSpec(Spec):
    """Which model is to learn, from what."""

    baseModel: str = field(
        min_length=1,
        doc="configmap://NAME/KEY, or a file that the trainer's pod sees.",
    )
    dataSource: DataSource = DataSource()
    algorithm: Literal["online-sgd-ema"]
    checkpoint: Checkpoint = Checkpoint()
    outputRegistry: str = field(
        min_length=1, doc="file:///FOLDER, oci:///FOLDER, or an address for people."
    )
    algorithmConfig: AlgorithmConfig = AlgorithmConfig()
    storage: Storage = Storage()
    image: str | None = field(
        default=None, max_length=1024, doc="Of its pod; absent is the operator's."
    )
    paused: bool = False
    rollbackTo: str | None = field(
        default=None,
        pattern=f"^(v[0-9]{{1,9}}|{LAST_GOOD})$",
        doc="Go on from this version, or the last good one; done once for each wish.",
    )


class Figures(Object):
    """How well a model tells held-out scores."""

    plcc: float | None = None
    srocc: float | None = None
    rmse: float | None = None


class Gate(Figures):
    """What a model was found to be, before it became a checkpoint."""

    passed: bool = False
    outcome: Outcome = field(
        default="", doc="Waiting: it is no better than the base yet. Failed: spoiled."
    )
    heldOut: int = field(default=0, doc="Samples that judged it.")
    base: Figures = field(default=Figures(), doc="What the base has.")
    good: Figures = field(default=Figures(), doc="What the last good model has.")
    reason: str = field(default="", max_length=1024)

    @property
    def failed(self) -> bool:
        """Whether what was learned had to be forgotten."""
        return self.outcome == "failed" or (not self.passed and not self.outcome)


class VmafxModelTrainingStatus(Status):
    """How far it has learned."""

    phase: TrainingPhase | None = None
    currentSamples: int = 0
    lastCheckpoint: datetime | None = None
    modelVersion: str = ""
    observedGeneration: int = 0
    conditions: Conditions = Conditions()
    message: str = field(default="", max_length=1024)
    loss: float | None = None
    steps: int = 0
    gate: Gate | None = None
    address: str = field(
        default="", max_length=300, doc="HOST:PORT where samples are taken."
    )
    features: list[str] = field(
        default=[], max_items=256, doc="What a sample consists of, in this order."
    )
    rollbacks: int = field(default=0, doc="How often what was learned was forgotten.")
    rolledBackTo: str = field(
        default="", max_length=64, doc="The wish of the spec that was carried out."
    )


class VmafxModelTraining(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmtrain",
    columns=[
        Column(name="Phase", path=".status.phase"),
        Column(name="Samples", path=".status.currentSamples", type="integer"),
        Column(name="ModelVersion", path=".status.modelVersion"),
        Column(name="Loss", path=".status.loss", type="number"),
        Column(name="Gate", path=".status.gate.passed", type="boolean"),
        Column(name="RMSE", path=".status.gate.rmse", type="number"),
        AGE,
    ],
):
    """A model that learns from scores while they are made."""

    spec: VmafxModelTrainingSpec
    status: VmafxModelTrainingStatus = VmafxModelTrainingStatus()
