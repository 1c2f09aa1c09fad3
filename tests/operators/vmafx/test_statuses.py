"""Laws of what a status says: who writes it, when, and that nothing of it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.operators.vmafx.platform import Platform, node, platform
from trimtab.api import Conditions, Metadata, Resource, Status, wire
from trimtab.client import NotFound
from trimtab.kinds import Event
from trimtab.operators.vmafx.kinds import (
    Doing,
    PerFrame,
    Run,
    Scored,
    VmafxJob,
    VmafxJobSpec,
    VmafxJobStatus,
    VmafxNode,
    VmafxNodeSpec,
    VmafxNodeStatus,
)
from trimtab.operators.vmafx.pulse import Pulses
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.wire import controller_pb2 as messages
from trimtab.testing import Cluster, eventually, virtual_time

NOW = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)
RUN = Run(
    attempt=3,
    lost=2,
    fence=1,
    node="n",
    session="s",
    since=NOW,
    ended=NOW,
    outcome="completed",
    score=0.5,
    features={"psnr": 1.5},
    error="e",
    frames="f",
    scored=Scored(first=3, count=2, total=9),
    reused=True,
)
JOB = VmafxJobStatus(
    phase="Succeeded",
    score=0.5,
    assignedNode="n",
    controllerJobID="id",
    startedAt=NOW,
    finishedAt=NOW,
    message="m",
    observedGeneration=1,
    attempts=3,
    progress=100,
    features={"psnr": 1.5},
    perFrame=PerFrame(configMap="c", key="k"),
    run=RUN,
)
NODE = VmafxNodeStatus(
    healthy=True,
    lastHeartbeat=NOW,
    assignedJobs=1,
    detectedDevice="d",
    session="s",
    tokenHash="h",
    backends=["cpu"],
    beat=7,
    jobs=[Doing(job="u", attempt=1, progress=5, namespace="n", name="j")],
    draining=True,
    tenant="t",
)


def is_filled(value: msgspec.Struct) -> bool:
    """Whether every field differs from its default: else nothing would be shown."""
    kind = type(value)
    return all(
        getattr(value, each.name) != each.default
        for each in msgspec.structs.fields(kind)
        if each.type is not Conditions
    )


@pytest.mark.cluster("embedded", "real")
async def test_every_field_of_a_status_is_kept_by_the_server(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    # The operator looks at other namespaces: nobody else writes here.
    async with platform(cluster, "default", tmp_path) as here:
        where = Metadata(name="all", namespace=namespace)
        spec = VmafxJobSpec(reference="/a", distorted="/b")
        job = VmafxJob(metadata=where, spec=spec)
        vmafx_node = VmafxNode(metadata=where, spec=VmafxNodeSpec(gpuVendor="cpu"))
        pairs: tuple[tuple[Resource, Status], ...] = (
            (job, JOB),
            (vmafx_node, NODE),
        )
        for made, status in pairs:
            assert is_filled(status)
            await here.client.create(made)
            kept: Any = await here.client.patch(
                type(made),
                "all",
                {"status": wire(status)},
                namespace=namespace,
                subresource="status",
            )
            assert wire(kept.status) == wire(status)


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, reference: Path
) -> AsyncIterator[Platform]:
    async with platform(cluster, namespace, reference.parent) as made:
        yield made


def owned(fields: dict[str, Any], at: str = "") -> Iterator[str]:
    """The leaves that an entry of managedFields names."""
    inner = {key: value for key, value in fields.items() if key != "."}
    if not inner:
        yield at
    for key, value in inner.items():
        yield from owned(value, f"{at}/{key}")


@pytest.mark.cluster("embedded", "real")
async def test_every_field_of_a_status_has_one_writer_and_times_are_those_of_the_deed(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    port = await here.gateway()
    async with node(here, port, "one", ffmpeg=ffmpeg):
        await here.submit("good", reference, distorted)
        good = await here.ended("good")

        async def is_healthy() -> bool:
            found = await here.client.get(VmafxNode, "one", namespace=here.namespace)
            return found.status.healthy

        await eventually(is_healthy)
    assert good.status.startedAt == good.status.run.since
    assert good.status.finishedAt == good.status.run.ended
    for kind, name in (("VmafxJob", "good"), ("VmafxNode", "one")):
        info = await here.client.discover("vmafx.dev/v1", kind)
        raw = await here.client.get(info, name, namespace=here.namespace)
        writers: dict[str, set[str]] = {}
        for entry in raw["metadata"]["managedFields"]:
            if entry.get("subresource") == "status":
                for field in owned(entry["fieldsV1"]):
                    writers.setdefault(field, set()).add(entry["manager"])
        assert len(set.union(*writers.values())) > 1
        twice = {field: who for field, who in writers.items() if len(who) > 1}
        assert not twice


@pytest.mark.cluster("real")
async def test_progress_deadlines_events_and_the_end_of_a_job_are_told(
    here: Platform, reference: Path
) -> None:
    port = await here.gateway()
    await here.submit("job", reference, reference, deadlineSeconds=3600)
    await here.submit("late", reference, reference, deadlineSeconds=1)
    await here.submit("gpu", reference, reference, backend="cuda", priority=9)
    late = await here.ended("late")
    assert late.status.message == "It was not done within its deadline of 1 s."
    async with here.caller(port, "node") as caller:
        can = messages.NodeCapability(backends=["cpu"])
        session = await caller.register(
            messages.RegisterNodeRequest(name="one", capability=can)
        )
        me: dict[str, Any] = {
            "node_id": session.node_id,
            "session_token": session.session_token,
        }
        pull = messages.PullWorkRequest(**me, capability=can, wait_seconds=5)
        job = (await caller.pull(pull)).job
        assert job.name == "job"  # the other one waits for what this node has not
        done = messages.JobProgress(job_id=job.id, attempt=job.attempt, percent=57)
        await caller.heartbeat(messages.HeartbeatRequest(**me, progress=[done]))

        async def is_half_done() -> bool:
            return (await here.job("job")).status.progress == 50

        await eventually(is_half_done)
        failed = messages.ReportResultRequest(
            **me, job_id=job.id, final=True, error="No luck.", retryable=True
        )
        await caller.report(failed)

        async def waits_again() -> bool:
            found = await here.job("job")
            return found.status.phase == "Pending" and found.status.run.lost == 1

        await eventually(waits_again)
    assert (await here.job("gpu")).status.phase == "Pending"
    hurry = {"spec": {"cancel": True, "ttlSecondsAfterFinished": 0}}
    await here.client.patch(VmafxJob, "job", hurry, namespace=here.namespace)
    await eventually(lambda: _is_gone(here, VmafxJob, "job"))

    async def are_told() -> bool:
        listing = here.client.list(Event, namespace=here.namespace)
        reasons = {each.reason async for each in listing}
        return reasons >= {"Scoring", "Waiting", "Failed"}

    await eventually(are_told)


async def _is_gone(here: Platform, kind: type[Resource], name: str) -> bool:
    try:
        await here.client.get(kind, name, namespace=here.namespace)
    except NotFound:
        return True
    return False


@pytest.mark.cluster("embedded", "real")
async def test_a_cancelled_job_can_be_shown_as_programs_elsewhere_know_it(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    setting = {"VMAFX_CANCELLED_AS_FAILED": "true"}
    async with platform(cluster, namespace, tmp_path, environment=setting) as here:
        await here.gateway()
        clip = tmp_path / "a.mp4"
        await here.submit("job", clip, clip, cancel=True)
        ended = await here.ended("job")
    assert ended.status.phase == "Failed"
    assert ended.status.message == "cancelled by controller"
    assert ended.status.run.outcome == "cancelled"


def beaten(beat: int, session: str = "s") -> VmafxNode:
    return VmafxNode(
        metadata=Metadata(name="n", namespace="ns"),
        spec=VmafxNodeSpec(gpuVendor="cpu"),
        status=VmafxNodeStatus(session=session, beat=beat),
    )


@virtual_time
async def test_a_node_is_alive_for_a_minute_and_forgotten_after_an_hour() -> None:
    pulses = Pulses(60.0)

    def look(beat: int, session: str = "s") -> tuple[bool, int]:
        alive, left = pulses.look(beaten(beat, session))
        assert left is not None
        return alive, round(left)

    assert look(1) == (True, 60)
    await asyncio.sleep(50)
    assert look(1) == (True, 10)
    assert look(2) == (True, 60)
    await asyncio.sleep(60)
    assert look(2) == (False, 3540)
    await asyncio.sleep(3540)
    assert look(2) == (False, 0)
    assert look(0, session="new") == (True, 60)
    assert pulses.look(beaten(0, session="")) == (False, None)  # made by hand


@pytest.mark.cluster("embedded", "real")
async def test_a_node_that_was_not_heard_of_for_long_goes_and_one_made_by_hand_stays(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with platform(
        cluster, namespace, tmp_path, pulses=Pulses(0.5, memory=1.0)
    ) as here:
        port = await here.gateway()
        spec = VmafxNodeSpec(gpuVendor="nvidia")
        where = Metadata(name="by-hand", namespace=namespace)
        await here.client.create(VmafxNode(metadata=where, spec=spec))
        async with here.caller(port, "node") as caller:
            await caller.register(messages.RegisterNodeRequest(name="silent"))
        await eventually(lambda: _is_gone(here, VmafxNode, "silent"))
        assert not await _is_gone(here, VmafxNode, "by-hand")
