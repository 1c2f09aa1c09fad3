"""Closing a client: every call under way ends, and no connection is left."""

from __future__ import annotations

import asyncio
import socket

import msgspec
import pytest

from tests.client.canned import SIZED
from tests.client.conftest import Connect, leaves_nothing
from tests.client.faults import (
    FaultServer,
    hang,
    raw,
)
from tests.client.kinds import ConfigMap, config_map
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client, Options
from trimtab.client.errors import (
    Ambiguous,
    Closed,
    Unreachable,
)
from trimtab.testing import eventually

MiB = 1 << 20
SOON = 0.2


async def test_a_closed_client_says_so(server: FaultServer, client: Client) -> None:
    await client.get(ConfigMap, "one")
    await client.close()
    await client.close()
    for call in (client.get(ConfigMap, "one"), client.create(config_map())):
        with pytest.raises(Closed, match="make a new one") as caught:
            await call
        tells_well(caught.value)
    with pytest.raises(Closed):
        async with client.watch(ConfigMap):
            pass
    assert len(server.requests) == 1


async def test_a_client_that_was_never_used_can_be_closed(client: Client) -> None:
    await client.close()


@pytest.mark.parametrize("phase", ["head", "body"])
async def test_closing_ends_the_calls_under_way_and_those_in_line(
    server: FaultServer, connect: Connect, phase: str
) -> None:
    client = connect(pool=2)
    server.always(hang if phase == "head" else raw(SIZED + b"\r\n{", cut=False))
    reads = [asyncio.ensure_future(client.get(ConfigMap, str(n))) for n in range(5)]
    await eventually(lambda: len(server.requests) == 2)
    await asyncio.sleep(0.02)
    with ends_within(0):
        await client.close()
        done = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(each) for each in done] == [Closed] * 5
    assert client.statistics().transport.connections_open == 0


@pytest.mark.parametrize("phase", ["head", "body"])
async def test_closing_during_a_write_is_ambiguous(
    server: FaultServer, client: Client, phase: str
) -> None:
    server.always(hang if phase == "head" else raw(SIZED + b"\r\n{", cut=False))
    write = asyncio.ensure_future(client.create(config_map()))
    await eventually(lambda: server.requests)
    await asyncio.sleep(0.02)
    await client.close()
    with ends_within(0), pytest.raises(Ambiguous) as caught:
        await write
    assert isinstance(caught.value.__cause__, Closed)


async def test_closing_ends_a_handshake(connect: Connect) -> None:
    async with FaultServer(tls=False, greeting=b"") as mute:
        secure = mute.config().server.replace("http:", "https:")
        client = connect(msgspec.structs.replace(mute.config(), server=secure))
        write = asyncio.ensure_future(client.create(config_map()))
        await eventually(lambda: mute.open == 1)
        await client.close()
        with ends_within(0), pytest.raises(Closed):
            await write  # and it is not ambiguous: nothing was sent
        await eventually(lambda: mute.open == 0)


async def test_a_task_that_is_cancelled_while_the_client_closes_is_cancelled(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    call = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: server.requests)
    call.cancel()
    await client.close()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_leaving_the_block_closes_the_client(server: FaultServer) -> None:

    async with Client(server.config(), options=Options()) as client:
        await client.get(ConfigMap, "one")
        assert client.statistics().transport.connections_open == 1
    assert client.statistics().transport.connections_open == 0
    await leaves_nothing(client)


async def test_several_may_close_at_once(server: FaultServer, client: Client) -> None:
    server.always(hang)
    call = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: server.requests)
    with ends_within(0):
        closing = []
        for _ in range(5):
            closing.append(asyncio.ensure_future(client.close()))
            await asyncio.sleep(0)
        await asyncio.gather(*closing)
        with pytest.raises(Closed):
            await call
    assert client.statistics().transport.connections_open == 0


async def test_a_close_that_is_cancelled_can_be_done_again(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    call = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: server.requests)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await client.close()
    with pytest.raises(Closed):
        await call
    assert client.statistics().transport.connections_open == 0


class Lookup:
    """Stands in for name resolution, which a test machine may not have."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self.answer)
        self.begun = asyncio.Event()
        self.fails = False

    async def answer(self, *_: object, **__: object) -> None:
        self.begun.set()
        if self.fails:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        await asyncio.Event().wait()


async def test_closing_ends_the_look_up_of_a_name(
    server: FaultServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(server.config(host="api.example"))
    lookup = Lookup(monkeypatch)
    calls = [asyncio.ensure_future(client.create(config_map())) for _ in range(3)]
    await lookup.begun.wait()
    await client.close()
    with ends_within(0):
        done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in done] == [Closed] * 3


async def test_a_name_that_is_unknown_is_unreachable(
    server: FaultServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(server.config(host="api.example"))
    Lookup(monkeypatch).fails = True
    with ends_within(0), pytest.raises(Unreachable, match="not known") as caught:
        await client.create(config_map())
    tells_well(caught.value)
