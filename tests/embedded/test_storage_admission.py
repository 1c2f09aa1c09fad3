"""What claims, volumes and ingresses get on their way in, and when they may go.

Each law runs unchanged on the embedded server and on kube-apiserver. There,
kube-controller-manager lets go of what nobody uses, so that one runs too.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker, Plain
from tests.embedded.rooms import Room, ask, controlled, room
from trimtab.testing import eventually

__all__ = ["ask", "controlled", "room"]
pytestmark = pytest.mark.cluster("embedded", "real")

STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
INGRESS = "/apis/networking.k8s.io/v1"
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"


def claim(name: str, **spec: Any) -> Plain:
    resources = {"requests": {"storage": "1Gi"}}
    modes = ["ReadWriteOnce"]
    given = {"accessModes": modes, "resources": resources, **spec}
    return {"metadata": {"name": name}, "spec": given}


@asynccontextmanager
async def default_class(ask: Asker, path: str, **body: Any) -> AsyncIterator[str]:
    """A class that those get who name none."""
    name = f"class-{secrets.token_hex(4)}"
    kind = "storageclass" if "storage" in path else "ingressclass"
    notes = {f"{kind}.kubernetes.io/is-default-class": "true"}
    meta = {"name": name, "annotations": notes}
    assert (await ask("POST", path, {"metadata": meta, **body})).status == 201
    yield name
    await ask("DELETE", f"{path}/{name}")


async def test_a_claim_without_a_class_gets_the_default_one(room: Room) -> None:
    ask, path = room.ask, f"{room.place}/persistentvolumeclaims"
    async with default_class(ask, STORAGE, provisioner="example.com/p") as name:

        async def is_known() -> bool:
            tried = await ask("POST", path, claim("x"), dryRun="All")
            return bool(tried.obj["spec"].get("storageClassName") == name)

        await eventually(is_known, within=10)
        made = await ask("POST", path, claim("a"))
        assert made.meta["finalizers"] == [CLAIM_FINALIZER]
        assert made.obj["spec"]["storageClassName"] == name
        none = await ask("POST", path, claim("b", storageClassName=""))
        assert none.obj["spec"]["storageClassName"] == ""


async def test_an_ingress_without_a_class_gets_the_default_one(room: Room) -> None:
    ask, path = room.ask, f"{INGRESS}/namespaces/{room.name}/ingresses"
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    spec = {"controller": "example.com/c"}
    body = {"metadata": {"name": "a"}, "spec": {"defaultBackend": backend}}
    async with default_class(ask, f"{INGRESS}/ingressclasses", spec=spec) as name:

        async def is_known() -> bool:
            tried = await ask("POST", path, body, dryRun="All")
            return bool(tried.obj["spec"].get("ingressClassName") == name)

        await eventually(is_known, within=10)
        old = {"name": "b", "annotations": {"kubernetes.io/ingress.class": "mine"}}
        made = await ask("POST", path, {**body, "metadata": old})
        assert "ingressClassName" not in made.obj["spec"]


async def test_a_claim_in_use_stays_until_its_pod_is_gone(room: Room) -> None:
    ask, path = room.ask, f"{room.place}/persistentvolumeclaims"
    assert (await ask("POST", path, claim("c"))).status == 201
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    spec = {
        "nodeName": "somewhere",
        "containers": [{"name": "main", "image": "x"}],
        "volumes": [volume],
    }
    pods = f"{room.place}/pods"
    pod = {"metadata": {"name": "p"}, "spec": spec}
    assert (await ask("POST", pods, pod)).status == 201
    marked = await ask("DELETE", f"{path}/c")
    assert marked.meta["finalizers"] == [CLAIM_FINALIZER]
    assert marked.meta["deletionTimestamp"]
    assert (await ask("GET", f"{path}/c")).status == 200
    await ask("DELETE", f"{pods}/p?gracePeriodSeconds=0")

    async def is_gone() -> bool:
        return (await ask("GET", f"{path}/c")).status == 404

    await eventually(is_gone, within=20)


async def test_a_volume_that_nobody_has_goes_when_it_is_told(room: Room) -> None:
    ask, name = room.ask, f"volume-{secrets.token_hex(4)}"
    path = "/api/v1/persistentvolumes"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp"},
    }
    made = await ask("POST", path, {"metadata": {"name": name}, "spec": spec})
    assert made.meta["finalizers"] == ["kubernetes.io/pv-protection"]
    await ask("DELETE", f"{path}/{name}")

    async def is_gone() -> bool:
        return (await ask("GET", f"{path}/{name}")).status == 404

    await eventually(is_gone, within=20)


async def grow(ask: Asker, path: str) -> Any:
    # A controller may find that there is no such volume, so that it is bound again.
    state = {"status": {"phase": "Bound"}}
    bound = await ask("PATCH", f"{path}/status", state, media=MERGE)
    assert bound.obj["status"]["phase"] == "Bound"
    body = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    answer = await ask("PATCH", path, body, media=MERGE)
    return answer if answer.status in (200, 403) else None


async def test_a_claim_grows_only_if_its_class_lets_it(room: Room) -> None:
    ask, path = room.ask, f"{room.place}/persistentvolumeclaims"
    for allowed in (False, True):
        name = f"class-{secrets.token_hex(4)}"
        body = {
            "metadata": {"name": name},
            "provisioner": "example.com/p",
            "allowVolumeExpansion": allowed,
        }
        assert (await ask("POST", STORAGE, body)).status == 201
        spec = {"storageClassName": name, "volumeName": f"v-{name}"}
        assert (await ask("POST", path, claim(name, **spec))).status == 201
        where = f"{path}/{name}"
        answer = await eventually(partial(grow, ask, where), within=20)
        if allowed:
            assert answer.status == 200
        else:
            assert answer.refusal[2] == (
                f'persistentvolumeclaims "{name}" is forbidden: only dynamically '
                "provisioned pvc can be resized and the storageclass that provisions "
                "the pvc must support resize"
            )
        await ask("DELETE", f"{STORAGE}/{name}")
