"""From ``kubectl apply`` to a score: operator, gateway and node around real jobs.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform, node, platform
from trimtab.client import Invalid, NotFound
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx import roles
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.serving import SERVICE
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster("embedded", "real")
MAX = datetime.max.replace(tzinfo=UTC)


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, reference: Path
) -> AsyncIterator[Platform]:
    async with platform(cluster, namespace, reference.parent) as made:
        yield made


async def test_a_job_is_scored_and_says_so(
    here: Platform,
    cluster: Cluster,
    ffmpeg: Ffmpeg,
    reference: Path,
    distorted: Path,
) -> None:
    port = await here.gateway()
    expected = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    async with node(here, port, "Worker_1", ffmpeg=ffmpeg):
        await here.submit("good", reference, distorted)
        await here.submit("bad", reference, here.folder / "missing.mp4")
        await here.submit("outside", reference, Path("/etc/hostname"))
        good, bad = await here.ended("good"), await here.ended("bad")
        outside = await here.ended("outside")
    assert good.status.phase == "Succeeded"
    assert good.status.score == pytest.approx(expected.vmaf, abs=1e-3)
    assert good.status.features["psnr"] == pytest.approx(expected.features["psnr"])
    assert good.status.progress == 100
    assert good.status.perFrame is not None
    kept = await here.client.get(
        ConfigMap, good.status.perFrame.configMap, namespace=here.namespace
    )
    frames = json.loads(kept.data[good.status.perFrame.key])
    assert frames["vmaf"] == list(expected.frames)
    assert kept.metadata.ownerReferences[0].name == "good"
    assert bad.status.perFrame is None
    assert good.status.conditions.is_true("Succeeded")
    assert (good.status.attempts, bad.status.attempts) == (1, 1)
    assert bad.status.phase == outside.status.phase == "Failed"
    assert "missing.mp4 cannot be read: there is no such file" in bad.status.message
    assert "outside of the scoring roots" in outside.status.message
    shown = await cluster.kubectl("get", "vmjob", "-n", here.namespace)
    assert f"{good.status.score}" in shown
    assert "Failed" in shown


async def test_a_job_waits_for_a_node_and_priority_goes_first(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    port = await here.gateway()
    for number, priority in enumerate((0, 5, 9)):
        await here.submit(f"job-{number}", reference, distorted, priority=priority)

    async def are_pending() -> bool:
        # As far as the gateway knows, which hears of them by a watch of its own.
        async with here.caller(port, "reader") as reader:
            jobs = [each async for each in reader.stream(wire.StreamJobsRequest())]
        return [each.status for each in jobs] == [wire.PENDING] * 3

    await eventually(are_pending)
    async with node(here, port, "one", ffmpeg=ffmpeg):
        jobs = [await here.ended(f"job-{number}") for number in range(3)]
    ended = [each.status.run.ended or MAX for each in jobs]
    assert sorted(ended, reverse=True) == ended
    assert {each.status.phase for each in jobs} == {"Succeeded"}


@pytest.fixture(scope="session")
def long(reference: Path) -> Path:
    """A clip that takes many seconds to score."""
    return clips.made(
        reference.with_name("long.mp4"),
        *("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-frames:v", "400"),
        *("-c:v", "libx264", "-preset", "ultrafast"),
    )


async def runs(here: Platform, name: str) -> None:
    async def is_running() -> bool:
        return (await here.job(name)).status.phase == "Running"

    await eventually(is_running)


async def test_a_cancelled_job_stops_within_a_second(
    here: Platform, ffmpeg: Ffmpeg, long: Path
) -> None:
    port = await here.gateway()
    async with node(here, port, "one", ffmpeg=ffmpeg) as worker:
        await here.submit("long", long, long)
        await runs(here, "long")
        await here.client.patch(
            VmafxJob, "long", {"spec": {"cancel": True}}, namespace=here.namespace
        )
        await eventually(lambda: not worker.working, within=5.0)
        ended = await here.ended("long")
    assert ended.status.phase == "Cancelled"


async def test_a_deleted_job_is_stopped_and_goes(
    here: Platform, ffmpeg: Ffmpeg, long: Path
) -> None:
    port = await here.gateway()
    async with node(here, port, "one", ffmpeg=ffmpeg) as worker:
        await here.submit("long", long, long)
        await runs(here, "long")
        await here.client.delete(VmafxJob, "long", namespace=here.namespace)
        await eventually(lambda: not worker.working, within=5.0)

        async def is_gone() -> bool:
            try:
                await here.job("long")
            except NotFound:
                return True
            return False

        await eventually(is_gone)


@pytest.mark.cluster("real")
async def test_a_job_of_a_silent_node_is_done_by_another(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    port = await here.gateway(lease=1.5)
    async with here.caller(port, "node") as caller:
        can = wire.NodeCapability(backends=["cpu"])
        begun = await caller.register(
            wire.RegisterNodeRequest(name="silent", capability=can)
        )
        await here.submit("job", reference, distorted)
        pulled = await caller.pull(
            wire.PullWorkRequest(
                node_id=begun.node_id,
                session_token=begun.session_token,
                capability=can,
                wait_seconds=5.0,
            )
        )
        assert pulled.job.name == "job"
        async with node(here, port, "living", ffmpeg=ffmpeg):
            ended = await here.ended("job")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await caller.report(
                wire.ReportResultRequest(
                    node_id=begun.node_id,
                    session_token=begun.session_token,
                    job_id=pulled.job.id,
                    attempt=pulled.job.attempt,
                    final=True,
                    score=1.0,
                )
            )
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert ended.status.phase == "Succeeded"
    assert (ended.status.attempts, ended.status.run.lost) == (2, 1)
    assert (await here.job("job")).status.score == ended.status.score


async def test_a_node_that_drains_gives_its_job_back(
    here: Platform, ffmpeg: Ffmpeg, long: Path
) -> None:
    port = await here.gateway()
    async with node(
        here,
        port,
        "one",
        ffmpeg=ffmpeg,
        change=lambda options: replace(options, patience=0.0),
    ):
        await here.submit("long", long, long)
        await runs(here, "long")
    released = await here.job("long")
    assert released.status.run.outcome == "released"
    assert released.status.run.lost == 0


async def test_two_gateways_give_each_job_to_one_node(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    ports = [await here.gateway(), await here.gateway()]
    names = [f"job-{number}" for number in range(8)]
    async with (
        node(here, ports[0], "one", ffmpeg=ffmpeg),
        node(here, ports[1], "two", ffmpeg=ffmpeg),
    ):
        for name in names:
            await here.submit(name, reference, distorted)
        jobs = [await here.ended(name) for name in names]
    assert {each.status.phase for each in jobs} == {"Succeeded"}
    assert {each.status.attempts for each in jobs} == {1}
    assert len({each.status.score for each in jobs}) == 1

    async def are_known() -> bool:
        where = here.namespace
        found = [each async for each in here.client.list(VmafxNode, namespace=where)]
        return {each.metadata.name for each in found} == {"one", "two"}

    await eventually(are_known)


CODES = grpc.StatusCode


async def code(call: object) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    return refused.value.code()


async def test_every_method_has_a_role_and_refuses_others(
    here: Platform, reference: Path
) -> None:
    port = await here.gateway()
    served = wire.DESCRIPTOR.services_by_name["VmafxController"].methods_by_name
    assert {f"/{SERVICE}/{name}" for name in served} <= set(roles.METHODS)
    pair = wire.ScoringParams(reference=str(reference), distorted=str(reference))
    async with (
        here.caller(port, "writer") as writer,
        here.caller(port, "node") as worker,
        here.caller(port, "nobody") as nobody,
    ):
        submit = wire.SubmitJobRequest(scoring=pair, idempotency_key="k")
        made = await writer.submit(submit)
        assert (await writer.submit(submit)).job_id == made.job_id
        found = await writer.get(wire.GetJobRequest(job_id=made.job_id))
        assert found.status == wire.PENDING
        register = wire.RegisterNodeRequest(name="n")
        assert await code(writer.register(register)) is CODES.PERMISSION_DENIED
        assert await code(worker.submit(submit)) is CODES.PERMISSION_DENIED
        get = wire.GetJobRequest(job_id=made.job_id)
        assert await code(nobody.get(get)) is CODES.PERMISSION_DENIED
        empty = wire.SubmitJobRequest()
        assert await code(writer.submit(empty)) is CODES.INVALID_ARGUMENT
        etc = wire.ScoringParams(reference="/etc/passwd", distorted="/etc/passwd")
        outside = wire.SubmitJobRequest(scoring=etc)
        assert await code(writer.submit(outside)) is CODES.PERMISSION_DENIED
        unknown = wire.GetJobRequest(job_id="nope")
        assert await code(writer.get(unknown)) is CODES.NOT_FOUND
        beat = await worker.heartbeat(wire.HeartbeatRequest(node_id="x"))
        assert not beat.ok
        pull = wire.PullWorkRequest(node_id="x", session_token="y")
        assert await code(worker.pull(pull)) is CODES.PERMISSION_DENIED
        cancelled = await writer.cancel(wire.CancelJobRequest(job_id=made.job_id))
        assert cancelled.ok
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert await code(Caller(channel).get(get)) is CODES.UNAUTHENTICATED


async def test_a_stream_shows_what_is_and_what_becomes(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    port = await here.gateway()
    await here.submit("job", reference, distorted)
    seen: list[int] = []

    async def look() -> None:
        async with here.caller(port, "reader") as reader:
            async for job in reader.stream(wire.StreamJobsRequest(watch=True)):
                seen.append(job.status)
                if job.status == wire.COMPLETED:
                    return

    async with node(here, port, "one", ffmpeg=ffmpeg):
        await asyncio.wait_for(look(), 20)
    assert seen == sorted(seen)
    assert seen[-1] == wire.COMPLETED


MANIFESTS = """
apiVersion: vmafx.dev/v1
kind: VmafxModelTraining
metadata: {name: model}
spec:
  baseModel: vmaf_tiny_v2
  algorithm: online-sgd-ema
  outputRegistry: oci://registry.example.com/models
  dataSource: {nodeSelector: {pool: gpu}}
