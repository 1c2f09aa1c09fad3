"""A job in segments: jobs of their own, which end as one, and with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform, node, platform
from tests.operators.vmafx.programs import first_line, started
from trimtab.client import Client, Invalid, load
from trimtab.client.calling import Caller, Place
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx import splitting
from trimtab.operators.vmafx.kinds import SEGMENT_OF, Run, VmafxJob, VmafxNode
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import install

pytestmark = pytest.mark.cluster("embedded", "real")


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, reference: Path
) -> AsyncIterator[Platform]:
    async with platform(cluster, namespace, reference.parent) as made:
        yield made


async def segments(here: Platform, name: str) -> list[VmafxJob]:
    listed = here.client.list(
        VmafxJob, namespace=here.namespace, labels=f"{SEGMENT_OF}={name}"
    )
    return [each async for each in listed]


async def metrics(here: Platform) -> str:
    place = Place(host="127.0.0.1", port=here.http[0], name="gateway", tls=False)
    asking = Caller()
    try:
        reply = await asking.call(place, "GET", "/metrics", within=10.0)
    finally:
        await asking.close()
    return reply.body.decode()


async def test_a_split_job_has_the_score_of_the_whole_and_its_segments_go(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    whole = await score(str(reference), str(distorted), ffmpeg=ffmpeg, threads=1)
    port = await here.gateway()
    await here.submit(
        "long", reference, distorted, segments=3, priority=4, maxAttempts=2
    )

    async def made() -> list[VmafxJob] | None:
        found = await segments(here, "long")
        return found if len(found) == 3 else None

    parts = await eventually(made)
    assert parts is not None
    assert {(each.spec.priority, each.spec.maxAttempts) for each in parts} == {(4, 2)}
    change = {"spec": {"segments": 4}}
    with pytest.raises(Invalid, match="split"):
        await here.client.patch(VmafxJob, "long", change, namespace=here.namespace)
    async with node(
        here, port, "one", ffmpeg=ffmpeg, change=lambda given: replace(given, slots=2)
    ):
        job = await here.ended("long")
    assert job.status.phase == "Succeeded", job.status.message
    assert job.status.score == pytest.approx(whole.vmaf, abs=1e-9)
    assert job.status.features == pytest.approx(dict(whole.features), abs=1e-9)
    assert job.status.perFrame is not None
    kept = await here.client.get(
        ConfigMap, job.status.perFrame.configMap, namespace=here.namespace
    )
    content = json.loads(kept.data[job.status.perFrame.key])
    assert content["vmaf"] == list(whole.frames)

    async def gone() -> bool:
        return not await segments(here, "long")

    await eventually(gone)


@pytest.mark.cluster("real")
async def test_what_ends_a_split_job_or_its_segment_ends_all(
    here: Platform, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    port = await here.gateway()
    shorter = clips.picture(reference.with_name("shorter.mp4"), frames=15)
    await here.submit("unlike", reference, shorter, segments=2)
    await here.submit("unwanted", reference, distorted, segments=2, cancel=True)
    await here.submit("late", reference, distorted, segments=2, deadlineSeconds=1)
    late, unwanted = await here.ended("late"), await here.ended("unwanted")
    assert late.status.message == "It was not done within its deadline of 1 s."
    assert unwanted.status.phase == "Cancelled"
    async with node(here, port, "one", ffmpeg=ffmpeg):
        unlike = await here.ended("unlike")
    assert unlike.status.phase == "Failed"
    assert "has 20 frames and" in unlike.status.message
    assert unlike.status.message.endswith(").")

    async def gone() -> bool:
        left = [await segments(here, name) for name in ("unlike", "late", "unwanted")]
        return not any(left)

    await eventually(gone)


async def test_segments_of_a_job_that_is_over_are_not_scored_even_without_an_operator(
    cluster: Cluster, namespace: str, reference: Path, distorted: Path
) -> None:
    async with Client(
        load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    ) as client:
        await install(client, VmafxJob, VmafxNode, VmafxModelTraining, VmafxTenant)
        alone = Platform(client, namespace, reference.parent)
        async with alone._stack:
            await alone.gateway()
            await alone.submit("long", reference, distorted, segments=2)
            job = await alone.job("long")
            for index in range(2):
                await client.create(splitting.segment(job, index))
            cancel = {"spec": {"cancel": True}}
            await client.patch(VmafxJob, "long", cancel, namespace=namespace)

            async def stopped() -> bool:
                runs = [each.status.run for each in await segments(alone, "long")]
                return [run.outcome for run in runs] == ["cancelled"] * 2

            await eventually(stopped)


@pytest.mark.long
@pytest.mark.cluster("real")
@pytest.mark.timeout(120)
async def test_a_killed_segment_is_scored_again_alone_and_the_rest_never_again(
    here: Platform, cluster: Cluster, ffmpeg: Ffmpeg, tmp_path: Path
) -> None:
    folder = here.folder
    clip = clips.picture(folder / "killed.mp4", size="640x360", frames=80, crf=35)
    whole = await score(str(clip), str(clip), ffmpeg=ffmpeg)
    port, token = await here.gateway(), await here.token("node")
    where = ("--gateway", f"127.0.0.1:{port}", "--token", str(token))
    given = (*where, "--threads", "1", "--cache", str(tmp_path / "kept"))
    nodes: list[asyncio.subprocess.Process] = []

    async def begun(name: str) -> asyncio.subprocess.Process:
        nodes.append(await started(cluster, "node", *given, "--name", name))
        await first_line(nodes[-1])
        return nodes[-1]

    seen: dict[str, Run] = {}
    try:
        victim, _ = await begun("victim"), await begun("survivor")
        await here.submit("film", clip, clip, segments=4)

        async def has_one() -> bool:
            for each in await segments(here, "film"):
                seen[each.metadata.name] = each.status.run
            return any(
                run.node == "victim" and not run.outcome for run in seen.values()
            )

        await eventually(has_one)
        (lost,) = (name for name, run in seen.items() if run.node == "victim")
        victim.kill()
        await begun("victim")  # by which its death is known, before it is silent

        async def is_over() -> bool:
            await has_one()
            return (await here.job("film")).status.phase == "Succeeded"

        await eventually(is_over, within=60.0)
        await here.submit("again", clip, clip, segments=4)
        again = await here.ended("again")
        counted = await metrics(here)
    finally:
        for process in nodes:
            if process.returncode is None:
                process.kill()
            await process.wait()
    film = await here.job("film")
    assert film.status.score == pytest.approx(whole.vmaf, abs=1e-9)
    assert again.status.score == film.status.score
    assert "vmafx_controller_scores_reused_total 4.0" in counted
    assert seen[lost].lost == 1
    assert {run.attempt for name, run in seen.items() if name != lost} == {1}
