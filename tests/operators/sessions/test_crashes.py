"""Operators as processes that are killed, in each phase, and followed by others."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kubelet.machine import machine
from tests.operators.sessions.house import IMAGE, House, house
from trimtab.testing import Cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
SOURCE = Path(__file__).resolve().parents[3]


@asynccontextmanager
async def operator(here: House) -> AsyncIterator[asyncio.subprocess.Process]:
    """The operator as people run it, which nobody says goodbye to."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "run", "--no-leader", "--port=-1"),
        *("--log=warning", "trimtab.operators.sessions.app"),
        stdin=asyncio.subprocess.DEVNULL,
        env={
            **os.environ,
            "PYTHONPATH": str(SOURCE / "src"),
            "KUBECONFIG": str(here.cluster.kubeconfig),
            "NAMESPACE": here.namespace,
            "AMBIENT_CODE_RUNNER_IMAGE": IMAGE,
            "AGENT_REGISTRY_PATH": here.settings.registry_path,
            "POD_RUN_AS_NON_ROOT": "false",
        },
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


@pytest.mark.parametrize("phase", ["Pending", "Creating", "Running"])
async def test_a_start_goes_on_where_an_operator_was_killed(
    cluster: Cluster, namespace: str, tmp_path: Path, phase: str
) -> None:
    async with house(cluster, namespace, tmp_path) as here, here.node():
        async with operator(here):
            await here.start("one")
            await here.until(
                "one", lambda each: each.status.phase in (phase, "Running"), within=60
            )
        async with operator(here):
            seen = await here.until("one", "Running", within=60.0)
            assert seen.status.restarts == 0
            first = await here.pod("one")
            await here.command("one", "Stopped")
            await here.until(
                "one", lambda each: each.status.phase in ("Stopping", "Stopped")
            )
        assert first is not None
        async with operator(here):
            await here.until("one", "Stopped", within=60.0)
            assert await here.pod("one") is None


async def test_what_happened_while_nobody_operated_is_seen_afterwards(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with house(cluster, namespace, tmp_path) as here, here.node():
        async with operator(here):
            await here.start("one")
            await here.start("two")
            await here.until("one", "Running", within=60.0)
            await here.until("two", "Running", within=60.0)
        await here.kill("one")
        await here.command("two", "Stopped")
        async with operator(here):
            await here.until("two", "Stopped", within=60.0)
            seen = await here.until(
                "one", lambda each: each.status.restarts == 1, within=60.0
            )
            assert seen.status.evidence is not None
            await here.until("one", "Running", within=60.0)


async def test_the_end_of_a_log_and_the_reason_are_there_when_the_pod_is_gone(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as laptop:
        await laptop.kubectl.run("create", "namespace", "team")
        async with house(laptop, "team", tmp_path) as here, operator(here):
            await here.start("one", initialPrompt="sleep 1\nexit 2")
            seen = await here.until("one", "Failed", within=60.0)
            table = await laptop.kubectl.run("get", "as", "-n", "team")
            told = await laptop.kubectl.run("describe", "as", "one", "-n", "team")
    assert seen.status.evidence is not None
    assert seen.status.evidence.exitCode == 2
    assert "Serving on" in seen.status.evidence.log
    assert table.split()[:4] == ["NAME", "PHASE", "REASON", "IDLE"]
    assert "PrerequisiteFailed" in table
    assert "The runner lacks what it needs." in told
