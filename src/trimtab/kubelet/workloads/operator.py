"""The operator of workloads: Trimtab's own runtime at work for a laptop's cluster."""

from __future__ import annotations

from random import Random

from trimtab.cache import Scope
from trimtab.kubelet.workloads.cronjobs import cronjobs
from trimtab.kubelet.workloads.deployments import deployments
from trimtab.kubelet.workloads.jobs import PAUSES, Jobs
from trimtab.kubelet.workloads.kinds import (
    CronJob,
    Deployment,
    Job,
    ReplicaSet,
    TemplatePod,
)
from trimtab.kubelet.workloads.replicasets import ReplicaSets
from trimtab.runtime.backoff import Backoff
from trimtab.runtime.operator import Operator

NAME = "workloads"
EVERYTHING = Scope(everything=True)


def workloads(random: Random, *, pauses: Backoff = PAUSES) -> Operator:
    """An operator that does what kube-controller-manager does for workloads."""
    app = Operator(NAME, leader=False)
    app.reconciles(Deployment, scope=EVERYTHING, owns=[ReplicaSet], name="deployment")(
        deployments
    )
    app.reconciles(ReplicaSet, scope=EVERYTHING, owns=[TemplatePod], name="replicaset")(
        ReplicaSets(random)
    )
    app.reconciles(Job, scope=EVERYTHING, owns=[TemplatePod], name="job")(
        Jobs(random, pauses=pauses)
    )
    app.reconciles(CronJob, scope=EVERYTHING, owns=[Job], name="cronjob")(cronjobs)
    return app
