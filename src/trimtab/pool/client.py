"""The client: a worker for the length of a block, and given back however it ends.

::

    async with Pool.connect("https://gateway:8444", pool="default/sql") as pool:
        async with pool.acquire(tenant="acme", shape="small") as worker:
            reply = await worker.call("POST", "/query", body=b"select 1")

One process is one *holder*: it renews once for all its workers, in the background.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import msgspec

from trimtab.client.calling import Caller, NoReply, Place, Reply
from trimtab.client.errors import ConfigError
from trimtab.pool.gateway import wire
from trimtab.pool.gateway.wire import Granted
from trimtab.pool.gateways import SECONDS, Gateways, place_of, token_of
from trimtab.pool.gateways import Denied as Denied
from trimtab.pool.requests import Full as Full
from trimtab.pool.requests import Never as Never
from trimtab.pool.requests import NotNow as NotNow
from trimtab.pool.requests import NotYours, Refused, Unavailable

RENEW: Final = 5.0
"""Seconds between renewals before the gateway has said how often."""
PATIENCE: Final = 5.0
"""Seconds beyond the wait for a gateway that answers at all."""
PAUSE: Final = 0.2
LINGER: Final = 1.0
"""Seconds that an answer is waited for which nobody wants any more."""

logger = logging.getLogger("trimtab.pool.client")


class Lost(Refused):
    """The worker may be another client's by now: nothing was renewed for too long."""


class HeldWorker:
    """A worker that is this client's alone until its block ends.

    ``lost`` is set when it may not be any more; calls fail with :class:`Lost` then.
    """

    def __init__(self, granted: Granted, caller: Caller) -> None:
        self.granted = granted
        self.name = granted.worker
        self.address = granted.address
        self.port = granted.port
        self.token = granted.token
        self.epoch = granted.epoch
        self.checkout = granted.checkout
        self.clean = True
        """Set it to False if the worker is not fit for another client."""
        self.lost = asyncio.Event()
        self._caller = caller
        self._place = Place(
            host=self.address,
            port=self.port,
            name=self.name,
            ca=granted.ca.encode() or None,
        )

    def __repr__(self) -> str:
        return f"HeldWorker({self.name!r}, checkout={self.checkout!r})"

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        within: float = SECONDS,
        safe: bool = False,
    ) -> Reply:
        """Ask the worker something; ``safe`` if it may be asked twice.

        Errors: :class:`Lost`; :class:`trimtab.client.calling.NoReply`.
        """
        if self.lost.is_set():
            raise Lost(f"Worker {self.name} may be another client's by now.")
        headers = (("Authorization", f"Bearer {self.token}"),)
        return await self._caller.call(
            self._place,
            method,
            path,
            headers=headers,
            body=body,
            within=within,
            safe=safe,
        )


