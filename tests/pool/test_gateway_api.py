"""Laws of the gateway: over real HTTPS, with the reviews of a real API server."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.pool.gateway_desk import Desk, a_worker, desk, rule
from trimtab.client.calling import Caller, Place, Reply
from trimtab.pool.client import Full, Never, NotNow
from trimtab.pool.states import State
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


async def raw(here: Desk, token: str, method: str, path: str, body: object) -> Reply:
    """One request as it stands, without a client that makes sense of it."""
    caller = Caller()
    place = Place(
        host="127.0.0.1",
        port=here.gateway.port,
        name="127.0.0.1",
        ca=here.authority.pem,
    )
    headers = (("Authorization", f"Bearer {token}"),) if token else ()
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    try:
        return await caller.call(
            place, method, path, headers=headers, body=data, within=10.0
        )
    finally:
        await caller.close()


async def test_only_whom_the_api_server_knows_and_lets_gets_a_worker(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        anyone = await here.account("anyone", rule("acquire", name="sql"))
        one = rule("acquire", resource="workerpools/tenants", name="sql:acme")
        acme = await here.account("acme", one)
        nobody = await here.account("nobody")
        path = f"/v1/pools/{namespace}/sql/acquire"
        wanted = {"tenant": "acme", "holder": "me"}

        async def status(token: str, **more: str) -> tuple[int, str]:
            reply = await raw(here, token, "POST", path, {**wanted, **more})
            return reply.status, msgspec.json.decode(reply.body).get("code", "")

        assert await status("") == (401, "unauthenticated")
        assert await status("no.such.token") == (401, "unauthenticated")
        assert await status(nobody) == (403, "denied")
        assert await status(anyone) == (200, "")
        assert await status(anyone, tenant="other") == (200, "")
        assert await status(acme) == (200, "")
        assert await status(acme, tenant="other") == (403, "denied")
        elsewhere = path.replace("/sql/", "/other/")
        reply = await raw(here, anyone, "POST", elsewhere, wanted)
        assert reply.status == 403, "a right to one pool is none to another"
        for path in ("drain", "workers"):
            method = "GET" if path == "workers" else "POST"
            where = f"/v1/pools/{namespace}/sql/{path}"
            reply = await raw(here, anyone, method, where, {"worker": "w"})
            assert reply.status == 403, "who may acquire may not do everything"
        assert len(here.shelf.asked) == 3
        assert here.shelf.drained == []


async def test_reviews_are_asked_once_however_many_ask_at_once(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("many", rule("acquire"))
        async with here.pool(token) as pool, asyncio.TaskGroup() as group:

            async def once() -> None:
                async with pool.acquire(tenant="acme"):
                    pass

            for _ in range(20):
                group.create_task(once())
        asked = [each for each in here.reviewed if each[1] != "kept"]
        assert sorted(asked) == [("access", "allowed"), ("token", "allowed")]
        assert len(here.shelf.asked) == 20
        assert here.shelf.out == {}


async def test_a_checkout_is_its_callers_and_nobody_elses_to_release(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        mine = await here.account("mine", rule("acquire"))
        other = await here.account("other", rule("acquire"))
        path = f"/v1/pools/{namespace}/sql"
        wanted = {"tenant": "acme", "holder": "me"}
        reply = await raw(here, mine, "POST", f"{path}/acquire", wanted)
        checkout = msgspec.json.decode(reply.body)["checkout"]
        over = {"checkout": checkout, "holder": "me"}
        reply = await raw(here, other, "POST", f"{path}/release", over)
        assert reply.status == 409
        reply = await raw(here, other, "POST", "/v1/holders/me/renew", {})
        assert reply.status == 200
        assert here.shelf.renewals[0][0] != here.shelf.out[checkout]
        reply = await raw(here, mine, "POST", f"{path}/release", over)
        assert (reply.status, here.shelf.out) == (200, {})


async def test_a_client_that_hangs_up_cancels_its_acquire(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("hasty", rule("acquire"))
        here.shelf.hold = asyncio.Event()
        async with here.pool(token) as pool, asyncio.TaskGroup() as group:

            async def wait() -> None:
                async with pool.acquire(tenant="acme", wait=30):
                    raise AssertionError("nobody waits for this")

            waiting = group.create_task(wait())
            await eventually(lambda: here.shelf.asked)
            waiting.cancel()
            await eventually(lambda: here.shelf.cancelled == 1)
        assert here.shelf.out == {}


async def test_a_refusal_keeps_its_type_and_its_hint(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("greedy", rule("acquire"))
        refusals = [
            Full("The tenant has all.", limit="cpu", retry_after=3.0),
            NotNow("The wait is over.", retry_after=2.0),
            Never("There is no such shape."),
        ]
        async with here.pool(token) as pool:
            for refusal in refusals:
                here.shelf.refusal = refusal
                with pytest.raises(type(refusal), match=str(refusal)) as caught:
                    async with pool.acquire(tenant="acme"):
                        pass
                assert caught.value.retry_after == refusal.retry_after
        wanted = {"tenant": "acme", "holder": "me"}
        here.shelf.refusal = refusals[0]
        path = f"/v1/pools/{namespace}/sql/acquire"
        reply = await raw(here, token, "POST", path, wanted)
        assert reply.status == 429
        assert reply.head.all("retry-after") == ["3"]
        assert msgspec.json.decode(reply.body)["limit"] == "cpu"


BAD = [
    {"holder": "me"},
    {"tenant": "", "holder": "me"},
    {"tenant": "a", "holder": "Not A Name"},
    {"tenant": "a", "holder": "me", "wait": 1e9},
    {"tenant": "a", "holder": "me", "wait": -1},
    {"tenant": "a", "holder": "me", "ttl": -1},
    {"tenant": "a", "holder": "me", "cpu": "many"},
    {"tenant": "a", "holder": "me", "surprise": 1},
    b"{",
    b"",
]


async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("confused", rule("acquire"))
        path = f"/v1/pools/{namespace}/sql/acquire"
        for body in BAD:
            reply = await raw(here, token, "POST", path, body)
            problem = msgspec.json.decode(reply.body)
            assert (reply.status, problem["code"]) == (400, "bad-request"), body
            assert token not in problem["message"]
        for method, where in (("GET", path), ("POST", "/"), ("POST", "/v1/pools/a/b")):
            assert (await raw(here, token, method, where, b"")).status == 404
        assert here.shelf.asked == []


async def test_a_watch_tells_every_change_and_ends_with_its_reader(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("seer", rule("get"))
        here.shelf.change(a_worker("a", namespace, state=State.IDLE))
        async with here.pool(token) as pool:
            assert [row.name for row in await pool.workers()] == ["a"]
            watch = pool.watch()
            assert (await anext(watch)).state == "idle"
            here.shelf.change(a_worker("b", namespace, state=State.HOT))
            assert (await anext(watch)).name == "b"
            here.shelf.change(a_worker("a", namespace), gone=True)
            assert (await anext(watch)).gone
            await watch.aclose()
            await eventually(lambda: here.shelf.watchers == 0)


async def test_a_gateway_that_stops_finishes_what_it_began_and_begins_nothing(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("late", rule("acquire"))
        here.shelf.hold = asyncio.Event()
        async with here.pool(token) as pool, asyncio.TaskGroup() as group:

            async def use() -> None:
                async with pool.acquire(tenant="acme") as worker:
                    got.append(worker.name)

            got: list[str] = []
            group.create_task(use())
            await eventually(lambda: here.shelf.asked)
            stopping = group.create_task(here.gateway.__aexit__(None, None, None))
            await asyncio.sleep(0)
            here.shelf.hold.set()
            await stopping
            await eventually(lambda: got)


async def test_releasing_needs_no_more_than_the_token(
    cluster: Cluster, namespace: str
) -> None:
    """A right that is withdrawn does not keep a worker from coming back."""
    async with desk(cluster, namespace) as here:
        token = await here.account("fired", rule("acquire"))
        async with here.pool(token) as pool:
            async with pool.acquire(tenant="acme") as worker:
                worker.clean = False
        assert here.shelf.out == {}
        assert here.shelf.unclean == [worker.checkout]
