"""Reconciling a training: its trainer runs as a pod, is steered, and is mirrored.

The trainer knows everything that was learned; here is only what it said last. Whoever
follows it as a leader asks it again and goes on.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

import trimtab
from trimtab.cache import Scope
from trimtab.kinds import ContainerStatus, Pod, Secret, Service
from trimtab.operators.vmafx.training import mirror, podspec
from trimtab.operators.vmafx.training.calling import Declined, NotKnown, Trainers
from trimtab.operators.vmafx.training.kinds import (
    PORT,
    VmafxModelTraining,
    VmafxModelTrainingStatus,
)
from trimtab.operators.vmafx.training.mirror import Said
from trimtab.operators.vmafx.training.podspec import TrainerSettings
from trimtab.operators.vmafx.training.tokens import SECRET, Key, digest_of
from trimtab.runtime import Context, Result, Retry

CHANGES: Final = ("spec",)
"""What brings a training back, beside its pod and the rhythm."""
AGAIN: Final = 5.0
"""Seconds until a trainer is told again that did not know its token."""
_ENDED: Final = ("Failed", "Succeeded")
_STEERED: Final = {"running": False, "paused": True}
_LONGEST: Final = 1000


def declare(
    app: trimtab.Operator, *, scope: Scope, settings: TrainerSettings, random: Random
) -> None:
    """Have an operator run the trainers of a scope."""
    trainers = Trainers()
    app.opens(trainers.open)
    made = Training(trainers, settings, random=random)
    app.needs(Secret, "create", home=True)
    app.needs(Secret, "get", names=(SECRET,), home=True)

    @app.reconciles(
        VmafxModelTraining, scope=scope, owns=[Pod, Service], on_change=CHANGES
    )
    async def training(seen: VmafxModelTraining, ctx: Context) -> Result:
        return await made.reconcile(seen, ctx)


class _Trainer(msgspec.Struct, frozen=True):
    """Where a trainer is told something, and what it is shown."""

    address: str
    token: str

    def __repr__(self) -> str:
        return f"_Trainer({self.address})"  # and never the token


class Training:
    """Keeps each training's trainer running, and says how it is.

    Guarantees: one pod for each training at a time. A wish to roll back is carried out
    once. The object is written only when something in it changes.
    """

    def __init__(
        self, trainers: Trainers, settings: TrainerSettings, *, random: Random
    ) -> None:
        self._trainers = trainers
        self._settings = settings
        self._random = random
        self._key: Key | None = None

    async def reconcile(self, seen: VmafxModelTraining, ctx: Context) -> Result:
        """Make the pod and the Service, steer the trainer, and mirror what it says."""
        if why := podspec.problem(seen):
            return await self._unusable(seen, ctx, why)
        await ctx.apply(podspec.service(seen))
        key = await self._fresh_key(ctx)
        token = key.token(seen)
        pod = await self._pod(seen, digest_of(token), ctx)
        address = _address(pod)
        said = await self._asked(address)
        before = seen.status
        if said is not None:
            to = _Trainer(address, token)
            try:
                said = await self._paused(seen, said, to, ctx)
                said, before = await self._rolled_back(seen, said, to, ctx)
            except NotKnown as error:
                key.forget()
                raise Retry(str(error), after=AGAIN) from None
        after = _mirrored(before, said, pod)
        mirror.told(seen.status, after, ctx)
        _conditions(seen, after, said, pod, ctx)
        status = replace(
            after, address=address, observedGeneration=seen.metadata.generation
        )
        return ctx.done(status=status, after=self._settings.rhythm)

    async def _unusable(
        self, seen: VmafxModelTraining, ctx: Context, why: str
    ) -> Result:
        """Say why there is no trainer; one that ran for an earlier wish ends."""
        for pod in ctx.children(Pod):
            await ctx.delete(pod)
        ctx.condition("Ready", False, reason="Unusable", message=why)
        status = replace(
            seen.status,
            phase="Failed",
            message=why,
            address="",
            observedGeneration=seen.metadata.generation,
        )
        return ctx.done(status=status)

    async def _fresh_key(self, ctx: Context) -> Key:
        """The key of the installation, which is where the operator itself is."""
        if self._key is None:
            home = ctx.client.config.namespace
            self._key = Key(ctx.client, namespace=home, random=self._random)
        await self._key.fresh()
        return self._key

    async def _pod(
        self, seen: VmafxModelTraining, digest: str, ctx: Context
    ) -> Pod | None:
        """The trainer's pod; one for another wish, or that has ended, is replaced."""
        wanted = podspec.pod(seen, self._settings, digest=digest)
        for pod in ctx.children(Pod):
            if pod.metadata.deletionTimestamp is not None:
                return None
            made_of = pod.metadata.annotations.get(podspec.SPEC_HASH)
            right = made_of == wanted.metadata.annotations[podspec.SPEC_HASH]
            if right and pod.status.phase not in _ENDED:
                return await _knowing(pod, digest, ctx)
            await ctx.delete(pod)
            return None
        return await ctx.apply(wanted)

    async def _asked(self, address: str) -> Said | None:
        if not address:
            return None
        return mirror.read(await self._trainers.status(address))

    async def _paused(
        self, seen: VmafxModelTraining, said: Said, to: _Trainer, ctx: Context
    ) -> Said:
        """Have it paused or going on, as wished for; what it says then."""
        wanted = seen.spec.paused
        if _STEERED.get(said.phase, wanted) == wanted:
            return said
        await self._trainers.pause(to.address, wanted=wanted, token=to.token)
        if wanted:
            ctx.event("Paused", "The trainer learns no more.")
        else:
            ctx.event("Resumed", "The trainer learns again.")
        return await self._asked(to.address) or said

    async def _rolled_back(
        self, seen: VmafxModelTraining, said: Said, to: _Trainer, ctx: Context
    ) -> tuple[Said, VmafxModelTrainingStatus]:
        """Carry out a wish to roll back, once; what it says then, and what was done."""
        status, wish = seen.status, seen.spec.rollbackTo or ""
        if wish == status.rolledBackTo:
            return said, status
        if not wish:
            return said, replace(status, rolledBackTo="")
        try:
            await self._trainers.roll_back(to.address, wish, token=to.token)
        except Declined as error:
            ctx.condition(
                "RolledBack", False, reason="Refused", message=str(error)[:_LONGEST]
            )
            return said, status
        sentence = f"The model is {wish} again, and learns on from there."
        ctx.event("RolledBack", sentence)
        ctx.condition("RolledBack", True, reason="AsWished", message=sentence)
        said = await self._asked(to.address) or said
        return said, replace(status, rolledBackTo=wish)


