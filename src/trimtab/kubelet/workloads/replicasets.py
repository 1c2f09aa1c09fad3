"""ReplicaSets: as many pods as are wished for, no more and no fewer."""

from __future__ import annotations

from random import Random
from typing import Any

from trimtab.client import ApiError
from trimtab.kubelet.workloads import statuses
from trimtab.kubelet.workloads.kinds import ReplicaSet, TemplatePod
from trimtab.kubelet.workloads.pods import (
    LONGEST,
    available_in,
    chosen_to_go,
    is_active,
    is_ready,
    made_from,
    suffix,
)
from trimtab.runtime.context import Context
from trimtab.runtime.reconcile import Result

BURST = 500


class ReplicaSets:
    """The handler; it needs a generator for names."""

    def __init__(self, random: Random) -> None:
        self._random = random

    async def __call__(self, owner: ReplicaSet, ctx: Context) -> Result:
        pods = [each for each in ctx.children(TemplatePod) if is_active(each)]
        wanted = 1 if owner.spec.replicas is None else owner.spec.replicas
        try:
            if len(pods) < wanted:
                pods += await self._grow(owner, ctx, min(wanted - len(pods), BURST))
            elif len(pods) > wanted:
                pods = await self._shrink(ctx, pods, len(pods) - wanted)
        finally:
            after = await self._tell(owner, ctx, pods)
        return Result(after=after)

    async def _grow(
        self, owner: ReplicaSet, ctx: Context, count: int
    ) -> list[TemplatePod]:
        made = []
        for _ in range(count):
            meta = owner.metadata
            name = f"{meta.name[:LONGEST]}-{suffix(self._random)}"
            pod = made_from(owner.spec.template, name=name, namespace=meta.namespace)
            try:
                made.append(await ctx.apply(pod))
            except ApiError as error:
                text = f"Error creating: {error}"
                ctx.event("FailedCreate", text, type="Warning")
                raise
            ctx.event("SuccessfulCreate", f"Created pod: {name}")
        return made

    async def _shrink(
        self, ctx: Context, pods: list[TemplatePod], count: int
    ) -> list[TemplatePod]:
        going = chosen_to_go(pods, count)
        for each in going:
            await ctx.delete(each)
            ctx.event("SuccessfulDelete", f"Deleted pod: {each.metadata.name}")
        gone = {each.metadata.uid for each in going}
        return [each for each in pods if each.metadata.uid not in gone]

    async def _tell(
        self, owner: ReplicaSet, ctx: Context, pods: list[TemplatePod]
    ) -> float | None:
        seconds = owner.spec.minReadySeconds or 0
        waits = [available_in(each, seconds, ctx.now) for each in pods]
        pending = [each for each in waits if each]
        status: dict[str, Any] = {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": sum(map(is_ready, pods)),
            "availableReplicas": waits.count(0.0),
            "observedGeneration": owner.metadata.generation,
        }
        await statuses.say(ctx, owner, status)
        return min(pending) + 0.01 if pending else None
