"""Whatever a server does to an answer, a call ends in time, with a name, and clean."""

from __future__ import annotations

import asyncio
import tracemalloc
import zlib
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.client import certificates
from tests.client.conftest import Connect
from tests.client.faults import (
    Exchange,
    FaultServer,
    Handler,
    Headers,
    cut,
    hang,
    raw,
    status,
)
from tests.client.kinds import ConfigMap, config_map
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client, RetryPolicy
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    BodyTooLarge,
    CertificateInvalid,
    DeadlineExceeded,
    Disconnected,
    Gone,
    Malformed,
    ServerError,
    ServerTimeout,
    TooManyRequests,
    TransportError,
    TrimtabError,
    Unavailable,
    Unreachable,
)
from trimtab.testing import eventually

MiB, GiB = 1 << 20, 1 << 30
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = HEAD + b"Content-Length: 100\r\n\r\n"
PATIENCE = 0.2


def body(data: bytes, headers: Headers = ()) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(200, data, headers)

    return handler


async def one_byte_at_a_time(exchange: Exchange) -> None:
    await exchange.send(SIZED)
    for _ in range(100):
        await exchange.send(b" ")
        await asyncio.sleep(0.05)


async def preliminaries_for_ever(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n")
        await asyncio.sleep(0.01)


async def deaf_and_dumb(exchange: Exchange) -> None:
    """Not even the farewell of a client is answered, as by a machine that is gone."""
    exchange.stop_listening()
    await exchange.hang()


BOMB = zlib.compress(bytes(64 * MiB), level=1, wbits=31)


async def gzip_bomb(exchange: Exchange) -> None:
    await exchange.answer(200, BOMB, (("Content-Encoding", "gzip"),))


async def endless_body(exchange: Exchange) -> None:
    await exchange.head(200, (("Content-Length", str(GiB)),))
    await exchange.flood(GiB)


class Fault(NamedTuple):
    """What the server does, and what a read and a write of ours make of it."""

    handler: Handler
    read: type[TrimtabError]
    write: type[TrimtabError]
    deadline: float = 10.0


def lost(handler: Handler, read: type[TrimtabError] = Disconnected) -> Fault:
    """The answer does not come through: a write may have been carried out."""
    return Fault(handler, read, Ambiguous)


def late(handler: Handler) -> Fault:
    """The answer does not come in time."""
    return Fault(handler, DeadlineExceeded, Ambiguous, PATIENCE)


def refused(handler: Handler, error: type[TrimtabError]) -> Fault:
    """The server said no: nothing was carried out."""
    return Fault(handler, error, error)


FAULTS: dict[str, Fault] = {
    "cut right after the request": lost(cut),
    "cut in the status line": lost(raw(b"HTTP/1.1 20")),
    "cut in the headers": lost(raw(HEAD + b"Content-Le")),
    "cut before the body": lost(raw(SIZED)),
    "cut in the body": lost(raw(SIZED + b'{"meta')),
    "cut in a chunk": lost(raw(CHUNKED + b'10\r\n{"meta')),
    "cut in the size of a chunk": lost(raw(CHUNKED + b"1")),
    "cut between chunks": lost(raw(CHUNKED + b"2\r\n{}\r\n")),
    "a chunk of no size": lost(raw(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"), TransportError),
    "not HTTP": lost(raw(b"SSH-2.0-OpenSSH_9.9\r\n"), Malformed),
    "HTTP of another kind": lost(raw(b"HTTP/9.9 yes\r\n\r\n"), Malformed),
    "a header that is none": lost(raw(HEAD + b"a b c\r\n\r\n"), Malformed),
    "a header too long": lost(raw(HEAD + b"X: " + b"y" * 99_999), Malformed),
    "headers without end": lost(raw(HEAD + b"X: y\r\n" * 99_999), Malformed),
    "two lengths": lost(
        raw(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), Malformed
    ),
    "another protocol": lost(
        raw(b"HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", cut=False),
        Malformed,
    ),
    "garbage for JSON": lost(body(b"<html>"), Malformed),
    "half of a JSON": lost(body(b'{"metadata":{"name":"a"'), Malformed),
    "JSON of another shape": lost(body(b'[{"metadata":{}}]'), Malformed),
    "a field of another type": lost(body(b'{"metadata":{"name":7}}'), Malformed),
    "JSON with bad letters": lost(body(b'{"data":{"a":"\xff\xfe"}}'), Malformed),
    "JSON nested without end": lost(body(b'{"data":' + b"[" * 200_000), Malformed),
    "an empty body": lost(body(b""), Malformed),
    "a body that is no gzip": lost(
        body(b"plain", (("Content-Encoding", "gzip"),)), TransportError
    ),
    "a bomb of gzip": lost(gzip_bomb, BodyTooLarge),
    "a body of 1 GiB": lost(endless_body, BodyTooLarge),
    "no answer": late(hang),
    "silence in the headers": late(raw(HEAD, cut=False)),
    "silence in the body": late(raw(SIZED + b'{"meta', cut=False)),
    "silence in a chunk": late(raw(CHUNKED + b'10\r\n{"meta', cut=False)),
    "an answer that trickles": late(one_byte_at_a_time),
    "only preliminaries": late(preliminaries_for_ever),
    "a redirect": refused(
        status(302, headers=(("Location", "https://127.0.0.1:1/x"),)), ApiError
    ),
    "gone": refused(status(410, "Expired"), Gone),
    "too many requests": refused(status(429), TooManyRequests),
    "not ready": refused(status(503), Unavailable),
    "a failure": refused(status(500, "InternalError"), ServerError),
    "a bad gateway": lost(status(502), ServerError),
    "a gateway that gave up": lost(status(504, "Timeout"), ServerTimeout),
}
READS_AND_WRITES = pytest.mark.parametrize("verb", ["get", "create"])


@READS_AND_WRITES
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_has_a_name_and_an_end_and_leaves_no_connection(
    connect: Connect, name: str, verb: str
) -> None:
    fault = FAULTS[name]
    expected = fault.read if verb == "get" else fault.write
    for patience in (fault.deadline, 10.0):
        async with FaultServer() as server:
            client = connect(server.config(), body_limit=MiB, compression=True)
            await client.get(ConfigMap, "one")  # a short deadline is for the fault
            server.always(fault.handler)
            with ends_within(patience), pytest.raises(TrimtabError) as caught:
                await ask(client, verb, deadline=patience)
            came = len(server.requests) > 1
            if came:
                await adds_up(server, client)
            await client.close()
        if came:
            break  # else the machine stood still for all of a short deadline
    # The table says exactly which one.
    assert isinstance(caught.value, expected)
    assert expected is TransportError or type(caught.value) is expected
    tells_well(caught.value)


async def adds_up(server: FaultServer, client: Client) -> None:
    """Each request has one outcome, and nothing is open but what may be used again."""
    statistics = client.statistics()
    assert sum(statistics.requests.values()) == len(server.requests)
    assert statistics.retries == len(server.requests) - 2
    assert statistics.transport.connections_opened == server.connections
    await eventually(
        lambda: client.statistics().transport.connections_open == server.open <= 1,
        describe="client and server agree about what is open",
    )


@READS_AND_WRITES
async def test_a_connection_to_a_peer_that_is_gone_ends_without_a_farewell(
    server: FaultServer, client: Client, verb: str
) -> None:
    server.always(deaf_and_dumb)
    with pytest.raises((DeadlineExceeded, Ambiguous)):
        await ask(client, verb, deadline=PATIENCE)
    await eventually(
        lambda: client.statistics().transport.connections_open == 0, within=5
    )
    server.requests[0].listen()


@READS_AND_WRITES
@pytest.mark.parametrize("code", [400, 404, 500])
async def test_an_error_body_of_1_gib_costs_at_most_its_cap(
    server: FaultServer, connect: Connect, code: int, verb: str
) -> None:
    async def flood(exchange: Exchange) -> None:
        await exchange.head(code, (("Content-Length", str(GiB)),))
        await exchange.flood(GiB)

    server.always(flood)
    client = connect(retry=RetryPolicy(attempts=1))
    tracemalloc.start()
    try:
        with pytest.raises(ApiError) as caught:
            await ask(client, verb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.status == code
    assert "longer than 65536 bytes" in str(caught.value)
    assert peak < 4 * MiB
    assert client.statistics().transport.bytes_received < MiB
    assert server.requests[0].flooded < 64 * MiB
    tells_well(caught.value)


async def test_an_error_keeps_its_status_when_its_text_is_cut_off(
    server: FaultServer, client: Client
) -> None:
    server.always(raw(b"HTTP/1.1 404 No\r\nContent-Length: 99\r\n\r\n{"))
    with pytest.raises(ApiError) as caught:
        await client.get(ConfigMap, "one")
    assert caught.value.status == 404
    assert "cut off" in str(caught.value)


FLAWS: list[tuple[certificates.Flaw, str]] = [
    ("expired", "expired"),
    ("other name", "127.0.0.1"),
    ("unknown authority", "issuer"),
]


@READS_AND_WRITES
@pytest.mark.parametrize(("flaw", "word"), FLAWS)
async def test_a_server_with_a_bad_certificate_never_sees_a_request(
    connect: Connect, flaw: certificates.Flaw, word: str, verb: str
) -> None:
    async with FaultServer(flaw=flaw) as bad:
        client = connect(bad.config())
        with ends_within(10), pytest.raises(CertificateInvalid, match=word) as caught:
            await ask(client, verb)
        assert bad.requests == []
        assert client.statistics().retries == 0
        tells_well(caught.value)


async def test_a_name_to_verify_can_be_told(connect: Connect) -> None:
    async with FaultServer() as server:
        client = connect(server.config(server_name="api.example"))
        await client.get(ConfigMap, "one")
        other = connect(server.config(server_name="elsewhere.example"))
        with pytest.raises(CertificateInvalid, match=r"elsewhere\.example"):
            await other.get(ConfigMap, "one")
        await client.close()
        await other.close()


async def test_plain_http_where_tls_should_be_is_named(connect: Connect) -> None:
    async with FaultServer(tls=False, greeting=b"HTTP/1.1 400 No\r\n\r\n") as plain:
        config = plain.config()
        secure = config.server.replace("http:", "https:")
        client = connect(msgspec.structs.replace(config, server=secure))
        with ends_within(10), pytest.raises(CertificateInvalid, match="TLS") as caught:
            await client.get(ConfigMap, "one")
        tells_well(caught.value)


@READS_AND_WRITES
async def test_a_server_that_accepts_and_says_nothing_costs_the_deadline(
    connect: Connect, verb: str
) -> None:
    async with FaultServer(tls=False, greeting=b"") as mute:
        secure = mute.config().server.replace("http:", "https:")
        client = connect(msgspec.structs.replace(mute.config(), server=secure))
        # Nothing was sent, so a write is not ambiguous.
        with ends_within(PATIENCE), pytest.raises(DeadlineExceeded) as caught:
            await ask(client, verb, deadline=PATIENCE)
        tells_well(caught.value)
        await eventually(lambda: mute.open == 0, describe="the connection is given up")


@READS_AND_WRITES
async def test_a_server_that_is_not_there_is_unreachable(
    connect: Connect, verb: str
) -> None:
    async with FaultServer() as gone:
        config = gone.config()
    client = connect(config)
    with ends_within(10), pytest.raises(Unreachable) as caught:
        await ask(client, verb)
    assert type(caught.value) is Unreachable
    assert client.statistics().retries == (3 if verb == "get" else 0)
    tells_well(caught.value)


async def ask(client: Client, verb: str, **options: Any) -> None:
    if verb == "get":
        await client.get(ConfigMap, "one", **options)
    else:
        await client.create(config_map(), **options)


async def test_a_body_that_the_server_does_not_read_costs_the_deadline(
    server: FaultServer, client: Client
) -> None:
    await client.get(ConfigMap, "one")
    server.reads.clear()
    big = config_map(data="x" * (16 * MiB))
    with ends_within(1.0), pytest.raises(Ambiguous) as caught:
        await client.create(big, deadline=1.0)
    assert isinstance(caught.value.__cause__, DeadlineExceeded)
    await eventually(lambda: client.statistics().transport.connections_open == 0)
    server.reads.set()


ODD = {
    "one byte in a chunk": b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"data":{}}'),
    "an extension": b'b;a="b";c\r\n{"data":{}}\r\n',
    "zeros before the size": b'000000b\r\n{"data":{}}\r\n',
    "capital letters": b'B\r\n{"data":{}}\r\n',
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_chunks_are_still_an_answer(
    server: FaultServer, client: Client, name: str
) -> None:
    end = b"0\r\nTrailer: yes\r\n\r\n"
    server.always(raw(CHUNKED + ODD[name] + end, cut=False))
    assert (await client.get(ConfigMap, "one")).data == {}
