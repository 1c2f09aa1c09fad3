"""The protocol as a stranger speaks it: a client made of the .proto files alone.

It uses only numbers below 100, as programs that were written for vmafx do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.authoring.accounts import account
from tests.operators.vmafx.platform import Platform, platform
from tests.operators.vmafx.wire_client import (
    CONTROLLER,
    SCORING,
    WireClient,
    described,
)
from trimtab.api import Metadata
from trimtab.authoring.permissions import Rule
from trimtab.client import Client, TrimtabError, load
from trimtab.kinds import Namespace
from trimtab.operators.vmafx import programs, roles
from trimtab.operators.vmafx.guarding import code_of
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec
from trimtab.testing import Cluster, eventually

# The numbers that programs elsewhere were built with.
NUMBERS: dict[str, str] = {
    "controller.v1.ScoringParams": "reference distorted model backend",
    "controller.v1.Job": "id status scoring partial_results assigned_node error "
    "created_at updated_at final_score scoring_roots",
    "controller.v1.NodeCapability": "gpu_vendor backends concurrency",
    "controller.v1.SubmitJobRequest": "scoring",
    "controller.v1.SubmitJobResponse": "job_id",
    "controller.v1.GetJobRequest": "job_id",
    "controller.v1.CancelJobRequest": "job_id",
    "controller.v1.CancelJobResponse": "ok message",
    "controller.v1.StreamJobsRequest": "status_filter",
    "controller.v1.RegisterNodeRequest": "name capability",
    "controller.v1.RegisterNodeResponse": "node_id session_token",
    "controller.v1.HeartbeatRequest": "node_id session_token jobs_running "
    "running_job_ids",
    "controller.v1.HeartbeatResponse": "ok cancel_job_ids",
    "controller.v1.PullWorkRequest": "node_id session_token capability",
    "controller.v1.PullWorkResponse": "job",
    "controller.v1.ReportResultRequest": "node_id session_token job_id final score "
    "features partial_scores error",
    "controller.v1.ReportResultResponse": "ok",
    "v1.ScoreRequest": "reference distorted model",
    "v1.ScoreResponse": "score features",
    "v1.StreamConfig": "width height pixel_format model frame_count_hint",
    "v1.FramePair": "frame_index raw_reference raw_distorted",
    "v1.ScoreStreamRequest": "config frame_pair",
    "v1.ScoreStreamResponse": "frame_score aggregate",
    "v1.FrameScore": "frame_index score features",
    "v1.AggregateScore": "frames_processed score features elapsed_ms",
    "v1.HealthRequest": "",
    "v1.HealthResponse": "ok message",
}
CODES = grpc.StatusCode
WHO = {
    "SubmitJob": {"writer", "admin"},
    "GetJob": {"reader", "writer", "admin"},
    "CancelJob": {"writer", "admin"},
    "StreamJobs": {"reader", "writer", "admin"},
    "RegisterNode": {"node"},
    "Heartbeat": {"node"},
    "PullWork": {"node"},
    "ReportResult": {"node"},
    "Score": {"writer", "admin"},
    "ScoreStream": {"writer", "admin"},
    "Health": {"reader", "writer", "admin"},
}


def test_the_numbers_that_others_were_built_with_never_change(tmp_path: Path) -> None:
    pool = described(tmp_path)
    for name, fields in NUMBERS.items():
        message = pool.FindMessageTypeByName(f"vmafx.{name}")
        found = {each.name: each.number for each in message.fields}
        expected = {each: n for n, each in enumerate(fields.split(), 1)}
        theirs = {each: n for each, n in found.items() if n < 100}
        assert theirs == expected, name
    status = pool.FindEnumTypeByName("vmafx.controller.v1.JobStatus")
    names = [each.name for each in status.values]
    assert names == ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
    assert [each.number for each in status.values] == [0, 1, 2, 3, 4]


def test_the_table_of_roles_is_the_one_that_was_promised(tmp_path: Path) -> None:
    pool = described(tmp_path)
    served = {
        f"/{service}/{method.name}": WHO[method.name]
        for service in (CONTROLLER, SCORING)
        for method in pool.FindServiceByName(service).methods
    }
    table = {
        method: {role.name for role in needed}
        for method, needed in roles.METHODS.items()
        if method.startswith("/")
    }
    assert table == served


def test_what_nobody_foresaw_is_an_internal_error() -> None:
    assert code_of(TrimtabError("The store does not answer.")) is CODES.INTERNAL


pytest_cluster = pytest.mark.cluster("embedded", "real")


class Stranger:
    """Clients of all roles at one gateway."""

    def __init__(self, here: Platform, channel: grpc.aio.Channel, pool: Any) -> None:
        self.here = here
        self._channel = channel
        self._pool = pool

    async def role(self, name: str) -> WireClient:
        token = (await self.here.token(name)).read_text() if name else ""
        return WireClient(self._channel, self._pool, token)


@pytest.fixture
async def stranger(
    cluster: Cluster, namespace: str, reference: Path, tmp_path: Path
) -> AsyncIterator[Stranger]:
    async with (
        Client(load(kubeconfig=cluster.kubeconfig, namespace=namespace)) as admin,
        account(cluster, admin, rights(namespace), name="gateway") as gateway,
        platform(cluster, namespace, reference.parent) as here,
    ):
        port = await here.gateway(client=gateway.connect())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Stranger(here, channel, described(tmp_path))
        assert gateway.denied() == []


def rights(namespace: str) -> list[Rule]:
    """What the chart lets a gateway do that serves one namespace: it is all it has."""
    made = []
    for right in programs.GATEWAY.rights:
        plain = right.plain()
        made.append(
            Rule(
                place="" if right.place == "cluster" else namespace,
                group=plain["apiGroups"][0],
                resource=plain["resources"][0],
                names=tuple(plain.get("resourceNames", ())),
                verbs=tuple(plain["verbs"]),
            )
        )
    return made


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code(), error.value.details() or ""


@pytest_cluster
async def test_a_job_goes_all_the_way_by_the_wire_alone(
    stranger: Stranger, reference: Path, distorted: Path
) -> None:
    writer, reader = await stranger.role("writer"), await stranger.role("reader")
    worker = await stranger.role("node")
    pair = {"reference": str(reference), "distorted": str(distorted)}
    job_id = (await writer.call("SubmitJob", scoring=pair)).job_id
    seen = await reader.call("GetJob", job_id=job_id)
    assert (seen.id, seen.status, seen.scoring.reference) == (job_id, 0, str(reference))
    assert seen.created_at > 0

    can = {"gpu_vendor": "cpu", "backends": ["cpu"], "concurrency": 1}
    who = await worker.call("RegisterNode", name="stranger", capability=can)
    me = {"node_id": who.node_id, "session_token": who.session_token}

    async def pulled() -> Any:
        answer = await worker.call("PullWork", **me, capability=can)
        return answer.job if answer.HasField("job") else None

    job = await eventually(pulled)
    assert (job.id, job.status) == (job_id, 1)
    assert list(job.scoring_roots) == [str(reference.parent)]
    assert job.assigned_node == "stranger"
    assert await pulled() is None  # nothing to do is an empty answer

    beat = await worker.call(
        "Heartbeat", **me, jobs_running=1, running_job_ids=[job_id]
    )
    assert (beat.ok, list(beat.cancel_job_ids)) == (True, [])
    partial = {**me, "job_id": job_id, "score": 12.0, "partial_scores": [1.0]}
    assert (await worker.call("ReportResult", **partial)).ok
    assert (await reader.call("GetJob", job_id=job_id)).status == 1
    result = {**me, "job_id": job_id, "final": True, "score": 0.0}
    features = {"psnr": 31.5}
    assert (await worker.call("ReportResult", **result, features=features)).ok
    assert (await worker.call("ReportResult", **{**result, "score": 99.0})).ok
    done = await reader.call("GetJob", job_id=job_id)
    assert (done.status, done.final_score) == (2, 0.0)
    assert (await writer.call("CancelJob", job_id=job_id)).ok  # it was over already

    listed = await reader.many("StreamJobs")
    assert [(each.id, each.status) for each in listed] == [(job_id, 2)]
    assert await reader.many("StreamJobs", status_filter=[0, 1]) == []
    await _is_zero(stranger.here, job_id)


async def _is_zero(here: Platform, uid: str) -> None:
    """A score of zero is a score, and is kept as one."""

    async def has_it() -> bool:
        async for each in here.client.list(VmafxJob, namespace=here.namespace):
            if each.metadata.uid == uid:
                return each.status.phase == "Succeeded" and each.status.score == 0.0
        return False

    await eventually(has_it)


@pytest_cluster
async def test_a_cancelled_job_is_named_in_the_next_beat(
    stranger: Stranger, reference: Path
) -> None:
    writer, worker = await stranger.role("writer"), await stranger.role("node")
    pair = {"reference": str(reference), "distorted": str(reference)}
    waiting = (await writer.call("SubmitJob", scoring=pair)).job_id
    assert (await writer.call("CancelJob", job_id=waiting)).ok
    running = (await writer.call("SubmitJob", scoring=pair)).job_id
    who = await worker.call("RegisterNode", name="stranger")
    me = {"node_id": who.node_id, "session_token": who.session_token}

    async def pulled() -> bool:
        answer = await worker.call("PullWork", **me)
        return bool(answer.HasField("job") and answer.job.id == running)

    await eventually(pulled)
    assert (await writer.call("CancelJob", job_id=running)).ok

    async def is_told() -> bool:
        beat = await worker.call("Heartbeat", **me, running_job_ids=[running])
        return list(beat.cancel_job_ids) == [running]

    await eventually(is_told)
    failed = {**me, "job_id": running, "final": True, "error": "cancelled"}
    assert (await worker.call("ReportResult", **failed)).ok  # too late, and no error
    for uid in (waiting, running):

        async def is_cancelled(uid: str = uid) -> bool:
            return bool((await writer.call("GetJob", job_id=uid)).status == 4)

        await eventually(is_cancelled)


Wrong = tuple[grpc.StatusCode, str, Any]


def wrong_jobs(writer: WireClient, clip: str) -> list[Wrong]:
    """Calls about jobs that must fail, with their code and some words of why."""
    bad, denied, unknown = (
        CODES.INVALID_ARGUMENT,
        CODES.PERMISSION_DENIED,
        CODES.NOT_FOUND,
    )
    pair = {"reference": clip, "distorted": clip}
    half = {"reference": clip}
    outside = {"reference": "/etc/passwd", "distorted": clip}
    odd, long = {**pair, "backend": "abacus"}, {**pair, "model": "m" * 300}
    roots = "outside of the scoring roots"
    return [
        (bad, "needs a reference", writer.call("SubmitJob")),
        (bad, "needs a reference", writer.call("SubmitJob", scoring=half)),
        (bad, "is no backend", writer.call("SubmitJob", scoring=odd)),
        (bad, "model", writer.call("SubmitJob", scoring=long)),
        (denied, roots, writer.call("SubmitJob", scoring=outside)),
        (bad, "id is empty", writer.call("GetJob")),
        (unknown, "no job", writer.call("GetJob", job_id="nope")),
        (bad, "id is empty", writer.call("CancelJob")),
        (unknown, "no job", writer.call("CancelJob", job_id="nope")),
        (
            CODES.FAILED_PRECONDITION,
            "does not score",
            writer.call("Score", SCORING, **pair),
        ),
        (denied, roots, writer.call("Score", SCORING, **outside)),
        (bad, "needs a", writer.call("Score", SCORING)),
        (
            bad,
            "must be its config",
            writer.poured("ScoreStream", SCORING, [_frame(writer)]),
        ),
    ]


def wrong_nodes(worker: WireClient) -> list[Wrong]:
    """The same, of nodes."""
    bad, denied = CODES.INVALID_ARGUMENT, CODES.PERMISSION_DENIED
    many = worker.call("Heartbeat", running_job_ids=["x"] * 65)
    return [
        (bad, "needs a name", worker.call("RegisterNode")),
        (bad, "64 jobs", many),
        (denied, "register again", worker.call("PullWork")),
        (denied, "register again", worker.call("ReportResult")),
    ]


@pytest_cluster
async def test_every_error_has_the_code_that_was_promised(
    stranger: Stranger, reference: Path
) -> None:
    writer, worker = await stranger.role("writer"), await stranger.role("node")
    for code, why, call in (*wrong_jobs(writer, str(reference)), *wrong_nodes(worker)):
        found, said = await refused(call)
        assert (found, why in said) == (code, True), said
        assert said.endswith("."), said
    beat = await worker.call("Heartbeat", node_id="nobody", session_token="x")
    assert not beat.ok  # an answer, and no error
    health = await writer.call("Health", SCORING)
    assert health.ok


def _frame(client: WireClient) -> Any:
    pair = client.message("vmafx.v1.FramePair", frame_index=0)
    return client.message("vmafx.v1.ScoreStreamRequest", frame_pair=pair)


@pytest_cluster
async def test_a_report_of_somebody_elses_job_is_refused(
    stranger: Stranger, reference: Path
) -> None:
    writer, worker = await stranger.role("writer"), await stranger.role("node")
    pair = {"reference": str(reference), "distorted": str(reference)}
    job_id = (await writer.call("SubmitJob", scoring=pair)).job_id
    sessions = []
    for name in ("one", "other"):
        who = await worker.call("RegisterNode", name=name)
        sessions.append({"node_id": who.node_id, "session_token": who.session_token})

    async def pulled() -> bool:
        answer = await worker.call("PullWork", **sessions[0])
        return bool(answer.HasField("job"))

    await eventually(pulled)
    stolen = {**sessions[1], "job_id": job_id, "final": True, "score": 100.0}
    forged = {**sessions[0], "session_token": sessions[1]["session_token"]}
    for wrong in (stolen, {**stolen, **forged}, {**stolen, "job_id": "nope"}):
        code, _ = await refused(worker.call("ReportResult", **wrong))
        assert code is CODES.PERMISSION_DENIED
    assert (await writer.call("GetJob", job_id=job_id)).status == 1
    nan = {**sessions[0], "job_id": job_id, "final": True, "score": float("nan")}
    assert (await worker.call("ReportResult", **nan)).ok
    found = await writer.call("GetJob", job_id=job_id)
    assert (found.status, found.final_score) == (3, 0.0)
    assert found.error == (
        f"The score of {reference} was reported as nan, which is no number."
    )


@pytest_cluster
async def test_every_method_refuses_whoever_has_another_role(
    stranger: Stranger,
) -> None:
    clients = {role: await stranger.role(role) for role in ("reader", "writer", "node")}
    clients["nobody"] = await stranger.role("nobody")
    unknown = await stranger.role("")
    for method, allowed in WHO.items():
        for role, client in clients.items():
            if role not in allowed:
                code, said = await refused(_called(client, method))
                assert code is CODES.PERMISSION_DENIED, (method, role)
                assert "needs the role of" in said
        code, _ = await refused(_called(unknown, method))
        assert code is CODES.UNAUTHENTICATED, method


def _called(client: WireClient, method: str) -> Any:
    if method == "StreamJobs":
        return client.many(method)
    if method == "ScoreStream":
        return client.poured(method, SCORING, [])
    service = SCORING if method in ("Score", "Health") else CONTROLLER
    return client.call(method, service)


@asynccontextmanager
async def elsewhere(here: Platform) -> AsyncIterator[str]:
    """Another namespace, while the block runs."""
    name = f"{here.namespace[:50]}-other"
    head = {"apiVersion": "v1", "kind": "Namespace"}
    await here.client.create({**head, "metadata": {"name": name}})
    try:
        yield name
    finally:
        await here.client.delete(Namespace, name)


@pytest_cluster
async def test_a_role_here_reaches_no_job_that_is_elsewhere(
    cluster: Cluster, namespace: str, reference: Path, tmp_path: Path
) -> None:
    pair: dict[str, Any] = {"reference": str(reference), "distorted": str(reference)}
    async with (
        platform(cluster, namespace, reference.parent) as here,
        elsewhere(here) as other,
    ):
        port = await here.gateway(others=(other,))
        made = await here.client.create(
            VmafxJob(
                metadata=Metadata(name="theirs", namespace=other),
                spec=VmafxJobSpec(**pair),
            )
        )
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            writer = await Stranger(here, channel, described(tmp_path)).role("writer")
            ours = (await writer.call("SubmitJob", scoring=pair)).job_id

            async def is_seen() -> bool:
                code, _ = await refused(writer.call("GetJob", job_id=made.metadata.uid))
                return code is CODES.PERMISSION_DENIED

            await eventually(is_seen)
            for call in (
                writer.call("CancelJob", job_id=made.metadata.uid),
                writer.call("SubmitJob", scoring=pair, namespace=other),
            ):
                code, said = await refused(call)
                assert code is CODES.PERMISSION_DENIED
                assert other not in said
            assert [job.id for job in await writer.many("StreamJobs")] == [ours]
        assert not (
            await here.client.get(VmafxJob, "theirs", namespace=other)
        ).spec.cancel
