"""The pool: how many connections there are, what they are used for, and their end."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import AsyncExitStack

import msgspec
import pytest

from tests.client import certificates
from tests.client.canned import ONE, SIZED, silent_watch
from tests.client.conftest import Connect
from tests.client.faults import (
    TOKEN,
    Exchange,
    FaultServer,
    answers,
    cut,
    raw,
    status,
)
from tests.client.kinds import ConfigMap, config_map, item
from tests.client.laws import ends_within
from trimtab.client import Client
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.client.errors import (
    ApiError,
    Disconnected,
    Unreachable,
)
from trimtab.client.transport import Request
from trimtab.testing import eventually

MiB = 1 << 20
SOON = 0.2


# How many connections


async def test_500_calls_one_after_the_other_use_one_connection(
    server: FaultServer, client: Client
) -> None:
    for _ in range(500):
        await client.get(ConfigMap, "one")
    statistics = client.statistics()
    assert server.connections == statistics.transport.connections_opened == 1
    assert statistics.transport.connections_open == 1
    assert statistics.transport.connections_reused == 499
    assert statistics.requests == {("get", "200"): 500}
    assert (statistics.retries, statistics.streams_open) == (0, 0)


async def test_500_calls_at_once_use_at_most_the_pool(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(pool=8, deadline=60)
    await asyncio.gather(*(client.get(ConfigMap, str(n)) for n in range(500)))
    statistics = client.statistics().transport
    assert statistics.connections_opened == server.connections <= 8
    assert statistics.connections_opened + statistics.connections_reused == 500
    assert len(server.requests) == 500


async def test_writes_and_errors_give_their_connection_back(
    server: FaultServer, client: Client
) -> None:
    server.play(status(404), status(409), status(500), status(429))
    for _ in range(4):
        with pytest.raises(ApiError):
            await client.create(config_map())
    await client.create(config_map())
    await client.delete(ConfigMap, "one")
    assert server.connections == 1


async def test_watches_take_no_place_in_the_pool(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(pool=1)
    server.play(*[silent_watch] * 5)
    async with AsyncExitStack() as stack:
        for _ in range(5):
            watch = await stack.enter_async_context(client.watch(ConfigMap))
            await anext(watch)
        with ends_within(0):
            await client.get(ConfigMap, "one")
        assert client.statistics().streams_open == 5
        assert client.statistics().transport.connections_open == 6
    await eventually(lambda: client.statistics().transport.connections_open == 1)


async def test_a_watch_takes_a_connection_that_no_call_uses_and_keeps_it(
    server: FaultServer, client: Client
) -> None:
    await client.get(ConfigMap, "one")
    server.play(silent_watch)
    async with client.watch(ConfigMap) as watch:
        await anext(watch)
        assert server.connections == 1
        await client.get(ConfigMap, "one")
        assert server.connections == 2


async def test_a_waiter_that_is_cancelled_does_not_block_the_pool(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(pool=1)
    go = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        await go.wait()
        await exchange.answer(200, ONE)

    server.play(later)
    calls = [asyncio.ensure_future(client.get(ConfigMap, str(n))) for n in range(4)]
    await eventually(lambda: server.requests)
    calls[1].cancel()
    calls[0].add_done_callback(lambda _: calls[2].cancel())  # at the very moment
    go.set()
    with ends_within(0):
        await asyncio.wait(calls)
    assert calls[3].result().metadata.name == "one"


async def test_a_connection_that_the_server_closes_is_not_used_again(
    server: FaultServer, client: Client
) -> None:
    server.play(raw(SIZED + b"Connection: close\r\n\r\n" + ONE, cut=False))
    await client.get(ConfigMap, "one")
    await client.create(config_map())
    assert server.connections == 2
    await eventually(lambda: client.statistics().transport.connections_open == 1)


async def test_a_connection_that_closes_unnoticed_costs_a_read_one_more_try(
    server: FaultServer, client: Client
) -> None:
    async def then_hang_up(exchange: Exchange) -> None:
        await exchange.answer(200, ONE)
        raise exchange.cut()

    server.play(then_hang_up)
    await client.get(ConfigMap, "one")
    await client.get(ConfigMap, "one")
    assert len(server.requests) == 2


# What the library does on its own, and must not


@pytest.mark.parametrize("idle", [True, False])
async def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(
    server: FaultServer, client: Client, idle: bool
) -> None:
    answered, sent = asyncio.Event(), asyncio.Event()

    async def twice(exchange: Exchange) -> None:
        await exchange.answer(200, ONE)
        if idle:  # the connection is back in the pool when the second one comes
            await answered.wait()
        await exchange.json(item("stale"))
        sent.set()

    server.play(twice)
    assert (await client.get(ConfigMap, "one")).metadata.name == "one"
    answered.set()
    await sent.wait()
    await asyncio.sleep(0.05)  # for it to come through
    for _ in range(2):
        assert (await client.get(ConfigMap, "one")).metadata.name == "one"


async def test_a_lost_read_is_repeated_by_us_alone(
    server: FaultServer, client: Client
) -> None:
    await client.get(ConfigMap, "one")
    server.always(cut)
    with pytest.raises(Disconnected):
        await client.get(ConfigMap, "one")
    assert len(server.requests) == 1 + 4  # as the policy says


async def test_no_redirect_is_followed_and_no_token_carried_elsewhere(
    server: FaultServer, client: Client
) -> None:
    async with FaultServer() as elsewhere:
        target = (("Location", f"https://127.0.0.1:{elsewhere.port}/x"),)
        for code in (301, 302, 303, 307, 308):
            server.play(status(code, headers=target))
            with pytest.raises(ApiError) as caught:
                await client.get(ConfigMap, "one")
            assert caught.value.status == code
        assert elsewhere.connections == 0


async def test_no_cookie_is_kept(server: FaultServer, client: Client) -> None:
    server.always(answers(item("one"), headers=(("Set-Cookie", "a=b; Path=/"),)))
    for _ in range(2):
        await client.get(ConfigMap, "one")
    assert all("Cookie" not in request.headers for request in server.requests)


async def test_preliminary_answers_are_passed_over(
    server: FaultServer, client: Client
) -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n"
    server.play(raw(early, SIZED + b"\r\n" + ONE, cut=False))
    assert (await client.get(ConfigMap, "one")).metadata.name == "one"


async def test_an_environment_with_proxies_and_a_netrc_is_not_looked_at(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "NETRC"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    await client.get(ConfigMap, "one")
    assert server.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"


async def test_gzip_is_asked_for_only_when_told_to(
    server: FaultServer, connect: Connect
) -> None:
    async def zipped(exchange: Exchange) -> None:
        if exchange.headers["Accept-Encoding"] != "gzip":
            await exchange.answer(200, ONE)
            return
        encoding = (("Content-Encoding", "gzip"),)
        await exchange.answer(200, gzip.compress(ONE), encoding)

    server.always(zipped)
    for compression, asked in ((False, "identity"), (True, "gzip")):
        client = connect(compression=compression)
        assert (await client.get(ConfigMap, "one")).metadata.name == "one"
        assert server.requests[-1].headers["Accept-Encoding"] == asked


async def test_a_large_body_arrives_whole_and_is_counted(
    server: FaultServer, client: Client
) -> None:
    big = config_map(data="ü" * MiB)
    await client.create(big)
    (request,) = server.requests
    assert json.loads(request.body)["data"] == big.data
    assert client.statistics().transport.bytes_sent == len(request.body)
    assert request.headers["Content-Type"] == "application/json"


async def test_bytes_are_counted_both_ways(server: FaultServer, client: Client) -> None:
    for _ in range(3):
        await client.create(config_map())
    sent = sum(len(request.body) for request in server.requests)
    answered = 3 * len(json.dumps({"metadata": {"name": "one"}}))
    assert client.statistics().transport.bytes_sent == sent
    assert client.statistics().transport.bytes_received == answered


async def test_what_was_never_sent_is_not_counted(connect: Connect) -> None:
    async with FaultServer(flaw="expired") as bad:
        client = connect(bad.config())
        with pytest.raises(Unreachable):
            await client.create(config_map())
    assert client.statistics().transport.bytes_sent == 0


# Who asks, by certificate


class Rotating(Static):
    """Credentials whose TLS material changes."""

    material = TlsMaterial(ca=certificates.authority("tests").pem())

    async def tls(self) -> TlsMaterial | None:
        return self.material


async def test_new_tls_material_takes_a_new_connection(
    server: FaultServer, connect: Connect
) -> None:
    credentials = Rotating()
    client = connect(server.config(credentials=credentials))
    for _ in range(3):
        await client.get(ConfigMap, "one")
    assert server.connections == 1
    credentials.material = msgspec.structs.replace(credentials.material)
    for _ in range(3):
        await client.get(ConfigMap, "one")
    assert server.connections == 2


def test_neither_token_nor_body_is_in_the_repr_of_a_request() -> None:
    headers = (("Authorization", f"Bearer {TOKEN}"),)
    request = Request(method="PUT", path="/x", headers=headers, body=TOKEN.encode())
    assert TOKEN not in repr(request) + str(request)
