"""Laws of giving rights away: nobody gives more than they have, or takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.embedded.asking import MERGE
from tests.embedded.people import (
    GROUP,
    RBAC,
    Person,
    admin,
    grant,
    jane,
    name,
    peopled,
    place,
    reference,
    revoke,
    rule,
    user,
)

__all__ = ["admin", "jane", "peopled", "place"]
pytestmark = pytest.mark.cluster("embedded", "real")

KINDS = "roles rolebindings clusterroles clusterrolebindings"
HELD = 'user "jane" (groups=["crew" "system:authenticated"]) is attempting to grant '
HELD += "RBAC permissions not currently held:\n"


@pytest.fixture
async def writer(admin: Person, jane: Person) -> AsyncIterator[Person]:
    """Jane, who may write roles and bindings and read ConfigMaps."""
    writes = rule("create update patch get", KINDS, group=GROUP)
    _, binding = await grant(admin, writes, rule("get", "configmaps"))
    yield jane
    await revoke(admin, binding)


def refused(plural: str, called: str, detail: str) -> tuple[int, str, str]:
    return 403, "Forbidden", f'{plural}.{GROUP} "{called}" is forbidden: {detail}'


async def test_a_role_has_what_its_writer_has(writer: Person, place: str) -> None:
    path = f"{RBAC}/namespaces/{place}/roles"
    held = await writer.make(path, rules=[rule("get", "configmaps")])
    assert held.status == 201
    rules = [
        rule("get list", "configmaps pods/log"),
        rule("*", "deployments", group="apps", resourceNames=["a", "b"]),
    ]
    more = await writer("POST", path, {"metadata": {"name": "r"}, "rules": rules})
    missing = (
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], '
        'Verbs:["*"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["b"], '
        'Verbs:["*"]}'
    )
    assert more.refusal == refused("roles", "r", HELD + missing)


async def test_paths_are_rights_too(writer: Person) -> None:
    rules = [{"nonResourceURLs": ["/metrics", "/version"], "verbs": ["get"]}]
    body = {"metadata": {"name": "r"}, "rules": rules}
    answer = await writer("POST", f"{RBAC}/clusterroles", body)
    missing = '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    assert answer.refusal == refused("clusterroles", "r", HELD + missing)


async def test_a_role_does_not_grow_beyond_its_writer(writer: Person) -> None:
    path = f"{RBAC}/clusterroles"
    made = await writer.make(path, rules=[rule("get", "configmaps")])
    called = made.meta["name"]
    body = {"rules": [rule("get", "secrets")]}
    grown = await writer("PATCH", f"{path}/{called}", body, media=MERGE)
    missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    assert grown.refusal == refused("clusterroles", called, HELD + missing)
    replaced = await writer("PUT", f"{path}/{called}", {**made.obj, **body})
    assert replaced.refusal == refused("clusterroles", called, HELD + missing)


async def test_of_a_greater_role_only_finalizers_can_be_changed(
    writer: Person, admin: Person
) -> None:
    made = await admin.make(f"{RBAC}/clusterroles", rules=[rule("get", "secrets")])
    path = f"{RBAC}/clusterroles/{made.meta['name']}"

    async def status(**meta: Any) -> int:
        return (await writer("PATCH", path, {"metadata": meta}, media=MERGE)).status

    assert await status(labels={"a": "b"}) == 403
    assert await status(finalizers=["tests.trimtab.dev/hold"]) == 200
    assert await status(finalizers=None) == 200


async def test_only_those_who_have_everything_gather_rules(writer: Person) -> None:
    chosen = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    body = {"metadata": {"name": "r"}, "aggregationRule": chosen, "rules": []}
    answer = await writer("POST", f"{RBAC}/clusterroles", body)
    detail = "must have cluster-admin privileges to use the aggregationRule"
    assert answer.refusal == refused("clusterroles", "r", detail)


async def test_whoever_may_escalate_writes_any_role(
    writer: Person, admin: Person, place: str
) -> None:
    await grant(admin, rule("escalate", "roles", group=GROUP), place=place)
    path = f"{RBAC}/namespaces/{place}/roles"
    assert (await writer.make(path, rules=[rule("*", "*")])).status == 201
    everywhere = await writer.make(f"{RBAC}/clusterroles", rules=[rule("*", "*")])
    assert everywhere.status == 403


async def test_a_binding_gives_what_its_writer_has(writer: Person, place: str) -> None:
    path = f"{RBAC}/namespaces/{place}/rolebindings"
    body = {"metadata": {"name": "b"}, "subjects": [user("joe")]}
    body["roleRef"] = reference("ClusterRole", "cluster-admin")
    answer = await writer("POST", path, body)
    missing = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
    missing += '{NonResourceURLs:["*"], Verbs:["*"]}'
    assert answer.refusal == refused("rolebindings", "b", HELD + missing)
    held = reference("ClusterRole", "system:discovery")
    assert (await writer("POST", path, {**body, "roleRef": held})).status == 201


@pytest.mark.parametrize(
    ("plural", "role"),
    [("rolebindings", "Role"), ("clusterrolebindings", "ClusterRole")],
)
async def test_what_is_not_there_cannot_be_bound(
    writer: Person, place: str, plural: str, role: str
) -> None:
    within = f"namespaces/{place}/" if role == "Role" else ""
    body = {"metadata": {"name": name()}, "roleRef": reference(role, "nowhere")}
    answer = await writer("POST", f"{RBAC}/{within}{plural}", body)
    told = f'{plural}.{GROUP} "nowhere" not found'
    assert answer.refusal == (404, "NotFound", told)
    other = {**body, "roleRef": reference("Rule", "nowhere")}
    answer = await writer("POST", f"{RBAC}/{within}{plural}", other)
    assert answer.refusal == (500, "", 'unsupported role reference kind: "Rule"')


async def test_whoever_may_bind_a_role_gives_it_to_anybody(
    writer: Person, admin: Person, place: str
) -> None:
    bind = rule("bind", "clusterroles", group=GROUP, resourceNames=["admin"])
    await grant(admin, bind, place=place)
    path = f"{RBAC}/namespaces/{place}/rolebindings"

    async def bound(role: str, path: str = path) -> int:
        given = {"roleRef": reference("ClusterRole", role), "subjects": [user("joe")]}
        return (await writer.make(path, **given)).status

    assert await bound("admin") == 201
    assert await bound("edit") == 403
    assert await bound("admin", f"{RBAC}/clusterrolebindings") == 403
