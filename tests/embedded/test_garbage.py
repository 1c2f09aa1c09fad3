"""Laws of garbage collection: who goes with its owner, who waits, and who stays.

They run on a cluster of their own, because a real one needs its controllers for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.embedded.asking import MERGE, Asker, Plain
from tests.embedded.rooms import Room, furnished
from tests.embedded.rooms import ask as ask
from tests.embedded.rooms import controlled as controlled
from tests.embedded.rooms import room as room
from trimtab.testing import eventually

pytestmark = [pytest.mark.cluster("embedded", "real"), pytest.mark.timeout(120)]
RBAC = "rbac.authorization.k8s.io/v1"
ROLES = f"/apis/{RBAC}/clusterroles"


@pytest.fixture
async def other(ask: Asker) -> AsyncIterator[Room]:
    async with furnished(ask) as made:
        yield made


async def test_in_the_background_a_chain_follows_its_owner(room: Room) -> None:
    a = await room.make("a")
    b = await room.make("b", a)
    await room.make("c", b)
    assert (await room.delete("a", propagationPolicy="Background")).status == 200
    assert (await room.get("a")).status == 404
    await room.is_gone("b", "c")


async def test_an_object_stays_while_one_of_its_owners_does(room: Room) -> None:
    a, b = await room.make("a"), await room.make("b")
    await room.make("both", a, b)
    await room.delete("a")

    async def has_one_owner() -> bool:
        owners = (await room.get("both")).obj["metadata"]["ownerReferences"]
        return [each["name"] for each in owners] == ["b"]

    await eventually(has_one_owner, within=30)
    [entry] = (await room.get("both")).meta["managedFields"]
    owned = entry["fieldsV1"]["f:metadata"]["f:ownerReferences"]
    uid = b["metadata"]["uid"]
    assert (entry["manager"], owned) == ("tests", {".": {}, f'k:{{"uid":"{uid}"}}': {}})
    await room.delete("b")
    await room.is_gone("both")


async def test_in_the_foreground_an_owner_waits_for_what_blocks_it(room: Room) -> None:
    a = await room.make("a")
    await room.make("b", a, block=True, held=True)
    reply = await room.delete("a", propagationPolicy="Foreground")
    assert reply.obj["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def is_dying() -> bool:
        return "deletionTimestamp" in (await room.get("b")).obj["metadata"]

    await eventually(is_dying, within=30)
    assert (await room.get("a")).status == 200
    await room.release("b")
    await room.is_gone("b", "a")


async def test_in_the_foreground_an_owner_waits_for_nobody_else(room: Room) -> None:
    a = await room.make("a")
    await room.make("b", a, held=True)
    await room.delete("a", propagationPolicy="Foreground")
    await room.is_gone("a")
    await room.release("b")
    await room.is_gone("b")


async def test_a_chain_goes_in_the_foreground_from_its_end(room: Room) -> None:
    a = await room.make("a")
    b = await room.make("b", a, block=True)
    await room.make("c", b, block=True, held=True)
    await room.delete("a", propagationPolicy="Foreground")

    async def end_is_dying() -> bool:
        return "deletionTimestamp" in (await room.get("c")).obj["metadata"]

    await eventually(end_is_dying, within=30)
    middle = (await room.get("b")).obj["metadata"]
    assert middle["finalizers"] == ["foregroundDeletion"]
    assert (await room.get("a")).status == 200
    await room.release("c")
    await room.is_gone("c", "b", "a")


async def test_orphans_stay_and_forget_their_owner(room: Room) -> None:
    a, b = await room.make("a"), await room.make("b")
    await room.make("one", a)
    await room.make("two", a, b)
    reply = await room.delete("a", propagationPolicy="Orphan")
    assert reply.obj["metadata"]["finalizers"] == ["orphan"]
    await room.is_gone("a")
    assert "ownerReferences" not in (await room.get("one")).obj["metadata"]
    [left] = (await room.get("two")).obj["metadata"]["ownerReferences"]
    assert left["name"] == "b"


async def test_an_object_whose_owner_never_was_is_garbage(room: Room) -> None:
    nobody = {"metadata": {"name": "nobody", "uid": "0-0-0"}}
    await room.make("lost", nobody)
    await room.is_gone("lost")


async def test_an_owner_of_another_life_is_no_owner(room: Room) -> None:
    first = await room.make("a")
    await room.delete("a")
    await room.make("a")
    await room.make("b", first)
    await room.is_gone("b")
    assert (await room.get("a")).status == 200


def owned_by(owner: Plain, *, kind: str = "ConfigMap", version: str = "v1") -> Plain:
    meta = owner["metadata"]
    return {
        "apiVersion": version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
    }


@pytest.fixture
async def role(room: Room) -> AsyncIterator[Callable[..., Awaitable[Plain]]]:
    """Makes cluster-wide objects that end with the test."""
    made: list[str] = []

    async def make(name: str, *owners: Plain) -> Plain:
        meta = {"name": f"{room.name}-{name}", "ownerReferences": list(owners)}
        reply = await room.ask("POST", ROLES, {"metadata": meta, "rules": []})
        assert reply.status == 201, reply.body
        made.append(f"{ROLES}/{meta['name']}")
        found: Plain = reply.obj
        return found

    yield make
    for path in made:
        await room.ask("DELETE", path)


async def test_an_owner_in_another_namespace_is_no_owner(
    room: Room, other: Room
) -> None:
    far = await other.make("owner")
    await room.make("lost", far)
    await room.is_gone("lost")
    near = await room.make("owner")
    await room.make("mixed", far, near)

    async def has_one_owner() -> bool:
        owners = (await room.get("mixed")).meta["ownerReferences"]
        return [each["uid"] for each in owners] == [near["metadata"]["uid"]]

    await eventually(has_one_owner, within=30)
    assert (await other.get("owner")).status == 200


async def test_a_cluster_wide_owner_takes_along_what_is_in_namespaces(
    room: Room, role: Callable[..., Awaitable[Plain]]
) -> None:
    owner = await role("owner")
    reference = owned_by(owner, kind="ClusterRole", version=RBAC)
    meta = {"name": "inside", "ownerReferences": [reference]}
    await room.ask("POST", room.path, {"metadata": meta})
    await room.make("lost", {"metadata": {"name": "nobody", "uid": "0-0-0"}})
    await room.is_gone("lost")
    assert (await room.get("inside")).status == 200
    await room.ask("DELETE", f"{ROLES}/{owner['metadata']['name']}")
    await room.is_gone("inside")


async def test_what_is_cluster_wide_has_no_owner_in_a_namespace(
    room: Room, role: Callable[..., Awaitable[Plain]]
) -> None:
    """Nobody can tell where that owner would be, so nobody says that it is gone."""
    owner = await room.make("owner")
    wide = await role("wide", owned_by(owner))
    await room.make("inside", owner)
    await room.delete("owner")
    await room.is_gone("inside")
    again = await room.make("again")
    await room.make("after", again)
    await room.delete("again")
    await room.is_gone("after")
    name = wide["metadata"]["name"]
    assert (await room.ask("GET", f"{ROLES}/{name}")).status == 200


@pytest.mark.parametrize("way", ["disowns", "does not block"])
async def test_a_waiting_owner_goes_when_its_dependent_lets_it(
    room: Room, way: str
) -> None:
    a = await room.make("a")
    b = await room.make("b", a, block=True, held=True)
    await room.delete("a", propagationPolicy="Foreground")

    async def is_dying() -> bool:
        return "deletionTimestamp" in (await room.get("b")).meta

    await eventually(is_dying, within=30)
    references: list[Plain] | None = b["metadata"]["ownerReferences"]
    assert references
    references[0]["blockOwnerDeletion"] = False
    patch: Plain = {"metadata": {"ownerReferences": references}}
    if way == "disowns":
        patch = {"metadata": {"ownerReferences": None}}
    reply = await room.ask("PATCH", f"{room.path}/b", patch, media=MERGE)
    assert reply.status == 200, reply.body
    await room.is_gone("a")
    assert (await room.get("b")).status == 200
    await room.release("b")
    await room.is_gone("b")


async def test_who_comes_under_a_waiting_owner_goes_too(room: Room) -> None:
    a = await room.make("a")
    await room.make("b", a, block=True, held=True)
    await room.delete("a", propagationPolicy="Foreground")
    await room.make("late", a, block=True)
    assert (await room.get("a")).status == 200
    # A real collector may look at the newcomer only when the owner's turn comes again.
    await room.release("b")
    await room.is_gone("b", "late", "a")


async def test_a_namespace_that_goes_says_what_it_waits_for(
    ask: Asker, room: Room
) -> None:
    await room.make("a", held=True)
    await room.make("b", held=True)
    await ask("DELETE", room.place)

    async def said() -> Plain:
        state = (await ask("GET", room.place)).obj["status"]
        return {each["type"]: each for each in state.get("conditions", ())}

    async def complains() -> bool:
        told = await said()
        return [each["status"] for each in told.values()].count("True") == 2

    await eventually(complains, within=60)
    told = await said()
    assert {name: (each["status"], each["reason"]) for name, each in told.items()} == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert told["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: configmaps. has 2 resource instances"
    )
    assert told["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: "
        "tests.trimtab.dev/hold in 2 resource instances"
    )
    await room.release("a")
    await room.release("b")

    async def gone() -> bool:
        return (await ask("GET", room.place)).status == 404

    await eventually(gone, within=60)
