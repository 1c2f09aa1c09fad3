"""Laws of migrations: all objects are rewritten once, and a stopped run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.authoring.shelves import (
    Plain,
    defined,
    deployed,
    info_of,
    put,
    wanted,
)
from tests.authoring.test_crds import stored_as_beta, with_an_older_version
from tests.cli.commands import printed, refused
from tests.client.clusters import client_of
from trimtab.authoring import migrating
from trimtab.authoring.crds import DEFINITIONS
from trimtab.authoring.migrating import PROGRESS, NotMigrated, find, migrate
from trimtab.client import Client
from trimtab.testing import Cluster


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as client:
        yield client


def ignored(text: str) -> None:
    """Nobody looks at the progress."""


async def moved(client: Client, names: list[str]) -> Plain:
    """A kind whose objects are stored as v1beta1, while it stores v1 now."""
    new = deployed(wanted(), with_an_older_version)
    old = deployed(wanted(), stored_as_beta)
    old["spec"]["group"] = new["spec"]["group"]
    old["metadata"]["name"] = new["metadata"]["name"]
    await defined(client, old)
    for name in names:
        await put(client, old, name)
    await client.apply(new, manager="test", force=True)
    return await client.get(DEFINITIONS, new["metadata"]["name"])


async def revisions(client: Client, definition: Plain) -> dict[str, str]:
    place = client.config.namespace
    found = client.list(info_of(definition), namespace=place)
    return {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"]
        async for each in found
    }


async def test_all_objects_are_rewritten_and_the_old_version_can_go(
    client: Client, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = await moved(client, ["a", "b"])
    assert definition["status"]["storedVersions"] == ["v1beta1", "v1"]
    name = definition["metadata"]["name"]
    before = await revisions(client, definition)
    flag = f"--kubeconfig={cluster.kubeconfig}"
    said = await asyncio.to_thread(printed, capsys, "migrate", name, flag)
    assert said == (
        "2 objects were rewritten: storedVersions is v1 now, and was v1beta1, v1.\n"
    )
    after = await revisions(client, definition)
    if cluster.kind == "real":  # the embedded server has one form for all versions
        assert all(after[each] != before[each] for each in before)
    found = await client.get(DEFINITIONS, name)
    assert found["status"]["storedVersions"] == ["v1"]
    assert PROGRESS not in (found["metadata"].get("annotations") or {})
    said = await asyncio.to_thread(printed, capsys, "migrate", name, flag)
    assert said == "All objects are stored as v1 already.\n"
    found["spec"]["versions"] = [
        each for each in found["spec"]["versions"] if each["name"] == "v1"
    ]
    await client.replace(found)


async def test_a_run_that_was_interrupted_goes_on_where_it_was(
    client: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "PAGE", 1)
    definition = await moved(client, ["a", "b", "c"])

    def interrupts(text: str) -> None:
        if text.startswith("2 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await migrate(client, definition, tell=interrupts)
    name = definition["metadata"]["name"]
    before = await revisions(client, definition)
    done = await migrate(client, await find(client, name), tell=ignored)
    after = await revisions(client, definition)
    if cluster.kind == "real":
        assert (done.skipped, done.rewritten) == (2, 1)
        assert [each for each in after if after[each] != before[each]] == ["c"]


async def test_an_object_that_is_refused_is_named_and_the_list_stays(
    client: Client, namespace: str
) -> None:
    definition = await moved(client, ["a", "b"])
    name = definition["metadata"]["name"]
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        rule = {"rule": "self.maker != oldSelf.maker", "message": "no maker twice"}
        spec["x-kubernetes-validations"] = [rule]
    await client.replace(definition)
    found = await find(client, name)
    with pytest.raises(NotMigrated, match=r"2 objects .* no maker twice") as caught:
        await migrate(client, found, tell=ignored)
    assert f"({namespace}/a, {namespace}/b)" in str(caught.value)
    after = await client.get(DEFINITIONS, name)
    assert after["status"]["storedVersions"] == ["v1beta1", "v1"]


def test_a_kind_that_is_not_there_is_one_sentence(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "migrate", "Nothing", f"--kubeconfig={cluster.kubeconfig}")
    assert "The server has no CRD of a kind Nothing" in said
