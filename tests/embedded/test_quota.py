"""What the objects of a namespace may take together, and do.

Each law runs unchanged on the embedded server and on kube-apiserver. There, the status
of a quota is kept by kube-controller-manager, so that one runs too.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Answer, Plain
from tests.embedded.rooms import Room, ask, controlled, room
from trimtab.testing import eventually

__all__ = ["ask", "controlled", "room"]
pytestmark = pytest.mark.cluster("embedded", "real")


def pod(name: str, *, main: Plain | None = None, **spec: Any) -> Plain:
    container = {"name": "main", "image": "x", "resources": main or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def service(name: str, type: str, ports: int = 1) -> Plain:
    given = [{"name": f"p{index}", "port": 80 + index} for index in range(ports)]
    return {"metadata": {"name": name}, "spec": {"type": type, "ports": given}}


def claim(name: str, size: str, **spec: Any) -> Plain:
    resources = {"requests": {"storage": size}}
    modes = ["ReadWriteOnce"]
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": modes, "resources": resources, **spec},
    }


def plain(name: str) -> Plain:
    return {"metadata": {"name": name}}


class Scarce:
    """A room with a quota whose status is known."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.ask = room.ask
        self.quota = f"{room.place}/resourcequotas/q"

    def path(self, plural: str, group: str = "") -> str:
        if not group:
            return f"{self.room.place}/{plural}"
        return f"/apis/{group}/v1/namespaces/{self.room.name}/{plural}"

    async def limit(self, hard: Plain, **spec: Any) -> None:
        body = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
        made = await self.ask("POST", self.path("resourcequotas"), body)
        assert made.status == 201, made.body
        await self.is_told(hard=hard)

    async def is_told(
        self, *, hard: Plain | None = None, used: Plain | None = None
    ) -> Plain:
        async def told() -> Any:
            found = (await self.ask("GET", self.quota)).obj.get("status") or {}
            same = hard is None or found.get("hard") == hard
            known = found.get("used") or {}
            if used is None:
                counted = bool(known)
            else:
                counted = {key: known.get(key) for key in used} == used
            return found if same and counted else None

        found: Plain = await eventually(told, within=40, describe=f"{used}")
        return found

    async def make(self, plural: str, body: Plain, *, group: str = "") -> Answer:
        return await self.ask("POST", self.path(plural, group), body)


@pytest.fixture
async def scarce(room: Room) -> Scarce:
    return Scarce(room)


SMALL = {"requests": {"cpu": "600m", "memory": "64Mi"}}
LARGE = {
    "requests": {"cpu": "600m", "ephemeral-storage": "1Gi"},
    "limits": {"memory": "600Mi", "cpu": "1"},
}


