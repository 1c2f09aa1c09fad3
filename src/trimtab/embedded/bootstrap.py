"""Bootstrap: the objects that a server has before anybody writes one.

A fresh real server has them, and clients count on them: the first namespaces, the
default roles and bindings, what is served, the Service of the API itself and the range
of its address, and in each namespace a service account and the certificate authority.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.embedded import flows
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Write

if TYPE_CHECKING:
    from trimtab.embedded.api import Api

Plain = dict[str, Any]
SERVER = "kube-apiserver"
CONTROLLERS = "kube-controller-manager"
ROOT_CA = "kube-root-ca.crt"
CA_NOTE = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the "
    "kube-apiserver when using internal endpoints such as the internal service IP or "
    "kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
}


def install(api: Api) -> None:
    """Put what is missing of them into the store."""
    for obj in recorded():
        if obj["apiVersion"] != flows.API_VERSION:  # those have a keeper of their own
            ensure(api, obj, manager=SERVER)
    ensure(api, _service(api), manager=SERVER)
    ensure(api, _range(api), manager=SERVER)
    ensure(api, _authentication(api), manager=SERVER)


@lru_cache(maxsize=1)
def _data() -> bytes:
    return files("trimtab.embedded").joinpath("data/bootstrap.jsonl").read_bytes()


def recorded(api_version: str = "") -> Iterator[Plain]:
    """The objects that a real server was seen to have; those of one group, or all."""
    mark = f'"apiVersion":"{api_version}'.encode()
    for line in _data().splitlines():
        if mark in line:
            yield msgspec.json.decode(line)


def furnish(api: Api, namespace: str) -> None:
    """Give a namespace what every namespace has, as it ought to be."""
    for obj in (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": ROOT_CA,
                "namespace": namespace,
                "annotations": CA_NOTE,
            },
            "data": {"ca.crt": api.settings.ca},
        },
    ):
        ensure(api, obj, manager=CONTROLLERS)
    _trust(api, namespace)


def _trust(api: Api, namespace: str) -> None:
    """Have a namespace know the authority, whatever else it was told."""
    kind = api.catalog.find("", "v1", "configmaps")
    assert kind is not None, "it is built in"
    row = api.store.get(kind.key(namespace, ROOT_CA))
    if row is None:
        return
    obj, wanted = kind.decode(row.value), {"ca.crt": api.settings.ca}
    if obj.get("data") != wanted:
        write = Write(kind=kind, namespace=namespace, name=ROOT_CA, manager=CONTROLLERS)
        api.registry.update(write, {**obj, "data": wanted})


def ensure(api: Api, obj: Plain, *, manager: str) -> None:
    """Create an object unless it is there."""
    kind = api.catalog.by_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None, "only built-in kinds are bootstrapped"
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    if api.store.get(kind.key(namespace, meta["name"])) is not None:
        return
    write = Write(kind=kind, namespace=namespace, manager=manager)
    kind.conform(obj, dict)
    try:
        api.registry.create(write, obj)
    except ApiProblem as problem:
        if problem.code not in (403, 404):  # a namespace that is just going
            raise


def _authentication(api: Api) -> Plain:
    """Where extension servers look up whom to trust."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "extension-apiserver-authentication",
            "namespace": "kube-system",
        },
        "data": {"client-ca-file": api.settings.ca},
    }


def _range(api: Api) -> Plain:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [api.settings.service_network]},
    }


def _service(api: Api) -> Plain:
    port = int(api.settings.address.rpartition(":")[2])
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": api.allocation.first,
            "ports": [
                {"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}
            ],
        },
    }
