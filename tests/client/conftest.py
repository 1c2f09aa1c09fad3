"""A misbehaving server and clients of it, and the laws that hold after every test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Protocol

import pytest

from tests.client.faults import FaultServer
from trimtab.client import Client, Config, Options, RateLimit, RetryPolicy
from trimtab.testing import eventually

QUICK = RetryPolicy(base=0.001, cap=0.01)
ONCE = RetryPolicy(attempts=1)


class Connect(Protocol):
    """Makes a client; its keywords are those of ``Options``, but for the first few."""

    def __call__(
        self,
        config: Config | None = None,
        *,
        rate_limit: RateLimit | None = None,
        **options: Any,
    ) -> Client: ...


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer() as made:
        yield made


@pytest.fixture
async def connect(server: FaultServer) -> AsyncIterator[Connect]:
    """Clients of the server (or of a ``config``), closed at the end.

    Guarantees: a test fails if one of them leaves a stream or a connection behind,
    as its own statistics tell it, or as the server sees it.
    """
    made: list[Client] = []

    def connect(
        config: Config | None = None,
        *,
        rate_limit: RateLimit | None = None,
        **options: Any,
    ) -> Client:
        options = {"deadline": 10.0, "retry": QUICK, **options}
        client = Client(
            config or server.config(),
            options=Options(**options),
            rate_limit=rate_limit,
            random=Random(7),
        )
        made.append(client)
        return client

    async with AsyncExitStack() as stack:
        yield connect
        for client in made:
            stack.push_async_callback(leaves_nothing, client)
    await eventually(lambda: server.open == 0, describe="the server has no connection")


async def leaves_nothing(client: Client) -> None:
    """Close a client, which must then hold nothing."""
    streams = client.statistics().streams_open
    await client.close()
    statistics = client.statistics()
    assert streams == 0, "a stream was not closed"
    assert statistics.transport.connections_open == 0, "a connection is still open"


@pytest.fixture
def client(connect: Connect) -> Client:
    """A client of the server with the usual options, but quick to try again."""
    return connect()
