"""The gateway's verbs: from a request to the pool's answer, or to a typed refusal.

It knows the pool by two small protocols, which the allocator and the view of a replica
satisfy, and holds nothing of its own: any replica can answer any request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from typing import Final, Protocol, TypeVar

import msgspec

from trimtab.api import Quantity
from trimtab.cache import Key
from trimtab.client import TrimtabError
from trimtab.pool import requests
from trimtab.pool.gateway import access, wire
from trimtab.pool.gateway.wire import Code, Problem
from trimtab.pool.kinds import Worker
from trimtab.pool.requests import AcquireRequest, Grant
from trimtab.runtime.access import Identity, Reviews, Unauthenticated
from trimtab.runtime.asks import Answer, Ask, json_answer
from trimtab.runtime.serving import Connection

T = TypeVar("T")

BEAT: Final = 15.0
"""Seconds after which a quiet watch says an empty line."""
BEHIND: Final = 10_000
"""A watcher that is so many changes behind is hung up on."""

CODES: Final[tuple[tuple[type[TrimtabError], Code], ...]] = (
    (requests.Never, Code.NEVER),
    (requests.Full, Code.FULL),
    (requests.NotNow, Code.NOT_NOW),
    (requests.NotYours, Code.NOT_YOURS),
    (requests.Unavailable, Code.UNAVAILABLE),
    (Unauthenticated, Code.UNAUTHENTICATED),
    (TrimtabError, Code.UNAVAILABLE),
)


class Acquirer(Protocol):
    """Hands out workers and takes them back."""

    async def acquire(self, request: AcquireRequest) -> Grant: ...

    async def release(
        self,
        checkout: str,
        *,
        holder: str,
        clean: bool = True,
        worker: Key | None = None,
    ) -> None: ...

    async def renew(
        self, holder: str, checkouts: Collection[str] | None = None
    ) -> None: ...

    async def drain(self, worker: Key) -> None: ...


class Board(Protocol):
    """The rows as they are known here."""

    def ready(self) -> bool:
        """Whether all of them are known, and workers may be handed out."""
        ...

    def workers(self, pool: Key) -> Iterable[Worker]: ...

    def subscribe(self, call: Callable[[Worker, bool], None]) -> Callable[[], None]:
        """Call with each row that changes, and whether it is gone, until undone."""
        ...


class Refusal(TrimtabError):
    """A request that the gateway itself refuses."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Api:
    """Answers requests; see the module's first lines.

    Guarantees: no verb but the probes is carried out for a caller whom the API server
    does not know, or who may not. A holder's name is bound to its caller: nobody can
    renew or release for another one.
    """

    def __init__(
        self,
        acquirer: Acquirer,
        board: Board,
        reviews: Reviews,
        *,
        renew_within: float,
        count: Callable[[str, str], None] = lambda verb, code: None,
    ) -> None:
        self._acquirer = acquirer
        self._board = board
        self._reviews = reviews
        self._renew_within = renew_within
        self._count = count
        self.stopping = False

    async def handle(self, ask: Ask, connection: Connection | None = None) -> Answer:
        """The answer to any request."""
        if ask.method == "GET" and ask.path in ("/healthz", "/readyz"):
            return self._probe(ask.path)
        try:
            answer = await self._routed(ask)
            code = "ok"
        except msgspec.ValidationError as error:
            answer, code = _refused(Code.BAD_REQUEST, f"{error}."), "bad-request"
        except TrimtabError as error:
            answer, code = _problem(code_of(error), error), code_of(error).value
        self._count(_verb(ask), code)
        return answer

    def _probe(self, path: str) -> Answer:
        if path == "/healthz" or (self._board.ready() and not self.stopping):
            return Answer(body=b"ok\n", type="text/plain; charset=utf-8")
        return _refused(Code.UNAVAILABLE, "This gateway is not ready.")

    async def _routed(self, ask: Ask) -> Answer:
        match ask.method, ask.path.split("/"):
            case "POST", ["", "v1", "pools", namespace, name, verb]:
                caller = await self._reviews.caller(ask.bearer)
                return await self._changed(ask, caller, (namespace, name), verb)
            case "GET", ["", "v1", "pools", namespace, name, "workers"]:
                caller = await self._reviews.caller(ask.bearer)
                return await self._listed(ask, caller, (namespace, name))
            case "POST", ["", "v1", "holders", holder, "renew"]:
                caller = await self._reviews.caller(ask.bearer)
                return await self._renew(ask, caller, holder)
        text = f"There is no {ask.method} {ask.path} here."
        raise Refusal(Code.NOT_FOUND, text)

    async def _changed(
        self, ask: Ask, caller: Identity, pool: Key, verb: str
    ) -> Answer:
        match verb:
            case "acquire":
                return await self._acquire(_body(ask, wire.Acquire), caller, pool)
            case "release":
                return await self._release(_body(ask, wire.Release), caller, pool)
            case "drain":
                await self._check(caller, "drain", pool)
                worker = _body(ask, wire.Drain).worker
                await self._acquirer.drain((pool[0], worker))
                return json_answer({})
        raise Refusal(Code.NOT_FOUND, f"There is no verb {verb} here.")

    async def _acquire(
        self, wanted: wire.Acquire, caller: Identity, pool: Key
    ) -> Answer:
        await self._check(caller, "acquire", pool, tenant=wanted.tenant)
        if self.stopping:
            text = "This gateway is stopping; ask another one."
            raise requests.Unavailable(text, retry_after=0.0)
        grant = await self._acquirer.acquire(_request(wanted, caller, pool))
        return json_answer(granted(grant))

    async def _release(
        self, wanted: wire.Release, caller: Identity, pool: Key
    ) -> Answer:
        await self._acquirer.release(
            wanted.checkout,
            holder=holder_of(caller, wanted.holder),
            clean=wanted.clean,
            worker=(pool[0], wanted.worker) if wanted.worker else None,
        )
        return json_answer({})

    async def _renew(self, ask: Ask, caller: Identity, holder: str) -> Answer:
        if not wire.HOLDER.fullmatch(holder):
            raise Refusal(Code.BAD_REQUEST, f"{holder!r} is no holder's name.")
        held = _body(ask, wire.Renew).checkouts if ask.body else None
        await self._acquirer.renew(holder_of(caller, holder), held)
        return json_answer({"renewWithin": self._renew_within})

    async def _listed(self, ask: Ask, caller: Identity, pool: Key) -> Answer:
        await self._check(caller, "get", pool)
        if ask.query.get("watch"):
            type = "application/x-ndjson"
            return Answer(stream=self._watched(pool), type=type)
        rows = [wire.row_of(worker) for worker in self._board.workers(pool)]
        return json_answer({"workers": sorted(rows, key=lambda row: row.name)})

    async def _watched(self, pool: Key) -> AsyncIterator[bytes]:
        """All rows, then each as it changes, and an empty line where none does."""
        changes: asyncio.Queue[wire.Row | None] = asyncio.Queue(BEHIND)

        def changed(worker: Worker, gone: bool) -> None:
            if (worker.metadata.namespace, worker.spec.pool) != pool:
                return
            if changes.full():
                changes.get_nowait()
                changes.put_nowait(None)
            else:
                changes.put_nowait(wire.row_of(worker, gone=gone))

        undo = self._board.subscribe(changed)
        try:
            for worker in list(self._board.workers(pool)):
                yield _line(wire.row_of(worker))
            while not self.stopping:
                try:
                    async with asyncio.timeout(BEAT):
                        row = await changes.get()
                except TimeoutError:
                    yield b"\n"
                    continue
                if row is None:
                    return
                yield _line(row)
        finally:
            undo()

    async def _check(
        self, caller: Identity, verb: str, pool: Key, *, tenant: str = ""
    ) -> None:
        if not await access.may(self._reviews, caller, verb, pool, tenant=tenant):
            whom = f" for tenant {tenant!r}" if tenant else ""
            name = "/".join(pool)
            raise Refusal(
                Code.DENIED,
                f"{caller.name} may not {verb} workers of pool {name}{whom}: bind a "
                f"role with the verb {verb} on workerpools.trimtab.dev.",
            )


