"""Reading, discovery, subresources and identities on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.client.clusters import client_of, defines, is_ours
from tests.client.kinds import CONFIG_MAPS, ConfigMap, Website, config_map, website
from trimtab.api.kinds import Deployment, Pod
from trimtab.api.resource import Info, Metadata
from trimtab.client import Client, Impersonation
from trimtab.client.errors import (
    BadRequest,
    Forbidden,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from trimtab.kinds import Secret
from trimtab.testing import Cluster, eventually

SELF_REVIEW = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "SelfSubjectReview",
}
CONTAINERS = [{"name": "main", "image": "nowhere.example/none"}]


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as made:
        yield made


async def pod(client: Client, name: str = "web", **metadata: Any) -> None:
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": {"containers": CONTAINERS},
        }
    )


async def whoami(client: Client) -> str:
    answer = await client.create(SELF_REVIEW)
    name: str = answer["status"]["userInfo"]["username"]
    return name


# Reading


async def test_an_object_is_read_by_class_and_by_discovered_kind(
    client: Client, namespace: str
) -> None:
    made = await client.create(config_map(a="1"))
    typed = await client.get(ConfigMap, "one")
    assert typed == made
    assert (typed.data, typed.metadata.namespace) == ({"a": "1"}, namespace)
    kind = await client.discover("v1", "ConfigMap")
    assert kind == CONFIG_MAPS
    plain = await client.get(kind, "one")
    assert plain["data"] == {"a": "1"}
    assert plain["metadata"]["uid"] == typed.metadata.uid
    cached = await client.get(ConfigMap, "one", resource_version="0")
    assert cached.metadata.uid == typed.metadata.uid


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        await client.get(ConfigMap, "none")
    assert caught.value.details.name == "none"
    assert caught.value.reason == "NotFound"
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "one", namespace="no-such-namespace")


async def test_a_list_of_several_pages_is_whole_and_of_one_revision(
    client: Client, namespace: str
) -> None:
    # Secrets, since a cluster puts none into a namespace by itself.
    names = [f"m{number:02}" for number in range(23)]
    for name in names:
        await client.create(Secret(metadata=Metadata(name=name)))
    listing = client.list(Secret, namespace=namespace, page=5)
    first = await listing.next_page()
    revision = listing.resource_version
    assert (len(first), listing.remaining) == (5, 18)
    # After the list began, so not in it.
    await client.create(Secret(metadata=Metadata(name="m99")))
    rest = [each async for part in listing.pages() for each in part]
    assert [each.metadata.name for each in [*first, *rest]] == names
    assert listing.resource_version == revision
    secrets = await client.discover("v1", "Secret")
    plain = [
        each["metadata"]["name"]
        async for each in client.list(secrets, namespace=namespace, page=7)
    ]
    assert plain == [*names, "m99"]


async def test_selectors_choose(client: Client, namespace: str) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {})):
        await client.create(ConfigMap(metadata=Metadata(name=name, labels=labels)))

    async def names(**options: Any) -> list[str]:
        listing = client.list(ConfigMap, namespace=namespace, page=1, **options)
        return [each.metadata.name async for each in listing if is_ours(each)]

    assert await names(labels={"x": "1"}) == ["a"]
    assert await names(labels="x") == ["a", "b"]
    assert await names(labels="x in (1,2),x!=1") == ["b"]
    assert await names(labels="!x") == ["c"]
    assert await names(fields={"metadata.name": "c"}) == ["c"]
    assert await names(labels="x", fields="metadata.name!=a") == ["b"]
    assert await names(labels={"x": "3"}) == []


async def test_revisions_can_be_asked_for(client: Client, namespace: str) -> None:
    one = await client.create(config_map("one"))
    two = await client.create(config_map("two"))

    async def names(**options: Any) -> list[str]:
        listing = client.list(ConfigMap, namespace=namespace, page=0, **options)
        return [each.metadata.name async for each in listing if is_ours(each)]

    then, now = one.metadata.resourceVersion, two.metadata.resourceVersion
    assert await names(resource_version=then, match="Exact") == ["one"]
    newer = await names(resource_version=now, match="NotOlderThan")
    assert newer == ["one", "two"]
    assert set(await names(resource_version="0")) <= {"one", "two"}


async def test_all_namespaces_are_listed_unless_one_is_named(
    client: Client, namespace: str
) -> None:
    await client.create(config_map("mine"))
    everywhere = [each.metadata.name async for each in client.list(ConfigMap)]
    assert "mine" in everywhere
    assert "extension-apiserver-authentication" in everywhere


# Discovery


async def test_everything_that_the_server_has_is_discovered(client: Client) -> None:
    assert await client.discover("apps/v1", "Deployment") == Info(
        group="apps", version="v1", kind="Deployment", plural="deployments"
    )
    node = await client.discover("v1", "Node")
    assert not node.namespaced
    found = {(info.group, info.kind) for info in await client.discovery.all()}
    assert {("", "Pod"), ("apps", "Deployment"), ("batch", "Job")} <= found
    assert client.statistics().requests == {("discover", "200"): 2}


async def test_a_kind_that_comes_later_is_found(client: Client) -> None:
    group = "later.trimtab.dev"
    with pytest.raises(NotFound, match="Gadget"):
        await client.discover(f"{group}/v1", "Gadget")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    await defines(
        client,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{group}"},
            "spec": {
                "group": group,
                "names": {"kind": "Gadget", "plural": "gadgets"},
                "scope": "Cluster",
                "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            },
        },
    )

    async def find() -> Info | None:
        try:
            return await client.discover(f"{group}/v1", "Gadget")
        except NotFound:
            return None

    gadgets = await eventually(find, within=30, every=0.2)
    assert gadgets is not None
    assert (gadgets.plural, gadgets.namespaced) == ("gadgets", False)
    plain = {"apiVersion": f"{group}/v1", "kind": "Gadget"}
    await client.create({**plain, "metadata": {"name": "one"}, "size": 5})
    assert (await client.get(gadgets, "one"))["size"] == 5


# Subresources


async def test_a_deployment_is_scaled(client: Client, namespace: str) -> None:
    labels = {"app": "web"}
    await client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": CONTAINERS},
                },
            },
        }
    )
    assert await client.replicas(Deployment, "web") == 2
    assert await client.scale(Deployment, "web", 5) == 5
    assert await client.replicas(Deployment, "web") == 5
    assert (await client.get(Deployment, "web")).spec.replicas == 5
    assert await client.scale(Deployment, "web", 0) == 0
    with pytest.raises(NotFound):
        await client.scale(Deployment, "none", 1)


async def test_a_pod_is_evicted(client: Client) -> None:
    await pod(client)
    await client.evict("web", dry_run=True)
    web = await client.get(Pod, "web")
    await client.evict("web", uid=web.metadata.uid, grace=0)
    with pytest.raises(NotFound):
        await client.get(Pod, "web")
    with pytest.raises(NotFound):
        await client.evict("web")


async def test_an_eviction_that_a_budget_forbids_is_an_answer_and_not_tried_again(
    client: Client,
) -> None:
    await pod(client, labels={"app": "web"})
    ready = [{"type": "Ready", "status": "True"}]
    await client.patch(
        Pod,
        "web",
        {"status": {"phase": "Running", "conditions": ready}},
        subresource="status",
    )
    await client.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
        }
    )
    with pytest.raises(TooManyRequests):
        await client.evict("web")
    assert client.statistics().requests["evict", "429"] == 1


async def test_the_log_of_a_pod_that_never_ran_is_empty(client: Client) -> None:
    await pod(client)
    async with client.logs("web", container="main", tail=5) as log:
        assert [line async for line in log] == []
    with pytest.raises(BadRequest, match="not valid"):
        async with client.logs("web", container="other"):
            pass
    with pytest.raises(NotFound):
        async with client.logs("none", follow=True):
            pass


async def test_any_subresource_can_be_named(client: Client) -> None:
    await defines(client)
    await client.create(website(replicas=3))
    got = await client.subresource(Website, "one", "status", into=dict)
    assert got["spec"]["replicas"] == 3
    with pytest.raises(NotFound):
        await client.subresource(Website, "one", "nothing", into=dict)


# Who asks


@pytest.mark.cluster("real")  # the embedded server has no RBAC yet
async def test_a_token_is_issued_and_accepted(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    await client.create({**account, "metadata": {"name": "robot"}})
    token = await client.token("robot", seconds=600)
    assert token.token not in repr(token)
    user = f"system:serviceaccount:{namespace}:robot"
    async with client_of(cluster, namespace=namespace, token=token.token) as robot:
        assert await whoami(robot) == user
        with pytest.raises(Forbidden) as caught:
            await robot.get(ConfigMap, "one")
        assert "robot" in str(caught.value)
        assert token.token not in str(caught.value)
    other = await client.token("robot", audiences=["elsewhere"])
    async with client_of(cluster, namespace=namespace, token=other.token) as stranger:
        with pytest.raises(Unauthorized):
            await whoami(stranger)


async def test_a_token_that_nobody_issued_is_unauthorized(
    cluster: Cluster, namespace: str
) -> None:
    async with client_of(cluster, namespace=namespace, token="forged-0") as stranger:
        with pytest.raises(Unauthorized) as caught:
            await stranger.get(ConfigMap, "one")
        assert "forged-0" not in str(caught.value)
        assert stranger.statistics().requests == {("get", "401"): 2}


@pytest.mark.cluster("real")  # the embedded server has no RBAC yet
async def test_access_is_reviewed(client: Client, namespace: str) -> None:
    assert (await client.may_i("delete", ConfigMap)).allowed
    ann = await client.may("ann", "get", ConfigMap, namespace=namespace)
    assert not ann.allowed
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io"
    await client.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": {"name": "reader"},
            "rules": [rule],
        }
    )
    await client.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "readers"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "readers"}],
        }
    )

    async def may(verb: str, **options: Any) -> bool:
        asked = {"namespace": namespace, "groups": ["readers"], **options}
        return (await client.may("ann", verb, ConfigMap, **asked)).allowed

    async def is_in_force() -> bool:
        return await may("get")

    await eventually(is_in_force)
    assert not await may("delete")
    assert not await may("get", groups=[])
    assert not await may("get", namespace=None)
    assert not await may("get", subresource="status")


@pytest.mark.cluster("real")  # the embedded server has no RBAC yet
async def test_a_client_can_act_as_somebody_else(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    acting = Impersonation(user="ann", groups=("readers", "writers"))
    async with client_of(cluster, namespace=namespace, acting=acting) as ann:
        answer = await ann.create(SELF_REVIEW)
        user = answer["status"]["userInfo"]
        assert user["username"] == "ann"
        assert {"readers", "writers"} <= set(user["groups"])
        assert not (await ann.may_i("get", ConfigMap, namespace=namespace)).allowed
        with pytest.raises(Forbidden):
            await ann.create(config_map())
    acting = Impersonation(user="ann", groups=("system:masters",))
    async with client_of(cluster, namespace=namespace, acting=acting) as master:
        await master.create(config_map())
    assert (await client.get(ConfigMap, "one")).metadata.uid
