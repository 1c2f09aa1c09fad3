"""Journeys of sessions: what people go through with one, on whatever server.

Each is told once, and made by tests of several tiers. The runners are real processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.operators.sessions.house import IMAGE, House, profile
from tests.operators.sessions.runner_process import repository
from trimtab.api.kinds import Secret, Service, WholePod
from trimtab.client import NotFound
from trimtab.operators.sessions.environment import AGUI_TOKEN
from trimtab.operators.sessions.kinds import (
    APP,
    SETTINGS,
    AgenticSession,
    ProjectSettings,
    Repository,
)
from trimtab.operators.sessions.names import (
    pod_name,
    service_name,
    token_secret_name,
)
from trimtab.testing import eventually

SOURCE = Path(__file__).resolve().parents[3]


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


def is_applied(seen: AgenticSession) -> bool:
    generation = seen.metadata.generation
    return generation > 1 and seen.status.observedGeneration == generation


async def gone(here: House, name: str) -> bool:
    try:
        await here.get(name)
    except NotFound:
        return True
    return False


@asynccontextmanager
async def operator(
    here: House, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
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
            **variables,
        },
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def lives(here: House) -> None:
    """It runs, stops, is resumed, and replaced when it is killed."""
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
        assert await seconds(here, "one", "Running", leaves=True) < 10.0
        seen = await here.until("one", "Running", within=30.0)
        assert seen.status.restarts == 1
        assert seen.status.evidence is not None
        assert seen.status.evidence.reason == "RunnerKilled"


async def ends(here: House) -> None:
    """Every end of a runner: its own, its node's, and those of its times."""
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


async def edits(here: House) -> None:
    """Repositories and a workflow are changed under it; it goes when it is over."""
    tmp_path, namespace = here.folder, here.namespace
    shop = repository(tmp_path / "shop", "main", "next")
    flow = repository(tmp_path / "flow", file="review/steps.md")
    async with here.node(), here.operated():
        await here.start(
            "mine",
            initialPrompt="read repos/shop/README.md",
            repos=[Repository(url=shop)],
        )
        await here.until("mine", "Running", within=30.0)
        body = {
            "spec": {
                "repos": [
                    {"url": shop, "branch": "next"},
                    {"url": str(tmp_path / "none")},
                ],
                "activeWorkflow": {"gitUrl": flow, "path": "review"},
            }
        }
        await here.client.patch(AgenticSession, "mine", body, namespace=namespace)
        failed = await here.until(
            "mine",
            lambda seen: any(
                each.status == "Failed" for each in seen.status.reconciledRepos
            ),
        )
        assert not is_applied(failed), "what failed is not applied"
        assert not failed.status.conditions.is_true("Reconciled")
        body = {"spec": {"repos": [{"url": shop, "branch": "next"}]}}
        await here.client.patch(AgenticSession, "mine", body, namespace=namespace)
        seen = await here.until("mine", is_applied)
        assert seen.status.conditions.is_true("Reconciled")
        assert seen.status.reconciledWorkflow is not None
        assert seen.status.reconciledWorkflow.status == "Active"
        work = tmp_path / "mine" / "repos"
        assert (work / "shop" / "README.md").read_text() == "This is next.\n"

        short = {"spec": {"retention": {"maxAgeSeconds": 1}}}
        await here.client.patch(ProjectSettings, SETTINGS, short, namespace=namespace)
        await here.command("mine", "Stopped")
        await eventually(lambda: gone(here, "mine"), within=20.0)


async def goes_on(here: House, phase: str) -> None:
    """The operator is killed in a phase of its start, and again in its stop."""
    async with here.node():
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
