"""Claims: workers for those who only have kubectl.

A claim is a holder that lives as long as its object does, so it needs no Lease. The
leader binds and releases claims; a new leader finds what the old one had begun, because
the worker's row carries the holder's name.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

from trimtab.api import Metadata, owner_of, wire
from trimtab.cache import Change, Key
from trimtab.client import (
    AlreadyExists,
    Conflict,
    NotFound,
    TrimtabError,
)
from trimtab.kinds import Secret
from trimtab.pool.allocator import Allocator
from trimtab.pool.kinds import Worker, WorkerClaim, WorkerClaimStatus
from trimtab.pool.parts import Parts, logger
from trimtab.pool.requests import AcquireRequest, Full, Never, NotNow, NotYours
from trimtab.pool.states import State
from trimtab.pool.transitions import carries

FINALIZER: Final = "trimtab.dev/release"
WAIT: Final = 20.0
"""Seconds that a claim stands in line at a time; then it lines up again."""


def holder_of(claim: WorkerClaim) -> str:
    """The holder that a claim is."""
    return f"claim-{claim.metadata.uid}"


class Claims:
    """Binds claims to workers, and releases those that are deleted.

    Guarantees: at most one worker for a claim. A claim that is deleted goes when its
    worker was released.
    """

    def __init__(self, parts: Parts, *, allocator: Allocator) -> None:
        self._parts = parts
        self._allocator = allocator
        self._claims: dict[Key, WorkerClaim] = {}
        self._busy: set[Key] = set()
        self._wake = asyncio.Event()

    def follow(self, change: Change[WorkerClaim]) -> None:
        """Take a change that the watch brought; every replica does."""
        if change.old is not None:
            self._parts.claimants.discard(holder_of(change.old))
        if change.new is None:
            self._claims.pop(change.key, None)
        else:
            self._claims[change.key] = change.new
            self._parts.claimants.add(holder_of(change.new))
        self._wake.set()

    async def run(self) -> None:
        """Serve all claims, until cancelled; only the leader does."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                for key, claim in list(self._claims.items()):
                    if key not in self._busy and self._is_open(claim):
                        self._busy.add(key)
                        group.create_task(self._serve(claim))
                try:
                    async with asyncio.timeout(self._parts.options.period):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    def _is_open(self, claim: WorkerClaim) -> bool:
        """Whether there is something to do."""
        if claim.metadata.deletionTimestamp is not None:
            return FINALIZER in claim.metadata.finalizers
        if claim.status.state == "Bound":
            return self._has_lost(claim)
        return claim.status.state == "Pending"

    def _has_lost(self, claim: WorkerClaim) -> bool:
        row = self._parts.view.get((claim.metadata.namespace, claim.status.worker))
        held = row.worker.status.checkout if row else None
        return held is None or held.id != claim.status.checkout

    async def _serve(self, claim: WorkerClaim) -> None:
        try:
            if claim.metadata.deletionTimestamp is not None:
                await self._release(claim)
            elif claim.status.state == "Bound":
                await self._check(claim)
            else:
                await self._bind(claim)
        except (Conflict, NotFound):
            logger.debug("%s has changed meanwhile; it is looked at again.", claim)
        except TrimtabError as error:
            logger.warning("%s could not be served yet: %s", claim, error)
        finally:
            self._busy.discard(claim.key)
            if self._claims.get(claim.key) is not claim:
                self._wake.set()  # what came meanwhile was passed over

    async def _check(self, claim: WorkerClaim) -> None:
        """Its worker seems lost: look at the row itself before saying so."""
        namespace, name = claim.metadata.namespace, claim.status.worker
        try:
            worker = await self._parts.client.get(Worker, name, namespace=namespace)
            if carries(worker, claim.status.checkout):
                return
        except NotFound:
            logger.debug("%s had %s, which is gone.", claim, name)
        await self._say(claim, "Failed", "WorkerLost", f"The worker {name} is gone.")

    async def _bind(self, claim: WorkerClaim) -> None:
        if FINALIZER not in claim.metadata.finalizers:
            names = [*claim.metadata.finalizers, FINALIZER]
            await self._patch(claim, {"metadata": {"finalizers": names}})
            return  # the watch brings it back with its finalizer
        try:
            worker = self._held(claim) or await self._acquire(claim)
        except Never as error:
            await self._say(claim, "Failed", "Refused", str(error))
        except (Full, NotNow) as error:
            await self._say(claim, "Pending", "Waiting", str(error))
        else:
            await self._bound(claim, worker)

    def _held(self, claim: WorkerClaim) -> Worker | None:
        """The worker that an earlier try got, if its answer was lost."""
        rows = self._parts.view.by_holder(holder_of(claim))
        hot = [row.worker for row in rows if row.worker.status.state is State.HOT]
        return hot[0] if hot else None

    async def _acquire(self, claim: WorkerClaim) -> Worker:
        namespace, spec = claim.metadata.namespace, claim.spec
        grant = await self._allocator.acquire(
            AcquireRequest(
                pool=(namespace, spec.pool),
                tenant=spec.tenant,
                holder=holder_of(claim),
                shape=spec.shape,
                ttl=spec.ttl,
                wait=WAIT,
            )
        )
        row = self._parts.view.get((namespace, grant.worker))
        if row is None:
            raise NotYours(f"The worker {grant.worker} is gone already.")
        return row.worker

    async def _bound(self, claim: WorkerClaim, worker: Worker) -> None:
        """Write the token where only readers of Secrets see it, and then the status."""
        parts, held = self._parts, worker.status.checkout
        if held is None:
            return
        target = await parts.keyring.target(worker)
        # A mark has raised the row's epoch, but the worker still serves the claim's.
        await parts.calls.begin(
            target,
            epoch=worker.status.epoch,
            checkout=held.id,
            tenant=worker.status.tenant,
        )
        token = parts.keyring.token(target, checkout=held.id, epoch=worker.status.epoch)
        secret = await self._write_token(claim, token=token, ca=target.ca)
        status = {
            "worker": worker.metadata.name,
            "address": f"{target.address}:{target.port}",
            "tokenSecret": secret,
            "checkout": held.id,
            "epoch": worker.status.epoch,
        }
        await self._say(claim, "Bound", "Bound", "", **status)

    async def _write_token(self, claim: WorkerClaim, *, token: str, ca: bytes) -> str:
        name, namespace = f"{claim.metadata.name}-token", claim.metadata.namespace
        data = {"token": token.encode(), "ca.crt": ca}
        secret = Secret(
            metadata=Metadata(
                name=name, namespace=namespace, ownerReferences=[owner_of(claim)]
            ),
            type="Opaque",
            data=data,
        )
        try:
            await self._parts.client.create(secret)
        except AlreadyExists:
            body = {"data": wire(secret)["data"]}
            await self._parts.client.patch(Secret, name, body, namespace=namespace)
        return name

    async def _release(self, claim: WorkerClaim) -> None:
        for row in self._parts.view.by_holder(holder_of(claim)):
            held = row.worker.status.checkout
            if held is not None:
                try:
                    await self._allocator.release(held.id, holder=held.holder)
                except NotYours:
                    continue
        names = [each for each in claim.metadata.finalizers if each != FINALIZER]
        await self._patch(claim, {"metadata": {"finalizers": names}})

    async def _say(
        self,
        claim: WorkerClaim,
        state: Literal["Pending", "Bound", "Released", "Failed"],
        reason: str,
        message: str,
        **more: Any,
    ) -> None:
        conditions = claim.status.conditions.set(
            "Bound",
            state == "Bound",
            reason=reason,
            message=message,
            now=self._parts.now(),
        )
        status = WorkerClaimStatus(state=state, conditions=conditions)
        if claim.status.state == state and claim.status.conditions == conditions:
            return
        body = {"status": {**wire(status), **more}}
        await self._patch(claim, body, subresource="status")

    async def _patch(
        self, claim: WorkerClaim, body: dict[str, Any], subresource: str | None = None
    ) -> None:
        metadata = {
            **body.get("metadata", {}),
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resourceVersion,
        }
        await self._parts.client.patch(
            WorkerClaim,
            claim.metadata.name,
            {**body, "metadata": metadata},
            namespace=claim.metadata.namespace,
            subresource=subresource,
        )
