"""Deployments: ReplicaSets of one template after another, and the way between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.api.resource import Metadata
from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.kubelet.workloads import statuses
from trimtab.kubelet.workloads.kinds import (
    Deployment,
    Plain,
    ReplicaSet,
    ReplicaSetSpec,
)
from trimtab.kubelet.workloads.pods import cleaned, safe
from trimtab.kubelet.workloads.rolling import Group, bounds, step
from trimtab.runtime.context import Context
from trimtab.runtime.reconcile import Result

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
HISTORY = 10
DEADLINE = 600
PRIME, OFFSET, MASK = 16777619, 2166136261, 0xFFFFFFFF


def template_hash(template: Plain) -> str:
    """What tells one template from another, in letters that fit a name."""
    plain = cleaned(template)
    text = msgspec.json.encode(plain, order="deterministic")
    value = OFFSET
    for byte in text:
        value = (value ^ byte) * PRIME & MASK
    return safe(value)


async def deployments(owner: Deployment, ctx: Context) -> Result:
    """One look at a Deployment."""
    owned = ctx.children(ReplicaSet)
    name = template_hash(owner.spec.template)
    new = next((each for each in owned if _hash(each) == name), None)
    olds = [each for each in owned if _hash(each) != name]
    if owner.spec.paused:
        await _tell(owner, ctx, new, olds)
        return Result()
    revision = max([0, *map(_revision, olds)]) + 1
    if new is not None:
        revision = max(revision, _revision(new)) if olds else _revision(new) or 1
    if owner.metadata.annotations.get(REVISION) != str(revision):
        await _annotate(owner, ctx, revision)
    if new is None or _revision(new) != revision:
        count = new.spec.replicas or 0 if new else 0
        new = await _apply(owner, ctx, new, name=name, count=count, revision=revision)
    targets = _targets(owner, new, olds)
    for each in (new, *olds):
        wanted = targets[each.metadata.name]
        if wanted != (each.spec.replicas or 0):
            await _scale(owner, ctx, each, wanted)
    owned = ctx.children(ReplicaSet)
    olds = [each for each in owned if _hash(each) != name]
    new = next((each for each in owned if _hash(each) == name), new)
    after = await _tell(owner, ctx, new, olds)
    await _forget(owner, ctx, olds)
    return Result(after=after)


def _hash(each: ReplicaSet) -> str:
    return each.metadata.labels.get(HASH, "")


def _revision(each: ReplicaSet) -> int:
    text = each.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def _replicas(owner: Deployment) -> int:
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def _bounds(owner: Deployment) -> tuple[int, int]:
    rolling = owner.spec.strategy.get("rollingUpdate") or {}
    replicas = _replicas(owner)
    return bounds(replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))


def _targets(
    owner: Deployment, new: ReplicaSet, olds: Sequence[ReplicaSet]
) -> dict[str, int]:
    replicas = _replicas(owner)
    if owner.spec.strategy.get("type") == "Recreate":
        left = sum(each.status.replicas for each in olds)
        wanted = sum(each.spec.replicas or 0 for each in olds)
        held = new.spec.replicas or 0
        count = held if left or wanted else replicas
        return {new.metadata.name: count} | {each.metadata.name: 0 for each in olds}
    surge, missing = _bounds(owner)
    return step(
        replicas,
        new=_group(new),
        olds=[_group(each) for each in sorted(olds, key=_revision)],
        surge=surge,
        missing=missing,
    )


def _group(each: ReplicaSet) -> Group:
    return Group(
        name=each.metadata.name,
        wanted=each.spec.replicas or 0,
        available=each.status.availableReplicas,
    )


async def _annotate(owner: Deployment, ctx: Context, revision: int) -> None:
    await ctx.client.patch(
        Deployment,
        owner.metadata.name,
        {"metadata": {"annotations": {REVISION: str(revision)}}},
        namespace=owner.metadata.namespace,
    )


async def _apply(
    owner: Deployment,
    ctx: Context,
    known: ReplicaSet | None,
    *,
    name: str,
    count: int,
    revision: int,
) -> ReplicaSet:
    """A ReplicaSet as it should be: of this template, at this size."""
    template = owner.spec.template if known is None else known.spec.template
    meta = cleaned(template.get("metadata") or {})
    labels = {**(meta.get("labels") or {}), HASH: name}
    selector = cleaned(owner.spec.selector)
    matched = {**(selector.get("matchLabels") or {}), HASH: name}
    surge, _ = _bounds(owner)
    replicas = _replicas(owner)
    return await ctx.apply(
        ReplicaSet(
            metadata=Metadata(
                name=f"{owner.metadata.name}-{name}",
                labels=labels,
                annotations={
                    REVISION: str(revision),
                    DESIRED: str(replicas),
                    MOST: str(replicas + surge),
                },
            ),
            spec=ReplicaSetSpec(
                replicas=count,
                minReadySeconds=owner.spec.minReadySeconds,
                selector={**selector, "matchLabels": matched},
                template={
                    **cleaned(template),
                    "metadata": {**meta, "labels": labels},
                },
            ),
        )
    )


async def _scale(owner: Deployment, ctx: Context, each: ReplicaSet, count: int) -> None:
    before, name = each.spec.replicas or 0, each.metadata.name
    revision = _revision(each)
    await _apply(owner, ctx, each, name=_hash(each), count=count, revision=revision)
    way = "up" if count > before else "down"
    text = f"Scaled {way} replica set {name} from {before} to {count}"
    ctx.event("ScalingReplicaSet", text)


async def _forget(owner: Deployment, ctx: Context, olds: Sequence[ReplicaSet]) -> None:
    """Of templates that nothing runs any more, only so many are kept to go back to."""
    limit = owner.spec.revisionHistoryLimit
    keep = HISTORY if limit is None else limit
    idle = [e for e in olds if not (e.spec.replicas or e.status.replicas)]
    for each in sorted(idle, key=_revision)[: max(0, len(idle) - keep)]:
        await ctx.delete(each)


async def _tell(
    owner: Deployment, ctx: Context, new: ReplicaSet | None, olds: Sequence[ReplicaSet]
) -> float | None:
    """Write the status if it says something new; when to look again."""
    owned = [*([new] if new else []), *olds]
    total = sum(each.status.replicas for each in owned)
    available = sum(each.status.availableReplicas for each in owned)
    counts = {
        "replicas": total,
        "updatedReplicas": new.status.replicas if new else 0,
        "readyReplicas": sum(each.status.readyReplicas for each in owned),
        "availableReplicas": available,
        "unavailableReplicas": max(0, _replicas(owner) - available),
    }
    conditions, after = _conditions(owner, ctx.now, new, counts)
    status: Plain = {
        "observedGeneration": owner.metadata.generation,
        **counts,
        "conditions": conditions,
    }
    await statuses.say(ctx, owner, status)
    return after


def _conditions(
    owner: Deployment, now: datetime, new: ReplicaSet | None, counts: dict[str, int]
) -> tuple[list[Plain], float | None]:
    known = {each["type"]: each for each in owner.status.conditions}
    _, missing = _bounds(owner)
    enough = counts["availableReplicas"] >= _replicas(owner) - missing
    available: Plain = {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": f"MinimumReplicas{'Available' if enough else 'Unavailable'}",
        "message": "Deployment has minimum availability."
        if enough
        else "Deployment does not have minimum availability.",
    }
    progressing, after = _progress(owner, now, new, counts, known.get("Progressing"))
    stated = [_stamped(available, known, now)]
    if progressing:
        stated.append(_stamped(progressing, known, now, moved=_moved(owner, counts)))
    return stated, after


def _moved(owner: Deployment, counts: dict[str, int]) -> bool:
    held = owner.status
    return any(
        counts[name] != getattr(held, name)
        for name in (
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "replicas",
        )
    )


def _progress(
    owner: Deployment,
    now: datetime,
    new: ReplicaSet | None,
    counts: dict[str, int],
    known: Plain | None,
) -> tuple[Plain | None, float | None]:
    """Whether a rollout goes on, is done, or takes too long; when that is known."""
    if new is None:
        return known, None
    replicas, name = _replicas(owner), new.metadata.name
    done = (
        counts["updatedReplicas"] == replicas
        and counts["replicas"] == replicas
        and counts["availableReplicas"] == replicas
    )
    said: Plain = {"type": "Progressing", "status": "True"}
    if done:
        text = f'ReplicaSet "{name}" has successfully progressed.'
        return {**said, "reason": "NewReplicaSetAvailable", "message": text}, None
    late_before = known and known.get("reason") == "ProgressDeadlineExceeded"
    if late_before and not _moved(owner, counts):
        return known, None
    deadline = owner.spec.progressDeadlineSeconds or DEADLINE
    fresh = known and known.get("reason") != "NewReplicaSetAvailable"
    since = parse_rfc3339(known["lastUpdateTime"]) if known and fresh else now
    late = since + timedelta(seconds=deadline)
    if late <= now and not _moved(owner, counts):
        text = f'ReplicaSet "{name}" has timed out progressing.'
        said = {"type": "Progressing", "status": "False"}
        return {**said, "reason": "ProgressDeadlineExceeded", "message": text}, None
    text = f'ReplicaSet "{name}" is progressing.'
    waits = max(0.0, (late - now).total_seconds()) + 1.0
    return {**said, "reason": "ReplicaSetUpdated", "message": text}, waits


def _stamped(
    said: Plain, known: dict[str, Plain], now: datetime, *, moved: bool = False
) -> Plain:
    """A condition with its times: since when it holds, and when it was last said."""
    old: dict[str, Any] = known.get(said["type"]) or {}
    same = all(old.get(name) == said[name] for name in ("status", "reason", "message"))
    if same and not moved:
        return old
    changed = old.get("status") != said["status"]
    stamp = rfc3339(now)
    since = stamp if changed else old.get("lastTransitionTime", stamp)
    return {**said, "lastUpdateTime": stamp, "lastTransitionTime": since}
