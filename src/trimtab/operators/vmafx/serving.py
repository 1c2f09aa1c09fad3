"""The gateway's gRPC: every method of the wire, over the desk.

Each call passes the roles first. Errors are the codes that the protocol promises, with
one sentence.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from trimtab.api import Metadata, hashed
from trimtab.cache import Change
from trimtab.client import Client, Conflict, Invalid, NotFound
from trimtab.operators.vmafx import claims, frames, messages, roles
from trimtab.operators.vmafx.desk import Desk
from trimtab.operators.vmafx.guarding import (
    BadRequest,
    Guard,
    NoJob,
    NotHere,
    serialized,
)
from trimtab.operators.vmafx.kinds import (
    SUBMITTED_AS,
    Backend,
    Doing,
    Run,
    VmafxJob,
    VmafxJobSpec,
    VmafxNode,
)
from trimtab.operators.vmafx.nodes import NoSession
from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.sources import named
from trimtab.operators.vmafx.tenancy.admitting import Admitting
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.wire import controller_pb2 as wire

SERVICE = "vmafx.controller.v1.VmafxController"
LONGEST_WAIT = 30.0
RECHECK = 30.0
"""Seconds after which who follows jobs has to prove again who it is."""
MOST_RUNNING = 64
_BACKENDS: dict[str, Backend] = {
    "cpu": "cpu",
    "cuda": "cuda",
    "sycl": "sycl",
    "hip": "hip",
    "metal": "metal",
}


class Controller:
    """What each method does; ``handler`` is what a gRPC server is given."""

    def __init__(
        self,
        client: Client,
        desk: Desk,
        *,
        guard: Guard,
        namespace: str,
        registry: Registry,
        now: Callable[[], Any],
        learning: Callable[[VmafxNode, VmafxJob], list[wire.Trainer]],
    ) -> None:
        self._client = client
        self._learning = learning
        self._desk = desk
        self._guard = guard
        self._namespace = namespace
        self._registry = registry
        self._admitting = Admitting(registry, desk.waiting)
        self._now = now

    def handler(self) -> grpc.GenericRpcHandler:
        """All methods, each behind its role."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for name, (call, request) in self._calls().items():
            methods[name] = grpc.unary_unary_rpc_method_handler(
                self._guard.unary(f"/{SERVICE}/{name}", call),
                request_deserializer=request.FromString,
                response_serializer=serialized,
            )
        methods["StreamJobs"] = grpc.unary_stream_rpc_method_handler(
            self._guard.stream(f"/{SERVICE}/StreamJobs", self._stream),
            request_deserializer=wire.StreamJobsRequest.FromString,
            response_serializer=serialized,
        )
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _calls(self) -> dict[str, tuple[Callable[[Any], Awaitable[Any]], Any]]:
        return {
            "SubmitJob": (self.submit, wire.SubmitJobRequest),
            "GetJob": (self.get, wire.GetJobRequest),
            "CancelJob": (self.cancel, wire.CancelJobRequest),
            "RegisterNode": (self.register, wire.RegisterNodeRequest),
            "Heartbeat": (self.heartbeat, wire.HeartbeatRequest),
            "PullWork": (self.pull, wire.PullWorkRequest),
            "ReportResult": (self.report, wire.ReportResultRequest),
        }

    async def submit(self, request: wire.SubmitJobRequest) -> wire.SubmitJobResponse:
        """Create the object of a job; the same key gives the same job."""
        scoring = request.scoring
        if not scoring.reference or not scoring.distorted:
            raise BadRequest("A job needs a reference and a distorted clip.")
        if scoring.backend and scoring.backend not in _BACKENDS:
            known = ", ".join(_BACKENDS)
            raise BadRequest(f"{scoring.backend} is no backend: {known} are.")
        identity = self._guard.identity
        for clip in (scoring.reference, scoring.distorted):
            try:
                self._registry.roots(identity.tenant).check(clip)
            except BadInput as error:
                raise roles.Denied(str(error)) from None
        place = request.namespace or identity.namespace
        if not place:
            raise NotHere(
                "The caller has no namespace for its jobs: ask who runs this service."
            )
        await self._check_reach(place)
        job = await self._known(request, place)
        if job is None:
            with self._admitting.one(identity.tenant):
                job = await self._created(request, place)
        return wire.SubmitJobResponse(job_id=job.metadata.uid)

    async def _known(
        self, request: wire.SubmitJobRequest, place: str
    ) -> VmafxJob | None:
        """The job of a key that was used before; a repetition needs no room."""
        key = request.idempotency_key
        if not key or self._admitting.has_room(self._guard.identity.tenant):
            return None
        try:
            name = hashed("job", key)
            return await self._client.get(VmafxJob, name, namespace=place)
        except NotFound:
            return None

    async def _created(self, request: wire.SubmitJobRequest, place: str) -> VmafxJob:
        scoring, key = request.scoring, request.idempotency_key
        where = Metadata(
            name=hashed("job", key) if key else "",
            generateName="" if key else "job-",
            namespace=place,
            annotations={SUBMITTED_AS: key} if key else {},
        )
        spec = VmafxJobSpec(
            reference=scoring.reference,
            distorted=scoring.distorted,
            model=scoring.model or None,
            backend=_BACKENDS.get(scoring.backend),
            priority=request.priority,
            segments=request.segments or None,
        )
        try:
            job = await self._client.create(VmafxJob(metadata=where, spec=spec))
            self._desk.created(job)
            return job
        except Conflict:
            return await self._client.get(
                VmafxJob, where.name, namespace=where.namespace
            )
        except NotFound:
            raise NotHere(f"The namespace {place} is not there.") from None
        except Invalid as error:
            said = "".join(
                f"{cause.field}: {cause.message}" for cause in error.causes[:1]
            )
            raise BadRequest(f"The job is not valid: {said or error}.") from error

    async def get(self, request: wire.GetJobRequest) -> wire.Job:
        """One job."""
        return messages.message(await self._job(request.job_id))

    async def _check_reach(self, namespace: str) -> None:
        if not await self._guard.reaches(namespace):
            raise roles.Denied(
                "The job is in a namespace where the caller does not have this role."
            )

    async def _job(self, uid: str) -> VmafxJob:
        """A job that the caller may know of."""
        job = await self._found(uid)
        await self._check_reach(job.metadata.namespace)
        return job

    async def _found(self, uid: str) -> VmafxJob:
        if not uid:
            raise BadRequest("Which job? Its id is empty.")
        if job := self._desk.job(uid):
            return job
        # A job that was just created elsewhere is not in the cache yet.
        place = self._guard.identity.namespace or self._namespace
        async for job in self._client.list(VmafxJob, namespace=place):
            if job.metadata.uid == uid:
                return job
        raise NoJob(f"There is no job {uid}.")

    async def cancel(self, request: wire.CancelJobRequest) -> wire.CancelJobResponse:
        """Wish a job away; one that is over stays as it is."""
        job = await self._job(request.job_id)
        if claims.is_over(job):
            return wire.CancelJobResponse(ok=True, message="It was over already.")
        await self._client.patch(
            VmafxJob,
            job.metadata.name,
            {"metadata": {"uid": job.metadata.uid}, "spec": {"cancel": True}},
            namespace=job.metadata.namespace,
        )
        return wire.CancelJobResponse(ok=True, message="It is being cancelled.")

    async def register(
        self, request: wire.RegisterNodeRequest
    ) -> wire.RegisterNodeResponse:
        """Begin a session of a node."""
        if not request.name:
            raise BadRequest("A node needs a name.")
        can = messages.capability(request.capability, request.labels)
        session = await self._desk.nodes.register(
            request.name, can, now=self._now(), tenant=self._guard.identity.tenant
        )
        return wire.RegisterNodeResponse(
            node_id=session.id, session_token=session.token
        )

    async def heartbeat(self, request: wire.HeartbeatRequest) -> wire.HeartbeatResponse:
        """Renew what a node has; a session that is over is answered, not refused."""
        if max(len(request.running_job_ids), len(request.progress)) > MOST_RUNNING:
            raise BadRequest(f"A node runs {MOST_RUNNING} jobs at most.")
        try:
            node = await self._node(request)
            stop = await self._desk.beat(
                node,
                self._doing(request),
                wait=min(request.wait_seconds, LONGEST_WAIT),
                draining=request.draining,
            )
        except NoSession:
            return wire.HeartbeatResponse(ok=False)
        return wire.HeartbeatResponse(ok=True, cancel_job_ids=stop)

    async def _node(
        self,
        request: wire.HeartbeatRequest
        | wire.PullWorkRequest
        | wire.ReportResultRequest,
    ) -> VmafxNode:
        """The node that calls; a session is its tenant's alone."""
        return await self._desk.nodes.find(
            request.node_id,
            request.session_token,
            tenant=self._guard.identity.tenant,
        )

    def _works_for(self, namespace: str) -> bool:
        """Whether the node that calls works for whom a namespace is bound to."""
        own, registry = self._guard.identity.tenant, self._registry
        return registry.shares_nodes(own) or registry.tenant_of(namespace) == own

    def _doing(self, request: wire.HeartbeatRequest) -> list[Doing]:
        """What a node says it has; one that knows no attempts has the last ones."""
        said = {each.job_id: (each.attempt, each.percent) for each in request.progress}
        for uid in request.running_job_ids:
            said.setdefault(uid, (0, 0))
        return [self._named(uid, *facts) for uid, facts in said.items()]

    def _named(self, uid: str, attempt: int, percent: int) -> Doing:
        job = self._desk.job(uid)
        if job is None or not self._works_for(job.metadata.namespace):
            return Doing(job=uid, attempt=attempt)
        return Doing(
            job=uid,
            attempt=attempt or job.status.run.attempt,
            progress=max(0, min(100, percent)),
            namespace=job.metadata.namespace,
            name=job.metadata.name,
        )

    async def pull(self, request: wire.PullWorkRequest) -> wire.PullWorkResponse:
        """The next job for a node, if one comes in time."""
        node = await self._node(request)
        own = self._guard.identity.tenant
        job = await self._desk.pull(
            node,
            tenant="" if self._registry.shares_nodes(own) else own,
            backends=tuple(request.capability.backends),
            wait=min(request.wait_seconds, LONGEST_WAIT),
        )
        if job is None:
            return wire.PullWorkResponse()
        roots = self._registry.roots_in(job.metadata.namespace)
        return wire.PullWorkResponse(
            job=messages.message(job, roots=roots.allowed),
            trainers=self._learning(node, job),
        )

    async def report(
        self, request: wire.ReportResultRequest
    ) -> wire.ReportResultResponse:
        """Write the result of an attempt."""
        node = await self._node(request)
        session = node.status.session
        known = self._desk.job(request.job_id)
        if known is not None and not self._works_for(known.metadata.namespace):
            raise claims.NotYours("There is no such job: its report is refused.")
        kept = await self._frames(request, session)

        def attempt(job: VmafxJob) -> int:
            return request.attempt or job.status.run.attempt

        def made(job: VmafxJob) -> Run | None:
            if request.released:
                return claims.release(
                    job, session=session, attempt=attempt(job), now=self._now()
                )
            return claims.report(
                job,
                session=session,
                attempt=attempt(job),
                now=self._now(),
                score=request.score,
                features=request.features,
                frames=kept,
                scored=messages.scored(request),
                reused=request.reused,
                error=request.error or _not_finite(request, job),
                retryable=request.retryable,
            )

        def looked_at(job: VmafxJob) -> Run | None:
            made(job)  # whether it may report is all that is asked
            return None

        final = request.final or request.released
        await self._desk.report(node, request.job_id, made if final else looked_at)
        return wire.ReportResultResponse(ok=True)

    async def _frames(self, request: wire.ReportResultRequest, session: str) -> str:
        """Keep the scores of the frames, if the job is still the caller's."""
        job = self._desk.job(request.job_id)
        is_result = request.final and not request.error and not request.released
        if job is None or job.status.run.session != session or not is_result:
            return ""
        if not request.partial_scores:
            return ""
        return await frames.keep(self._client, job, request.partial_scores)

    async def _stream(self, request: wire.StreamJobsRequest) -> AsyncIterator[wire.Job]:
        """All jobs, and with ``watch`` each one again when it changes."""
        wanted = frozenset(request.status_filter)
        clock = asyncio.get_running_loop().time
        checked = clock()
        async for job in self._watched() if request.watch else self._all():
            if clock() - checked >= RECHECK:
                await self._guard.recheck()
                checked = clock()
            if wanted and messages.status(job) not in wanted:
                continue
            if job.spec.segment is not None:
                continue  # how a job is done is not what anybody asked for
            if await self._guard.reaches(job.metadata.namespace):
                yield messages.message(job)

    async def _all(self) -> AsyncIterator[VmafxJob]:
        for job in list(self._desk.jobs()):
            yield job

    async def _watched(self) -> AsyncIterator[VmafxJob]:
        """Every job as it is, then as it becomes: the newest form of each."""
        changed: dict[tuple[str, str], VmafxJob] = {}
        stirred = asyncio.Event()

        def hear(change: Change[VmafxJob]) -> None:
            if change.new is not None:
                changed[change.key] = change.new
                stirred.set()

        end = self._desk.watch(hear)
        try:
            while True:
                await stirred.wait()
                stirred.clear()
                while changed:
                    yield changed.pop(next(iter(changed)))
        finally:
            end()


def _not_finite(request: wire.ReportResultRequest, job: VmafxJob) -> str:
    values = {"score": request.score, **request.features}
    for name, value in values.items():
        if not math.isfinite(value):
            clip = named(job.spec.distorted)
            return f"The {name} of {clip} was reported as {value}, which is no number."
    return ""
