"""Calls to workers over HTTPS: what a gateway gives to the pool it serves.

A worker is known by its certificate, which carries its name and is signed by its pool's
authority; the gateway is known by an HMAC that only the two can make. Where a pool says
so, the activation goes over gRPC (:mod:`trimtab.pool.grpccalls`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trimtab.client.calling import Caller, NoReply, Place
from trimtab.pool import grpccalls
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import Activation

BEGIN, CLEAN, HEALTH = "/v1/begin", "/v1/clean", "/v1/health"
BEGIN_SECONDS: Final = 5.0
CLEAN_SECONDS: Final = 15.0
HEALTH_SECONDS: Final = 3.0
ANSWER: Final = 64 * 1024
SAID: Final = 300


class HttpCalls:
    """Calls to the workers of any pool; each is safe to repeat, and ends by itself."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def begin(
        self, target: Target, *, epoch: int, checkout: str, tenant: str
    ) -> None:
        body = {"epoch": epoch, "checkout": checkout, "tenant": tenant}
        await self._ask(target, BEGIN, body, within=BEGIN_SECONDS)

    async def clean(self, target: Target, *, epoch: int, checkout: str) -> None:
        body = {"epoch": epoch, "checkout": checkout}
        await self._ask(target, CLEAN, body, within=CLEAN_SECONDS)

    async def healthy(self, target: Target) -> None:
        await self._ask(target, HEALTH, None, within=HEALTH_SECONDS)

    async def activate(
        self, target: Target, *, epoch: int, tenant: str, activation: Activation
    ) -> None:
        if activation.protocol == "grpc":
            await grpccalls.activate(
                target, epoch=epoch, tenant=tenant, activation=activation
            )
            return
        if activation.port is not None:
            target = msgspec.structs.replace(target, port=activation.port)
        body = {"epoch": epoch, "tenant": tenant}
        await self._ask(target, activation.path, body, within=activation.timeout)

    async def _ask(
        self, target: Target, path: str, body: Any, *, within: float
    ) -> None:
        place = Place(
            host=target.address, port=target.port, name=target.name, ca=target.ca
        )
        headers = (
            ("Authorization", f"Bearer {target.bearer}"),
            ("Content-Type", "application/json"),
        )
        try:
            reply = await self._caller.call(
                place,
                "GET" if body is None else "POST",
                path,
                headers=headers,
                body=None if body is None else msgspec.json.encode(body),
                within=within,
                limit=ANSWER,
            )
        except NoReply as error:
            raise CallFailed(f"The call {path} failed: {error}.") from error
        if reply.status != 200:
            said = " ".join(reply.body.decode(errors="replace").split())[:SAID]
            raise CallFailed(
                f"Worker {target.name} answered {path} with {reply.status}: {said}"
            )
