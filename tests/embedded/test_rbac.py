"""Laws of who may do what; a real server answers in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import APPLY, MERGE
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
    settled,
    user,
)
from trimtab.testing import eventually

__all__ = ["admin", "jane", "peopled", "place"]
pytestmark = pytest.mark.cluster("embedded", "real")

EVERYWHERE = "at the cluster scope"
HERE = 'in the namespace "kube-public"'
PODS = "/api/v1/namespaces/kube-public/pods"


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", PODS, f"pods|list|pods||{HERE}"),
        ("POST", PODS, f"pods|create|pods||{HERE}"),
        ("DELETE", PODS, f"pods|deletecollection|pods||{HERE}"),
        ("GET", f"{PODS}?watch=true", f"pods|watch|pods||{HERE}"),
        ("GET", f"{PODS}?watch=0", f"pods|list|pods||{HERE}"),
        ("GET", f"{PODS}/x", f'pods "x"|get|pods||{HERE}'),
        ("GET", f"{PODS}/x?watch=1", f'pods "x"|get|pods||{HERE}'),
        ("PUT", f"{PODS}/x", f'pods "x"|update|pods||{HERE}'),
        ("PATCH", f"{PODS}/x/status", f'pods "x"|patch|pods/status||{HERE}'),
        ("DELETE", f"{PODS}/x", f'pods "x"|delete|pods||{HERE}'),
        ("GET", f"{PODS}/x/log", f'pods "x"|get|pods/log||{HERE}'),
        ("GET", f"{PODS}/x/proxy/a/b", f'pods "x"|get|pods/proxy||{HERE}'),
        ("GET", "/api/v1/pods", f"pods|list|pods||{EVERYWHERE}"),
        ("GET", "/api/v1/watch/pods", f"pods|watch|pods||{EVERYWHERE}"),
        (
            "GET",
            "/api/v1/watch/namespaces/kube-public/pods/x",
            f'pods "x"|watch|pods||{HERE}',
        ),
        (
            "GET",
            "/api/v1/proxy/namespaces/kube-public/pods/x/y",
            f'pods "x"|proxy|pods||{HERE}',
        ),
        (
            "GET",
            "/api/v1/namespaces/kube-public",
            f'namespaces "kube-public"|get|namespaces||{HERE}',
        ),
        (
            "PUT",
            "/api/v1/namespaces/kube-public/finalize",
            f'namespaces "kube-public"|update|namespaces/finalize||{HERE}',
        ),
        ("GET", "/api/v1/namespaces", f"namespaces|list|namespaces||{EVERYWHERE}"),
        (
            "GET",
            f"{PODS}?fieldSelector=metadata.name=x",
            f'pods "x"|list|pods||{HERE}',
        ),
        (
            "DELETE",
            f"{PODS}?fieldSelector=metadata.name=x",
            f"pods|deletecollection|pods||{HERE}",
        ),
        (
            "GET",
            "/apis/none.example/v1/things/a",
            f'things.none.example "a"|get|things|none.example|{EVERYWHERE}',
        ),
    ],
)
async def test_what_is_not_allowed_is_forbidden(
    jane: Person, method: str, path: str, told: str
) -> None:
    about, verb, resource, group, where = told.split("|")
    asked, _, query = path.partition("?")
    pair: dict[str, Any] = dict([query.split("=", 1)] if query else [])
    body: Any = {} if method in ("POST", "PUT") else None
    answer = await jane(method, asked, body, **pair)
    message = (
        f'{about} is forbidden: User "jane" cannot {verb} resource "{resource}" in API '
        f'group "{group}" {where}'
    )
    assert answer.refusal == (403, "Forbidden", message)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/metrics"), ("GET", "/healthz/ping"), ("POST", "/a<b>")],
)
async def test_a_path_that_is_not_allowed_is_forbidden(
    jane: Person, method: str, path: str
) -> None:
    answer = await jane(method, path)
    shown = path.replace("<", "&lt;").replace(">", "&gt;")
    told = f'forbidden: User "jane" cannot {method.lower()} path "{shown}"'
    assert answer.refusal == (403, "Forbidden", told)
    assert answer.obj["details"] == {}


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/version", "/api", "/apis"])
async def test_everybody_who_comes_in_sees_what_there_is(
    jane: Person, path: str
) -> None:
    assert (await jane("GET", path)).status == 200


async def test_a_role_counts_in_its_namespace_only(
    admin: Person, jane: Person, place: str
) -> None:
    _, binding = await grant(admin, rule("get list", "configmaps"), place=place)
    path = f"/api/v1/namespaces/{place}/configmaps"
    assert (await jane("GET", path)).status == 200
    assert (await jane("GET", "/api/v1/configmaps")).status == 403
    assert (await jane("GET", "/api/v1/namespaces/default/configmaps")).status == 403
    assert (await jane("GET", f"/api/v1/namespaces/{place}/secrets")).status == 403
    assert (await jane("POST", path, {"metadata": {"name": "a"}})).status == 403
    await revoke(admin, binding, place=place)
    assert (await jane("GET", path)).status == 403


async def test_a_cluster_role_counts_where_it_is_bound(
    admin: Person, jane: Person, place: str
) -> None:
    made = await admin.make(
        f"{RBAC}/namespaces/{place}/rolebindings",
        roleRef=reference("ClusterRole", "view"),
        subjects=[{"kind": "Group", "apiGroup": GROUP, "name": "crew"}],
    )
    assert made.status == 201
    await settled(admin, place)
    assert (await jane("GET", f"/api/v1/namespaces/{place}/pods")).status == 200
    assert (await jane("GET", f"/api/v1/namespaces/{place}/secrets")).status == 403
    assert (await jane("GET", "/api/v1/pods")).status == 403


async def test_names_of_resources_are_the_only_ones_allowed(
    admin: Person, jane: Person, place: str
) -> None:
    await grant(
        admin,
        rule("get list delete", "configmaps", resourceNames=["mine"]),
        place=place,
    )
    path = f"/api/v1/namespaces/{place}/configmaps"
    assert (await jane("GET", f"{path}/mine")).status == 404
    assert (await jane("GET", f"{path}/other")).status == 403
    assert (await jane("GET", path)).status == 403
    chosen = await jane("GET", path, fieldSelector="metadata.name=mine")
    assert chosen.status == 200
    others = await jane("GET", path, fieldSelector="metadata.name!=mine")
    assert others.status == 403


async def test_subresources_are_allowed_by_themselves_or_by_their_kind(
    admin: Person, jane: Person, place: str
) -> None:
    _, binding = await grant(admin, rule("get", "pods/log"), place=place)
    path = f"/api/v1/namespaces/{place}/pods/x"
    assert (await jane("GET", path)).status == 403
    assert (await jane("GET", f"{path}/status")).status == 403
    assert (await jane("GET", f"{path}/log")).status == 404
    await revoke(admin, binding, place=place)
    await grant(admin, rule("get", "*/status"), place=place)
    assert (await jane("GET", f"{path}/log")).status == 403
    assert (await jane("GET", f"{path}/status")).status == 404
    deployment = f"/apis/apps/v1/namespaces/{place}/deployments/x/status"
    assert (await jane("GET", deployment)).status == 403


async def test_paths_are_allowed_by_what_they_begin_with(
    admin: Person, jane: Person
) -> None:
    _, binding = await grant(admin, {"verbs": ["get"], "nonResourceURLs": ["/a/*"]})
    assert (await jane("GET", "/a/b/c")).status == 404
    assert (await jane("GET", "/a")).status == 403
    await revoke(admin, binding)


async def test_a_role_that_is_missing_is_told(
    admin: Person, jane: Person, place: str
) -> None:
    await admin.make(
        f"{RBAC}/namespaces/{place}/rolebindings",
        roleRef=reference("Role", "nowhere"),
        subjects=[user("jane")],
    )
    await settled(admin, place)
    answer = await jane("GET", f"/api/v1/namespaces/{place}/pods")
    assert answer.obj["message"].endswith(
        f'in the namespace "{place}": RBAC: role.{GROUP} "nowhere" not found'
    )


async def test_service_accounts_are_bound_by_name_and_by_group(
    admin: Person, place: str
) -> None:
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": place}
    await grant(admin, rule("list", "configmaps"), place=place, to=account)
    everyone = f"system:serviceaccounts:{place}"
    group = {"kind": "Group", "apiGroup": GROUP, "name": everyone}
    await grant(admin, rule("list", "secrets"), place=place, to=group)

    async def status(plural: str, called: str) -> int:
        acting = [("Impersonate-User", f"system:serviceaccount:{place}:{called}")]
        path = f"/api/v1/namespaces/{place}/{plural}"
        return (await admin("GET", path, headers=acting)).status

    assert await status("configmaps", "robot") == 200
    assert await status("configmaps", "other") == 403
    assert await status("secrets", "other") == 200


@pytest.mark.parametrize("method", ["PUT", "APPLY"])
async def test_whoever_may_only_change_cannot_create_by_changing(
    admin: Person, jane: Person, place: str, method: str
) -> None:
    group = "coordination.k8s.io"
    granted = rule("get update patch", "leases", group=group)
    await grant(admin, granted, place=place)
    path = f"/apis/{group}/v1/namespaces/{place}/leases/new"
    body: Any = {"apiVersion": f"{group}/v1", "kind": "Lease"}
    body["metadata"] = {"name": "new"}
    body["spec"] = {"holderIdentity": "jane"}
    if method == "PUT":
        answer = await jane("PUT", path, body)
    else:
        answer = await jane("PATCH", path, body, media=APPLY, fieldManager="jane")
    told = (
        f'leases.{group} "new" is forbidden: User "jane" cannot create resource '
        f'"leases" in API group "{group}" in the namespace "{place}"'
    )
    assert answer.refusal == (403, "Forbidden", told)


async def test_rules_are_gathered_by_labels(admin: Person) -> None:
    label = {f"tests.trimtab.dev/{name()}": "true"}
    made = await admin.make(
        f"{RBAC}/clusterroles",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": label}]},
        rules=[],
    )
    whole = f"{RBAC}/clusterroles/{made.meta['name']}"

    async def has(*rules: Any) -> None:
        async def gathered() -> bool:
            return ((await admin("GET", whole)).obj["rules"] or []) == list(rules)

        await eventually(gathered, within=10)

    one, two = rule("get", "pods"), rule("list", "secrets")
    first = await admin.make(
        f"{RBAC}/clusterroles", metadata={"name": f"a-{name()}", "labels": label},
        rules=[one],
    )  # fmt: skip
    await has(one)
    second = await admin.make(
        f"{RBAC}/clusterroles", metadata={"name": f"b-{name()}", "labels": label},
        rules=[two, one],
    )  # fmt: skip
    await has(one, two)
    managed = (await admin("GET", whole)).meta["managedFields"]
    manager = "clusterrole-aggregation-controller"
    assert [(manager, "Apply")] == [
        (each["manager"], each["operation"])
        for each in managed
        if "f:rules" in each["fieldsV1"]
    ]
    await admin("DELETE", f"{RBAC}/clusterroles/{first.meta['name']}")
    await has(two, one)
    path = f"{RBAC}/clusterroles/{second.meta['name']}"
    await admin("PATCH", path, {"metadata": {"labels": None}}, media=MERGE)
    await has()
