"""The desk: where jobs are handed to nodes and their results taken, over the objects.

Stateless: every replica of the gateway has one, reads the same objects through its
cache and decides by compare-and-swap, so of two that give a job away one succeeds. What
it remembers (the queue, who was heard of when) is a view that it can lose.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from trimtab.cache import Change, Index, Informer
from trimtab.client import Client, TrimtabError
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import Doing, Run, VmafxJob, VmafxNode
from trimtab.operators.vmafx.leases import LEASE, Leases
from trimtab.operators.vmafx.nodes import Nodes
from trimtab.operators.vmafx.pullers import Pullers
from trimtab.operators.vmafx.queue import JobQueue, Key
from trimtab.operators.vmafx.scaling.demand import Demand, Kind, demand_of
from trimtab.operators.vmafx.shares import Share
from trimtab.operators.vmafx.swapping import RUN, Stale, Swaps

BY_UID = Index("uid", lambda job: (job.metadata.uid,))
SWEEP = 5.0

Step = Literal["submitted", "claimed", "reported", "ended"]
"""Who moved a job: a caller that submitted it, a node that pulled, a node that
reported, or the desk itself."""

log = logging.getLogger(__name__)


class Desk:
    """Gives jobs to nodes and takes their results.

    Flow: the informer of the jobs has the index ``BY_UID``. ``run`` in a task group
    when the caches are complete; then any number of ``pull``, ``beat`` and ``report``.

    Guarantees: at most one session has a job at a time, and only its reports are
    written. A job whose node fell silent is tried again, a bounded number of times.
    Tenants get their shares, and no more at once than they may have; of what other
    desks give this one learns by its watch, and may give too many until then.
    ``told`` hears once of each run that this desk wrote.
    """

    def __init__(
        self,
        client: Client,
        *,
        jobs: Informer[VmafxJob],
        nodes: Nodes,
        now: Callable[[], datetime],
        lease: float = LEASE,
        told: Callable[[Step, VmafxJob], None] = lambda step, job: None,
        tenant_of: Callable[[str], str] = lambda namespace: "",
        share_of: Callable[[str], Share] = lambda tenant: Share(),
    ) -> None:
        self.tenant_of = tenant_of
        self.nodes = nodes
        self._told = told
        self._jobs = jobs
        self._now = now
        self._runs = Swaps(client, RUN, saw=self._saw)
        self._queue = JobQueue(tenant_of=tenant_of, share_of=share_of)
        self._leases = Leases(lease=lease)
        self._sweep = min(SWEEP, lease / 3)
        self._pullers = Pullers()
        # Sessions that wait for a cancellation, and what wakes them.
        self._listening: dict[str, asyncio.Event] = {}
        self._unwanted: set[Key] = set()
        self._deadlines: dict[Key, datetime] = {}
        self._stir = asyncio.Event()
        jobs.subscribe(self._job_changed)
        nodes.informer.subscribe(self._node_changed)

    def job(self, uid: str) -> VmafxJob | None:
        """The job with this id, if there is one."""
        found = self._jobs.store.by(BY_UID.name, uid)
        return found[0] if found else None

    def at(self, key: Key) -> VmafxJob | None:
        """The job of a namespace and a name, if there is one."""
        return self._jobs.store.get(key)

    def jobs(self) -> Iterable[VmafxJob]:
        """All jobs."""
        return self._jobs.store.values()

    def watch(self, call: Callable[[Change[VmafxJob]], None]) -> Callable[[], None]:
        """Hear of every change of a job; returns what ends that."""
        return self._jobs.subscribe(call)

    def waiting(self, tenant: str) -> int:
        """How many jobs of a tenant wait."""
        return self._queue.waiting(tenant)

    def created(self, job: VmafxJob) -> None:
        """Take a job that was just created, before the watch tells of it."""
        self._saw(job)
        self._told("submitted", job)

    def demand(self) -> dict[Kind, Demand]:
        """What is asked for now."""
        return demand_of(self.jobs(), tenant_of=self.tenant_of)

    def regroup(self) -> None:
        """Tenants have changed: what waits is shared out as they are now."""
        self._queue.regroup(now=asyncio.get_running_loop().time())
        self._pullers.wake_all()

    async def pull(
        self,
        node: VmafxNode,
        *,
        backends: Sequence[str],
        wait: float,
        tenant: str = "",
    ) -> VmafxJob | None:
        """The next job for a node, claimed for its session; None if none came.

        A node of a ``tenant`` gets only that tenant's jobs; one that is leaving gets
        none, also for what it asked before it said so.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while not self._leaves(node):
            if key := self._queue.take(backends, now=clock(), tenant=tenant):
                if job := await self._claim(key, node):
                    return job
                continue
            left = until - clock()
            if left <= 0 or not await self._wait(backends, tenant, left):
                return None
        self._pullers.wake_all()  # what it was woken for may be for another
        return None

    def _leaves(self, node: VmafxNode) -> bool:
        known = self.nodes.informer.store.get(node.key) or node
        mine = known.status.session == node.status.session
        return mine and known.status.draining

    async def _claim(self, key: Key, node: VmafxNode) -> VmafxJob | None:
        job = self._jobs.store.get(key)
        if job is None:
            return None
        session = node.status.session
        try:
            run = claims.claim(
                job, node=node.metadata.name, session=session, now=self._now()
            )
            claimed = await self._runs.swap(job, run)
        except (Stale, claims.NotFree):
            return None  # another desk gave it away; its watch tells the rest
        except (TrimtabError, asyncio.CancelledError):
            self._saw(job)  # nobody knows: it is offered again, as it was seen
            raise
        self._told("claimed", claimed)
        return claimed

    async def _wait(self, backends: Sequence[str], tenant: str, left: float) -> bool:
        """Wait until there may be a job; whether it is worth asking again."""
        due = self._queue.due(asyncio.get_running_loop().time())
        soonest = min(left, due) if due else left
        woken = await self._pullers.wait(backends, tenant=tenant, seconds=soonest)
        return woken or soonest < left

    async def beat(
        self,
        node: VmafxNode,
        doing: Sequence[Doing],
        *,
        wait: float = 0.0,
        draining: bool = False,
    ) -> list[str]:
        """Write a node's beat; the ids of those of its jobs that it must stop.

        Waits up to ``wait`` for one, when there is none.
        """
        written = await self.nodes.beat(node, doing, now=self._now(), draining=draining)
        self._leases.node(written, now=asyncio.get_running_loop().time())
        session = node.status.session
        if draining and not doing:
            await self._release_all(session)
        stop = self._to_stop(session, doing)
        if stop or wait <= 0:
            return stop
        event = self._listening.setdefault(session, asyncio.Event())
        event.clear()
        try:
            async with asyncio.timeout(wait):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self._listening.pop(session, None)
        return self._to_stop(session, doing)

    async def _release_all(self, session: str) -> None:
        """A node that stops and has nothing never got what it was given last."""
        for key in self._leases.of(session):

            def released(job: VmafxJob) -> Run | None:
                attempt = job.status.run.attempt
                return claims.release(
                    job, session=session, attempt=attempt, now=self._now()
                )

            await self.end(key, released)

    def _to_stop(self, session: str, doing: Sequence[Doing]) -> list[str]:
        return [each.job for each in doing if not self._is_wanted(session, each)]

    def _is_wanted(self, session: str, doing: Doing) -> bool:
        job = self.job(doing.job)
        if job is None or job.spec.cancel or job.metadata.deletionTimestamp:
            return False
        run = job.status.run
        holder = (run.session, run.attempt, run.outcome)
        return holder == (session, doing.attempt or run.attempt, "")

    async def report(
        self, node: VmafxNode, uid: str, make: Callable[[VmafxJob], Run | None]
    ) -> VmafxJob:
        """Write what a node reports of a job.

        Errors: ``NotYours`` when the job, or this attempt of it, is not the node's.
        """
        job = self.job(uid)
        if job is None:
            raise claims.NotYours("There is no such job: its report is refused.")
        try:
            return await self._step("reported", job, make)
        except Stale:
            raise claims.NotYours(
                f"Job {job.metadata.name} is gone: its report is refused."
            ) from None

    async def _step(
        self, step: Step, job: VmafxJob, make: Callable[[VmafxJob], Run | None]
    ) -> VmafxJob:
        outcomes: list[str] = []
        written = await self._runs.step(job, make, count=outcomes.append)
        if outcomes and outcomes[-1] in ("written", "recovered"):
            self._told(step, written)
        return written

    async def run(self) -> None:
        """End what must end, until cancelled: lost leases, cancelled and late jobs."""
        while True:
            self._stir.clear()  # first: what comes while we work is for the next round
            for key in self._leases.silent(asyncio.get_running_loop().time()):
                await self._expire(key)
            for key in tuple(self._unwanted):
                if await self.end(key, self._cancelled):
                    self._unwanted.discard(key)
            for key in self._late():
                await self.end(key, self._too_late)
            try:
                async with asyncio.timeout(self._sweep):
                    await self._stir.wait()
            except TimeoutError:
                continue

    async def _expire(self, key: Key) -> None:
        """Take a job from a node that fell silent.

        The watch of this desk may be late, and the node well: it is asked for first.
        """
        attempt, clock = self._leases.attempt(key), asyncio.get_running_loop().time
        job = self._jobs.store.get(key)
        if job is None or not claims.is_running(job):
            return  # it has ended since it was found
        try:
            node = await self.nodes.read(job.status.run.node)
        except TrimtabError as error:
            log.warning("Whether %s is lost cannot be told: %s", job, error)
            return
        if node is not None:
            self._leases.node(node, now=clock())
        if key in self._leases.silent(clock()):
            await self.end(
                key, lambda job: claims.expire(job, attempt=attempt, now=self._now())
            )

    async def end(self, key: Key, make: Callable[[VmafxJob], Run | None]) -> bool:
        """End the run of a job; whether nothing of that is left to do."""
        job = self._jobs.store.get(key)
        if job is None:
            return True
        try:
            await self._step("ended", job, make)
        except (Stale, claims.NotFree, claims.NotYours):
            return True  # another desk did it, or it ended by itself
        except TrimtabError as error:
            log.warning("The run of %s could not be ended: %s", job, error)
            return False
        return True

    def _cancelled(self, job: VmafxJob) -> Run | None:
        why = "It was deleted." if job.metadata.deletionTimestamp else ""
        return claims.cancel(job, now=self._now(), why=why)

    def _late(self) -> list[Key]:
        now = self._now()
        return [key for key, deadline in self._deadlines.items() if deadline <= now]

    def _too_late(self, job: VmafxJob) -> Run | None:
        limit = job.spec.deadlineSeconds
        why = f"It was not done within its deadline of {limit} s."
        return claims.fail(job, now=self._now(), why=why)

    def _saw(self, job: VmafxJob) -> None:
        """Take a job as it is, by the watch or as the answer of a write."""
        self._jobs.store.written(job)
        # The watch may have told of something newer meanwhile.
        self._consider(self._jobs.store.get(job.key) or job)

    def _job_changed(self, change: Change[VmafxJob]) -> None:
        if change.new is not None:
            # What we wrote ourselves may be newer than what the watch has just told.
            self._consider(self._jobs.store.get(change.key) or change.new)
            return
        self._wake(change.key, self._queue.drop(change.key))
        self._leases.drop(change.key)
        self._deadlines.pop(change.key, None)
        if change.old is not None:
            self._tell(change.old)

    def _consider(self, job: VmafxJob) -> None:
        now = asyncio.get_running_loop().time()
        self._leases.job(job, now=now)
        self._remember_deadline(job)
        gone = job.metadata.deletionTimestamp is not None
        if (job.spec.cancel or gone) and not claims.is_over(job):
            self._unwanted.add(job.key)
            self._stir.set()
        if claims.is_over(job) or job.spec.cancel or gone:
            self._tell(job)
        if gone and not claims.is_running(job):
            self._wake(job.key, self._queue.drop(job.key))
        else:
            self._wake(job.key, self._queue.put(job, now=now))

    def _remember_deadline(self, job: VmafxJob) -> None:
        created, limit = job.metadata.creationTimestamp, job.spec.deadlineSeconds
        if claims.is_over(job) or created is None or limit is None:
            self._deadlines.pop(job.key, None)
        else:
            self._deadlines[job.key] = created + timedelta(seconds=limit)

    def _tell(self, job: VmafxJob) -> None:
        """Wake the session that works on a job nobody wants any more."""
        if event := self._listening.get(job.status.run.session):
            event.set()

    def _wake(self, key: Key, backends: Sequence[str]) -> None:
        """Wake one that waits for each of these; they are of the tenant of a job."""
        tenant = self.tenant_of(key[0]) if backends else ""
        for backend in backends:
            self._pullers.wake(backend, tenant=tenant)

    def _node_changed(self, change: Change[VmafxNode]) -> None:
        now = asyncio.get_running_loop().time()
        if change.new is None:
            self._leases.gone(change.key)
        else:
            # A beat that we wrote ourselves may be newer than what the watch tells.
            known = self.nodes.informer.store.get(change.key)
            self._leases.node(known or change.new, now=now)
