"""Laws of garbage and webhooks: what goes by itself goes through the same door.

They run on a cluster of their own, because a real one needs its controllers for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.embedded.asking import Asker
from tests.embedded.rooms import Room
from tests.embedded.rooms import ask as ask
from tests.embedded.rooms import controlled as controlled
from tests.embedded.rooms import room as room
from tests.embedded.webhooks.desk import DOMAIN, Desk, Office, rule
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office
from tests.embedded.webhooks.things import serving
from trimtab.testing import eventually

pytestmark = [pytest.mark.cluster("embedded", "real"), pytest.mark.timeout(120)]

Plain = dict[str, Any]
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
EMPTIER = "system:serviceaccount:kube-system:namespace-controller"
GROUPS = {
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
}


async def put_up(office: Office, room: Room, *operations: str) -> None:
    """Have the desk asked about the ConfigMaps of the room, but for its furniture."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": room.name}}
    rules = [rule(["configmaps"], *operations)]
    other = "oldObject == null || oldObject.metadata.name != 'kube-root-ca.crt'"
    named = {"name": "n", "expression": other}
    hook = office.hook("/look", rules, namespaceSelector=here, matchConditions=[named])
    await office.validating(hook)


def told(desk: Desk, user: str) -> list[Plain]:
    """What the desk was asked about the doings of somebody."""
    found = [each for each in desk.at("/look") if each["userInfo"]["username"] == user]
    assert all(set(each["userInfo"]["groups"]) == GROUPS for each in found)
    return found


def seen(requests: list[Plain]) -> list[tuple[str, str, Any]]:
    """Operation, name and options of each review; an object is named by what it was."""
    return [
        (
            each["operation"],
            each["oldObject"]["metadata"]["name"],
            each["options"].get("propagationPolicy"),
        )
        for each in requests
    ]


async def test_webhooks_are_asked_about_garbage(
    desk: Desk, office: Office, room: Room
) -> None:
    a = await room.make("a")
    b = await room.make("b", a)
    await put_up(office, room, "DELETE")
    await room.delete("a", propagationPolicy="Background")
    await room.is_gone("b")
    [review] = told(desk, COLLECTOR)
    assert seen([review]) == [("DELETE", "b", "Background")]
    assert (review["name"], review["namespace"]) == ("b", room.name)
    assert review["object"] is None
    assert review["options"]["preconditions"] == {
        "uid": b["metadata"]["uid"],
        "resourceVersion": b["metadata"]["resourceVersion"],
    }


async def test_garbage_that_a_webhook_refuses_to_let_go_stays_until_it_may(
    desk: Desk, office: Office, room: Room
) -> None:
    a = await room.make("a")
    await room.make("b", a)
    await put_up(office, room, "DELETE")
    kept = {"b"}
    desk.tell("/look", lambda asked: {"allowed": asked["name"] not in kept})
    await room.delete("a", propagationPolicy="Background")
    await eventually(lambda: len(told(desk, COLLECTOR)) >= 3, within=30)
    assert (await room.get("b")).status == 200
    kept.clear()
    await room.is_gone("b")


async def test_garbage_is_shown_in_the_version_that_it_is_deleted_in(
    ask: Asker, desk: Desk, office: Office, room: Room
) -> None:
    inside = Asker(ask.transport, room.name)
    owner = (await room.make("a"))["metadata"]
    async with serving(inside, desk) as things:
        thing = things.thing("v2", "b", address="h:1")
        thing["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["uid"]}
        ]
        assert (await ask("POST", things.path("v2"), thing)).status == 201
        here = {"matchLabels": {"kubernetes.io/metadata.name": room.name}}
        rules = [rule(["things"], "DELETE")]
        await office.validating(office.hook("/look", rules, namespaceSelector=here))
        await room.delete("a", propagationPolicy="Background")

        async def gone() -> bool:
            return (await ask("GET", things.path("v1", "b"))).status == 404

        # A real collector looks for new kinds every half minute.
        await eventually(gone, within=90)
    [review] = told(desk, COLLECTOR)
    specs = {"v1": {"host": "h", "port": "1"}, "v2": {"address": "h:1"}}
    assert review["oldObject"]["spec"] == specs[review["kind"]["version"]]
    assert review["oldObject"]["apiVersion"].endswith(review["kind"]["version"])


