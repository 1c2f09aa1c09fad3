"""The law of the fresh server: it has what a real one has, object by object.

The recorded objects are compared with whichever server runs, so that the run on a real
one shows whether the record is still true.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from typing import Any

import msgspec
import pytest

from hack.record_bootstrap import plain
from tests.embedded.asking import Asker, Plain, asking
from trimtab.testing import Cluster, Options, eventually
from trimtab.testing.cluster import started

pytestmark = pytest.mark.cluster("embedded", "real")

# What a real control plane has and an embedded one has no use for, by kind or by name.
ABSENT_KINDS = {
    "ComponentStatus": "nobody but it runs",
    "Lease": "there is one server",
}
ABSENT = {
    "ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking": (
        "tokens were never kept in Secrets"
    ),
}
CONTROLLERS = "ServiceAccount kube-system/"
"""The controllers of a real control plane have accounts there; ours have none."""

PLACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind = request.config.getoption("--cluster")
    with started(kind, options=Options(controllers=True)) as cluster:
        yield cluster


@pytest.fixture
async def ask(fresh: Cluster) -> AsyncIterator[Asker]:
    async with asking(fresh, "default") as made:
        yield made


def named(obj: Plain) -> str:
    meta = obj["metadata"]
    return f"{obj['kind']} {meta.get('namespace', '')}/{meta['name']}"


def expected() -> dict[str, Plain]:
    """The recorded objects, and what each namespace and the server itself have."""
    data = files("trimtab.embedded").joinpath("data/bootstrap.jsonl").read_bytes()
    found = {}
    for line in data.splitlines():
        obj = msgspec.json.decode(line)
        found[named(obj)] = obj
    furniture = [f"ServiceAccount {place}/default" for place in PLACES]
    furniture += [f"ConfigMap {place}/kube-root-ca.crt" for place in PLACES]
    furniture.append("ConfigMap kube-system/extension-apiserver-authentication")
    furniture.append("Service default/kubernetes")
    furniture += ["ServiceCIDR /kubernetes", "IPAddress /10.0.0.1"]
    return found | {name: {} for name in furniture}


async def kinds(ask: Asker) -> list[tuple[str, str, str]]:
    """Where every kind is listed, its version, and its name."""
    groups = (await ask("GET", "/apis")).obj["groups"]
    versions = [each["preferredVersion"]["groupVersion"] for each in groups]
    found = []
    for version in ("v1", *versions):
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        found += [
            (f"{root}/{each['name']}", version, each["kind"])
            for each in (await ask("GET", root)).obj["resources"]
            if "list" in each["verbs"] and "/" not in each["name"]
        ]
    return found


async def everything(ask: Asker) -> dict[str, Plain]:
    """Every object that can be listed, without what we have no use for."""
    found: dict[str, Plain] = {}
    for path, version, kind in await kinds(ask):
        for item in (await ask("GET", path)).obj["items"] or ():
            obj = plain({"apiVersion": version, "kind": kind, **item})
            name = named(obj)
            controllers = name.startswith(CONTROLLERS) and "/default" not in name
            if kind not in ABSENT_KINDS and name not in ABSENT and not controllers:
                found[name] = obj
    return found


async def test_a_fresh_server_has_what_a_real_one_has(ask: Asker) -> None:
    wanted = expected()
    seen: dict[str, Any] = {}

    async def is_complete() -> bool:
        seen.clear()
        seen.update(await everything(ask))
        aggregated = (seen.get(f"ClusterRole /{name}") for name in ("admin", "view"))
        filled = all(role is not None and role.get("rules") for role in aggregated)
        return filled and seen.keys() >= wanted.keys()

    await eventually(is_complete, within=40, every=0.5)
    assert sorted(seen) == sorted(wanted)
    # Certificates and ports are those of one server; all else is the same everywhere.
    different = [name for name, obj in wanted.items() if obj and seen[name] != obj]
    assert different == []


async def test_what_each_namespace_has_is_the_same_in_all(ask: Asker) -> None:
    authorities = set()
    for place in PLACES:
        found = await ask(
            "GET", f"/api/v1/namespaces/{place}/configmaps/kube-root-ca.crt"
        )
        assert found.obj.keys() == {"apiVersion", "kind", "metadata", "data"}
        assert found.meta["annotations"].keys() == {"kubernetes.io/description"}
        authorities.add(found.obj["data"]["ca.crt"])
        account = await ask(
            "GET", f"/api/v1/namespaces/{place}/serviceaccounts/default"
        )
        assert account.obj.keys() == {"apiVersion", "kind", "metadata"}
    assert len(authorities) == 1


async def test_the_service_of_the_server_is_as_a_real_one(ask: Asker) -> None:
    spec = (await ask("GET", f"{ask.path('services')}/kubernetes")).obj["spec"]
    [port] = spec.pop("ports")
    assert port.pop("targetPort")
    assert port == {"name": "https", "protocol": "TCP", "port": 443}
    address = spec.pop("clusterIP")
    assert spec == {
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