def holder_of(caller: Identity, name: str) -> str:
    """The name of a holder in objects: its own, bound to who it is."""
    digest = hashlib.sha256(f"{caller.uid}\0{caller.name}".encode()).hexdigest()
    return f"{name}-{digest[:10]}"


def granted(grant: Grant) -> wire.Granted:
    """A grant as it goes over the wire."""
    return wire.Granted(
        checkout=grant.checkout,
        worker=grant.worker,
        uid=grant.uid,
        namespace=grant.namespace,
        address=grant.address,
        port=grant.port,
        token=grant.token,
        epoch=grant.epoch,
        ca=grant.ca.decode(),
        renewWithin=grant.renew_within,
        source=grant.source.value,
        deadline=grant.deadline,
        warning=grant.warning,
    )


def _request(wanted: wire.Acquire, caller: Identity, pool: Key) -> AcquireRequest:
    try:
        cpu = Quantity(wanted.cpu) if wanted.cpu else None
        memory = Quantity(wanted.memory) if wanted.memory else None
    except ValueError as error:
        raise Refusal(Code.BAD_REQUEST, f"{error}.") from error
    return AcquireRequest(
        pool=pool,
        tenant=wanted.tenant,
        holder=holder_of(caller, wanted.holder),
        shape=wanted.shape,
        cpu=cpu,
        memory=memory,
        ttl=wanted.ttl,
        wait=wanted.wait,
    )


def _body(ask: Ask, into: type[T]) -> T:
    try:
        return msgspec.json.decode(ask.body, type=into)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"The body is not JSON: {error}") from error


def code_of(error: TrimtabError) -> Code:
    """The code of an error, for whoever asked."""
    if isinstance(error, Refusal):
        return error.code
    return next(code for kind, code in CODES if isinstance(error, kind))


def _problem(code: Code, error: TrimtabError) -> Answer:
    retry = getattr(error, "retry_after", None)
    problem = Problem(
        code=code.value,
        message=str(error),
        retryAfter=retry,
        limit=getattr(error, "limit", ""),
    )
    headers = () if retry is None else (("Retry-After", str(max(0, round(retry)))),)
    answer = json_answer(problem, status=wire.STATUS[code])
    return msgspec.structs.replace(answer, headers=headers)


def _refused(code: Code, message: str) -> Answer:
    problem = Problem(code=code.value, message=message)
    return json_answer(problem, status=wire.STATUS[code])


def _verb(ask: Ask) -> str:
    """The verb of a request, out of a closed set."""
    last = ask.path.rpartition("/")[2]
    known = {"acquire", "release", "drain", "renew"}
    if last in known:
        return last
    return "list" if last == "workers" else "unknown"


def _line(row: wire.Row) -> bytes:
    return msgspec.json.encode(row) + b"\n"
