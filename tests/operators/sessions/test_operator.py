"""Sessions of real runner processes, from their start to whatever ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.operators.sessions.house import House, house, profile
from trimtab.api.kinds import Secret, Service, WholePod
from trimtab.client import NotFound
from trimtab.operators.sessions.environment import AGUI_TOKEN
from trimtab.operators.sessions.kinds import APP
from trimtab.operators.sessions.names import (
    pod_name,
    service_name,
    token_secret_name,
)
from trimtab.testing import Cluster


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[House]:
    async with house(cluster, namespace, tmp_path) as made:
        yield made


async def variables(here: House, name: str) -> dict[str, str]:
    found = await here.client.get(WholePod, pod_name(name), namespace=here.namespace)
    [runner] = [each for each in found.spec.containers if each.name == APP]
    return {each.name: each.value for each in runner.env}


async def token(here: House, name: str) -> bytes:
    found = await here.client.get(
        Secret, token_secret_name(name), namespace=here.namespace
    )
    return found.data[AGUI_TOKEN]


async def seconds(here: House, name: str, phase: str, *, leaves: bool = False) -> float:
    """How long it takes until a session is in a phase, or is not any more."""
    clock = asyncio.get_running_loop().time
    began = clock()
    await here.until(name, lambda each: (each.status.phase == phase) != leaves)
    return clock() - began


@pytest.mark.cluster("embedded", "real")
async def test_a_session_runs_stops_and_is_resumed(here: House) -> None:
    async with here.node(), here.operated():
        await here.start("one", initialPrompt="say hello")
        seen = await here.until("one", "Running", within=30.0)
        assert seen.status.conditions.is_true("Ready")
        assert seen.status.firstStartedAt is not None
        said = await variables(here, "one")
        assert said.get("IS_RESUME", "false") == "false"
        first = await token(here, "one")
        await here.command("one", "Stopped")
        seen = await here.until("one", "Stopped", within=20.0)
        assert seen.status.stoppedReason == "user"
        assert await here.pod("one") is None
        with pytest.raises(NotFound):
            await here.client.get(
                Service, service_name("one"), namespace=here.namespace
            )
        await here.command("one", "Running")
        again = await here.until("one", "Running", within=30.0)
        assert again.status.firstStartedAt == seen.status.firstStartedAt
        assert (await variables(here, "one"))["IS_RESUME"] == "true"
        assert await token(here, "one") != first
        # And once more, by nobody's wish.
        await here.kill("one")
        assert await seconds(here, "one", "Running", leaves=True) < 5.0
        seen = await here.until("one", "Running", within=30.0)
        assert seen.status.restarts == 1
        assert seen.status.evidence is not None
        assert seen.status.evidence.reason == "RunnerKilled"


@pytest.mark.cluster("real")
@pytest.mark.timeout(120)
async def test_every_end_of_a_runner_is_seen_for_what_it_is(here: House) -> None:
    here.limited(restart_budget=0)
    here.profile(profile("claude-agent-sdk"), profile("typo", image="none/such:typo"))
    async with here.node(), here.operated():
        await here.start("eats", initialPrompt="sleep 1\neat 2000")
        await here.start("lacks", initialPrompt="sleep 1\nexit 2")
        await here.start("ends", initialPrompt="sleep 1\nexit 0")
        await here.start("typo", environmentVariables={"RUNNER_TYPE": "typo"})
        await here.start("quick", timeout=1)
        await here.start("idle", inactivityTimeout=1)
        for name, phase, reason in (
            ("eats", "Failed", "OOMKilled"),
            ("lacks", "Failed", "PrerequisiteFailed"),
            ("ends", "Completed", "Completed"),
            ("quick", "Stopped", "Timeout"),
            ("idle", "Stopped", "InactivityTimeout"),
        ):
            seen = await here.until(name, phase, within=60.0)
            assert seen.status.conditions["Ready"].reason == reason
            assert await here.pod(name) is None
        seen = await here.until("typo", "Failed", within=30.0)
        assert seen.status.conditions["Ready"].reason in (
            "ErrImagePull",
            "ImagePullBackOff",
        )
