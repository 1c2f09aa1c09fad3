"""Jobs that can never succeed: each fails once, by name, and the node goes on."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform, node, platform
from trimtab.operators.vmafx import scores
from trimtab.operators.vmafx.kinds import VmafxNode
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.relay import Way
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.testing import Cluster


@asynccontextmanager
async def vanishing(clip: Path) -> AsyncIterator[str]:
    """A server that has a clip when it is first asked for, and never again."""
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise web.HTTPNotFound
        return web.FileResponse(clip)

    application = web.Application()
    application.router.add_get("/clips/{name}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/clips"
    finally:
        await runner.cleanup()


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    async with aiohttp.ClientSession() as session:
        yield Way(session, random.SystemRandom())


@pytest.fixture(scope="session")
def late(reference: Path) -> Path:
    """A clip whose index is at its end, and too far away to be read along."""
    noise = ("-vf", "noise=alls=90", "-c:v", "libx264", "-crf", "1")
    name = reference.with_name("index-last.mp4")
    return clips.made(name, "-i", str(reference), *noise)


async def test_a_clip_that_vanishes_while_it_is_read_is_bad_input(
    ffmpeg: Ffmpeg, way: Way, reference: Path, late: Path
) -> None:
    async with vanishing(late) as url:
        with pytest.raises(BadInput, match="its server answered 404") as refused:
            await score(
                str(reference), f"{url}/late.mp4?key=hidden", ffmpeg=ffmpeg, way=way
            )
    assert f"{url}/late.mp4?…" in str(refused.value)


@pytest.mark.parametrize("value", ["nan", "-nan", "inf"])
def test_a_value_that_is_no_number_is_no_score(value: str, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    pooled = f'"vmaf": {{"mean": 90.0}}, "integer_adm2": {{"mean": {value}}}'
    log.write_text(f'{{"frames": [], "pooled_metrics": {{{pooled}}}}}')
    with pytest.raises(BadInput, match="is not a number: there is no score") as told:
        scores.read(log, model="m", pair="b.mp4 against a.mp4")
    assert "b.mp4 against a.mp4" in str(told.value)


def test_a_log_that_says_nothing_may_be_made_again(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    for content in ("", "{", json.dumps({"frames": [], "pooled_metrics": {}})):
        log.write_text(content)
        with pytest.raises(ToolFailed, match="told no score of x"):
            scores.read(log, model="m", pair="x")


@pytest.mark.cluster("embedded", "real")
async def test_bad_jobs_fail_once_by_name_and_the_node_goes_on(
    cluster: Cluster,
    namespace: str,
    ffmpeg: Ffmpeg,
    way: Way,
    reference: Path,
    distorted: Path,
    late: Path,
) -> None:
    folder = reference.parent
    expected = bad_inputs(folder, reference)
    async with (
        vanishing(late) as url,
        platform(cluster, namespace, folder) as here,
    ):
        expected["gone"] = (f"{url}/gone.mp4", "", "its server answered 404")
        port = await here.gateway(roots=(url,))
        async with node(here, port, "odd", ffmpeg=poisoned(folder, ffmpeg)):
            await here.submit("nan", reference, distorted)
            nan = await here.ended("nan")
        async with node(here, port, "one", ffmpeg=ffmpeg, way=way):
            for name, (clip, model, _) in expected.items():
                await _submit(here, name, reference, clip, model)
            await here.submit("good", reference, distorted)
            jobs = {name: await here.ended(name) for name in expected}
            good = await here.ended("good")
            alive = await here.client.get(VmafxNode, "one", namespace=namespace)
    for name, (clip, model, why) in expected.items():
        status = jobs[name].status
        assert (status.phase, status.attempts) == ("Failed", 1), status
        assert why in status.message
        assert (model or clip) in status.message
        assert status.message.endswith(".")
        assert "\n" not in status.message
    assert good.status.phase == "Succeeded"
    assert good.status.run.session == alive.status.session
    assert (nan.status.phase, nan.status.score) == ("Failed", None)
    pair = f"{distorted} against {reference}"
    why = f"The vmaf of {pair} is not a number: there is no score."
    assert (nan.status.message, nan.status.attempts) == (why, 1)


def poisoned(folder: Path, ffmpeg: Ffmpeg) -> Ffmpeg:
    """The same ffmpeg, whose libvmaf says of a frame that its score is no number."""
    script = folder / "poisoned-ffmpeg"
    script.write_text(
        f'#!/bin/sh\n"{ffmpeg.path}" "$@"; code=$?\n'
        'test -f log.json && sed -i \'0,/"vmaf": [0-9.]*/s//"vmaf": -nan/\' log.json\n'
        "exit $code\n"
    )
    script.chmod(0o700)
    return msgspec.structs.replace(ffmpeg, path=str(script))


def bad_inputs(folder: Path, reference: Path) -> dict[str, tuple[str, str, str]]:
    """Names of jobs: the distorted clip, the model, and what must be said."""
    text = folder / "bad-text.mp4"
    text.write_text("this is no video\n")
    empty = folder / "bad-empty.mp4"
    empty.touch()
    long = clips.picture(folder / "bad-long.mp4", frames=clips.FRAMES + 5)
    small = clips.picture(folder / "bad-small.mp4", size="80x60")
    cut = clips.cut(long, folder / "bad-cut.mp4", part=0.6)
    good = str(reference)
    return {
        "missing": (str(folder / "bad-nothing.mp4"), "", "there is no such file"),
        "text": (str(text), "", "is not a video that can be read"),
        "empty": (str(empty), "", "is an empty file"),
        "size": (str(small), "", "only clips of one size"),
        "length": (str(long), "", "only clips of one length"),
        "cut": (str(cut), "", "was cut off"),
        "outside": ("/etc/hostname", "", "outside of the scoring roots"),
        "model": (good, "vmaf_v9", "There is no model vmaf_v9"),
        "odd": (good, "path=/etc/passwd", "is not the name of a model"),
    }


async def _submit(
    here: Platform, name: str, reference: Path, clip: str, model: str
) -> None:
    spec = {"reference": str(reference), "distorted": clip}
    await here.client.create(
        {
            "apiVersion": "vmafx.dev/v1",
            "kind": "VmafxJob",
            "metadata": {"name": name, "namespace": here.namespace},
            "spec": {**spec, "model": model} if model else spec,
        }
    )
