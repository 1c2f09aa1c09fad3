"""A connection that has ended is forgotten at once, not when the collector comes by."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from trimtab.client import Client, TrimtabError, load
from trimtab.client.connection import Connection
from trimtab.kinds import ConfigMap
from trimtab.testing import Cluster, eventually


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Connection]]]:
    """Every connection that a test makes; the collector stays away meanwhile."""
    found: list[weakref.ref[Connection]] = []
    begin = Connection.__init__

    def noted(self: Connection, loop: asyncio.AbstractEventLoop) -> None:
        begin(self, loop)
        found.append(weakref.ref(self))

    monkeypatch.setattr(Connection, "__init__", noted)
    gc.collect()
    gc.disable()
    yield found
    gc.enable()


async def test_a_connection_over_tls_that_ended_is_no_garbage(
    cluster: Cluster, namespace: str, made: list[weakref.ref[Connection]]
) -> None:
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:

        async def follow() -> None:
            with suppress(TrimtabError):
                async with client.watch(ConfigMap, namespace=namespace) as events:
                    while await events.batch():
                        pass

        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            await eventually(lambda: client.statistics().streams_open == 1)
            await client.list(ConfigMap).next_page()
            assert len(made) == 2
            for each in made:
                if (connection := each()) is not None:
                    connection.transport.abort()
            del connection
        await eventually(lambda: not any(each() for each in made))
