"""Through a proxy: calls arrive, secrets do not, and failures have names."""

from __future__ import annotations

import json

import pytest

from tests.client.conftest import Connect, leaves_nothing
from tests.client.faults import (
    TOKEN,
    Exchange,
    FaultServer,
)
from tests.client.kinds import ConfigMap, config_map, event, item
from tests.client.laws import ends_within, tells_well
from tests.client.proxies import Proxy
from trimtab.client.errors import (
    DeadlineExceeded,
    Unreachable,
)
from trimtab.testing import eventually

MiB = 1 << 20
SOON = 0.2
ONE = json.dumps(item("one")).encode()
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(ONE)


async def silent_watch(exchange: Exchange) -> None:
    await exchange.events([event("ADDED", item("a"))], end=False)
    await exchange.hang()


async def test_a_proxy_carries_calls_and_watches_and_sees_nothing_of_them(
    server: FaultServer, connect: Connect
) -> None:
    async with Proxy() as proxy:
        client = connect(server.config(proxy=proxy.url()))
        for _ in range(5):
            await client.get(ConfigMap, "one")
        server.play(silent_watch)
        async with client.watch(ConfigMap) as watch:
            await anext(watch)
        assert proxy.targets == [f"127.0.0.1:{server.port}"] * 2
        assert TOKEN.encode() not in b"".join(proxy.heads)
        await leaves_nothing(client)
        await eventually(lambda: proxy.open == 0)


async def test_a_proxy_that_wants_a_login_gets_it_and_nobody_else_does(
    server: FaultServer, connect: Connect
) -> None:
    async with Proxy(login="ann:pa55w0rd") as proxy:
        client = connect(server.config(proxy=proxy.url("ann:pa55w0rd")))
        await client.get(ConfigMap, "one")
        assert "Proxy-Authorization" not in server.requests[0].headers
        stranger = connect(server.config(proxy=proxy.url("ann:wr0ng")))
        with pytest.raises(Unreachable, match="407") as caught:
            await stranger.create(config_map())
        tells_well(caught.value)
        said = str(caught.value) + repr(caught.value) + repr(caught.value.__context__)
        assert "wr0ng" not in said
        await leaves_nothing(client)
        await leaves_nothing(stranger)


@pytest.mark.parametrize("verb", ["get", "create"])
async def test_a_proxy_that_is_not_there_is_unreachable(
    server: FaultServer, connect: Connect, verb: str
) -> None:
    async with Proxy() as proxy:
        url = proxy.url("ann:pa55w0rd")
    client = connect(server.config(proxy=url))
    with ends_within(0), pytest.raises(Unreachable) as caught:
        await (
            client.get(ConfigMap, "one")
            if verb == "get"
            else client.create(config_map())
        )
    tells_well(caught.value)
    assert "pa55w0rd" not in str(caught.value) + repr(caught.value.__cause__)


async def test_a_proxy_that_is_silent_costs_the_deadline_and_nothing_was_sent(
    server: FaultServer, connect: Connect
) -> None:
    async with FaultServer(tls=False, greeting=b"") as mute:
        client = connect(server.config(proxy=f"http://127.0.0.1:{mute.port}"))
        with ends_within(SOON), pytest.raises(DeadlineExceeded):
            await client.create(config_map(), deadline=SOON)
        await eventually(lambda: mute.open == 0)


@pytest.mark.parametrize("answer", [b"garbage\r\n\r\n", b"HTTP/1.1 502 No\r\n\r\n"])
async def test_a_proxy_that_fails_is_unreachable_and_nothing_was_sent(
    server: FaultServer, connect: Connect, answer: bytes
) -> None:
    async with Proxy(answer=answer) as proxy:
        client = connect(server.config(proxy=proxy.url()))
        with ends_within(0), pytest.raises(Unreachable) as caught:
            await client.create(config_map())
        tells_well(caught.value)
        await leaves_nothing(client)
        await eventually(lambda: proxy.open == 0)
