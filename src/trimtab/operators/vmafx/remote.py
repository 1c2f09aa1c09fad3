"""Remote mode: the jobs of this cluster, done by a vmafx-controller elsewhere.

Jobs are submitted and asked for every ten seconds, nodes are looked after every thirty,
trainers every sixty. All handlers share one channel and one HTTP client.
"""

from __future__ import annotations

from collections.abc import Mapping

import trimtab
from trimtab.cache import Scope
from trimtab.operators.vmafx.following import Following, Rhythm
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.links import Links
from trimtab.operators.vmafx.settings import settings_of
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.training.mirror import trained
from trimtab.runtime import Context, Result

FINALIZER = "vmafx.dev/cancel"
PROBE = 30.0
STALE = 60.0
"""Seconds without a heartbeat after which a node is not healthy."""


def links_of(environment: Mapping[str, str]) -> Links:
    """The way to the controller that the environment names."""
    return Links(settings_of(environment))


def declare(
    app: trimtab.Operator, links: Links, *, scope: Scope, rhythm: Rhythm | None = None
) -> None:
    """Make an operator one in front of somebody else's controller."""
    app.opens(links.open)
    # What it writes itself is no reason to ask again: the rhythm is.
    asked = ("spec",)
    jobs = Following(links, rhythm=rhythm or Rhythm())

    @app.reconciles(VmafxJob, scope=scope, on_change=asked)
    async def job(seen: VmafxJob, ctx: Context) -> Result:
        return await jobs.follow(seen, ctx)

    @app.finalizes(VmafxJob, FINALIZER)
    async def cancelled(seen: VmafxJob, ctx: Context) -> None:
        await jobs.cancel(seen, ctx)

    @app.reconciles(VmafxNode, scope=scope, on_change=asked)
    async def node(seen: VmafxNode, ctx: Context) -> Result:
        # The heartbeat is the node's: it is read here, and never written.
        beat = seen.status.lastHeartbeat
        stale = beat is not None and (ctx.now - beat).total_seconds() > STALE
        healthy = not stale and await links.is_alive(seen.metadata.namespace)
        if healthy != seen.status.healthy:
            word = "answers again" if healthy else "fell silent"
            ctx.event("Healthy" if healthy else "Silent", f"The node {word}.")
        return ctx.done(status=VmafxNode.status_of()(healthy=healthy), after=PROBE)

    @app.reconciles(VmafxModelTraining, scope=scope, on_change=asked)
    async def training(seen: VmafxModelTraining, ctx: Context) -> Result:
        name, namespace = seen.metadata.name, seen.metadata.namespace
        return trained(seen, await links.training(name, namespace), ctx)
