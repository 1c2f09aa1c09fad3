"""Policy: which pods may be disturbed, and which go first."""

from __future__ import annotations

from datetime import datetime

from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, field
from trimtab.api.resource import Resource
from trimtab.api.selectors import LabelSelector


class PodDisruptionBudgetSpec(Object):
    """How many pods (or what share) must stay, or may be away, during evictions."""

    minAvailable: int | str | None = None
    maxUnavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthyPodEvictionPolicy: str | None = None


class PodDisruptionBudgetStatus(Object):
    """How many evictions are allowed now, and what that was reckoned from."""

    observedGeneration: int = 0
    disruptionsAllowed: int = 0
    currentHealthy: int = 0
    desiredHealthy: int = 0
    expectedPods: int = 0
    disruptedPods: dict[str, datetime | None] = {}
    conditions: Conditions = Conditions()


class PodDisruptionBudget(Resource, group="policy", version="v1", builtin=True):
    """A bound on how many pods of a set may be evicted at once."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class PriorityClass(
    Resource,
    group="scheduling.k8s.io",
    version="v1",
    plural="priorityclasses",
    builtin=True,
    namespaced=False,
):
    """A name for a priority; pods of a higher value are scheduled first."""

    value: int
    description: str = ""
    globalDefault: bool | None = None
    preemptionPolicy: str | None = None
