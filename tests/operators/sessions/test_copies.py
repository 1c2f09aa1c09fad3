"""Copied secrets: what they hold, whose they are, and how long they live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

import trimtab
from tests.operators.sessions.samples import client_in, session
from trimtab.api import Metadata, OwnerReference
from trimtab.cache import Scope
from trimtab.client import Client, NotFound
from trimtab.kinds import ConfigMap, Namespace, Secret
from trimtab.operators.sessions import copies, facts
from trimtab.operators.sessions.copies import HASH, content_hash
from trimtab.operators.sessions.environment import Facts
from trimtab.operators.sessions.kinds import (
    COPIED_FROM,
    AgenticSession,
    ProjectSettings,
    ProjectSettingsSpec,
)
from trimtab.operators.sessions.profiles import Profile, Registry, Sandbox
from trimtab.operators.sessions.settings import Settings, Vertex
from trimtab.operators.sessions.variables import Reads
from trimtab.testing import Cluster, eventually, running

NAME = "ambient-admin-langfuse-secret"


class Town:
    """An operator's namespace with a secret, and a project beside it."""

    def __init__(self, client: Client, project: str) -> None:
        self.client = client
        self.project = project
        self.settings = Settings(namespace=f"{project}-ops", langfuse=True)
        self.owner: ProjectSettings | None = None

    async def begin(self) -> None:
        place = self.settings.namespace
        await self.client.create(Namespace(metadata=Metadata(name=place)))
        metadata = Metadata(name=NAME, namespace=place)
        await self.client.create(Secret(metadata=metadata, data={"key": b"one"}))
        self.owner = await self.client.create(
            ProjectSettings(
                metadata=Metadata(name="projectsettings", namespace=self.project),
                spec=ProjectSettingsSpec(groupAccess=[]),
            )
        )

    async def end(self) -> None:
        await self.client.delete(Namespace, self.settings.namespace)

    async def ensure(self) -> frozenset[str]:
        return await copies.ensure(
            self.client, self.project, project=self.owner, settings=self.settings
        )

    async def copy(self) -> Secret:
        return await self.client.get(Secret, NAME, namespace=self.project)

    async def rotate(self, value: bytes) -> None:
        body = {"stringData": {"key": value.decode()}}
        await self.client.patch(Secret, NAME, body, namespace=self.settings.namespace)

    async def session(self, name: str, phase: str) -> None:
        found = await self.client.create(
            AgenticSession(metadata=Metadata(name=name, namespace=self.project))
        )
        await self.become(found.metadata.name, phase)

    async def become(self, name: str, phase: str) -> None:
        await self.client.patch(
            AgenticSession,
            name,
            {"status": {"phase": phase}},
            namespace=self.project,
            subresource="status",
        )

    @asynccontextmanager
    async def operated(self, cluster: Cluster) -> AsyncIterator[None]:
        app = trimtab.Operator("copying")
        copies.register(app, self.settings, sessions=Scope(everything=True))
        async with running(app, cluster, self.project):
            yield


@pytest.fixture
async def town(cluster: Cluster, namespace: str) -> AsyncIterator[Town]:
    async with client_in(cluster, namespace) as client:
        made = Town(client, namespace)
        await made.begin()
        yield made
        await made.end()


async def test_a_copy_says_what_it_is_of_and_belongs_to_the_settings(
    town: Town,
) -> None:
    assert await town.ensure() == {NAME}
    copy = await town.copy()
    assert copy.data == {"key": b"one"}
    assert copy.metadata.annotations == {
        COPIED_FROM: f"{town.settings.namespace}/{NAME}",
        HASH: content_hash({"key": b"one"}),
    }
    (owner,) = copy.metadata.ownerReferences
    assert owner.kind == "ProjectSettings"
    revision = copy.metadata.resourceVersion
    await town.ensure()
    assert (await town.copy()).metadata.resourceVersion == revision


