"""Writing to a real API server: every verb, and what it refuses."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.client.clusters import client_of, defines, is_ours
from tests.client.kinds import (
    CONFIG_MAPS,
    ConfigMap,
    Website,
    WebsiteStatus,
    config_map,
    website,
)
from trimtab.api import status_of
from trimtab.api.resource import Metadata
from trimtab.client import Client
from trimtab.client.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    ServerError,
    UnsupportedMediaType,
)
from trimtab.client.options import Validation
from trimtab.testing import Cluster

NOBODY = "00000000-0000-0000-0000-000000000000"
UNKNOWN: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one"},
    "nonsense": {"a": 1},
}


class Wrong(ConfigMap):
    """A ConfigMap with a field that the server does not know."""

    nonsense: str = ""


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


async def owners(client: Client, name: str = "one") -> dict[str, set[str]]:
    """Which manager owns which keys of a ConfigMap's data."""
    found = await client.get(CONFIG_MAPS, name)
    return {
        entry["manager"]: {
            key.removeprefix("f:")
            for key in entry["fieldsV1"].get("f:data", {})
            if key != "."
        }
        for entry in found["metadata"]["managedFields"]
    }


# Create


async def test_an_object_is_created_once(client: Client) -> None:
    made = await client.create(config_map(a="1"), manager="tests")
    assert made.metadata.uid
    assert made.data == {"a": "1"}
    with pytest.raises(AlreadyExists) as caught:
        await client.create(config_map())
    assert (caught.value.status, caught.value.details.name) == (409, "one")
    plain: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    with pytest.raises(AlreadyExists):
        await client.create({**plain, "metadata": {"name": "one"}})
    assert await owners(client) == {"tests": {"a"}}


async def test_a_name_can_be_left_to_the_server(client: Client) -> None:
    wish = ConfigMap(metadata=Metadata(generateName="some-"))
    names = {(await client.create(wish)).metadata.name for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("some-") for name in names)


async def test_an_invalid_object_says_where(client: Client) -> None:
    bad = ConfigMap(metadata=Metadata(name="Not_A_Name"), data={"?": "x"})
    with pytest.raises(Invalid) as caught:
        await client.create(bad)
    fields = {cause.field for cause in caught.value.causes}
    assert {"metadata.name", "data[?]"} <= fields


async def test_a_dry_run_keeps_nothing(client: Client) -> None:
    made = await client.create(config_map(), dry_run=True)
    assert made.metadata.uid
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "one")
    await client.create(config_map(a="1"))
    for write in (
        client.apply(config_map(a="2"), manager="x", force=True, dry_run=True),
        client.patch(ConfigMap, "one", {"data": {"a": "2"}}, dry_run=True),
    ):
        assert (await write).data == {"a": "2"}
    await client.delete(ConfigMap, "one", dry_run=True)
    await client.delete_collection(ConfigMap, dry_run=True)
    assert (await client.get(ConfigMap, "one")).data == {"a": "1"}


@pytest.mark.parametrize("obj", [Wrong(nonsense="x"), UNKNOWN], ids=["typed", "plain"])
async def test_an_unknown_field_is_an_error_a_warning_or_nothing(
    client: Client, obj: Any, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(obj, Wrong):
        obj = Wrong(metadata=Metadata(name="one"), nonsense=obj.nonsense)
    with pytest.raises(BadRequest, match="unknown field"):
        await client.create(obj)
    said: dict[Validation, str] = {}
    choices: tuple[Validation, ...] = ("Warn", "Ignore")
    for choice in choices:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "trimtab.client"):
            await client.create(obj, validation=choice, dry_run=True)
        said[choice] = caplog.text
    assert 'unknown field "nonsense"' in said["Warn"]
    assert said["Ignore"] == ""


# Replace


async def test_a_replace_takes_away_what_it_does_not_mention(client: Client) -> None:
    plain = await client.create({**UNKNOWN, "data": {"a": "1"}}, validation="Ignore")
    plain["data"] = {"b": "2"}
    replaced = await client.replace(plain)
    assert (await client.get(ConfigMap, "one")).data == {"b": "2"}
    with pytest.raises(Conflict) as caught:
        await client.replace(plain)  # it has the revision of before
    assert type(caught.value) is Conflict
    replaced["data"] = {"c": "3"}
    await client.replace(replaced)
    assert (await client.get(ConfigMap, "one")).data == {"c": "3"}


async def test_a_whole_kind_can_be_replaced_by_class(client: Client) -> None:
    await defines(client)
    made = await client.create(website(replicas=1))
    now = await client.patch(Website, "one", {"spec": {"replicas": 2}})
    with pytest.raises(Conflict):
        await client.replace(made)
    with pytest.raises(Invalid, match="resourceVersion"):
        await client.replace(website(replicas=3))
    wish = website(replicas=3)
    got = await client.replace(
        Website(metadata=now.metadata, spec=wish.spec, status=wish.status)
    )
    assert got.spec.replicas == 3


