"""A node: it pulls jobs from a gateway, scores them, and says what came of each.

One task beats, and hears from its answers what to stop; each slot pulls, scores and
reports. Nothing is remembered across a restart: what was running is lost by its lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Protocol, TypeVar

import grpc
import msgspec

from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.feedback import Feedback
from trimtab.operators.vmafx.nodes import Session
from trimtab.operators.vmafx.problems import BadInput, ScoringError, ToolFailed
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.segments import Segment
from trimtab.operators.vmafx.wire import controller_pb2 as wire

log = logging.getLogger(__name__)
T = TypeVar("T")

_FINAL = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
_REPORTS = 8
# Seconds for the samples that are left when a node stops.
_FLUSH = 5.0


class Scorer(Protocol):
    """What measures: ``scoring.score`` with its tool bound."""

    async def __call__(
        self,
        reference: str,
        distorted: str,
        *,
        model: str,
        progress: Callable[[int, int | None], None],
        segment: Segment | None = None,
    ) -> Score: ...


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a node works."""

    name: str
    slots: int = 1
    backends: tuple[str, ...] = ("cpu",)
    vendor: str = "cpu"
    device: str = ""
    # Folders that this machine lets be read, beside those that the gateway names.
    roots: Roots = Roots()
    # Of its VmafxNode: what learns from it is chosen by them.
    labels: Mapping[str, str] = {}
    beat: float = 10.0
    pull: float = 30.0
    # How long running jobs may go on when the node stops; then they are given back.
    patience: float = 20.0