async def test_a_start_brings_a_copy_up_to_date_whoever_changed_it(town: Town) -> None:
    await town.ensure()
    body = {"stringData": {"key": "bent", "more": "x"}}
    await town.client.patch(Secret, NAME, body, namespace=town.project)
    await town.ensure()
    assert (await town.copy()).data == {"key": b"one"}


async def test_owners_do_not_grow_with_sessions_and_old_ones_are_dropped(
    town: Town,
) -> None:
    many = [
        OwnerReference(
            apiVersion="vteam.ambient-code/v1alpha1",
            kind="AgenticSession",
            name=f"s{number}",
            uid=f"uid-{number}",
        )
        for number in range(50)
    ]
    annotations = {COPIED_FROM: f"{town.settings.namespace}/{NAME}"}
    await town.client.create(
        Secret(
            metadata=Metadata(
                name=NAME,
                namespace=town.project,
                annotations=annotations,
                ownerReferences=many,
            ),
            data={"key": b"old"},
        )
    )
    await town.ensure()
    copy = await town.copy()
    assert [each.kind for each in copy.metadata.ownerReferences] == ["ProjectSettings"]
    assert copy.data == {"key": b"one"}


async def test_a_secret_that_nobody_copied_is_used_and_never_touched(
    town: Town, cluster: Cluster
) -> None:
    metadata = Metadata(name=NAME, namespace=town.project)
    await town.client.create(Secret(metadata=metadata, data={"key": b"own"}))
    assert await town.ensure() == {NAME}
    assert (await town.copy()).data == {"key": b"own"}


async def test_without_a_source_there_is_no_copy_and_no_error(town: Town) -> None:
    await town.client.delete(Secret, NAME, namespace=town.settings.namespace)
    assert await town.ensure() == frozenset()


async def test_a_rotated_secret_reaches_every_project_that_uses_it(
    town: Town, cluster: Cluster
) -> None:
    await town.session("a", "Running")
    await town.ensure()
    async with town.operated(cluster):
        await town.rotate(b"two")
        await eventually(lambda: _has(town, b"two"), describe="the new value is there")
        await town.rotate(b"three")
        await eventually(lambda: _has(town, b"three"), describe="and the next one")


async def _has(town: Town, value: bytes) -> bool:
    return (await town.copy()).data == {"key": value}


async def test_a_copy_goes_with_the_last_session_that_is_active_and_not_before(
    town: Town, cluster: Cluster
) -> None:
    await town.session("a", "Running")
    await town.session("b", "Creating")
    await town.ensure()
    async with town.operated(cluster):
        await town.become("a", "Stopped")
        await town.rotate(b"two")  # a sign that the change before it was seen
        await eventually(lambda: _has(town, b"two"))
        await town.become("b", "Failed")
        await eventually(lambda: _gone(town), describe="the copy is gone")


async def test_a_copy_whose_source_is_gone_stays_for_who_needs_it_and_then_goes_too(
    town: Town, cluster: Cluster
) -> None:
    await town.session("a", "Running")
    await town.session("b", "Running")
    await town.ensure()
    async with town.operated(cluster):
        await town.client.delete(Secret, NAME, namespace=town.settings.namespace)
        await town.become("a", "Stopped")
        assert await _has(town, b"one")
        await town.become("b", "Completed")
        await eventually(lambda: _gone(town), describe="the copy is gone")


async def test_a_copy_of_what_is_no_longer_copied_goes_with_the_last_session(
    town: Town, cluster: Cluster
) -> None:
    await town.session("a", "Running")
    await town.ensure()
    town.settings = replace(town.settings, langfuse=False, mlflow=True)
    async with town.operated(cluster):
        await town.become("a", "Stopped")
        await eventually(lambda: _gone(town), describe="the copy is gone")


async def test_a_session_that_is_wanted_again_keeps_the_copy(
    town: Town, cluster: Cluster
) -> None:
    await town.session("a", "Stopped")
    wanted = {"metadata": {"annotations": {"ambient-code.io/desired-phase": "Running"}}}
    await town.client.patch(AgenticSession, "a", wanted, namespace=town.project)
    await town.ensure()
    async with town.operated(cluster):
        await town.rotate(b"two")
        await eventually(lambda: _has(town, b"two"))