async def test_a_slice_is_never_replaced(client: Client) -> None:
    made = await client.create(config_map())
    with pytest.raises(TypeError, match="slice"):
        await client.replace(made)


# Patch


async def test_a_patch_is_merged_listed_or_strategic(client: Client) -> None:
    await client.create(config_map(a="1", b="2"))
    merged = await client.patch(ConfigMap, "one", {"data": {"a": None, "c": "3"}})
    assert merged.data == {"b": "2", "c": "3"}
    steps = [
        {"op": "test", "path": "/data/b", "value": "2"},
        {"op": "replace", "path": "/data/b", "value": "4"},
    ]
    listed = await client.patch(CONFIG_MAPS, "one", steps, how="json")
    assert listed["data"] == {"b": "4", "c": "3"}
    with pytest.raises(Invalid):
        await client.patch(ConfigMap, "one", steps, how="json")
    body = {"metadata": {"finalizers": ["tests.trimtab.dev/x"]}}
    await client.patch(ConfigMap, "one", body)
    more = {"metadata": {"finalizers": ["tests.trimtab.dev/y"]}}
    both = await client.patch(ConfigMap, "one", more, how="strategic")
    assert len(both.metadata.finalizers) == 2  # a merge patch would have replaced it
    await client.patch(ConfigMap, "one", {"metadata": {"finalizers": None}})


async def test_a_custom_kind_has_no_strategic_patch(client: Client) -> None:
    await defines(client)
    await client.create(website())
    with pytest.raises(UnsupportedMediaType):
        await client.patch(Website, "one", {"spec": {}}, how="strategic")


async def test_a_patch_can_be_a_compare_and_swap(client: Client) -> None:
    made = await client.create(config_map())
    revision = {"resourceVersion": made.metadata.resourceVersion}
    swap = {"metadata": revision, "data": {"a": "1"}}
    assert (await client.patch(ConfigMap, "one", swap)).data == {"a": "1"}
    with pytest.raises(Conflict):
        await client.patch(ConfigMap, "one", {**swap, "data": {"a": "2"}})


# Apply


async def test_an_apply_owns_what_it_mentions_and_gives_up_what_it_leaves_out(
    client: Client,
) -> None:
    await client.apply(config_map(a="1", b="2"), manager="ann")
    await client.apply(config_map(c="3"), manager="bob")
    assert await owners(client) == {"ann": {"a", "b"}, "bob": {"c"}}
    got = await client.apply(config_map(a="1"), manager="ann")
    assert got.data == {"a": "1", "c": "3"}
    assert await owners(client) == {"ann": {"a"}, "bob": {"c"}}


async def test_an_apply_conflicts_with_another_owner_unless_forced(
    client: Client,
) -> None:
    await client.apply(config_map(a="1"), manager="ann")
    await client.apply(config_map(a="1"), manager="bob")  # they agree: both own it
    with pytest.raises(Conflict) as caught:
        await client.apply(config_map(a="2"), manager="bob")
    assert [cause.field for cause in caught.value.causes] == [".data.a"]
    assert '"ann"' in str(caught.value)
    got = await client.apply(config_map(a="2"), manager="bob", force=True)
    assert got.data == {"a": "2"}
    assert (await owners(client))["bob"] == {"a"}


async def test_an_apply_can_be_a_compare_and_swap(client: Client) -> None:
    made = await client.apply(config_map(a="1"), manager="ann")

    def at(version: str, value: str) -> ConfigMap:
        metadata = Metadata(name="one", resourceVersion=version)
        return ConfigMap(metadata=metadata, data={"a": value})

    then = made.metadata.resourceVersion
    assert (await client.apply(at(then, "2"), manager="ann")).data == {"a": "2"}
    with pytest.raises(Conflict):
        await client.apply(at(then, "3"), manager="ann", force=True)


async def test_an_apply_brings_back_what_was_deleted_unless_it_names_the_uid(
    client: Client,
) -> None:
    made = await client.apply(config_map(a="1"), manager="ann")
    then, uid = made.metadata.resourceVersion, made.metadata.uid
    await client.delete(ConfigMap, "one")
    named = Metadata(name="one", resourceVersion=then, uid=uid)
    with pytest.raises(Conflict):
        await client.apply(ConfigMap(metadata=named), manager="ann")
    # A revision alone does not help: there is nothing that it could differ from.
    bare = Metadata(name="one", resourceVersion=then)
    again = await client.apply(ConfigMap(metadata=bare), manager="ann")
    assert again.metadata.uid != uid


