"""Laws of deletion: what goes at once, what waits, and what goes along.

They run on a cluster of their own, because a real one needs its controllers for them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.definitions import FREE
from tests.definitions import definition as defined
from tests.embedded.asking import MERGE, Asker
from tests.embedded.rooms import FINALIZER, Room
from tests.embedded.rooms import ask as ask
from tests.embedded.rooms import controlled as controlled
from tests.embedded.rooms import room as room
from trimtab.testing import eventually

pytestmark = [pytest.mark.cluster("embedded", "real"), pytest.mark.timeout(120)]

GROUP = "deletion.tests.trimtab.dev"


async def test_an_object_with_a_finalizer_goes_with_its_last_one(room: Room) -> None:
    await room.make("a", held=True)
    first = await room.delete("a")
    meta = first.obj["metadata"]
    assert (first.status, meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert meta["deletionTimestamp"]
    again = (await room.delete("a")).obj["metadata"]
    assert again["resourceVersion"] == meta["resourceVersion"]
    more = {"metadata": {"finalizers": [FINALIZER, "tests.trimtab.dev/more"]}}
    path = f"{room.path}/a"
    refused = await room.ask("PATCH", path, more, media=MERGE)
    assert (refused.status, refused.obj["reason"]) == (422, "Invalid")
    assert (
        "no new finalizers can be added if the object is being deleted"
        in (refused.obj["message"])
    )
    assert (await room.release("a")).status == 200
    assert (await room.get("a")).status == 404


async def test_what_a_deletion_answers(room: Room) -> None:
    made = await room.make("a")
    reply = await room.delete("a")
    assert reply.obj == {
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
    assert missing.obj["message"] == 'configmaps "a" not found'


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
    assert (reply.status, reply.obj["reason"]) == (409, "Conflict")
    assert text in reply.obj["message"]
    assert (await room.get("a")).status == 200


async def test_a_policy_that_there_is_not_is_invalid(room: Room) -> None:
    await room.make("a")
    reply = await room.delete("a", propagationPolicy="Sideways")
    assert (reply.status, reply.obj["reason"]) == (422, "Invalid")
    assert 'Unsupported value: "Sideways"' in reply.obj["message"]


def pod(name: str, *, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_pod_on_a_node_has_time_to_end(room: Room) -> None:
    path = f"{room.place}/pods"
    made = await room.ask("POST", path, pod("a", node="nowhere"))
    assert made.status == 201, made.body
    first = (await room.ask("DELETE", f"{path}/a")).obj["metadata"]
    assert first["deletionGracePeriodSeconds"] == 30
    shorter = {"gracePeriodSeconds": 5}
    reply = await room.ask("DELETE", f"{path}/a", shorter)
    assert reply.obj["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = {"gracePeriodSeconds": 60}
    reply = await room.ask("DELETE", f"{path}/a", longer)
    assert reply.obj["metadata"]["deletionGracePeriodSeconds"] == 5
    await room.ask("DELETE", f"{path}/a", {"gracePeriodSeconds": 0})
    assert (await room.ask("GET", f"{path}/a")).status == 404


async def test_a_pod_that_is_nowhere_goes_at_once(room: Room) -> None:
    path = f"{room.place}/pods"
    await room.ask("POST", path, pod("a"))
    await room.ask("DELETE", f"{path}/a")
    assert (await room.ask("GET", f"{path}/a")).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_may_not_be_deleted(ask: Asker, name: str) -> None:
    reply = await ask("DELETE", f"/api/v1/namespaces/{name}")
    assert (reply.status, reply.obj["reason"]) == (403, "Forbidden")
    text = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert reply.obj["message"] == text


async def test_a_namespace_goes_when_what_is_in_it_is_gone(room: Room) -> None:
    await room.make("free")
    await room.make("held", held=True)
    reply = await room.ask("DELETE", room.place)
    assert reply.obj["status"]["phase"] == "Terminating"
    await room.is_gone("free")
    found = (await room.ask("GET", room.place)).obj
    assert found["status"]["phase"] == "Terminating"
    late = await room.ask("POST", room.path, {"metadata": {"name": "late"}})
    assert (late.status, late.obj["reason"]) == (403, "Forbidden")
    assert late.obj["message"] == (
        f'configmaps "late" is forbidden: unable to create new content in namespace '
        f"{room.name} because it is being terminated"
    )
    assert late.obj["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {room.name} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await room.release("held")

    async def is_gone() -> bool:
        return (await room.ask("GET", room.place)).status == 404

    await eventually(is_gone, within=60)


def definition(plural: str) -> dict[str, Any]:
    return defined(plural, plural.title(), group=GROUP, schema=FREE)


async def test_a_definition_takes_its_objects_along(room: Room) -> None:
    ask, definitions = (
        room.ask,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    )
    made = await ask("POST", definitions, definition("cogs"))
    assert made.status == 201
    crd = f"{definitions}/cogs.{GROUP}"
    path = f"/apis/{GROUP}/v1/namespaces/{room.name}/cogs"

    async def is_served() -> bool:
        return (await ask("GET", path)).status == 200

    await eventually(is_served, within=30)
    for name, finalizers in (("free", []), ("held", [FINALIZER])):
        meta = {"name": name, "finalizers": finalizers}
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Cogs", "metadata": meta}
        assert (await ask("POST", path, body)).status == 201
    gone = (await ask("DELETE", crd)).obj
    assert gone["metadata"]["finalizers"] == [
        "customresourcecleanup.apiextensions.k8s.io"
    ]

    async def only_held_is_left() -> bool:
        return (await ask("GET", path)).names == ["held"]

    await eventually(only_held_is_left, within=30)
    assert (await ask("GET", crd)).status == 200
    late = {"apiVersion": f"{GROUP}/v1", "kind": "Cogs", "metadata": {"name": "late"}}
    assert (await ask("POST", path, late)).refusal == (
        403,
        "Forbidden",
        (
            f'cogs.{GROUP} "late" is forbidden: create not allowed while custom '
            "resource definition is terminating"
        ),
    )
    release = {"metadata": {"finalizers": None}}
    await ask("PATCH", f"{path}/held", release, media=MERGE)

    async def is_gone() -> bool:
        return {(await ask("GET", crd)).status, (await ask("GET", path)).status} == {
            404
        }

    await eventually(is_gone, within=60)