async def test_policies_are_asked_about_garbage_too(ask: Asker, room: Room) -> None:
    a = await room.make("a")
    for name in ("kept", "free"):
        await room.make(name, a)
    async with a_policy(ask, room, "oldObject.metadata.name != 'kept'"):
        refused = await ask("DELETE", f"{room.path}/kept?dryRun=All")
        assert refused.status == 422
        await room.delete("a", propagationPolicy="Background")
        await room.is_gone("free")
        assert (await room.get("kept")).status == 200
    await room.is_gone("kept")


@asynccontextmanager
async def a_policy(ask: Asker, room: Room, rule: str) -> AsyncIterator[None]:
    """What a ConfigMap of the room must be to be deleted, for the block's length."""
    name = f"policy-of-{room.name}"
    where = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rules = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": ["configmaps"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rules]},
        "validations": [{"expression": rule}],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": room.name}}
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    for path, body in ((where, spec), (f"{where[:-3]}ybindings", binding)):
        made = await ask("POST", path, {"metadata": {"name": name}, "spec": body})
        assert made.status == 201, made.body

    async def counts() -> bool:
        asked = await ask("DELETE", f"{room.path}/kept?dryRun=All")
        return asked.status == 422

    await eventually(counts, within=30)
    try:
        yield
    finally:
        for path in (where, f"{where[:-3]}ybindings"):
            await ask("DELETE", f"{path}/{name}")


async def test_webhooks_are_asked_when_an_owner_is_let_go_or_forgotten(
    desk: Desk, office: Office, room: Room
) -> None:
    a, b = await room.make("a"), await room.make("b")
    await room.make("one", a)
    await room.make("two", b, block=True)
    await put_up(office, room)
    await room.delete("a", propagationPolicy="Orphan")
    await room.is_gone("a")
    assert "ownerReferences" not in (await room.get("one")).meta
    assert seen(told(desk, COLLECTOR)) == [
        ("UPDATE", "one", None),
        ("UPDATE", "a", None),
    ]
    desk.forget()
    await room.delete("b", propagationPolicy="Foreground")
    await room.is_gone("two", "b")
    assert seen(told(desk, COLLECTOR)) == [
        ("DELETE", "two", "Background"),
        ("UPDATE", "b", None),
    ]


async def test_webhooks_are_asked_when_a_namespace_is_emptied(
    ask: Asker, desk: Desk, office: Office, room: Room
) -> None:
    await room.make("a")
    await room.make("b")
    await put_up(office, room, "DELETE")
    kept = {"b"}

    def judge(asked: Plain) -> Plain:
        return {"allowed": asked["oldObject"]["metadata"]["name"] not in kept}

    desk.tell("/look", judge)
    await ask("DELETE", room.place)

    async def refused() -> bool:
        names = [name for _, name, _ in seen(told(desk, EMPTIER))]
        return names.count("b") >= 2

    await eventually(refused, within=60)
    assert (await room.get("b")).status == 200
    await eventually(lambda: says_why(ask, room), within=60)
    kept.clear()

    async def gone() -> bool:
        return (await ask("GET", room.place)).status == 404

    await eventually(gone, within=90)
    reviews = told(desk, EMPTIER)
    assert not any("name" in each for each in reviews)  # it deletes a collection
    assert {each["options"]["propagationPolicy"] for each in reviews} == {"Background"}


async def says_why(ask: Asker, room: Room) -> bool:
    """Whether a namespace that goes tells of the refusal that keeps it."""
    state = (await ask("GET", room.place)).obj["status"]
    assert state["phase"] == "Terminating"
    told = {each["type"]: each for each in state.get("conditions", ())}
    failure = told.get("NamespaceDeletionContentFailure", {})
    return bool(
        failure.get("reason") == "ContentDeletionFailed"
        and failure["message"]
        == "Failed to delete all resource types, 1 remaining: admission webhook "
        f'"look.{DOMAIN}" denied the request without explanation'
        and told["NamespaceContentRemaining"]["status"] == "False"
    )
