"""Objects of before: every one is taken as it is, and means what it meant.

The manifests here are of our own wording; which fields there are, what they default to
and what is required is what the platform's own definitions say.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.definitions import structure
from tests.operators.sessions.samples import client_in
from trimtab.api import Info
from trimtab.api.codec import convert
from trimtab.api.crd import crd
from trimtab.client import Client, Invalid, TrimtabError
from trimtab.operators.sessions.kinds import (
    GROUP,
    VERSION,
    AgenticSession,
    ProjectSettings,
)
from trimtab.testing import Cluster, eventually

Plain = dict[str, Any]

SPEC: Plain = {
    "repos": [
        {"url": "https://example.com/one.git"},
        {"url": "git@example.com:two.git", "branch": "dev", "autoPush": True},
    ],
    "initialPrompt": "Read the newest report.",
    "displayName": "A report",
    "userContext": {"userId": "u1", "displayName": "Ada", "groups": ["writers"]},
    "llmSettings": {"model": "small", "temperature": 0, "maxTokens": 7},
    "timeout": 0,
    "inactivityTimeout": 0,
    "stopOnRunFinished": True,
    "environmentVariables": {"RUNNER_TYPE": "gemini-cli", "EMPTY": ""},
    "mcpServers": {
        "custom": {"web": {"command": "serve", "args": ["-v"], "deep": {"a": [1]}}},
        "disabled": ["mail"],
    },
    "activeWorkflow": {"gitUrl": "https://example.com/w.git", "path": "flows/x"},
}
STATUS: Plain = {
    "phase": "Running",
    "observedGeneration": 1,
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T01:00:00Z",
    "lastActivityTime": "2026-01-01T00:30:00Z",
    "stoppedReason": "inactivity",
    "reconciledRepos": [
        {
            "url": "https://example.com/one.git",
            "branch": "main",
            "branches": ["main", "dev"],
            "currentActiveBranch": "dev",
            "defaultBranch": "main",
            "name": "one",
            "status": "Ready",
            "clonedAt": "2026-01-01T00:01:00Z",
        },
        {"name": "no-address"},
    ],
    "reconciledWorkflow": {
        "gitUrl": "https://example.com/w.git",
        "branch": "main",
        "path": "flows/x",
        "status": "Active",
        "appliedAt": "2026-01-01T00:02:00Z",
    },
    "sdkSessionId": "sdk-1",
    "sdkRestartCount": 2,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Running",
            "message": "It runs.",
            "lastTransitionTime": "2026-01-01T00:03:00Z",
        }
    ],
}
SETTINGS: Plain = {
    "groupAccess": [
        {"groupName": "writers", "role": "edit"},
        {"groupName": "https://sso.example.com/readers", "role": "view"},
    ],
    "runnerSecretsName": "mine",
    "repositories": [{"url": "https://example.com/one.git", "provider": "gitlab"}],
    "inactivityTimeoutSeconds": 0,
    "mcpServers": {"custom": {}, "disabled": ["mail"]},
    "installedItems": [{"sourceUrl": "u", "itemId": "i", "itemType": "skill"}],
}


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as made:
        yield made


def manifest(kind: str, name: str, **parts: Any) -> Plain:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name},
        **parts,
    }


async def test_every_field_of_a_session_is_taken_and_comes_back_as_it_was(
    client: Client,
) -> None:
    made = await client.create(manifest("AgenticSession", "full", spec=SPEC))
    wanted = copy.deepcopy(SPEC)
    wanted["repos"][0] |= {"branch": "main", "autoPush": False}
    wanted["activeWorkflow"]["branch"] = "main"
    assert made["spec"] == wanted
    read = convert(AgenticSession, made).spec
    assert (read.timeout, read.inactivityTimeout) == (0, 0)
    assert read.mcpServers is not None
    assert read.mcpServers.custom == SPEC["mcpServers"]["custom"]


async def test_every_status_field_that_was_ever_written_is_still_taken(
    client: Client,
) -> None:
    made = await client.create(manifest("AgenticSession", "full", spec={}))
    answer = await client.replace({**made, "status": STATUS}, subresource="status")
    assert {key: answer["status"][key] for key in STATUS} == STATUS


async def test_a_session_need_say_nothing_and_has_the_defaults_of_before(
    client: Client,
) -> None:
    await client.create(manifest("AgenticSession", "bare", spec={}))
    made = await client.create(manifest("AgenticSession", "barer"))
    read = convert(AgenticSession, made)
    assert (read.spec.timeout, read.spec.inactivityTimeout) == (300, None)
    assert read.spec.llmSettings.model == "claude-sonnet-4-6"
    assert (read.spec.llmSettings.temperature, read.spec.llmSettings.maxTokens) == (
        0.7,
        4000,
    )
    assert read.status.phase == "Pending"


async def test_what_was_refused_of_a_session_is_still_refused(client: Client) -> None:
    wrong: list[Plain] = [
        {"repos": [{"branch": "main"}]},
        {"inactivityTimeout": -1},
        {"timeout": "soon"},
        {"environmentVariables": {"A": 1}},
    ]
    for spec in wrong:
        with pytest.raises(Invalid):
            await client.create(manifest("AgenticSession", "wrong", spec=spec))


async def test_a_field_that_was_pruned_is_still_pruned_and_no_error(
    client: Client,
) -> None:
    body = manifest("AgenticSession", "more", spec={"project": "team"})
    made = await client.create(body, validation="Warn")
    assert "project" not in made["spec"]


async def test_every_field_of_settings_is_taken_and_comes_back_as_it_was(
    client: Client,
) -> None:
    body = manifest("ProjectSettings", "projectsettings", spec=SETTINGS)
    made = await client.create(body)
    assert {key: made["spec"][key] for key in SETTINGS} == SETTINGS
    status = {
        "groupBindingsCreated": 2,
        "scheduledSessionRBACReady": True,
        "limitRangeReady": True,
    }
    answer = await client.replace({**made, "status": status}, subresource="status")
    assert answer["status"].items() >= status.items()


async def test_settings_need_only_the_access_of_groups(client: Client) -> None:
    spec: Plain = {"groupAccess": []}
    body = manifest("ProjectSettings", "projectsettings", spec=spec)
    made = convert(ProjectSettings, await client.create(body))
    assert made.spec.inactivityTimeoutSeconds == 86400


async def test_what_was_refused_of_settings_is_still_refused(client: Client) -> None:
    wrong: list[tuple[str, Plain]] = [
        ("another", {"groupAccess": []}),
        ("projectsettings", {}),
        ("projectsettings", {"groupAccess": [{"groupName": "a"}]}),
        ("projectsettings", {"groupAccess": [{"groupName": "a", "role": "own"}]}),
        ("projectsettings", {"groupAccess": [], "inactivityTimeoutSeconds": -1}),
    ]
    for name, spec in wrong:
        with pytest.raises(Invalid):
            await client.create(manifest("ProjectSettings", name, spec=spec))


# Duplicates. The definition of before says nothing of lists, so a stored object may
# have anything in its conditions; ours says that they are a map by their type.


def before(group: str) -> Plain:
    """The definition of sessions as it was, in a group of its own."""
    text: Plain = {"type": "string"}
    condition = structure(
        type=text, reason=text, message=text, lastTransitionTime=text, status=text
    )
    status = structure(
        phase=text,
        lastActivityTime=text,
        conditions={
            "type": "array",
            "items": {**condition, "required": ["type", "status"]},
        },
    )
    made = after(group)
    version = made["spec"]["versions"][0]
    version.pop("selectableFields")
    version["schema"]["openAPIV3Schema"] = structure(
        spec=structure(displayName=text), status=status
    )
    return made


def after(group: str) -> Plain:
    """The definition as it is, in a group of its own."""
    made = crd(AgenticSession)
    made["spec"]["group"] = group
    made["metadata"]["name"] = f"agenticsessions.{group}"
    return made


async def stored(client: Client, group: str) -> Info:
    """A session called old with 500 conditions of five types, under the old rules."""
    info = Info(
        group=group, version=VERSION, kind="AgenticSession", plural="agenticsessions"
    )
    await client.apply(before(group), manager="before", force=True)

    async def made() -> Plain | None:
        try:
            return await client.create(
                {**manifest("AgenticSession", "old"), "apiVersion": info.api_version}
            )
        except TrimtabError:
            return None

    found = await eventually(made, within=20, describe="the old kind is served")
    assert found is not None
    conditions = [
        {"type": f"Type{number % 5}", "status": "True", "message": "x" * 1500}
        for number in range(500)
    ]
    body = {**found, "status": {"phase": "Stopped", "conditions": conditions}}
    await client.replace(body, subresource="status")
    return info


async def replaced(client: Client, info: Info) -> None:
    """Put our definition in the place of the old one, and wait until it rules."""
    await client.apply(after(info.group), manager="before", force=True)
    body = {**manifest("AgenticSession", "new"), "apiVersion": info.api_version}

    async def rules() -> bool:
        made = await client.create(body, dry_run=True)
        return "llmSettings" in made.get("spec", {})

    await eventually(rules, within=20, describe="the new definition rules")


async def test_500_duplicate_conditions_stop_no_backend_after_the_crd_is_replaced(
    cluster: Cluster, namespace: str
) -> None:
    async with client_in(cluster, namespace) as client:
        info = await stored(client, f"{namespace}.example.com")
        await replaced(client, info)
        for write in (_put, _put_status, _merge, _merge_status, _applied):
            await write(client, info)
        found = await client.get(info, "old")
        assert len(found["status"]["conditions"]) == 500
        assert found["metadata"]["annotations"] == {
            "put": "1",
            "merged": "1",
            "applied": "1",
        }
        read = convert(AgenticSession, found).status.conditions
        assert (len(read), read.had_duplicates) == (5, True)
        await _collapsed(client, info)


async def _put(client: Client, info: Info) -> None:
    """What the platform's backend does: read, change, write the whole of it."""
    found = await client.get(info, "old")
    found["metadata"].setdefault("annotations", {})["put"] = "1"
    await client.replace(found)


async def _put_status(client: Client, info: Info) -> None:
    found = await client.get(info, "old")
    found["status"]["lastActivityTime"] = "2026-01-01T00:00:00Z"
    await client.replace(found, subresource="status")


async def _merge(client: Client, info: Info) -> None:
    body = {"metadata": {"annotations": {"merged": "1"}}}
    await client.patch(info, "old", body)


async def _merge_status(client: Client, info: Info) -> None:
    body = {"status": {"lastActivityTime": "2026-01-01T00:00:10Z"}}
    await client.patch(info, "old", body, subresource="status")


async def _applied(client: Client, info: Info) -> None:
    body = {
        "apiVersion": info.api_version,
        "kind": info.kind,
        "metadata": {"name": "old", "annotations": {"applied": "1"}},
    }
    await client.apply(body, manager="somebody", force=True)


async def _collapsed(client: Client, info: Info) -> None:
    """What the operator does at first touch, and can only do in this way."""
    one = {
        "type": "Ready",
        "status": "False",
        "reason": "Stopped",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {"status": {"conditions": [one]}}
    answer = await client.patch(info, "old", body, subresource="status")
    assert answer["status"]["conditions"] == [one]
