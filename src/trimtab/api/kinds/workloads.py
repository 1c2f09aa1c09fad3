"""Workloads: pods kept running (Deployment) and pods run to their end (Job).

Counters of a status that the server leaves out when they are zero read as 0. What
needs no other type stands in a class of its own, for whoever reads templates another
way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from trimtab.api.conditions import Conditions
from trimtab.api.kinds.pods import PodTemplateSpec
from trimtab.api.objects import Object, field
from trimtab.api.resource import Resource
from trimtab.api.selectors import LabelSelector


class RollingUpdateDeployment(Object):
    """How many pods, or what share ("25%"), may be missing or extra meanwhile."""

    maxUnavailable: int | str | None = None
    maxSurge: int | str | None = None


class DeploymentStrategy(Object):
    """How old pods give way to new ones: RollingUpdate or Recreate."""

    type: str = ""
    rollingUpdate: RollingUpdateDeployment | None = None


class DeploymentPace(Object):
    """How many pods, and how a change of them goes on."""

    replicas: int | None = None
    minReadySeconds: int | None = None
    revisionHistoryLimit: int | None = None
    progressDeadlineSeconds: int | None = None
    paused: bool | None = None


class DeploymentSpec(DeploymentPace):
    """How many pods of which template; the selector must match its labels."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)
    strategy: DeploymentStrategy = DeploymentStrategy()


class DeploymentCounts(Object):
    """How many pods there are, are new, are ready; and for which generation."""

    observedGeneration: int = 0
    replicas: int = 0
    updatedReplicas: int = 0
    readyReplicas: int = 0
    availableReplicas: int = 0
    unavailableReplicas: int = 0


class DeploymentStatus(DeploymentCounts):
    """How far a Deployment is, in numbers and in words."""

    conditions: Conditions = Conditions()


class Deployment(Resource, group="apps", version="v1", builtin=True):
    """A number of like pods, replaced step by step when their template changes."""

    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: DeploymentStatus = DeploymentStatus()


class JobLimits(Object):
    """How many pods must succeed, how many run at once, and when to give up."""

    parallelism: int | None = None
    completions: int | None = None
    completionMode: str | None = None
    backoffLimit: int | None = None
    backoffLimitPerIndex: int | None = None
    maxFailedIndexes: int | None = None
    activeDeadlineSeconds: int | None = None
    ttlSecondsAfterFinished: int | None = None
    suspend: bool | None = None
    podFailurePolicy: dict[str, Any] | None = None
    successPolicy: dict[str, Any] | None = None
    podReplacementPolicy: str | None = None
    managedBy: str | None = None


class JobSpec(JobLimits):
    """Pods of which template, and how many."""

    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)
    selector: LabelSelector | None = None


class JobCounts(Object):
    """How many pods run, succeeded, failed, and since when."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    startTime: datetime | None = None
    completionTime: datetime | None = None
    completedIndexes: str = ""
    failedIndexes: str | None = None


class JobStatus(JobCounts):
    """How far a Job is; its condition is ``Complete`` or ``Failed`` at the end."""

    conditions: Conditions = Conditions()


class Job(Resource, group="batch", version="v1", builtin=True):
    """Pods that run until enough of them have succeeded."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = JobStatus()
