"""The worker's server: a gate and a handler behind HTTPS.

=================================  ================================================
``GET /healthz``                   anybody: whether the program lives; never fenced
``GET /v1/health``                 the gateway: the same, and what the gate holds
``POST /v1/begin``                 the gateway: a checkout begins; lower epochs end
``POST /v1/clean``                 the gateway: it is over
``POST /activate``                 the gateway: the worker is bound to a tenant
anything else                      the client of the checkout: the handler's
=================================  ================================================
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from trimtab.pool.worker.gate import Gate, Refused
from trimtab.pool.worker.handler import Handler
from trimtab.runtime.asks import Answer, Ask, json_answer, refusal
from trimtab.runtime.serving import Connection

QUIET_SECONDS: Final = 4.0
"""How long a client that may be served no longer has to let go."""

logger = logging.getLogger("trimtab.pool.worker")

T = TypeVar("T")


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    checkout: str
    tenant: str = ""


class Clean(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    checkout: str


class Activate(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    tenant: str


class WorkerServer:
    """Answers the gateway's calls, and hands a client's to the handler.

    Guarantees: a begin is acknowledged when every call of a lower epoch has ended, a
    clean when every call of the checkout has and the handler has forgotten it. A call
    that does not end makes both fail, and the pool replaces the worker.
    """

    def __init__(
        self,
        gate: Gate,
        handler: Handler,
        *,
        activation: str = "/activate",
        remember: Callable[[int], None] | None = None,
        patience: float = QUIET_SECONDS,
    ) -> None:
        self.gate = gate
        self.handler = handler
        self.draining = False
        self.activation = activation
        self._remember = remember
        self._patience = patience
        self._tenant = ""
        """Whom the worker is bound to, from the moment it begins to be."""
        self._steps: dict[str, asyncio.Future[None]] = {}
        """The last activation and the last cleaning, under way or done."""
        self._cleaned = 0
        self._spoilt = ""
        """Why it must not be used again; empty if nothing speaks against it."""

    async def handle(self, ask: Ask, connection: Connection) -> Answer:
        """The answer to any request."""
        try:
            if ask.path == "/healthz":
                return await self._health(details=False)
            if ask.path.startswith("/v1/") or ask.path == self.activation:
                return await self._controlled(ask)
            return await self._used(ask, connection)
        except (Refused, msgspec.ValidationError) as error:
            return _refusal(error)

    async def asked(self, ask: Ask) -> Answer:
        """The answer to what only a gateway may ask, whichever way it came."""
        try:
            return await self._controlled(ask)
        except (Refused, msgspec.ValidationError) as error:
            return _refusal(error)

    async def _used(self, ask: Ask, connection: Connection) -> Answer:
        use = self.gate.admit(ask.bearer, drop=connection.abort)
        try:
            return await self.handler.serve(ask, use)
        finally:
            use.end()

    async def _controlled(self, ask: Ask) -> Answer:
        if not self.gate.controls(ask.bearer):
            text = "Only the pool's gateways may ask this; show their token."
            return refusal(HTTPStatus.UNAUTHORIZED, "unauthorized", text)
        match ask.method, ask.path:
            case "GET", "/v1/health":
                return await self._health(details=True)
            case "POST", "/v1/begin":
                return await self._begin(_body(ask, Begin))
            case "POST", "/v1/clean":
                return await self._clean(_body(ask, Clean))
            case "POST", path if path == self.activation:
                return await self._activate(_body(ask, Activate))
        text = f"There is no {ask.method} {ask.path} here."
        return refusal(HTTPStatus.NOT_FOUND, "not-found", text)

    async def _begin(self, asked: Begin) -> Answer:
        if self.draining or self._spoilt:
            return self._busy(self._spoilt or "it is stopping")
        self.gate.begin(asked.epoch, checkout=asked.checkout, tenant=asked.tenant)
        return await self._settled(asked.epoch)

    async def _clean(self, asked: Clean) -> Answer:
        self.gate.clean(asked.epoch, checkout=asked.checkout)
        answer = await self._settled(asked.epoch)
        if answer.status != HTTPStatus.OK:
            return answer
        if self._cleaned < asked.epoch:
            self._cleaned = asked.epoch
            self._steps.pop("clean", None)
        return await self._once("clean", self.handler.clean) or answer

    async def _activate(self, asked: Activate) -> Answer:
        if self.draining or self._spoilt:
            return self._busy(self._spoilt or "it is stopping")
        self.gate.fence(asked.epoch)
        answer = await self._settled(asked.epoch)
        if answer.status != HTTPStatus.OK:
            return answer
        if self._tenant not in ("", asked.tenant):
            text = "The worker is bound to another tenant already, and stays so."
            return refusal(HTTPStatus.CONFLICT, "bound", text)
        self._tenant = asked.tenant
        work = partial(self.handler.activate, asked.tenant)
        return await self._once("activate", work) or answer

    async def _once(
        self, step: str, work: Callable[[], Awaitable[None]]
    ) -> Answer | None:
        """Do a step unless it is done; who asks meanwhile waits. None if it went well.

        A step that failed, or that its caller did not wait for, spoils the worker.
        """
        if (under_way := self._steps.get(step)) is not None:
            await asyncio.wait([under_way])
            return self._busy(self._spoilt) if self._spoilt else None
        done = self._steps[step] = asyncio.get_running_loop().create_future()
        try:
            await work()
        except BaseException as error:
            self._spoilt = f"the step {step} failed ({type(error).__name__})"
            if not isinstance(error, Exception):
                raise
            logger.exception("The step %s failed; this worker is of no use.", step)
            return self._busy(self._spoilt)
        finally:
            done.set_result(None)
        return None

    async def _settled(self, epoch: int) -> Answer:
        """Acknowledge an epoch, when nobody is served any more who may not be."""
        if self._remember is not None:
            self._remember(epoch)
        try:
            async with asyncio.timeout(self._patience):
                await self.gate.quiet()
        except TimeoutError:
            self._spoilt = "a call of an earlier client does not end"
            return self._busy(self._spoilt)
        return json_answer({"epoch": self.gate.epoch})

    async def _health(self, *, details: bool) -> Answer:
        try:
            await self.handler.health()
        except Exception as error:
            return self._busy(f"it is not healthy ({type(error).__name__})")
        found: dict[str, Any] = {"healthy": True, "draining": self.draining}
        if details:
            found |= msgspec.to_builtins(self.gate.statistics())
        return json_answer(found)

    def _busy(self, why: str) -> Answer:
        text = f"The worker cannot be used: {why}."
        return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", text)


def _refusal(error: Refused | msgspec.ValidationError) -> Answer:
    if isinstance(error, Refused):
        return refusal(HTTPStatus.FORBIDDEN, "refused", str(error))
    text = f"The request makes no sense: {error}."
    return refusal(HTTPStatus.BAD_REQUEST, "bad-request", text)


def _body(ask: Ask, into: type[T]) -> T:
    try:
        return msgspec.json.decode(ask.body, type=into)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"the body is not JSON ({error})") from error
