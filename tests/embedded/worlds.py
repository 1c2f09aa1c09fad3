"""A client and the real API, joined by HTTPS or within the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, Literal

import msgspec

from trimtab.client import Client, Options, RetryPolicy, load
from trimtab.embedded.api import Api
from trimtab.embedded.driver import Driver
from trimtab.embedded.faults import Faults
from trimtab.embedded.inprocess import InProcess, in_process_config
from trimtab.embedded.server import Server
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens

Way = Literal["https", "in-process"]
WAYS: tuple[Way, ...] = ("https", "in-process")
ONCE = RetryPolicy(attempts=1)


class World(msgspec.Struct, frozen=True):
    """A server, the faults that are planted in it, and a way to make clients."""

    faults: Faults
    driver: Driver
    connect: Callable[..., Client]

    @property
    def client(self) -> Client:
        return self.connect()


@asynccontextmanager
async def in_process() -> AsyncIterator[World]:
    """No socket, no thread, no certificate."""
    store = Store(None)
    api = Api(
        store,
        now=lambda: datetime.now(UTC),
        random=Random(1),
        tokens=Tokens(),
    )
    faults = Faults()
    faults.attach(lambda: store.compact(store.revision))
    driver = Driver(api, faults=faults, statistics=store.statistics)
    driver.start()
    try:
        async with _connecting(
            lambda options: Client(
                in_process_config(), options=options, transport=InProcess(driver)
            )
        ) as connect:
            yield World(faults, driver, connect)
    finally:
        driver.close()
        store.close()


@asynccontextmanager
async def over_https() -> AsyncIterator[World]:
    """All of the server."""
    faults = Faults()
    async with Server(faults=faults) as server:
        config = load(kubeconfig=server.kubeconfig, environ={})
        async with _connecting(
            lambda options: Client(config, options=options)
        ) as connect:
            yield World(faults, server.driver, connect)


@asynccontextmanager
async def _connecting(
    make: Callable[[Options], Client],
) -> AsyncIterator[Callable[..., Client]]:
    made: list[Client] = []

    def connect(*, retry: RetryPolicy = ONCE, deadline: float = 10.0) -> Client:
        made.append(make(Options(retry=retry, deadline=deadline)))
        return made[-1]

    try:
        yield connect
    finally:
        for client in made:
            await client.close()


def world(way: Way) -> AbstractAsyncContextManager[World]:
    return over_https() if way == "https" else in_process()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }
