"""The kinds that are reconciled here, with templates as they are: plain and whole.

A slice would drop the fields of a template, or of a condition, that it does not name;
here they are copied from one object into another, so nothing may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trimtab.api.kinds import PodStatus
from trimtab.api.kinds.workloads import (
    DeploymentCounts,
    DeploymentPace,
    JobCounts,
    JobLimits,
)
from trimtab.api.objects import Object, field
from trimtab.api.resource import Resource

Plain = dict[str, Any]


class TemplatePod(Resource, version="v1", kind="Pod", builtin=True):
    """A pod that is made from a template."""

    spec: Plain = {}
    status: PodStatus = PodStatus()


class ReplicaSetSpec(Object):
    """How many pods of which template."""

    replicas: int | None = None
    selector: Plain = {}
    template: Plain = {}
    minReadySeconds: int | None = None


class ReplicaSetStatus(Object):
    """How many there are."""

    replicas: int = 0
    fullyLabeledReplicas: int = 0
    readyReplicas: int = 0
    availableReplicas: int = 0
    observedGeneration: int = 0


class ReplicaSet(Resource, group="apps", version="v1", builtin=True):
    """A number of like pods."""

    spec: ReplicaSetSpec = field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = ReplicaSetStatus()


class DeploymentSpec(DeploymentPace):
    """How many pods of which template, and how an old one gives way."""

    selector: Plain = {}
    template: Plain = {}
    strategy: Plain = {}


class DeploymentStatus(DeploymentCounts):
    """How far it is."""

    conditions: Sequence[Plain] = ()


class Deployment(Resource, group="apps", version="v1", builtin=True):
    """A number of like pods, replaced step by step when their template changes."""

    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: DeploymentStatus = DeploymentStatus()


class JobSpec(JobLimits):
    """How many pods must succeed, and when to give up."""

    template: Plain = {}


class JobStatus(JobCounts):
    """How far it is."""

    conditions: Sequence[Plain] = ()


class Job(Resource, group="batch", version="v1", builtin=True):
    """Pods that run until enough of them have succeeded."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = JobStatus()


class CronJobSpec(Object):
    """When to make which Job, and how many to keep."""

    schedule: str = ""
    timeZone: str | None = None
    startingDeadlineSeconds: int | None = None
    concurrencyPolicy: str = ""
    suspend: bool | None = None
    jobTemplate: Plain = {}
    successfulJobsHistoryLimit: int | None = None
    failedJobsHistoryLimit: int | None = None


class CronJobStatus(Object):
    """What runs, and when it last did."""

    active: Sequence[Plain] = ()
    lastScheduleTime: datetime | None = None
    lastSuccessfulTime: datetime | None = None


class CronJob(Resource, group="batch", version="v1", builtin=True):
    """A Job, again and again."""

    spec: CronJobSpec = field(default_factory=CronJobSpec)
    status: CronJobStatus = CronJobStatus()