async def _knowing(pod: Pod, digest: str, ctx: Context) -> Pod:
    """A pod that knows its token; after a change of the key it is told the new one.

    It is not applied as a whole: what others have put into its spec stays.
    """
    if pod.metadata.annotations.get(podspec.DIGEST) == digest:
        return pod
    annotations = {podspec.DIGEST: digest}
    return await ctx.client.patch(
        Pod,
        pod.metadata.name,
        {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}},
        namespace=pod.metadata.namespace,
    )


def _mirrored(
    status: VmafxModelTrainingStatus, said: Said | None, pod: Pod | None
) -> VmafxModelTrainingStatus:
    if said is not None:
        return mirror.learned(status, said)
    reason, message = trouble(pod)
    looping = reason == "CrashLoopBackOff"
    phase = status.phase if _address(pod) else "Failed" if looping else "Initializing"
    return replace(status, phase=phase or "Initializing", message=message)


def _conditions(
    seen: VmafxModelTraining,
    status: VmafxModelTrainingStatus,
    said: Said | None,
    pod: Pod | None,
    ctx: Context,
) -> None:
    if said is None:
        reason, message = trouble(pod)
        ctx.condition("Ready", False, reason=reason, message=message)
    else:
        well = said.phase != "failed"
        reason = "Answering" if well else "Failed"
        message = "" if well else status.message
        ctx.condition("Ready", well, reason=reason, message=message)
    if (gate := status.gate) is None:
        word = "The model was not judged yet."
        ctx.condition("GatePassed", None, reason="NotJudged", message=word)
    else:
        reason = "Passed" if gate.passed else "Rejected" if gate.failed else "Waiting"
        message = f"{gate.reason} {mirror.figures(gate)}".lstrip()
        ctx.condition("GatePassed", gate.passed, reason=reason, message=message)
    place = seen.spec.outputRegistry[:400]
    if podspec.is_pushed_by_people(seen):
        word = f"No trainer pushes to {place}: the models are in its own folder."
        ctx.condition("Published", False, reason="NotPushed", message=word)
    else:
        ctx.condition("Published", True, reason="Folder", message=f"In {place}.")


def _address(pod: Pod | None) -> str:
    """Where the trainer is called; empty while it cannot be."""
    if pod is None or not pod.status.podIP:
        return ""
    if not pod.status.conditions.is_true("Ready"):
        return ""
    host = pod.status.podIP
    return f"[{host}]:{PORT}" if ":" in host else f"{host}:{PORT}"


def trouble(pod: Pod | None) -> tuple[str, str]:
    """Why a trainer does not answer: a word for programs, and a sentence."""
    if pod is None:
        return "Starting", "The trainer's pod is made anew."
    for container in pod.status.containerStatuses:
        if found := _halted(container):
            return found
    scheduled = pod.status.conditions.get("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return scheduled.reason or "Unschedulable", scheduled.message[:_LONGEST]
    if _address(pod):
        return "Unreachable", "The trainer does not answer."
    return "Starting", "The trainer is starting."


def _halted(container: ContainerStatus) -> tuple[str, str] | None:
    """How a container ended, or what it waits for, if it does."""
    waiting, ended = container.state.waiting, container.state.terminated
    last = ended or container.lastState.terminated
    if container.state.running is not None or (waiting is None and last is None):
        return None
    said = last.message.strip()[-_LONGEST:] if last else ""
    if waiting is not None and waiting.reason:
        return waiting.reason, said or waiting.message[:_LONGEST]
    if last is None or not last.exitCode:
        return None
    return "Restarting", said or f"The trainer ended with exit code {last.exitCode}."