class Pool:
    """A pool of workers, seen by one client process. Use :meth:`connect`.

    Guarantees: a worker is released on every way out of its block, and so is one whose
    grant never reached us: renewals name what we have, and the rest goes back. If
    nothing can be renewed for as long as the gateway allows, every worker held is
    ``lost`` before another client can have it.
    """

    def __init__(
        self, gateways: Gateways, pool: str, *, random: Random, caller: Caller
    ) -> None:
        self._gateways = gateways
        self._random = random
        self._caller = caller
        self._namespace, _, self._name = pool.partition("/")
        if not self._namespace or not self._name:
            raise ConfigError(f"{pool!r} is no pool: name it as NAMESPACE/NAME.")
        self.holder = _holder(random)
        self._held: dict[str, HeldWorker] = {}
        self._group: asyncio.TaskGroup = asyncio.TaskGroup()
        self._needed = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    @classmethod
    def connect(
        cls,
        url: str | Sequence[str],
        *,
        pool: str,
        token: str | Path | Callable[[], str] | None = None,
        ca: bytes | Path | None = None,
        server_name: str | None = None,
        random: Random | None = None,
    ) -> Pool:
        """A pool behind one gateway, or several of which any will do.

        ``pool`` is ``NAMESPACE/NAME``. ``token`` is a service account's, or the file
        that holds it (default: the pod's own). ``ca`` is whom to trust for the
        gateway's certificate (default: the system's authorities).
        """
        authority = ca.read_bytes() if isinstance(ca, Path) else ca
        urls = [url] if isinstance(url, str) else list(url)
        places = tuple(place_of(each, authority, server_name) for each in urls)
        caller = Caller()
        gateways = Gateways(places, token=token_of(token), caller=caller)
        return cls(gateways, pool, random=random or Random(), caller=caller)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._renewing = self._group.create_task(self._renewals())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._renewing is not None
        self._renewing.cancel()
        # The body's own error is not the group's: it must arrive as it was raised.
        await self._group.__aexit__(None, None, None)
        await self._caller.close()

    @asynccontextmanager
    async def acquire(
        self,
        *,
        tenant: str,
        shape: str = "",
        cpu: str = "",
        memory: str = "",
        ttl: int | None = None,
        wait: float = 30.0,
    ) -> AsyncIterator[HeldWorker]:
        """A worker for the length of the block.

        Errors: :class:`Full`, :class:`NotNow` (with ``retry_after``), :class:`Never`,
        :class:`Denied`; :class:`Unavailable` when no gateway answers in time.
        """
        wanted = wire.Acquire(
            tenant=tenant,
            holder=self.holder,
            shape=shape,
            cpu=cpu,
            memory=memory,
            ttl=ttl,
            wait=wait,
        )
        self._needed.set()
        worker = await self._have(wanted)
        self._held[worker.checkout] = worker
        try:
            yield worker
        finally:
            del self._held[worker.checkout]
            release = self._group.create_task(self._released(worker))
            # In the pool's group: a second cancellation does not end it.
            await asyncio.shield(release)

    async def workers(self) -> list[wire.Row]:
        """The rows of the pool."""
        answer = await self._gateways.ask("GET", self._path("workers"), None)
        rows = msgspec.json.decode(answer)["workers"]
        return msgspec.convert(rows, list[wire.Row])

    async def watch(self) -> AsyncGenerator[wire.Row, None]:
        """The rows of the pool, then each as it changes, until the gateway hangs up."""
        async for line in self._gateways.lines(self._path("workers") + "?watch=1"):
            if line:
                yield msgspec.json.decode(line, type=wire.Row)

    async def drain(self, worker: str) -> None:
        """Have a worker go: at once if it is free, else when it is released."""
        await self._gateways.ask("POST", self._path("drain"), wire.Drain(worker=worker))

    # One request

    async def _have(self, wanted: wire.Acquire) -> HeldWorker:
        """A worker; if whoever wants it is cancelled, it goes back when it comes."""
        asking = self._group.create_task(self._tried(wanted))
        try:
            found = await asyncio.shield(asking)
        except asyncio.CancelledError:
            self._group.create_task(self._unwanted(asking))
            raise
        if isinstance(found, Exception):
            raise found
        return HeldWorker(found, self._caller)

    async def _tried(self, wanted: wire.Acquire) -> Granted | Exception:
        # An error is a result: raised here, it would end the group and all in it.
        try:
            return await self._granted(wanted)
        except Exception as error:
            return error

    async def _unwanted(self, asking: asyncio.Task[Granted | Exception]) -> None:
        """Hang up on a gateway, but not while its answer may be on the way."""
        await asyncio.wait([asking], timeout=LINGER)
        if not asking.done():
            asking.cancel()
            await asyncio.wait([asking])
        if not asking.cancelled() and isinstance(found := asking.result(), Granted):
            await self._released(HeldWorker(found, self._caller))

    async def _granted(self, wanted: wire.Acquire) -> Granted:
        """A worker from whichever gateway has one.

        A gateway that answers nothing may have handed one out: no renewal names it,
        so it goes back.
        """
        loop = asyncio.get_running_loop()
        waits_until = loop.time() + wanted.wait
        while True:
            left = max(0.0, waits_until - loop.time())
            asked = msgspec.structs.replace(wanted, wait=left)
            try:
                answer = await self._gateways.ask(
                    *("POST", self._path("acquire"), asked),
                    within=left + SECONDS,
                    safe=False,
                )
                return msgspec.json.decode(answer, type=Granted)
            except (Unavailable, NoReply) as error:
                pause = PAUSE * (1 + self._random.random())
                if loop.time() + pause >= waits_until + PATIENCE:
                    raise _unavailable(error) from error
                await asyncio.sleep(pause)

    async def _released(self, worker: HeldWorker) -> None:
        body = wire.Release(
            checkout=worker.checkout,
            holder=self.holder,
            clean=worker.clean,
            worker=worker.name,
        )
        try:
            await self._gateways.ask("POST", self._path("release"), body)
        except NotYours:
            pass  # it is over already
        except (Refused, NoReply) as error:
            # No renewal names it any more, so it goes back a little later.
            logger.warning("%s was not released yet: %s", worker, error)

    def _path(self, verb: str) -> str:
        namespace, name = quote(self._namespace), quote(self._name)
        return f"/v1/pools/{namespace}/{name}/{verb}"

    # In the background

    async def _renewals(self) -> None:
        """Say that this process lives, for as long as it wants anything."""
        loop = asyncio.get_running_loop()
        await self._needed.wait()
        within, renewed = RENEW * 3, loop.time()
        while True:
            try:
                answer = await self._gateways.ask(
                    *("POST", f"/v1/holders/{self.holder}/renew"),
                    self._known(),
                    within=within / 3,
                )
                within = float(msgspec.json.decode(answer)["renewWithin"])
                renewed = loop.time()
            except (Refused, NoReply) as error:
                logger.warning("This holder was not renewed: %s", error)
                if loop.time() - renewed > within * 2 / 3:
                    self._give_up()
            await asyncio.sleep(within / 3 * (0.8 + 0.2 * self._random.random()))

    def _known(self) -> wire.Renew:
        """All that we hold, or nothing of it if that is too much to tell."""
        held = list(self._held)
        return wire.Renew(checkouts=held if len(held) <= wire.MAX_HELD else None)

    def _give_up(self) -> None:
        """Others may think that we are dead: use nothing any more."""
        for worker in self._held.values():
            worker.lost.set()


def _unavailable(error: Refused | NoReply) -> Unavailable:
    if isinstance(error, Unavailable):
        return error
    return Unavailable(f"No gateway answers: {error}.")


def _holder(random: Random) -> str:
    host = os.environ.get("POD_NAME") or os.uname().nodename
    plain = "".join(letter if letter.isalnum() else "-" for letter in host.lower())
    start = plain.encode("ascii", "ignore").decode().strip("-")[:40].strip("-")
    return f"{start or 'client'}-{random.getrandbits(64):016x}"
