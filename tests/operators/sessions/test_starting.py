"""Laws of starts that no node ever serves: what is said, stopped and never made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.operators.sessions.house import House, house
from trimtab import Metadata
from trimtab.api.kinds import Namespace, Pod, Secret, Service, ServiceAccount
from trimtab.operators.sessions.kinds import (
    MANAGED,
    TERMINAL,
    AgenticSession,
)
from trimtab.operators.sessions.settings import RUNNER_SECRETS
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster("embedded", "real")
BEFORE = {
    "startTime": "2026-01-02T03:04:05Z",
    "completionTime": "2026-01-02T04:04:05Z",
    "stoppedReason": "user",
}


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[House]:
    async with house(cluster, namespace, tmp_path) as made:
        yield made


async def left(here: House) -> list[str]:
    """What there is of sessions, besides themselves."""
    found = []
    for kind in (Pod, Service, ServiceAccount, Secret):
        async for each in here.client.list(kind, namespace=here.namespace):
            found.append(each.metadata.name)
    return [name for name in found if "one" in name.split("-")]


async def test_a_session_that_nothing_has_room_for_stops_within_five_seconds(
    here: House,
) -> None:
    async with here.operated():
        await here.start("one")
        seen = await here.until("one", "Creating")
        assert not seen.status.conditions.is_true("Ready")
        assert sorted(await left(here)) == [
            "ambient-runner-token-one",
            "ambient-session-one",
            "one-runner",
            "session-one",
        ]
        began = asyncio.get_running_loop().time()
        await here.command("one", "Stopped")
        seen = await here.until("one", "Stopped", within=5.0)
        assert asyncio.get_running_loop().time() - began < 5.0
        assert seen.status.stoppedReason == "user"
        assert seen.metadata.annotations == {}

        async def nothing_is_left() -> bool:
            return not await left(here)

        await eventually(nothing_is_left)


async def test_a_start_that_takes_too_long_has_failed_and_says_what_it_waited_for(
    here: House,
) -> None:
    here.limited(start_deadline=1.0)
    async with here.operated():
        await here.start("one")
        seen = await here.until("one", "Failed")
        assert seen.status.stoppedReason == "start-deadline"
        assert seen.status.conditions["Ready"].reason == "StartDeadline"
        assert "waits for a node" in seen.status.conditions["Ready"].message
        assert seen.status.firstStartedAt is None

        async def is_told() -> bool:
            return "StartDeadline" in await here.events("one")

        await eventually(is_told)


async def test_a_missing_secret_is_said_and_the_session_starts_when_it_is_there(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.operators.sessions.tending.AGAIN", 0.2)
    await here.client.delete(Secret, RUNNER_SECRETS, namespace=here.namespace)
    async with here.operated():
        await here.start("one")
        seen = await here.until(
            "one", lambda each: "SecretsReady" in each.status.conditions
        )
        stated = seen.status.conditions["SecretsReady"]
        assert (stated.status, stated.reason) == ("False", "RunnerSecretMissing")
        assert await here.pod("one") is None
        metadata = Metadata(name=RUNNER_SECRETS, namespace=here.namespace)
        await here.client.create(Secret(metadata=metadata, data={"KEY": b"none"}))
        seen = await here.until("one", "Creating")
        assert seen.status.conditions.is_true("SecretsReady")


async def test_a_name_that_is_too_long_is_refused_before_anything_is_made(
    here: House,
) -> None:
    name = "one-" + "x" * 60
    async with here.operated():
        await here.start(name)
        seen = await here.until(name, "Failed")
        assert seen.status.conditions["Ready"].reason == "Refused"
        assert "has 64 characters" in seen.status.conditions["Ready"].message
        assert await left(here) == []


async def test_fault_c_sessions_that_are_over_are_neither_queued_nor_read_nor_written(
    here: House,
) -> None:
    versions: dict[str, str] = {}
    for phase in sorted(TERMINAL):
        made = await here.start(f"over-{phase.lower()}")
        answer = await here.client.patch(
            AgenticSession,
            made.metadata.name,
            {"status": {"phase": phase, **BEFORE}},
            namespace=here.namespace,
            subresource="status",
        )
        versions[made.metadata.name] = answer.metadata.resourceVersion
    async with here.operated() as run:
        await here.start("one")
        await here.until("one", "Creating")
        for name, version in versions.items():
            assert (await here.get(name)).metadata.resourceVersion == version
            for each in run.manager.controllers:
                assert each.history.of((here.namespace, name)) is None
        store = run.manager.controllers[0].informers[AgenticSession].store
        assert store.form((here.namespace, "over-failed")) == "key"
        assert store.form((here.namespace, "one")) == "slice"
        await here.command("over-failed", "Running")
        seen = await here.until("over-failed", "Creating")
        assert seen.metadata.annotations == {}
        # Somebody else wrote these, and yet they are of the life before.
        assert seen.status.completionTime is None
        assert seen.status.stoppedReason is None


async def test_a_namespace_that_is_no_project_is_left_alone_until_it_is_one(
    here: House,
) -> None:
    await label(here, None)
    async with here.operated() as run:
        await here.start("one")

        def is_seen() -> Any:
            return run.manager.controllers[0].history.of((here.namespace, "one"))

        await eventually(is_seen)
        assert await left(here) == []
        await label(here, "true")
        await here.until("one", "Creating")


async def label(here: House, value: str | None) -> None:
    body = {"metadata": {"labels": {MANAGED: value}}}
    await here.client.patch(Namespace, here.namespace, body)
