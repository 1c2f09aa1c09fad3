"""What each example is seen to do, from the first object to the last.

Each scenario is told by an administrator, while the example's operator runs somewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from trimtab import Client
from trimtab.cli.loading import source_of
from trimtab.client.errors import Forbidden, NotFound
from trimtab.kinds import ConfigMap, Deployment
from trimtab.runtime.operator import Operator
from trimtab.testing import eventually
from trimtab.testing.operating import install

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Scenario = Callable[[Client, Operator], Awaitable[None]]


def example(name: str) -> Operator:
    """The operator of an example, loaded anew."""
    return source_of(EXAMPLES / f"{name}.py").operator()


async def served(client: Client, app: Operator) -> None:
    """Have the server serve what the operator reconciles; it may do so already."""
    await install(client, *app.kinds())


async def websites(client: Client, app: Operator) -> None:
    """A site becomes a Deployment, and its status says so."""
    (kind,) = app.kinds()
    spec = {"image": "example.com/shop:1", "replicas": 2}
    await _put(client, kind, "shop", spec)
    await _status(client, kind, "shop", wished=2)
    made = await client.get(Deployment, "shop")
    assert made.spec.replicas == 2
    assert made.metadata.ownerReferences[0].kind == "Website"


async def buckets(client: Client, app: Operator) -> None:
    """Letters come and go with their readers, and the bucket before its object."""
    (kind,) = app.kinds()
    await _put(client, kind, "films", {"readers": ["ann", "bob"]})
    await _status(client, kind, "films", readers=2)
    await client.patch(kind, "films", {"spec": {"readers": ["bob"]}})
    await _status(client, kind, "films", readers=1)
    await eventually(lambda: _gone(client, ConfigMap, "films-ann"))
    letter = await client.get(ConfigMap, "films-bob")
    assert letter.data["address"].startswith("eu.example.com/")
    await client.delete(kind, "films")
    await eventually(lambda: _gone(client, kind, "films"))
    place = client.config.namespace
    events = await client.discover("v1", "Event")

    async def told() -> bool:
        found = [each async for each in client.list(events, namespace=place)]
        return {"Made", "Removed"} <= {each["reason"] for each in found}

    await eventually(told)


async def volumes(client: Client, app: Operator) -> None:
    """A claim is made with the size and the labels that were asked for."""
    (kind,) = app.kinds()
    await _put(client, kind, "scratch", {"size": "1Gi"}, labels={"team": "a"})
    await _status(client, kind, "scratch", claim="scratch")
    claims = await client.discover("v1", "PersistentVolumeClaim")
    made = await client.get(claims, "scratch")
    assert made["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert made["metadata"]["labels"]["team"] == "a"


async def reservations(client: Client, app: Operator) -> None:
    """One is refused, one is filled in, and each is read in the other version."""
    new, old = app.kinds()
    await client.discovery.refresh()
    await eventually(lambda: is_refused(client, new, "crowd"), within=20)
    await _put(client, new, "ann", {"day": "2030-05-01", "note": "by the window"})
    await _status(client, new, "ann", table="small")
    made = await client.get(new.__resource__, "ann")
    assert made["spec"]["hour"] == "19:00"
    as_old = await client.get(old.__resource__, "ann")
    assert as_old["spec"] == {"when": "2030-05-01 19:00", "guests": 2}
    await client.patch(old, "ann", {"spec": {"guests": 6}})
    await _status(client, new, "ann", table="large")
    found = await client.get(new.__resource__, "ann")
    assert found["spec"] == {**made["spec"], "guests": 6}
    assert found["spec"]["note"] == "by the window"
    await client.delete(new, "ann")


SCENARIOS: dict[str, Scenario] = {
    "website": websites,
    "buckets": buckets,
    "from_kopf": volumes,
}
HOOKED: dict[str, Scenario] = {"reservations": reservations}
"""Those with webhooks, which somebody must serve."""


async def is_refused(client: Client, kind: Any, name: str) -> bool:
    """Whether a party of forty is told why it cannot come."""
    spec = {"day": "2030-05-01", "guests": 40}
    try:
        await _put(client, kind, name, spec, dry_run=True)
    except Forbidden as error:
        return "spec.guests: 40 are too many; 12 at most." in str(error)
    except NotFound:  # the kind is not served so far
        return False
    return False


async def _put(
    client: Client,
    kind: Any,
    name: str,
    spec: Any,
    *,
    dry_run: bool = False,
    **metadata: Any,
) -> None:
    info = kind.__resource__
    head = {"apiVersion": info.api_version, "kind": info.kind}
    body = {**head, "metadata": {"name": name, **metadata}, "spec": spec}
    await client.discovery.refresh()
    await client.create(body, dry_run=dry_run)


async def _status(client: Client, kind: Any, name: str, **wanted: Any) -> None:
    async def says() -> bool:
        found = await client.get(kind.__resource__, name)
        status = found.get("status", {})
        return {key: status.get(key, 0) for key in wanted} == wanted

    await eventually(says)


async def _gone(client: Client, kind: Any, name: str) -> bool:
    try:
        await client.get(kind, name)
    except NotFound:
        return True
    return False
