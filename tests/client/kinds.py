"""Small kinds for tests of the client: what it sends and reads, and no more."""

from __future__ import annotations

from typing import Any

from trimtab.api.objects import Spec, Status, field
from trimtab.api.resource import Info, Metadata, Resource


class ConfigMap(Resource, version="v1", builtin=True):
    data: dict[str, str] = {}


class Namespace(Resource, version="v1", builtin=True, namespaced=False):
    pass


class WebsiteSpec(Spec):
    image: str = "nginx"
    replicas: int = 1


class WebsiteStatus(Status):
    ready: int = field(default=0, owner="controller")
    note: str = field(default="", owner="reviewer")


class Website(Resource, group="tests.trimtab.dev", version="v1", short="web"):
    """A kind with a definition of its own, which may be replaced."""

    spec: WebsiteSpec
    status: WebsiteStatus


class Counted(
    Resource, version="v1", builtin=True, kind="ConfigMap", gc=True, weakref=True
):
    """A ConfigMap whose lifetime a test can watch."""


CONFIG_MAPS = Info(version="v1", kind="ConfigMap", plural="configmaps")


def website(name: str = "one", *, replicas: int = 1) -> Website:
    return Website(
        metadata=Metadata(name=name),
        spec=WebsiteSpec(replicas=replicas),
        status=WebsiteStatus(),
    )


def config_map(name: str = "one", **data: str) -> ConfigMap:
    return ConfigMap(metadata=Metadata(name=name), data=data)


def item(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    """A ConfigMap as a server writes it."""
    metadata = {"name": name, "namespace": "default", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def page(*items: dict[str, Any], after: str = "", **metadata: Any) -> dict[str, Any]:
    """One page of a list; ``after`` is its continue token."""
    meta = {"resourceVersion": "7", "continue": after, **metadata}
    return {"kind": "ConfigMapList", "metadata": meta, "items": list(items)}


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def bookmark(version: str, *, initial: bool = False) -> dict[str, Any]:
    """A bookmark; ``initial`` says that what was there at the start is through."""
    marks = {"k8s.io/initial-events-end": "true"} if initial else {}
    metadata = {"resourceVersion": version, "annotations": marks}
    return event("BOOKMARK", {"kind": "ConfigMap", "metadata": metadata})
