"""The programs of vmafx as processes: a job goes from the command line to its score."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform
from tests.operators.vmafx.programs import program, started
from trimtab.client import Client, load
from trimtab.operators.vmafx.operator import make
from trimtab.testing import Cluster, running

pytestmark = pytest.mark.cluster("embedded", "real")


async def said(cluster: Cluster, *arguments: str) -> tuple[int | None, str]:
    process = await started(cluster, *arguments)
    out, _ = await asyncio.wait_for(process.communicate(), 40)
    return process.returncode, out.decode()


async def test_a_job_goes_from_the_command_line_to_its_score(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    clip = clips.picture(tmp_path / "clip.mp4")
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with (
        running(make(random=Random(1)), cluster, namespace),
        Client(config) as client,
    ):
        token = await Platform(client, namespace, tmp_path).token("node")
        roots = ("--root", str(tmp_path))
        where = ("-n", namespace)
        async with program(cluster, "gateway", *where, "--port", "0", *roots) as line:
            address = line.removeprefix("Serving on ").rstrip(".\n")
            key = ("--token", str(token))
            node = ("node", "--gateway", address, "--name", "one", *key)
            async with program(cluster, *node):
                good = await said(
                    cluster, "submit", str(clip), str(clip), "--wait", *where
                )
                bad = await said(
                    cluster, "submit", str(clip), "/etc/fstab", "--wait", *where
                )
            late = await said(
                cluster, "submit", str(clip), str(clip), *where, "--name", "late"
            )
            cancelled = await said(cluster, "cancel", "late", *where)
            ended = await said(cluster, "watch", "late", *where)
    code, text = good
    assert code == 0
    assert "Succeeded VMAF 9" in text
    assert bad[0] == 1
    assert "outside of the scoring roots" in bad[1]
    assert late == (0, "vmafxjob/late created\n")
    assert cancelled == (0, "vmafxjob/late cancelled\n")
    assert ended == (1, "Cancelled It was cancelled.\n")
