"""Laws of the reviews: who somebody is, and what they may do and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.people import (
    ACCESS,
    GROUP,
    JANE,
    RBAC,
    WHO,
    Person,
    Plain,
    admin,
    grant,
    jane,
    peopled,
    place,
    reference,
    rule,
    settled,
    user,
)

__all__ = ["admin", "jane", "peopled", "place"]
pytestmark = pytest.mark.cluster("embedded", "real")

DISCOVERY = (
    'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole '
    '"system:discovery" to Group "system:authenticated"'
)


async def review(asker: Person, plural: str, **spec: Any) -> Plain:
    answer = await asker("POST", f"{ACCESS}/{plural}", {"spec": spec})
    assert answer.status == 201, answer.body
    assert set(answer.meta) <= {"managedFields", "namespace"}
    found: Plain = answer.obj["status"]
    return found


def pods(place: str, verb: str = "list") -> Plain:
    return {"verb": verb, "resource": "pods", "namespace": place}


async def test_a_review_says_whether_and_why(
    admin: Person, jane: Person, place: str
) -> None:
    own = "selfsubjectaccessreviews"
    assert await review(admin, own, resourceAttributes=pods(place)) == {"allowed": True}
    assert await review(jane, own, resourceAttributes=pods(place)) == {"allowed": False}
    role, binding = await grant(admin, rule("list", "pods"), place=place)
    assert await review(jane, own, resourceAttributes=pods(place)) == {
        "allowed": True,
        "reason": f'RBAC: allowed by RoleBinding "{binding}/{place}" of Role "{role}" '
        'to User "jane"',
    }
    path = {"verb": "get", "path": "/api"}
    found = await review(jane, own, nonResourceAttributes=path)
    assert found["allowed"] is True
    assert found["reason"] == DISCOVERY


async def test_a_review_of_others_takes_them_as_they_are_described(
    admin: Person, place: str
) -> None:
    others = "subjectaccessreviews"
    path = {"verb": "get", "path": "/api"}
    assert await review(admin, others, user="x", nonResourceAttributes=path) == {
        "allowed": False
    }
    found = await review(
        admin,
        others,
        user="x",
        groups=["system:authenticated"],
        nonResourceAttributes=path,
    )
    assert found == {"allowed": True, "reason": DISCOVERY}
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": place}
    role, binding = await grant(admin, rule("list", "pods"), place=place, to=account)
    called = f"system:serviceaccount:{place}:robot"
    found = await review(admin, others, user=called, resourceAttributes=pods(place))
    assert found["reason"] == (
        f'RBAC: allowed by RoleBinding "{binding}/{place}" of Role "{role}" to '
        f'ServiceAccount "robot/{place}"'
    )
    local = f"namespaces/{place}/localsubjectaccessreviews"
    assert await review(admin, local, user=called, resourceAttributes=pods(place)) == (
        found
    )


async def test_only_those_who_may_ask_about_others(jane: Person) -> None:
    spec = {"user": "x", "resourceAttributes": pods("default")}
    for path in (f"{ACCESS}/subjectaccessreviews", f"{WHO}/tokenreviews"):
        assert (await jane("POST", path, {"spec": spec})).status == 403


EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
PATH = {"verb": "get", "path": "/"}
SELECTED = (
    "Required value: when spec.resourceAttributes.fieldSelector is specified, "
    "requirements or rawSelector is required"
)
SHOWN = 'Invalid value: {"Path":"/","Verb":"get"}'


@pytest.mark.parametrize(
    ("plural", "spec", "field", "told"),
    [
        (
            "selfsubjectaccessreviews",
            {},
            "spec.resourceAttributes",
            f"Invalid value: null: {EITHER}",
        ),
        (
            "selfsubjectaccessreviews",
            {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": PATH},
            "spec.nonResourceAttributes",
            f"{SHOWN}: cannot be specified in combination with resourceAttributes",
        ),
        (
            "subjectaccessreviews",
            {"nonResourceAttributes": PATH},
            "spec.user",
            'Invalid value: "": at least one of user or group must be specified',
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            {"user": "x", "nonResourceAttributes": PATH},
            "spec.nonResourceAttributes",
            f"{SHOWN}: disallowed on this kind of request",
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            {"user": "x", "resourceAttributes": {"verb": "get"}},
            "spec.resourceAttributes.namespace",
            'Invalid value: "": must match metadata.namespace',
        ),
        (
            "subjectaccessreviews",
            {"user": "x", "resourceAttributes": {"verb": "get", "fieldSelector": {}}},
            "spec.resourceAttributes.fieldSelector.requirements",
            SELECTED,
        ),
    ],
)
async def test_a_review_that_makes_no_sense_is_refused(
    admin: Person, plural: str, spec: Plain, field: str, told: str
) -> None:
    answer = await admin("POST", f"{ACCESS}/{plural}", {"spec": spec})
    message = f'.authorization.k8s.io "" is invalid: {field}: {told}'
    assert answer.refusal == (422, "Invalid", message)


async def test_selectors_that_cannot_be_read_do_not_count(admin: Person) -> None:
    asked = {
        **pods("default"),
        "labelSelector": {"rawSelector": "a in"},
        "fieldSelector": {
            "requirements": [
                {"key": "a", "operator": "In", "values": ["b"]},
                {"key": "a", "operator": "Near", "values": ["b"]},
            ]
        },
    }
    found = await review(admin, "selfsubjectaccessreviews", resourceAttributes=asked)
    where = "spec.resourceAttributes"
    assert found == {
        "allowed": True,
        "evaluationError": f"{where}.fieldSelector partially ignored due to parse "
        f"error; {where}.labelSelector ignored due to parse error",
    }


async def test_all_rules_of_somebody_can_be_asked_for(
    admin: Person, jane: Person, place: str
) -> None:
    given = rule("get", "configmaps", resourceNames=["a"])
    await grant(admin, given, place=place)
    await admin.make(
        f"{RBAC}/namespaces/{place}/rolebindings",
        roleRef=reference("Role", "nowhere"),
        subjects=[user("jane")],
    )
    await settled(admin, place)
    path = f"{ACCESS}/selfsubjectrulesreviews"
    sent = {"metadata": {"name": "x"}, "spec": {"namespace": place}}
    answer = await jane("POST", path, sent)
    assert (answer.status, answer.meta, answer.obj["spec"]) == (201, {}, {})
    found = answer.obj["status"]
    assert given in found["resourceRules"]
    assert (
        rule("create", "selfsubjectreviews", group="authentication.k8s.io")
        in (found["resourceRules"])
    )
    health = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    assert {"verbs": ["get"], "nonResourceURLs": health} in found["nonResourceRules"]
    assert found["incomplete"] is False
    assert found["evaluationError"] == f'role.{GROUP} "nowhere" not found'
    nowhere = await jane("POST", path, {"spec": {}})
    assert nowhere.refusal == (400, "BadRequest", "no namespace on request")


async def test_static_tokens_are_reviewed_too(admin: Person) -> None:
    async def token(**spec: Any) -> Plain:
        answer = await admin("POST", f"{WHO}/tokenreviews", {"spec": spec})
        found: Plain = answer.obj["status"]
        return found

    assert await token(token=JANE.token) == {
        "authenticated": True,
        "user": {
            "username": "jane",
            "uid": "jane",
            "groups": ["crew", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }
    refused = {"user": {}, "error": "invalid bearer token"}
    assert await token(token=JANE.token, audiences=["other"]) == refused
    assert await token(token="another") == refused


async def test_who_i_am_keeps_nothing_of_what_i_sent(jane: Person) -> None:
    sent = {"metadata": {"name": "x"}}
    answer = await jane("POST", f"{WHO}/selfsubjectreviews", sent)
    assert set(answer.meta) == {"creationTimestamp"}
    assert answer.obj["status"]["userInfo"] == {
        "username": "jane",
        "uid": "jane",
        "groups": ["crew", "system:authenticated"],
    }
