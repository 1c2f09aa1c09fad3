"""Laws of acting as somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.people import (
    WHO,
    Headers,
    Person,
    admin,
    grant,
    jane,
    name,
    peopled,
    place,
    rule,
)

__all__ = ["admin", "jane", "peopled", "place"]
pytestmark = pytest.mark.cluster("embedded", "real")

PODS = "/api/v1/namespaces/default/pods"
AUTHENTICATION = "authentication.k8s.io"
USER, UID, GROUP = "Impersonate-User", "Impersonate-Uid", "Impersonate-Group"
EVERYBODY = "system:authenticated"


async def who(asker: Person, *headers: tuple[str, str]) -> Any:
    answer = await asker("POST", f"{WHO}/selfsubjectreviews", {}, headers=headers)
    assert answer.status == 201, answer.body
    return answer.obj["status"]["userInfo"]


async def test_an_administrator_is_whoever_they_say(admin: Person) -> None:
    extra = "Impersonate-Extra-acme.io%2fScopes"
    found = await who(
        admin,
        (USER, "kim"),
        (UID, "u1"),
        (GROUP, "one"),
        (GROUP, "two"),
        (extra, "a"),
        (extra, "b"),
    )
    assert found == {
        "username": "kim",
        "uid": "u1",
        "groups": ["one", "two", EVERYBODY],
        "extra": {"acme.io/scopes": ["a", "b"]},
    }


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ([(USER, "kim")], [EVERYBODY]),
        ([(USER, "kim"), (GROUP, EVERYBODY), (GROUP, "a")], [EVERYBODY, "a"]),
        (
            [(USER, "system:serviceaccount:default:robot")],
            ["system:serviceaccounts", "system:serviceaccounts:default", EVERYBODY],
        ),
        (
            [(USER, "system:serviceaccount:default:robot"), (GROUP, "a")],
            ["a", EVERYBODY],
        ),
        ([(USER, "system:node:one"), (GROUP, "a")], ["a", EVERYBODY]),
        ([(USER, "kim"), (GROUP, "system:masters")], ["system:masters", EVERYBODY]),
    ],
)
async def test_groups_follow_from_the_name_unless_they_are_given(
    admin: Person, headers: Headers, groups: list[str]
) -> None:
    assert (await who(admin, *headers))["groups"] == groups


async def test_whoever_acts_as_somebody_has_their_rights_only(admin: Person) -> None:
    answer = await admin("GET", PODS, headers=[(USER, "kim")])
    told = 'pods is forbidden: User "kim" cannot list resource "pods" in API group "" '
    told += 'in the namespace "default"'
    assert answer.refusal == (403, "Forbidden", told)
    nobody = await admin("GET", "/api", headers=[(USER, "system:anonymous")])
    assert nobody.status == 403


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (
            [(GROUP, "a"), ("Impersonate-Extra-b", "c")],
            'Groups:[]string{"a"}, Extra:map[string][]string{"b":[]string{"c"}}',
        ),
        (
            [(GROUP, "a"), (GROUP, "b")],
            'Groups:[]string{"a", "b"}, Extra:map[string][]string(nil)',
        ),
    ],
)
async def test_nobody_acts_as_a_group_alone(
    admin: Person, headers: Headers, shown: str
) -> None:
    answer = await admin("GET", "/api", headers=headers)
    told = f'requested &user.DefaultInfo{{Name:"", UID:"", {shown}}} without '
    told += "impersonating a user name"
    assert answer.refusal == (400, "BadRequest", told)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([(USER, name())], "pods|impersonate-on:user-info:list|pods"),
        (
            [(USER, "system:serviceaccount:default:robot")],
            "pods|impersonate-on:serviceaccount:list|pods",
        ),
        (
            [(USER, "system:serviceaccount:default:robot"), (GROUP, "a")],
            'serviceaccounts "robot"|impersonate|serviceaccounts',
        ),
        ([(USER, "system:node:one")], "pods|impersonate-on:arbitrary-node:list|pods"),
    ],
)
async def test_whoever_may_not_act_as_somebody_is_told_what_is_missing(
    jane: Person, headers: Headers, told: str
) -> None:
    about, verb, resource = told.split("|")
    answer = await jane("GET", PODS, headers=headers)
    message = (
        f'{about} is forbidden: User "jane" cannot {verb} resource "{resource}" in API '
        'group "" in the namespace "default"'
    )
    assert answer.refusal == (403, "Forbidden", message)


async def test_the_wide_verb_lets_somebody_be_those_it_names(
    admin: Person, jane: Person
) -> None:
    called, group = name(), name()
    users = rule("impersonate", "users", resourceNames=[called])
    extra = rule("impersonate", "userextras/acme.io/scopes uids", group=AUTHENTICATION)
    groups = rule("impersonate", "groups", resourceNames=[group])
    await grant(admin, users, groups, extra)

    async def status(*headers: tuple[str, str]) -> int:
        path = f"{WHO}/selfsubjectreviews"
        return (await jane("POST", path, {}, headers=headers)).status

    assert await status((USER, called)) == 201
    assert await status((USER, called), (GROUP, group)) == 201
    assert await status((USER, called), (UID, "u")) == 201
    assert (
        await status((USER, called), ("Impersonate-Extra-acme.io%2fscopes", "a")) == 201
    )
    assert await status((USER, name())) == 403
    assert await status((USER, called), (GROUP, "system:masters")) == 403
    assert (
        await status((USER, called), ("Impersonate-Extra-acme.io%2fother", "a")) == 403
    )


async def test_the_narrow_verbs_limit_what_is_done_too(
    admin: Person, jane: Person, place: str
) -> None:
    called = name()
    on = rule("impersonate-on:user-info:list", "configmaps")
    whom = rule(
        "impersonate:user-info", "users", group=AUTHENTICATION, resourceNames=[called]
    )
    await grant(admin, on, place=place)
    await grant(admin, whom)
    listing = f"/api/v1/namespaces/{place}/configmaps"
    answer = await jane("GET", listing, headers=[(USER, called)])
    told = f'configmaps is forbidden: User "{called}" cannot list resource "configmaps"'
    assert answer.obj["message"].startswith(told)
    other = await jane("GET", f"{listing}/a", headers=[(USER, called)])
    told = (
        'configmaps "a" is forbidden: User "jane" cannot impersonate-on:user-info:get'
    )
    assert other.obj["message"].startswith(told)
    greedy = [(USER, called), (GROUP, "system:masters")]
    refused = await jane("GET", listing, headers=greedy)
    assert refused.obj["message"].endswith(
        'in API group "authentication.k8s.io" at the cluster scope: impersonating the '
        "system:masters group is not allowed"
    )


async def test_a_node_has_the_group_of_nodes(admin: Person, jane: Person) -> None:
    verb, group = "arbitrary-node", AUTHENTICATION
    on = rule(f"impersonate-on:{verb}:create", "selfsubjectreviews", group=group)
    await grant(admin, on, rule(f"impersonate:{verb}", "nodes", group=group))
    found = await who(jane, (USER, "system:node:one"))
    assert found["groups"] == ["system:nodes", EVERYBODY]
