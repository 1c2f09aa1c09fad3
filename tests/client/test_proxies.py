"""Through a proxy: calls arrive, secrets do not, and failures have names."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.client import certificates
from tests.client.canned import silent_watch
from tests.client.conftest import Connect, leaves_nothing
from tests.client.faults import (
    TOKEN,
    FaultServer,
    cut,
)
from tests.client.kinds import ConfigMap, config_map
from tests.client.laws import ends_within, tells_well
from tests.client.proxies import Proxy
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    CertificateInvalid,
    Closed,
    DeadlineExceeded,
    Unreachable,
)
from trimtab.testing import eventually

MiB = 1 << 20
SOON = 0.2


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
            await client.get(ConfigMap, "one")  # and so on another connection
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


REFUSALS = [
    b"garbage\r\n\r\n",
    b"HTTP/1.1 502 No\r\n\r\n",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 101 Go\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nand more, before anybody asked",
]


@pytest.mark.parametrize("answer", REFUSALS)
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


async def test_a_proxy_that_hangs_up_is_unreachable(
    server: FaultServer, connect: Connect
) -> None:
    async with Proxy(answer=b"") as proxy:
        client = connect(server.config(proxy=proxy.url()))
        write = asyncio.ensure_future(client.create(config_map()))
        await eventually(lambda: proxy.targets)
        proxy.hang_up()
        with ends_within(0), pytest.raises(Unreachable) as caught:
            await write
        tells_well(caught.value)
        await leaves_nothing(client)


@pytest.mark.parametrize("tls", ["none", None])
async def test_a_proxy_that_answers_nothing_costs_the_deadline(
    server: FaultServer, connect: Connect, tls: certificates.Flaw | None
) -> None:
    async with Proxy(answer=b"", tls=tls) as proxy:
        client = connect(server.config(proxy=proxy.url()))
        with ends_within(SOON), pytest.raises(DeadlineExceeded):
            await client.create(config_map(), deadline=SOON)
        await leaves_nothing(client)
        await eventually(lambda: proxy.open == 0)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_closing_ends_the_wait_for_a_proxy(
    server: FaultServer, connect: Connect, answer: bytes
) -> None:
    async with Proxy(answer=answer) as proxy:
        client = connect(server.config(proxy=proxy.url()))
        write = asyncio.ensure_future(client.create(config_map()))
        await eventually(lambda: proxy.targets)
        await asyncio.sleep(0.02)  # for the handshake to begin
        await client.close()
        with ends_within(0), pytest.raises(Closed):
            await write
        await eventually(lambda: proxy.open == 0)


async def test_a_bad_certificate_behind_a_proxy_is_the_servers(
    connect: Connect,
) -> None:
    async with FaultServer(flaw="expired") as bad, Proxy() as proxy:
        client = connect(bad.config(proxy=proxy.url()))
        with pytest.raises(CertificateInvalid, match=r"server's .*expired") as caught:
            await client.create(config_map())
        tells_well(caught.value)
        assert bad.requests == []
        await leaves_nothing(client)
        await eventually(lambda: proxy.open == 0)


# TLS to the proxy, and TLS to the server within it


async def test_a_proxy_with_tls_carries_calls_and_watches(
    server: FaultServer, connect: Connect
) -> None:
    async with Proxy(tls="none", login="ann:pa55w0rd") as proxy:
        client = connect(server.config(proxy=proxy.url("ann:pa55w0rd")))
        for _ in range(5):
            await client.get(ConfigMap, "one")
        big = config_map(data="x" * (4 * MiB))
        await client.create(big)
        server.play(silent_watch)
        async with client.watch(ConfigMap) as watch:
            await anext(watch)
            await client.get(ConfigMap, "one")  # and so on another connection
        assert json.loads(server.requests[5].body)["data"] == big.data
        assert proxy.targets == [f"127.0.0.1:{server.port}"] * 2
        assert TOKEN.encode() not in b"".join(proxy.heads)
        await leaves_nothing(client)
        await eventually(lambda: proxy.open == 0)


FLAWS: list[certificates.Flaw] = ["expired", "other name", "unknown authority"]


@pytest.mark.parametrize("flaw", FLAWS)
async def test_a_proxy_with_a_bad_certificate_is_told_nothing(
    server: FaultServer, connect: Connect, flaw: certificates.Flaw
) -> None:
    async with Proxy(tls=flaw) as proxy:
        client = connect(server.config(proxy=proxy.url("ann:pa55w0rd")))
        with pytest.raises(CertificateInvalid, match="the proxy's") as caught:
            await client.create(config_map())
        tells_well(caught.value)
        assert "pa55w0rd" not in str(caught.value)
        assert proxy.heads == []


async def test_a_proxy_without_tls_where_it_should_be_is_named(
    server: FaultServer, connect: Connect
) -> None:
    async with FaultServer(tls=False, greeting=b"HTTP/1.1 400 No\r\n\r\n") as plain:
        client = connect(server.config(proxy=f"https://127.0.0.1:{plain.port}"))
        with pytest.raises(CertificateInvalid, match=r"TLS .* the proxy") as caught:
            await client.create(config_map())
        tells_well(caught.value)


# A server without TLS: the proxy speaks to it


async def test_a_server_without_tls_is_asked_by_the_proxy(connect: Connect) -> None:
    async with FaultServer(tls=False) as plain, Proxy(login="ann:pa55w0rd") as proxy:
        client = connect(plain.config(proxy=proxy.url("ann:pa55w0rd")))
        for _ in range(3):
            await client.get(ConfigMap, "one")
        await client.create(config_map())
        first, *_ = plain.requests
        assert first.target.startswith(f"http://127.0.0.1:{plain.port}/api/v1/")
        assert first.headers["Host"] == f"127.0.0.1:{plain.port}"
        assert "Proxy-Authorization" not in first.headers
        assert client.statistics().transport.connections_opened == 1
        stranger = connect(plain.config(proxy=proxy.url("ann:wr0ng")))
        with pytest.raises(ApiError, match="407") as caught:
            await stranger.create(config_map())
        assert caught.value.status == 407
        await leaves_nothing(client)
        await leaves_nothing(stranger)


async def test_a_write_that_a_relaying_proxy_loses_is_ambiguous(
    connect: Connect,
) -> None:
    async with FaultServer(tls=False) as plain, Proxy() as proxy:
        plain.play(cut)
        client = connect(plain.config(proxy=proxy.url()))
        with ends_within(0), pytest.raises(Ambiguous):
            await client.create(config_map())
        await leaves_nothing(client)