@pytest.mark.parametrize(
    ("hard", "plural", "first", "second", "told"),
    [
        ({"pods": "1"}, "pods", pod("a"), pod("b"), "pods=1|pods=1|pods=1"),
        (
            {"requests.cpu": "1", "memory": "1Gi"},
            "pods",
            pod("a", main=SMALL),
            pod("b", main=SMALL),
            "requests.cpu=600m|requests.cpu=600m|requests.cpu=1",
        ),
        (
            {"limits.memory": "1Gi", "requests.ephemeral-storage": "1536Mi"},
            "pods",
            pod("a", main=LARGE),
            pod("b", main=LARGE),
            (
                "limits.memory=600Mi,requests.ephemeral-storage=1Gi|"
                "limits.memory=600Mi,requests.ephemeral-storage=1Gi|"
                "limits.memory=1Gi,requests.ephemeral-storage=1536Mi"
            ),
        ),
        (
            {"services.nodeports": "3"},
            "services",
            service("a", "NodePort", 2),
            service("b", "LoadBalancer", 2),
            "services.nodeports=2|services.nodeports=2|services.nodeports=3",
        ),
        (
            {"services.loadbalancers": "1", "services": "5"},
            "services",
            service("a", "LoadBalancer"),
            service("b", "LoadBalancer"),
            (
                "services.loadbalancers=1|services.loadbalancers=1|"
                "services.loadbalancers=1"
            ),
        ),
        (
            {"requests.storage": "3Gi", "persistentvolumeclaims": "5"},
            "persistentvolumeclaims",
            claim("a", "2Gi"),
            claim("b", "2Gi"),
            "requests.storage=2Gi|requests.storage=2Gi|requests.storage=3Gi",
        ),
        (
            {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"},
            "persistentvolumeclaims",
            claim("a", "2Gi", storageClassName="silver"),
            claim("b", "2Gi", storageClassName="gold"),
            (
                "gold.storageclass.storage.k8s.io/requests.storage=2Gi|"
                "gold.storageclass.storage.k8s.io/requests.storage=0|"
                "gold.storageclass.storage.k8s.io/requests.storage=1Gi"
            ),
        ),
        (
            {"secrets": "1"},
            "secrets",
            plain("a"),
            plain("b"),
            "secrets=1|secrets=1|secrets=1",
        ),
        (
            {"count/serviceaccounts": "2"},
            "serviceaccounts",
            plain("a"),
            plain("b"),
            "count/serviceaccounts=1|count/serviceaccounts=2|count/serviceaccounts=2",
        ),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
async def test_what_takes_more_than_there_is_is_refused(
    scarce: Scarce, hard: Plain, plural: str, first: Plain, second: Plain, told: str
) -> None:
    if hard.keys() & {"secrets", "pods"}:
        assert (await scarce.ask("GET", scarce.path(plural))).names == []
    await scarce.limit(hard)
    made = await scarce.make(plural, first)
    assert made.status == 201, made.body
    refused = await scarce.make(plural, second)
    asked, used, most = told.split("|")
    assert refused.refusal == (
        403,
        "Forbidden",
        (
            f'{plural} "b" is forbidden: exceeded quota: q, requested: {asked}, used: '
            f"{used}, limited: {most}"
        ),
    )


async def test_objects_of_any_kind_can_be_counted(scarce: Scarce) -> None:
    hard = {"count/leases.coordination.k8s.io": "1", "configmaps": "1"}
    await scarce.limit(hard)
    group = "coordination.k8s.io"
    assert (await scarce.make("leases", plain("a"), group=group)).status == 201
    refused = await scarce.make("leases", plain("b"), group=group)
    name = "count/leases.coordination.k8s.io=1"
    assert refused.refusal[2] == (
        'leases.coordination.k8s.io "b" is forbidden: exceeded quota: q, requested: '
        f"{name}, used: {name}, limited: {name}"
    )
    # Every namespace has one already.
    assert (await scarce.make("configmaps", plain("a"))).status == 403


async def test_what_a_quota_counts_every_container_has_to_say(scarce: Scarce) -> None:
    await scarce.limit({"requests.cpu": "2", "limits.memory": "2Gi", "cpu": "2"})
    body = pod("a", main={"requests": {"cpu": "1"}})
    body["spec"]["containers"].append({"name": "side", "image": "x"})
    refused = await scarce.make("pods", body)
    assert refused.refusal == (
        403,
        "Forbidden",
        (
            'pods "a" is forbidden: failed quota: q: must specify cpu for: side; '
            "limits.memory for: main,side; requests.cpu for: side"
        ),
    )


async def test_a_quota_with_a_scope_counts_some_pods(scarce: Scarce) -> None:
    await scarce.limit({"pods": "1"}, scopes=["BestEffort", "NotTerminating"])
    assert (await scarce.make("pods", pod("a"))).status == 201
    assert (await scarce.make("pods", pod("b"))).status == 403
    assert (await scarce.make("pods", pod("c", main=SMALL))).status == 201
    ending = pod("d", activeDeadlineSeconds=60)
    assert (await scarce.make("pods", ending)).status == 201
    await scarce.is_told(used={"pods": "1"})


async def test_a_quota_can_be_about_a_priority(scarce: Scarce) -> None:
    expression = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": ["system-cluster-critical"],
    }
    await scarce.limit({"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    assert (await scarce.make("pods", pod("a"))).status == 201
    critical = pod("b", priorityClassName="system-cluster-critical")
    refused = await scarce.make("pods", critical)
    told = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    assert refused.refusal[2] == f'pods "b" is forbidden: {told}'


async def test_the_status_follows_what_comes_and_goes(scarce: Scarce) -> None:
    await scarce.limit({"pods": "3", "requests.cpu": "2", "services": "1"})
    main = {"requests": {"cpu": "250m"}}
    for name in ("a", "b"):
        assert (await scarce.make("pods", pod(name, main=main))).status == 201
    used = {"pods": "2", "requests.cpu": "500m", "services": "0"}
    await scarce.is_told(used=used)
    path = f"{scarce.path('pods')}/a?gracePeriodSeconds=0"
    assert (await scarce.ask("DELETE", path)).status == 200
    await scarce.is_told(used={**used, "pods": "1", "requests.cpu": "250m"})
    body = {"spec": {"hard": {"services": None, "pods": "9"}}}
    await scarce.ask("PATCH", scarce.quota, body, media=MERGE)
    told = await scarce.is_told(hard={"pods": "9", "requests.cpu": "2"})
    assert told["used"] == {"pods": "1", "requests.cpu": "250m"}


async def test_a_dry_run_takes_nothing_and_is_refused_alike(scarce: Scarce) -> None:
    await scarce.limit({"pods": "1"})
    path = scarce.path("pods")
    for name in ("a", "b"):
        tried = await scarce.ask("POST", path, pod(name), dryRun="All")
        assert tried.status == 201
    assert (await scarce.make("pods", pod("c"))).status == 201
    assert (await scarce.ask("POST", path, pod("d"), dryRun="All")).status == 403
    await scarce.is_told(used={"pods": "1"})


# A real cluster's controller counts anew from a cache, and may give back what it has
# not seen yet: there, one more is sometimes made.
@pytest.mark.cluster("embedded")
async def test_many_at_once_never_take_more_than_there_is(scarce: Scarce) -> None:
    await scarce.limit({"secrets": "4"})
    made = await asyncio.gather(
        *(scarce.make("secrets", plain(f"s{index}")) for index in range(12))
    )
    assert sorted(each.status for each in made) == [201] * 4 + [403] * 8
    assert len((await scarce.ask("GET", scarce.path("secrets"))).names) == 4


async def test_an_update_is_charged_for_what_it_adds(scarce: Scarce) -> None:
    await scarce.limit({"services.nodeports": "1"})
    assert (await scarce.make("services", service("a", "ClusterIP", 2))).status == 201
    body = {"spec": {"type": "NodePort"}}
    path = f"{scarce.path('services')}/a"
    refused = await scarce.ask("PATCH", path, body, media=MERGE)
    assert refused.refusal[2] == (
        'services "a" is forbidden: exceeded quota: q, requested: '
        "services.nodeports=2, used: services.nodeports=0, limited: "
        "services.nodeports=1"
    )
