"""Laws of the gateway over gRPC: the verbs, the rights and the refusals of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest

from tests.pool.gateway_desk import RENEW_WITHIN, Desk, a_worker, desk, rule
from trimtab.pool.gateway import pool_pb2 as messages
from trimtab.pool.gateway.api import Api
from trimtab.pool.gateway.remote import SERVICE, STATUS, remote
from trimtab.pool.gateway.wire import Code
from trimtab.pool.requests import Full
from trimtab.pool.states import State
from trimtab.runtime.access import Reviews
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


class Stub:
    """A client of the service, as protoc's plugin would make it."""

    def __init__(self, channel: Any, token: str) -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),)

    async def call(self, verb: str, message: Any, out: Any) -> Any:
        method = self._channel.unary_unary(
            f"/{SERVICE}/{verb}",
            request_serializer=type(message).SerializeToString,
            response_deserializer=out.FromString,
        )
        return await method(message, metadata=self._metadata, timeout=10)

    def watch(self, message: Any) -> Any:
        method = self._channel.unary_stream(
            f"/{SERVICE}/Watch",
            request_serializer=type(message).SerializeToString,
            response_deserializer=messages.Worker.FromString,
        )
        return method(message, metadata=self._metadata)


@asynccontextmanager
async def called(here: Desk, token: str) -> AsyncIterator[Stub]:
    api = Api(here.shelf, here.shelf, Reviews(here.client), renew_within=RENEW_WITHIN)
    pair = here.authority.issue("localhost", "127.0.0.1", now=datetime.now(UTC))
    async with remote(api, host="127.0.0.1", port=0, pair=lambda: pair) as server:
        trusted = grpc.ssl_channel_credentials(here.authority.pem)
        where = f"127.0.0.1:{server.port}"
        async with grpc.aio.secure_channel(where, trusted) as channel:
            yield Stub(channel, token)


def wanted(here: Desk, **more: Any) -> Any:
    return messages.AcquireRequest(
        namespace=here.namespace, pool="sql", tenant="acme", holder="me", **more
    )


async def test_the_verbs_do_what_they_do_over_http(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("caller", rule("acquire", "get", "drain"))
        async with called(here, token) as stub:
            granted = await stub.call("Acquire", wanted(here, ttl=0), messages.Granted)
            assert granted.token == "a-secret-token"
            assert granted.renew_within == RENEW_WITHIN
            assert here.shelf.asked[0].ttl == 0
            renew = messages.RenewRequest(holder="me", checkouts=[granted.checkout])
            await stub.call("Renew", renew, messages.Renewed)
            assert here.shelf.renewals[0][1] == [granted.checkout]
            listing = messages.ListRequest(namespace=namespace, pool="sql")
            found = await stub.call("List", listing, messages.Workers)
            assert [each.name for each in found.workers] == [granted.worker]
            over = messages.ReleaseRequest(
                namespace=namespace, pool="sql", checkout=granted.checkout, holder="me"
            )
            await stub.call("Release", over, messages.Done)
            assert here.shelf.out == {}
            drain = messages.DrainRequest(namespace=namespace, pool="sql", worker="w")
            await stub.call("Drain", drain, messages.Done)
            assert here.shelf.drained == [(namespace, "w")]


async def test_a_refusal_keeps_its_code_and_its_hint(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("greedy", rule("acquire"))
        here.shelf.refusal = Full("All is out.", limit="cpu", retry_after=2.5)
        async with called(here, token) as stub:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.call("Acquire", wanted(here), messages.Granted)
            error = caught.value
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            trailing = dict(error.trailing_metadata() or ())
            assert trailing["trimtab-code"] == "full"
            assert trailing["retry-after"] == "2.5"
        async with called(here, "no.such.token") as stub:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.call("Acquire", wanted(here), messages.Granted)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert STATUS.keys() == set(Code)


async def test_a_caller_that_goes_away_has_its_acquire_cancelled(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("hasty", rule("acquire", "get"))
        here.shelf.hold = asyncio.Event()
        async with called(here, token) as stub, asyncio.TaskGroup() as group:
            call = stub.call("Acquire", wanted(here, wait=30), messages.Granted)
            waiting = group.create_task(call)
            await eventually(lambda: here.shelf.asked)
            waiting.cancel()
            await eventually(lambda: here.shelf.cancelled == 1)
            listing = messages.ListRequest(namespace=namespace, pool="sql")
            watch = stub.watch(listing)
            here.shelf.change(a_worker("a", namespace, state=State.IDLE))
            assert (await watch.read()).state == "idle"
            watch.cancel()
            await eventually(lambda: here.shelf.watchers == 0)
