"""What an operator does only now and then, and how each of it is brought about.

An occasion ends when it has shown itself, or when the server has denied something.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.authoring.accounts import Account, running_as
from tests.examples.scenarios import example
from trimtab.client import Client
from trimtab.runtime.operator import Operator
from trimtab.testing import eventually

NAME = "kept"


@asynccontextmanager
async def replica(
    who: Account, admin: Client, name: str = "buckets"
) -> AsyncIterator[Operator]:
    """One process of an example."""
    app = example(name)
    app.within([admin.config.namespace])
    async with running_as(who, app, admin.config.namespace):
        yield app


async def put(admin: Client, app: Operator, *readers: str) -> str:
    """Have a bucket with these readers; its uid."""
    (kind,) = app.kinds()
    head = {"apiVersion": kind.__resource__.api_version, "kind": kind.kind}
    body = {**head, "metadata": {"name": NAME}, "spec": {"readers": list(readers)}}
    made = await admin.apply(body, manager="tests", force=True)
    return str(made["metadata"]["uid"])


async def settled(who: Account, admin: Client, app: Operator, readers: int) -> None:
    (kind,) = app.kinds()

    async def is_settled() -> bool:
        found = await admin.get(kind.__resource__, NAME)
        said = found.get("status", {}).get("readers")
        return said == readers or bool(who.denied())

    await eventually(is_settled)


async def meets_another(who: Account, admin: Client, name: str) -> None:
    """Somebody else states a condition: it asks whose that is, and lets it stand."""
    async with replica(who, admin) as app:
        await put(admin, app, "ann")
        await settled(who, admin, app, 1)
        (kind,) = app.kinds()
        theirs = {"type": "Audited", "status": "True", "reason": "Seen", "message": ""}
        theirs["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        found = await admin.get(kind.__resource__, NAME)
        status = {"conditions": [*found["status"]["conditions"], theirs]}
        body = {"status": status}
        await admin.patch(kind.__resource__, NAME, body, subresource="status")
        await put(admin, app, "ann", "bob")
        await settled(who, admin, app, 2)
        found = await admin.get(kind.__resource__, NAME)
        assert theirs in found["status"]["conditions"]


async def tells_twice(who: Account, admin: Client, name: str) -> None:
    """The bucket is lost outside, so making it is told once more: in the same Event."""
    async with replica(who, admin) as app:
        uid = await put(admin, app, "ann")
        await told(who, admin, uid, times=1)
        handler: Any = app.controllers()[0].handler
        handler.__globals__["store"].buckets.clear()
        await put(admin, app, "ann", "bob")
        await told(who, admin, uid, times=2)


async def told(who: Account, admin: Client, uid: str, *, times: int) -> None:
    """Wait until an Event says how often the bucket was made."""
    events, place = await admin.discover("v1", "Event"), admin.config.namespace

    async def is_told() -> bool:
        found = [each async for each in admin.list(events, namespace=place)]
        about = [each for each in found if each["involvedObject"]["uid"] == uid]
        made = [each["count"] for each in about if each["reason"] == "Made"]
        return made == [times] or bool(who.denied())

    await eventually(is_told)


async def waits(who: Account, admin: Client, name: str) -> None:
    """While one replica leads, the other follows its lease."""
    async with replica(who, admin, name) as app:
        leases = await admin.discover("coordination.k8s.io/v1", "Lease")

        async def is_held() -> bool:
            place = admin.config.namespace
            found = [each async for each in admin.list(leases, namespace=place)]
            return app.name in [each["metadata"]["name"] for each in found]

        await eventually(is_held)
        async with replica(who, admin, name):
            await eventually(lambda: follows(who.clients[-1]) or bool(who.denied()))


def follows(client: Client) -> bool:
    """Whether a client watches: the last one that a replica makes is for its lease."""
    return client.statistics().streams_open > 0


Occasion = Callable[[Account, Client, str], Awaitable[None]]
OCCASIONS: dict[tuple[str, str], Occasion] = {
    ("buckets", "get"): meets_another,
    ("events", "patch"): tells_twice,
    ("leases", "watch"): waits,
}
"""By resource and verb, what the verb is for; all but the last with the buckets."""
