"""What operators find out of what happened while there was none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubelet.machine import machine
from tests.operators.sessions.house import house
from tests.operators.sessions.journeys import operator
from trimtab.testing import Cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


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
