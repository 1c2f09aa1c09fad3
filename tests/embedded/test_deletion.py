"""Laws of deletion: what goes at once, what waits, and what goes along.

They run on a cluster of their own, because a real one needs its controllers for them.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from tests.embedded.test_lists import Asker, Reply, asked
from trimtab.client import load
from trimtab.client.http import HttpTransport
from trimtab.embedded.api import Api
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens
from trimtab.testing import Cluster, eventually
from trimtab.testing.cluster import started
from trimtab.testing.options import Options

pytestmark = [pytest.mark.cluster("embedded", "real"), pytest.mark.timeout(120)]

FINALIZER = "tests.trimtab.dev/hold"
MERGE = "application/merge-patch+json"
GROUP = "deletion.tests.trimtab.dev"


@pytest.fixture(scope="module")
def controlled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind = request.config.getoption("--cluster")
    with started(kind, options=Options(controllers=True)) as made:
        yield made


@pytest.fixture
async def ask(controlled: Cluster) -> AsyncIterator[Asker]:
    transport = HttpTransport(load(kubeconfig=controlled.kubeconfig))
    yield Asker(transport)
    await transport.close()


class Room:
    """A namespace, and ConfigMaps in it that own each other."""

    def __init__(self, ask: Asker, name: str) -> None:
        self.ask = ask
        self.name = name
        self.place = f"/api/v1/namespaces/{name}"
        self.path = f"{self.place}/configmaps"

    async def make(
        self, name: str, *owners: Any, block: bool = False, held: bool = False
    ) -> Any:
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": block,
            }
            for owner in owners
        ]
        meta = {"name": name, "ownerReferences": references}
        if held:
            meta["finalizers"] = [FINALIZER]
        made = await self.ask(self.path, method="POST", body={"metadata": meta})
        assert made.status == 201, made.body
        return made.json

    async def get(self, name: str) -> Reply:
        return await self.ask(f"{self.path}/{name}")

    async def delete(self, name: str, **options: Any) -> Reply:
        return await self.ask(f"{self.path}/{name}", method="DELETE", body=options)

    async def release(self, name: str) -> Reply:
        body = {"metadata": {"finalizers": None}}
        path = f"{self.path}/{name}"
        return await self.ask(path, method="PATCH", body=body, Content_Type=MERGE)

    async def is_gone(self, *names: str) -> None:
        async def gone() -> bool:
            return {(await self.get(name)).status for name in names} == {404}

        await eventually(gone, within=30, describe=f"{names} are gone")


@pytest.fixture
async def room(ask: Asker) -> AsyncIterator[Room]:
    name = f"room-{secrets.token_hex(4)}"
    body = {"metadata": {"name": name}}
    assert (await ask("/api/v1/namespaces", method="POST", body=body)).status == 201

    async def is_furnished() -> bool:
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        return (await ask(account)).status == 200

    await eventually(is_furnished, within=30)
    yield Room(ask, name)
    await ask(f"/api/v1/namespaces/{name}", method="DELETE")


async def test_an_object_with_a_finalizer_goes_with_its_last_one(room: Room) -> None:
    await room.make("a", held=True)
    first = await room.delete("a")
    meta = first.json["metadata"]
    assert (first.status, meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert meta["deletionTimestamp"]
    again = (await room.delete("a")).json["metadata"]
    assert again["resourceVersion"] == meta["resourceVersion"]
    more = {"metadata": {"finalizers": [FINALIZER, "tests.trimtab.dev/more"]}}
    path = f"{room.path}/a"
    refused = await room.ask(path, method="PATCH", body=more, Content_Type=MERGE)
    assert (refused.status, refused.json["reason"]) == (422, "Invalid")
    assert (
        "no new finalizers can be added if the object is being deleted"
        in (refused.json["message"])
    )
    assert (await room.release("a")).status == 200
    assert (await room.get("a")).status == 404


async def test_what_a_deletion_answers(room: Room) -> None:
    made = await room.make("a")
    reply = await room.delete("a")
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "kind": "configmaps",
            "uid": made["metadata"]["uid"],
        },
    }
    missing = await room.delete("a")
    assert missing.json["message"] == 'configmaps "a" not found'


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
        owners = (await room.get("both")).json["metadata"]["ownerReferences"]
        return [each["name"] for each in owners] == ["b"]

    await eventually(has_one_owner, within=30)
    await room.delete("b")
    await room.is_gone("both")


async def test_in_the_foreground_an_owner_waits_for_what_blocks_it(room: Room) -> None:
    a = await room.make("a")
    await room.make("b", a, block=True, held=True)
    reply = await room.delete("a", propagationPolicy="Foreground")
    assert reply.json["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def is_dying() -> bool:
        return "deletionTimestamp" in (await room.get("b")).json["metadata"]

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
        return "deletionTimestamp" in (await room.get("c")).json["metadata"]

    await eventually(end_is_dying, within=30)
    middle = (await room.get("b")).json["metadata"]
    assert middle["finalizers"] == ["foregroundDeletion"]
    assert (await room.get("a")).status == 200
    await room.release("c")
    await room.is_gone("c", "b", "a")


async def test_orphans_stay_and_forget_their_owner(room: Room) -> None:
    a, b = await room.make("a"), await room.make("b")
    await room.make("one", a)
    await room.make("two", a, b)
    reply = await room.delete("a", propagationPolicy="Orphan")
    assert reply.json["metadata"]["finalizers"] == ["orphan"]
    await room.is_gone("a")
    assert "ownerReferences" not in (await room.get("one")).json["metadata"]
    [left] = (await room.get("two")).json["metadata"]["ownerReferences"]
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


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"uid": "other"},
            "the UID in the precondition (other) does not match the UID",
        ),
        (
            {"resourceVersion": "1"},
            (
                "the ResourceVersion in the precondition (1) does not match the "
                "ResourceVersion in record"
            ),
        ),
    ],
)
async def test_a_precondition_that_does_not_hold_saves_an_object(
    room: Room, options: dict[str, str], text: str
) -> None:
    await room.make("a")
    reply = await room.delete("a", preconditions=options)
    assert (reply.status, reply.json["reason"]) == (409, "Conflict")
    assert text in reply.json["message"]
    assert (await room.get("a")).status == 200


async def test_a_policy_that_there_is_not_is_invalid(room: Room) -> None:
    await room.make("a")
    reply = await room.delete("a", propagationPolicy="Sideways")
    assert (reply.status, reply.json["reason"]) == (422, "Invalid")
    assert 'Unsupported value: "Sideways"' in reply.json["message"]


async def test_a_collection_is_deleted_as_far_as_it_was_selected(room: Room) -> None:
    for name in ("a", "b", "c"):
        meta = {"name": name, "labels": {"go": str(name != "b").lower()}}
        await room.ask(room.path, method="POST", body={"metadata": meta})
    path = f"{room.path}?labelSelector=go=true"
    reply = await room.ask(path, method="DELETE")
    assert (reply.status, reply.json["kind"]) == (200, "ConfigMapList")
    assert reply.names == ["a", "c"]
    await room.is_gone("a", "c")
    assert (await room.get("b")).status == 200


def pod(name: str, *, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_pod_on_a_node_has_time_to_end(room: Room) -> None:
    path = f"{room.place}/pods"
    made = await room.ask(path, method="POST", body=pod("a", node="nowhere"))
    assert made.status == 201, made.body
    first = (await room.ask(f"{path}/a", method="DELETE")).json["metadata"]
    assert first["deletionGracePeriodSeconds"] == 30
    shorter = {"gracePeriodSeconds": 5}
    reply = await room.ask(f"{path}/a", method="DELETE", body=shorter)
    assert reply.json["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = {"gracePeriodSeconds": 60}
    reply = await room.ask(f"{path}/a", method="DELETE", body=longer)
    assert reply.json["metadata"]["deletionGracePeriodSeconds"] == 5
    await room.ask(f"{path}/a", method="DELETE", body={"gracePeriodSeconds": 0})
    assert (await room.ask(f"{path}/a")).status == 404


async def test_a_pod_that_is_nowhere_goes_at_once(room: Room) -> None:
    path = f"{room.place}/pods"
    await room.ask(path, method="POST", body=pod("a"))
    await room.ask(f"{path}/a", method="DELETE")
    assert (await room.ask(f"{path}/a")).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_may_not_be_deleted(ask: Asker, name: str) -> None:
    reply = await ask(f"/api/v1/namespaces/{name}", method="DELETE")
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")
    text = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert reply.json["message"] == text


async def test_a_namespace_goes_when_what_is_in_it_is_gone(room: Room) -> None:
    await room.make("free")
    await room.make("held", held=True)
    reply = await room.ask(room.place, method="DELETE")
    assert reply.json["status"]["phase"] == "Terminating"
    await room.is_gone("free")
    found = (await room.ask(room.place)).json
    assert found["status"]["phase"] == "Terminating"
    late = await room.ask(room.path, method="POST", body={"metadata": {"name": "late"}})
    assert (late.status, late.json["reason"]) == (403, "Forbidden")
    assert late.json["message"] == (
        f'configmaps "late" is forbidden: unable to create new content in namespace '
        f"{room.name} because it is being terminated"
    )
    assert late.json["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {room.name} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await room.release("held")

    async def is_gone() -> bool:
        return (await room.ask(room.place)).status == 404

    await eventually(is_gone, within=60)


def definition(plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [version],
        },
    }


async def test_a_definition_takes_its_objects_along(room: Room) -> None:
    ask, definitions = (
        room.ask,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    )
    made = await ask(definitions, method="POST", body=definition("cogs"))
    assert made.status == 201
    crd = f"{definitions}/cogs.{GROUP}"
    path = f"/apis/{GROUP}/v1/namespaces/{room.name}/cogs"

    async def is_served() -> bool:
        return (await ask(path)).status == 200

    await eventually(is_served, within=30)
    for name, finalizers in (("free", []), ("held", [FINALIZER])):
        meta = {"name": name, "finalizers": finalizers}
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Cogs", "metadata": meta}
        assert (await ask(path, method="POST", body=body)).status == 201
    gone = (await ask(crd, method="DELETE")).json
    assert gone["metadata"]["finalizers"] == [
        "customresourcecleanup.apiextensions.k8s.io"
    ]

    async def only_held_is_left() -> bool:
        return (await ask(path)).names == ["held"]

    await eventually(only_held_is_left, within=30)
    assert (await ask(crd)).status == 200
    release = {"metadata": {"finalizers": None}}
    await ask(f"{path}/held", method="PATCH", body=release, Content_Type=MERGE)

    async def is_gone() -> bool:
        return {(await ask(crd)).status, (await ask(path)).status} == {404}

    await eventually(is_gone, within=60)


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def api_on(store: Store, clock: Clock) -> Api:
    return Api(store, now=clock, random=Random(1), tokens=Tokens())


def settle(api: Api) -> None:
    while api.work():
        pass


EVENTS = "/api/v1/namespaces/default/events"
MAPS = "/api/v1/namespaces/default/configmaps"


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R"}


def test_an_event_lives_for_an_hour_after_its_last_change() -> None:
    store, clock = Store(None), Clock()
    api = api_on(store, clock)
    for name in ("one", "two"):
        made = asked(api, EVENTS, method="POST", body=event(name))
        assert made.status == 201, made.body
    clock.now += timedelta(minutes=59)
    api.maintain()
    changed = asked(api, f"{EVENTS}/two").json | {"count": 2}
    assert asked(api, f"{EVENTS}/two", method="PUT", body=changed).status == 200
    clock.now += timedelta(minutes=2)
    api.maintain()
    assert asked(api, EVENTS).names == ["two"]
    clock.now += timedelta(minutes=59)
    api.maintain()
    assert asked(api, EVENTS).names == []
    store.close()


def test_what_a_deletion_began_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The process ends between the deletion and what follows from it."""
    clock = Clock()
    store = Store(tmp_path / "store")
    api = api_on(store, clock)
    first = asked(api, MAPS, method="POST", body={"metadata": {"name": "a"}}).json
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    owner["uid"] = first["metadata"]["uid"]
    meta = {"name": "b", "ownerReferences": [owner]}
    asked(api, MAPS, method="POST", body={"metadata": meta})
    place = "/api/v1/namespaces"
    asked(api, place, method="POST", body={"metadata": {"name": "doomed"}})
    settle(api)
    inside = f"{place}/doomed/secrets"
    asked(api, inside, method="POST", body={"metadata": {"name": "s"}})
    asked(api, f"{MAPS}/a", method="DELETE")
    asked(api, f"{place}/doomed", method="DELETE")
    assert asked(api, f"{MAPS}/b").status == 200, "nothing followed yet"
    store.close()

    store = Store(tmp_path / "store")
    api = api_on(store, clock)
    settle(api)
    assert asked(api, f"{MAPS}/b").status == 404
    assert asked(api, f"{place}/doomed").status == 404
    assert msgspec.json.decode(asked(api, "/api/v1/secrets").body)["items"] == []
    store.close()
