"""Node sets on the cluster: as many pods as are wished, and the busy ones go last.

A node that is to go is deleted, which is its sign to drain: it takes no more jobs,
finishes what it has within its patience and gives back the rest, so that no job is lost
by it. What a pod would cost to lose is written on it as well, for whoever else takes
pods away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trimtab
from trimtab.api import Metadata
from trimtab.cache import Index, Scope
from trimtab.client import Forbidden, Invalid
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.scaling import podspec, sizing
from trimtab.operators.vmafx.scaling.kinds import (
    LABEL_NODE,
    LABEL_REVISION,
    MarkedPod,
    NodePod,
    VmafxNodeSet,
    VmafxNodeSetStatus,
)
from trimtab.operators.vmafx.scaling.sizing import Member
from trimtab.runtime import Context, Result, Watched

COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_OVER: Final = ("Succeeded", "Failed")
# Seconds until a node that could not be made is tried again.
_AGAIN: Final = 30.0
# A job is there before its node has said so in a beat.
_RUNS_ON: Final = Index(
    "runs-on", lambda job: (job.status.run.node,) if claims.is_running(job) else ()
)
_BY_SET: Final = Index("set", lambda node: _sets_of(node))


def declare(app: trimtab.Operator, *, scope: Scope) -> None:
    """Let an operator keep node sets, and say of each node what it would cost."""

    @app.reconciles(
        VmafxNodeSet,
        scope=scope,
        owns=[NodePod],
        watches=[
            Watched(
                kind=VmafxNode,
                scope=scope,
                to=_sets_of,
                on_change=("status.healthy", "status.assignedJobs", "status.draining"),
                indexes=(_BY_SET,),
            ),
            Watched(kind=VmafxJob, scope=scope, to=_nobody, indexes=(_RUNS_ON,)),
        ],
    )
    async def nodeset(seen: VmafxNodeSet, ctx: Context) -> Result:
        return await _nodeset(seen, ctx)

    @app.reconciles(
        MarkedPod,
        scope=_labelled(scope),
        on_change=("metadata.uid",),
        watches=[
            Watched(
                kind=VmafxNode,
                scope=scope,
                to=lambda node: [node.key],
                on_change=("status.assignedJobs",),
            )
        ],
    )
    async def nodecost(seen: MarkedPod, ctx: Context) -> Result:
        node = ctx.get(VmafxNode, seen.metadata.name)
        if node is None or seen.metadata.deletionTimestamp is not None:
            return ctx.done()
        cost = {COST: str(node.status.assignedJobs)}
        marked = Metadata(name=seen.metadata.name, annotations=cost)
        await ctx.apply(MarkedPod(metadata=marked))
        return ctx.done()


def _labelled(scope: Scope) -> Scope:
    return Scope(
        namespaces=scope.namespaces,
        namespaces_where=scope.namespaces_where,
        labels=LABEL_NODE,
    )


def _nobody(job: VmafxJob) -> Sequence[tuple[str, str]]:
    """Jobs are looked up when they matter; a change of one changes no set."""
    return ()


def _sets_of(node: VmafxNode) -> list[str]:
    """The name that a set of this node would have."""
    return [node.metadata.name.rpartition("-")[0]]


async def _nodeset(seen: VmafxNodeSet, ctx: Context) -> Result:
    pods = ctx.children(NodePod)
    for each in pods:
        if each.status.phase in _OVER:  # evicted, say: it never comes back
            await ctx.delete(each)
    living = {each.metadata.name: each for each in pods if _lives(each)}
    leaving = {each.metadata.name for each in pods} - living.keys()
    current = podspec.revision(seen)
    members = [_member(each, current, ctx) for each in living.values()]
    plan = sizing.plan(
        seen.metadata.name, members, replicas=seen.spec.replicas, leaving=leaving
    )
    made, problem = await _make(seen, plan.make, ctx)
    for name in plan.remove:
        await ctx.delete(living[name])
    await _forget(seen, living.keys() | leaving, ctx)
    done = sizing.Plan(make=made, remove=plan.remove)
    _tell(done, ctx)
    return _told(seen, members, done, len(leaving), problem, ctx)


async def _make(
    seen: VmafxNodeSet, names: Sequence[str], ctx: Context
) -> tuple[tuple[str, ...], str]:
    """Make pods; those that were, and why the others could not be."""
    for number, name in enumerate(names):
        try:
            await ctx.apply(podspec.pod(seen, name))
        except (podspec.BadTemplate, Invalid, Forbidden) as error:
            return tuple(names[:number]), f"A node cannot be made: {error}"
    return tuple(names), ""


async def _forget(seen: VmafxNodeSet, names: set[str], ctx: Context) -> None:
    """Delete the VmafxNodes of pods that have said goodbye and are gone."""
    for node in ctx.select(VmafxNode, _BY_SET.name, seen.metadata.name):
        here = node.metadata.namespace == seen.metadata.namespace
        left = node.status.draining and not node.status.jobs
        if here and left and node.metadata.name not in names:
            await ctx.delete(node)


def _lives(pod: NodePod) -> bool:
    return pod.metadata.deletionTimestamp is None and pod.status.phase not in _OVER


def _member(pod: NodePod, current: str, ctx: Context) -> Member:
    name = pod.metadata.name
    node = ctx.get(VmafxNode, name)
    beats = node is not None and node.status.healthy and not node.status.draining
    return Member(
        name=name,
        jobs=len(ctx.keys(VmafxJob, _RUNS_ON.name, name)),
        ready=pod.status.conditions.is_true("Ready") and beats,
        current=pod.metadata.labels.get(LABEL_REVISION) == current,
    )


def _tell(plan: sizing.Plan, ctx: Context) -> None:
    if plan.make:
        ctx.event("Made", f"Made {_counted(len(plan.make))}.")
    if plan.remove:
        ctx.event("Drained", f"Told {_counted(len(plan.remove))} to go.")


def _counted(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _told(
    seen: VmafxNodeSet,
    members: Sequence[Member],
    plan: sizing.Plan,
    leaving: int,
    problem: str,
    ctx: Context,
) -> Result:
    """The status after what was done, and when to look again."""
    stay = [each for each in members if each.name not in plan.remove]
    ready, wished = sum(each.ready for each in stay), seen.spec.replicas
    gone = leaving + len(plan.remove)
    reason = "Refused" if problem else "Changing"
    ctx.condition(
        "Ready",
        ready == wished,
        reason="AllReady" if ready == wished else reason,
        message=problem
        or f"{ready} of {wished} nodes are ready, {gone} on their way out.",
    )
    if problem:
        ctx.event("Refused", problem, type="Warning")
    status = VmafxNodeSetStatus(
        replicas=len(stay) + len(plan.make),
        readyReplicas=ready,
        busy=sum(each.jobs > 0 for each in stay),
        leaving=gone,
        selector=podspec.selector(seen),
        observedGeneration=seen.metadata.generation,
    )
    more = len(plan.make) == sizing.MOST_AT_ONCE
    after = 0.1 if more else None
    return ctx.done(status=status, after=_AGAIN if problem else after)