async def _gone(town: Town) -> bool:
    try:
        await town.copy()
    except NotFound:
        return True
    return False


def test_a_hash_depends_on_names_and_values_and_not_on_their_order() -> None:
    one = content_hash({"a": b"1", "b": b"2"})
    assert one == content_hash({"b": b"2", "a": b"1"})
    assert one != content_hash({"a": b"12", "b": b""})
    assert one != content_hash({"a": b"1", "b": b"3"})


# Facts: what a pod depends on, beside the copies.


async def gathered(town: Town, settings: Settings, **options: Any) -> Facts:
    seen = AgenticSession(metadata=Metadata(name="a", namespace=town.project))
    return await facts.gather(
        Reads(town.client, town.project),
        seen,
        settings=settings,
        registry=Registry(settings),
        copied=options.get("copied", frozenset()),
    )


async def test_a_project_without_runner_secrets_is_told_which_one_is_missing(
    town: Town,
) -> None:
    with pytest.raises(facts.Missing, match="ambient-runner-secrets") as missing:
        await gathered(town, town.settings)
    assert missing.value.reason == "RunnerSecretMissing"
    vertex = Vertex(region="r", project="p", credentials="c")
    with pytest.raises(facts.Missing) as missing:
        await gathered(town, Settings(vertex=vertex))
    assert missing.value.reason == "VertexSecretMissing"


async def test_facts_are_what_is_there(town: Town) -> None:
    settings = Settings(s3_endpoint="http://store", s3_bucket="b")
    place = town.project
    for name in ("ambient-runner-secrets", "ambient-non-vertex-integrations"):
        made = Secret(metadata=Metadata(name=name, namespace=place))
        await town.client.create(made)
    bundle = Metadata(name="trusted-ca-bundle", namespace=place)
    await town.client.create(ConfigMap(metadata=bundle, data={"ca-bundle.crt": "PEM"}))
    found = await gathered(town, settings, copied=frozenset({"minio-credentials"}))
    assert found.trusted_bundle
    assert found.storage == "shared"
    assert not found.resume
    assert "ambient-non-vertex-integrations" in found.secrets
    custom = {"stringData": {"STORAGE_MODE": "custom", "S3_ENDPOINT": "e"}}
    await town.client.patch(
        Secret, "ambient-non-vertex-integrations", custom, namespace=place
    )
    assert (await gathered(town, settings)).storage == ""  # it does not say all


def test_a_start_is_a_resume_only_after_a_runner_was_at_work() -> None:
    tried = {"startTime": "2026-01-01T00:00:00Z"}
    assert not facts.was_started(session(status=tried))
    begun = {"firstStartedAt": "2026-01-01T00:00:00Z"}
    assert facts.was_started(session(status=begun))


def test_sessions_of_before_that_ran_are_resumed_too() -> None:
    old = {"type": "RunnerStarted", "status": "False", "reason": "UserStopped"}
    assert facts.was_started(session(status={"conditions": [old]}))
    ours = {**old, "observedGeneration": 1}
    assert not facts.was_started(session(status={"conditions": [ours]}))


def test_people_are_told_whether_what_a_runner_has_outlives_it() -> None:
    shared = Settings(s3_endpoint="http://store", s3_bucket="b")

    def told(storage: Any, profile: Profile) -> list[tuple[str, Any, str]]:
        said = facts.conditions(Facts(storage=storage), profile, shared)
        return [(each.type, each.status, each.reason) for each in said]

    kept, fleeting = Profile(), Profile(sandbox=Sandbox(persistence="none"))
    assert told("shared", kept) == [("S3Available", True, "Configured")]
    assert told("", kept) == [("S3Available", False, "NotConfigured")]
    assert told("", fleeting) == []
