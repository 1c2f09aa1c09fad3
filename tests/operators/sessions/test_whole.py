"""The whole: a session with real repositories, edited while it runs, until it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.sessions.house import House, house
from tests.operators.sessions.runner_process import repository
from trimtab.client import NotFound
from trimtab.operators.sessions.kinds import (
    SETTINGS,
    AgenticSession,
    ProjectSettings,
    Repository,
)
from trimtab.testing import Cluster, eventually


def is_applied(seen: AgenticSession) -> bool:
    generation = seen.metadata.generation
    return generation > 1 and seen.status.observedGeneration == generation


async def gone(here: House, name: str) -> bool:
    try:
        await here.get(name)
    except NotFound:
        return True
    return False


@pytest.mark.cluster("real")
async def test_repositories_are_changed_under_a_session_and_it_goes_when_it_is_over(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    shop = repository(tmp_path / "shop", "main", "next")
    flow = repository(tmp_path / "flow", file="review/steps.md")
    async with house(cluster, namespace, tmp_path) as here:
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
            await here.client.patch(
                ProjectSettings, SETTINGS, short, namespace=namespace
            )
            await here.command("mine", "Stopped")
            await eventually(lambda: gone(here, "mine"), within=20.0)
