"""Two hundred jobs through a storm: each ends once, with the right score."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import platform
from tests.operators.vmafx.programs import first_line, started
from trimtab.operators.vmafx.kinds import VmafxJob
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.testing import Cluster, eventually

pytestmark = [pytest.mark.long, pytest.mark.cluster("embedded", "real")]
JOBS = 200
PORTS = (19190, 19191)


@pytest.mark.timeout(900)
async def test_jobs_end_once_whoever_dies(
    cluster: Cluster, namespace: str, tmp_path: Path, ffmpeg: Ffmpeg
) -> None:
    good = clips.picture(tmp_path / "good.mp4", size="320x180", frames=50)
    poor = clips.picture(tmp_path / "poor.mp4", size="320x180", frames=50, crf=40)
    expected = await score(str(good), str(poor), ffmpeg=ffmpeg)
    async with platform(cluster, namespace, tmp_path) as here:
        token = await here.token("node")
        running: dict[str, asyncio.subprocess.Process] = {}

        async def gateway(name: str, port: int) -> None:
            where = ("-n", namespace, "--port", str(port), "--root", str(tmp_path))
            running[name] = await started(cluster, "gateway", *where)
            await first_line(running[name])

        async def node(name: str, port: int) -> None:
            at = ("--gateway", f"127.0.0.1:{port}", "--token", str(token))
            who = ("--name", name, "--threads", "1")
            running[name] = await started(cluster, "node", *at, *who)
            await first_line(running[name])

        async def jobs() -> list[VmafxJob]:
            listing = here.client.list(VmafxJob, namespace=namespace)
            return [job async for job in listing]

        async def has_ended(count: int) -> bool:
            ended = [each for each in await jobs() if each.status.run.outcome]
            return len(ended) >= count

        try:
            for number, port in enumerate(PORTS):
                await gateway(f"gateway-{number}", port)
            for number in range(JOBS):
                urgent = number % 10 == 0
                priority = 5 if urgent else 0
                await here.submit(f"job-{number}", good, poor, priority=priority)
            for number in range(4):
                await node(f"node-{number}", PORTS[number % 2])

            async def after_20() -> bool:
                return await has_ended(20)

            await eventually(after_20, within=120, every=0.5)
            running["node-0"].kill()
            running["node-1"].send_signal(signal.SIGTERM)
            running["gateway-0"].kill()
            await running["gateway-0"].wait()
            await gateway("gateway-0", PORTS[0])

            async def all_over() -> bool:
                return all(each.status.phase == "Succeeded" for each in await jobs())

            await eventually(all_over, within=600, every=1.0)
        finally:
            for process in running.values():
                if process.returncode is None:
                    process.kill()
                await process.wait()
        ended = await jobs()
    assert len(ended) == JOBS
    assert {each.status.score for each in ended} == {expected.vmaf}
    attempts = Counter(each.status.attempts for each in ended)
    lost = sum(each.status.run.lost for each in ended)
    assert lost <= 2, attempts
    first = sorted(ended, key=lambda each: str(each.status.run.since))[:18]
    assert all(each.spec.priority == 5 for each in first)