---
apiVersion: vmafx.dev/v1
kind: VmafxTenant
metadata: {name: acme}
spec:
  tenantId: acme
  oidc:
    issuer: https://id.example.com
    jwksEndpoint: https://id.example.com/keys
---
apiVersion: vmafx.dev/v1
kind: VmafxJob
metadata: {name: job}
spec:
  reference: s3://clips/a.y4m
  distorted: s3://clips/b.y4m
  model: vmaf_v0.6.1
  backend: cuda
---
apiVersion: vmafx.dev/v1
kind: VmafxNode
metadata: {name: gpu-1}
spec: {gpuVendor: nvidia}
"""


async def test_manifests_are_taken_and_told_what_becomes_of_them(
    here: Platform, cluster: Cluster
) -> None:
    await cluster.kubectl("apply", "-n", here.namespace, "-f", "-", stdin=MANIFESTS)
    told = {VmafxModelTraining: "Unusable", VmafxTenant: "Served"}
    for kind, reason in told.items():

        async def is_told(kind: type[Any] = kind, reason: str = reason) -> bool:
            async for each in here.client.list(kind, namespace=here.namespace):
                found = each.status.conditions.get("Ready")
                return found is not None and found.reason == reason
            return False

        await eventually(is_told)

    async def is_unhealthy() -> bool:
        found = await here.client.get(VmafxNode, "gpu-1", namespace=here.namespace)
        return not found.status.healthy

    await eventually(is_unhealthy)
    changed = {"spec": {"reference": "/another.mp4"}}
    with pytest.raises(Invalid, match="create another job"):
        await here.client.patch(VmafxJob, "job", changed, namespace=here.namespace)
    hurry = {"spec": {"ttlSecondsAfterFinished": 5}}
    await here.client.patch(VmafxJob, "job", hurry, namespace=here.namespace)
