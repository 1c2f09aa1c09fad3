"""Objects that tests of the server write, and the custom kind among them."""

from __future__ import annotations

from typing import Any

from tests import definitions
from tests.client.clusters import client_of, defines
from tests.definitions import structure
from tests.embedded.asking import Asker, Plain
from trimtab.testing import Cluster, eventually

GROUP = "writes.example.com"
STRANGER = "11111111-1111-1111-1111-111111111111"


def definition(plural: str, kind: str, **subresources: Plain) -> Plain:
    """A custom kind with a size, a number of replicas and a status."""
    whole = {"type": "integer"}
    schema = structure(
        spec=structure(size=whole, replicas=whole),
        status=structure(
            seen={"type": "boolean"}, replicas=whole, selector={"type": "string"}
        ),
    )
    return definitions.definition(
        plural, kind, group=GROUP, schema=schema, subresources=subresources
    )


async def custom(
    cluster: Cluster, ask: Asker, plural: str, kind: str, **subresources: Plain
) -> str:
    """The path of a custom kind that is served from now on."""
    async with client_of(cluster, namespace=ask.namespace) as client:
        await defines(client, definition(plural, kind, **subresources))
    path = ask.path(plural, group=GROUP)

    async def is_served() -> bool:
        return (await ask("GET", path)).status == 200

    await eventually(is_served, within=20)
    return path


def config_map(name: str = "one", /, **more: Any) -> Plain:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return {**obj, "data": {"a": "1"}, **more}


def meta_map(**metadata: Any) -> Plain:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def gadget(name: str = "one", /, **more: Any) -> Plain:
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}}
    return {**obj, "spec": {"size": 1}, **more}


def deployment(name: str = "web", /, **more: Any) -> Plain:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
        **more,
    }


def labelled(name: str, /, **labels: str) -> Plain:
    return meta_map(name=name, labels=labels)