class _Work:
    """One job that a slot works on, and what came of it."""

    def __init__(self, job: wire.Job) -> None:
        self.job = job
        self.percent = 0
        self.unwanted = False
        self.task: asyncio.Task[None] | None = None
        self.found: Score | ScoringError | None = None

    def progress(self, done: int, expected: int | None) -> None:
        if expected:
            self.percent = min(99, done * 100 // expected)

    def stop(self) -> None:
        """Break it off: nobody waits for it any more."""
        if self.task is not None and not self.unwanted:
            self.task.cancel()
        self.unwanted = True


class Node:
    """Runs until its ``run`` is cancelled, or ``drain`` has emptied it."""

    def __init__(
        self,
        caller: Caller,
        scorer: Scorer,
        *,
        options: NodeOptions,
        random: Random,
        feedback: Feedback | None = None,
    ) -> None:
        self._caller = caller
        self._feedback = feedback
        self._scorer = scorer
        self._options = options
        self._random = random
        self._session: Session | None = None
        self._registered = asyncio.Event()
        # By the job and its attempt: of one job, an older attempt may still be ending.
        self._work: dict[tuple[str, int], _Work] = {}
        self._draining = asyncio.Event()
        # The slots that wait for a job: they need not be waited for.
        self._waiting: set[asyncio.Task[Any]] = set()

    @property
    def working(self) -> int:
        """How many jobs it works on."""
        return len(self._work)

    def drain(self) -> None:
        """Take no more jobs; ``run`` returns when the last is over or given back."""
        self._draining.set()

    async def run(self) -> None:
        """Work, until drained: then what still runs is given back."""
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(self._keep())]
            if self._feedback is not None:
                beside.append(group.create_task(self._feedback.run()))
            slots = [
                group.create_task(self._slot()) for _ in range(self._options.slots)
            ]
            await self._draining.wait()
            for slot in self._waiting:
                slot.cancel()
            await asyncio.wait(slots, timeout=self._options.patience)
            for slot in slots:
                slot.cancel()
            await asyncio.wait(slots)
            if self._feedback is not None:
                await self._feedback.flush(within=_FLUSH)
            for task in beside:
                task.cancel()
        await self._leave()

    async def _leave(self) -> None:
        """Say goodbye: what was given to this node and never came is given back."""
        if self._session is None:
            return
        with suppress(grpc.aio.AioRpcError):
            await self._caller.heartbeat(self._beat_of(self._session, wait=0.0))

    async def _keep(self) -> None:
        """Register, then beat; a session that is over is begun anew."""
        while True:
            self._session = await self._again(self._register)
            self._registered.set()
            try:
                while await self._beat(self._session):
                    pass
            finally:
                self._registered.clear()
            for work in self._work.values():
                work.stop()  # whatever they were, they are not ours any more

    async def _register(self) -> Session:
        options = self._options
        answer = await self._caller.register(
            wire.RegisterNodeRequest(
                name=options.name,
                capability=self._capability(),
                labels=dict(options.labels),
            )
        )
        return Session(answer.node_id, answer.session_token)

    def _capability(self) -> wire.NodeCapability:
        options = self._options
        return wire.NodeCapability(
            gpu_vendor=options.vendor,
            backends=options.backends,
            concurrency=options.slots,
            device=options.device,
        )

    async def _beat(self, session: Session) -> bool:
        """One beat, and the stops that it brings; whether the session lives."""
        request = self._beat_of(session, wait=self._options.beat)
        answer = await self._again(lambda: self._caller.heartbeat(request))
        for uid in answer.cancel_job_ids:
            # Only what the beat named is meant; of two attempts, the older one first.
            named = [each.attempt for each in request.progress if each.job_id == uid]
            if work := self._work.get((uid, min(named, default=0))):
                work.stop()
        return answer.ok

    def _beat_of(self, session: Session, *, wait: float) -> wire.HeartbeatRequest:
        wanted = [work for work in self._work.values() if not work.unwanted]
        return wire.HeartbeatRequest(
            node_id=session.id,
            session_token=session.token,
            jobs_running=len(wanted),
            running_job_ids=[work.job.id for work in wanted],
            progress=[
                wire.JobProgress(
                    job_id=work.job.id, attempt=work.job.attempt, percent=work.percent
                )
                for work in wanted
            ],
            wait_seconds=wait,
            draining=self._draining.is_set(),
        )

    async def _slot(self) -> None:
        while not self._draining.is_set():
            session, answer = await self._pulled()
            if answer.HasField("job"):
                await self._perform(session, answer.job, answer.trainers)

    async def _pulled(self) -> tuple[Session, wire.PullWorkResponse]:
        """Wait for a gateway that knows this node, and for a job of it."""
        me = asyncio.current_task()
        assert me is not None
        self._waiting.add(me)
        try:
            await self._registered.wait()
            session = self._session
            assert session is not None
            request = wire.PullWorkRequest(
                node_id=session.id,
                session_token=session.token,
                capability=self._capability(),
                wait_seconds=self._options.pull,
            )
            return session, await self._again(lambda: self._caller.pull(request))
        finally:
            self._waiting.discard(me)

    async def _perform(
        self, session: Session, job: wire.Job, trainers: Iterable[wire.Trainer]
    ) -> None:
        """Score a job and report it, whatever becomes of it."""
        older = [each for (uid, _), each in self._work.items() if uid == job.id]
        work = self._work[job.id, job.attempt] = _Work(job)
        report = wire.ReportResultRequest(
            node_id=session.id,
            session_token=session.token,
            job_id=job.id,
            attempt=job.attempt,
            final=True,
        )
        try:
            await _broken_off(older)
            if not work.unwanted:
                async with asyncio.TaskGroup() as group:
                    work.task = group.create_task(self._score(work))
            if work.found is not None:
                _fill(report, work.found)
                self._teach(work, trainers)
                await self._tell(report)
        except asyncio.CancelledError:
            report.released = True
            await self._tell(report)
            raise
        finally:
            # The same attempt may have come twice: then the later one is there.
            if self._work.get((job.id, job.attempt)) is work:
                del self._work[job.id, job.attempt]

    def _teach(self, work: _Work, trainers: Iterable[wire.Trainer]) -> None:
        """Offer what was found to who learns from it."""
        if self._feedback is not None and isinstance(work.found, Score):
            self._feedback.offer(trainers, job=work.job.id, found=work.found)

    async def _score(self, work: _Work) -> None:
        """Score it; what it is found to be, or why not. Cancelled, it is nothing."""
        job = work.job
        allowed = Roots((*job.scoring_roots, *self._options.roots.allowed))
        try:
            for clip in (job.scoring.reference, job.scoring.distorted):
                allowed.check(clip)
            work.found = await self._scorer(
                job.scoring.reference,
                job.scoring.distorted,
                model=job.scoring.model,
                progress=work.progress,
                segment=_segment(job),
            )
        except ScoringError as error:
            work.found = error
        except Exception as error:
            log.exception("Scoring %s failed in a way that nobody foresaw.", job.name)
            name = type(error).__name__
            work.found = ToolFailed(f"The node failed while scoring: {name}.")

    async def _tell(self, report: wire.ReportResultRequest) -> None:
        """Report, a few times if need be; what is refused is not ours any more."""
        for attempt in range(_REPORTS):
            try:
                await self._caller.report(report)
                return
            except grpc.aio.AioRpcError as error:
                if error.code() in _FINAL:
                    log.warning("The report of a job was refused: %s", error.details())
                    return
                await asyncio.sleep(self._pause(attempt, longest=15.0))

    async def _again(self, call: Callable[[], Awaitable[T]]) -> T:
        attempt = 0
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                log.warning("The gateway does not answer: %s", error.details())
                await asyncio.sleep(self._pause(attempt, longest=30.0))
                attempt += 1

    def _pause(self, attempt: int, *, longest: float) -> float:
        return min(longest, 0.5 * 2.0**attempt) * self._random.uniform(0.5, 1.0)


def _segment(job: wire.Job) -> Segment | None:
    part = job.segment
    return Segment(part.index, part.of) if job.HasField("segment") else None


async def _broken_off(older: list[_Work]) -> None:
    """End attempts that were given up: whoever gives a job away anew has done that."""
    tasks = [each.task for each in older if each.task is not None]
    for each in older:
        each.stop()
    if tasks:
        await asyncio.wait(tasks)


def _fill(report: wire.ReportResultRequest, found: Score | ScoringError) -> None:
    if isinstance(found, ScoringError):
        report.error = str(found)
        report.retryable = not isinstance(found, BadInput)
        return
    report.score = found.vmaf
    report.features.update(found.features)
    report.partial_scores.extend(found.frames)
    report.reused = found.reused
    if (part := found.part) is not None:
        sent = wire.Part(first=part.first, count=part.count, total=part.total)
        report.part.CopyFrom(sent)