async def test_a_plain_object_is_applied_like_a_typed_one(client: Client) -> None:
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    got = await client.apply({**plain, "data": {"a": "1"}}, manager="ann")
    assert got["data"] == {"a": "1"}
    with pytest.raises(ValueError, match="manager"):
        await client.apply(config_map(), manager="")
    with pytest.raises(ServerError, match="not declared in schema"):
        await client.apply(
            Wrong(metadata=Metadata(name="b"), nonsense="x"), manager="a"
        )


async def test_each_owner_applies_its_own_part_of_a_status(client: Client) -> None:
    await defines(client)
    made = await client.create(website())
    mine = status_of(Website, "controller")(ready=3)
    got = await client.apply_status(Website, "one", mine, manager="controller")
    assert got.status == WebsiteStatus(ready=3)
    theirs = status_of(Website, "reviewer")(note="good")
    got = await client.apply_status(Website, "one", theirs, manager="reviewer")
    assert got.status == WebsiteStatus(ready=3, note="good")
    assert got.metadata.generation == made.metadata.generation
    with pytest.raises(Conflict):
        await client.apply_status(Website, "one", {"note": "bad"}, manager="controller")
    then = made.metadata.resourceVersion
    with pytest.raises(Conflict):
        await client.apply_status(
            Website, "one", mine, manager="controller", resource_version=then
        )
    now = got.metadata.resourceVersion
    zero = status_of(Website, "controller")(ready=0)
    got = await client.apply_status(
        Website, "one", zero, manager="controller", resource_version=now
    )
    assert got.status == WebsiteStatus(ready=0, note="good")


async def test_a_status_in_a_write_of_the_whole_is_not_sent(client: Client) -> None:
    await defines(client)
    await client.apply(website(), manager="ann")
    mine = status_of(Website, "controller")(ready=3)
    await client.apply_status(Website, "one", mine, manager="controller")
    got = await client.apply(website(replicas=4), manager="ann")
    assert (got.spec.replicas, got.status.ready) == (4, 3)


# Delete


async def test_a_delete_happens_only_if_its_preconditions_hold(client: Client) -> None:
    made = await client.create(config_map())
    changed = await client.patch(ConfigMap, "one", {"data": {"a": "1"}})
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "one", uid=NOBODY)
    old, new = made.metadata.resourceVersion, changed.metadata.resourceVersion
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "one", resource_version=old)
    answer = await client.delete(
        ConfigMap, "one", uid=made.metadata.uid, resource_version=new
    )
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    with pytest.raises(NotFound):
        await client.delete(CONFIG_MAPS, "one")


@pytest.mark.cluster("real")  # nobody there takes the finalizers away at once
async def test_finalizers_and_propagation_keep_an_object_until_they_are_done(
    client: Client,
) -> None:
    await client.create(config_map("foreground"))
    await client.create(config_map("orphan"))
    await client.create(config_map("background"))
    left = await client.delete(ConfigMap, "foreground", propagation="Foreground")
    assert left["metadata"]["finalizers"] == ["foregroundDeletion"]
    left = await client.delete(ConfigMap, "orphan", propagation="Orphan")
    assert left["metadata"]["finalizers"] == ["orphan"]
    await client.delete(ConfigMap, "background", propagation="Background")
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "background")
    waiting = await client.get(ConfigMap, "orphan")
    assert waiting.metadata.deletionTimestamp is not None
    for name in ("foreground", "orphan"):
        await client.patch(ConfigMap, name, {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await client.get(ConfigMap, name)


async def test_a_pod_on_a_node_has_its_grace(client: Client) -> None:
    containers = [{"name": "main", "image": "nowhere.example/none"}]
    spec = {"nodeName": "nowhere", "containers": containers}
    plain = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    await client.create({**plain, "metadata": {"name": "web"}})
    pods = await client.discover("v1", "Pod")
    left = await client.delete(pods, "web", grace=25)
    assert left["metadata"]["deletionGracePeriodSeconds"] == 25
    await client.delete(pods, "web", grace=0)
    with pytest.raises(NotFound):
        await client.get(pods, "web")


async def test_a_collection_is_deleted_by_its_selectors(
    client: Client, namespace: str
) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "1"}), ("c", {"x": "2"})):
        await client.create(ConfigMap(metadata=Metadata(name=name, labels=labels)))

    async def names() -> list[str]:
        listing = client.list(ConfigMap, namespace=namespace)
        return [each.metadata.name async for each in listing if is_ours(each)]

    await client.delete_collection(
        ConfigMap, labels={"x": "1"}, fields={"metadata.name": "b"}
    )
    assert await names() == ["a", "c"]
    await client.delete_collection(CONFIG_MAPS, labels="x=1")
    assert await names() == ["c"]
    await client.delete_collection(ConfigMap)
    assert await names() == []
