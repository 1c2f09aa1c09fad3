"""What a fresh server has before anybody wrote to it, as a real one has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.embedded.asking import Asker, asking
from trimtab.testing import Cluster, Options, eventually
from trimtab.testing.cluster import started

pytestmark = pytest.mark.cluster("embedded", "real")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind = request.config.getoption("--cluster")
    with started(kind, options=Options(controllers=True)) as cluster:
        yield cluster


@pytest.fixture
async def ask(fresh: Cluster) -> AsyncIterator[Asker]:
    async with asking(fresh, "default") as made:
        yield made


async def _names(ask: Asker, path: str) -> set[str]:
    items = (await ask("GET", path)).obj["items"]
    return {each["metadata"]["name"] for each in items}


async def test_the_first_namespaces_are_there(ask: Asker) -> None:
    wanted = {"default", "kube-system", "kube-public", "kube-node-lease"}

    async def are_there() -> bool:
        return await _names(ask, "/api/v1/namespaces") == wanted

    await eventually(are_there, within=20)


async def test_the_default_roles_and_bindings_are_there(ask: Asker) -> None:
    roles = await _names(ask, f"{RBAC}/clusterroles")
    assert {"cluster-admin", "admin", "edit", "view", "system:node"} <= roles
    bindings = await _names(ask, f"{RBAC}/clusterrolebindings")
    assert {"cluster-admin", "system:basic-user", "system:discovery"} <= bindings


@pytest.mark.parametrize("name", ["admin", "edit", "view"])
async def test_aggregated_roles_have_rules(ask: Asker, name: str) -> None:
    # What is aggregated of it comes one by one.
    async def has_pods() -> bool:
        role = (await ask("GET", f"{RBAC}/clusterroles/{name}")).obj
        return any(
            "pods" in each["resources"] and "get" in each["verbs"]
            for each in role.get("rules") or ()
        )

    await eventually(has_pods, within=20)


async def test_the_system_priority_classes_are_there(ask: Asker) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    items = (await ask("GET", path)).obj["items"]
    assert {each["metadata"]["name"]: each["value"] for each in items} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


async def test_the_server_is_a_service_of_its_own(ask: Asker) -> None:
    async def service() -> Any:
        found = await ask("GET", f"{ask.path('services')}/kubernetes")
        return found.obj if found.status == 200 else None

    obj = await eventually(service, within=20)
    labels = {"component": "apiserver", "provider": "kubernetes"}
    assert obj["metadata"]["labels"] == labels
    assert [each["port"] for each in obj["spec"]["ports"]] == [443]


@pytest.mark.parametrize(
    ("namespace", "name", "key"),
    [
        ("default", "kube-root-ca.crt", "ca.crt"),
        ("kube-system", "extension-apiserver-authentication", "client-ca-file"),
    ],
)
async def test_the_certificate_authority_can_be_read(
    ask: Asker, namespace: str, name: str, key: str
) -> None:
    async def certificate() -> Any:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = await ask("GET", path)
        return found.obj["data"].get(key) if found.status == 200 else None

    text = await eventually(certificate, within=20)
    assert text.startswith("-----BEGIN CERTIFICATE-----")
