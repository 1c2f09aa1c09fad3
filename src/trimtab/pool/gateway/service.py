"""The service: one process of the gateway, which is a replica of the pool behind HTTPS.

Several of them run side by side; each answers every request, and what one of them knows
that is in no object, the others can do without.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from trimtab.api import Metadata
from trimtab.api.kinds import ConfigMap
from trimtab.cache import Key
from trimtab.client import Client, TrimtabError
from trimtab.client.calling import Caller
from trimtab.pool import secrets
from trimtab.pool.gateway.api import Api
from trimtab.pool.gateway.gateway import Gateway
from trimtab.pool.httpcalls import HttpCalls
from trimtab.pool.keyring import SecretKeyring, authority_name, stored_authority
from trimtab.pool.kinds import Worker
from trimtab.pool.metered import MeteredAcquirer, MeteredCalls
from trimtab.pool.metrics import Labels, PoolMetrics
from trimtab.pool.parts import PoolOptions
from trimtab.pool.replica import Observed, Replica
from trimtab.pool.secrets import Pair
from trimtab.pool.states import LIVING, TERMINAL, Operation, Origin, Outcome
from trimtab.runtime.access import Reviews

NAME: Final = "trimtab-pool-gateway"
"""The ConfigMap with the authority that clients trust, and its Secret with ``-ca``."""
RENEW_SECONDS: Final = 3600.0
CONNECTIONS: Final = 320
"""To workers, kept for the next call: a handshake costs more than the call itself."""

logger = logging.getLogger("trimtab.pool.gateway")


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a gateway listens, and as whom."""

    pool: PoolOptions
    host: str = "127.0.0.1"
    port: int = 8444
    grpc: int | None = None
    """The port of the same verbs over gRPC; None serves none, 0 any free one."""
    names: tuple[str, ...] = ("localhost", "127.0.0.1")
    """The names that clients reach it under, if it makes its own certificate."""
    certificate: Path | None = None
    """A file of its own; without one it makes a certificate, signed by an authority
    that is kept in a Secret and published in a ConfigMap."""
    key: Path | None = None
    audiences: tuple[str, ...] = ()
    """For whom tokens must have been made; empty means for the API server."""


class Notice(Observed):
    """Hears what a replica does: counts it, and tells those who watch rows."""

    def __init__(self, metrics: PoolMetrics) -> None:
        self._metrics = metrics
        self._watchers: list[Callable[[Worker, bool], None]] = []

    def swapped(self, operation: Operation, outcome: Outcome, origin: Origin) -> None:
        self._metrics.transition(operation, outcome, origin)

    def passed(self, name: str) -> None:
        self._metrics.passed(name)

    def moved(self, worker: Worker, gone: bool) -> None:
        for call in tuple(self._watchers):
            call(worker, gone)

    def subscribe(self, call: Callable[[Worker, bool], None]) -> Callable[[], None]:
        self._watchers.append(call)
        return lambda: self._watchers.remove(call)


class Rows:
    """The rows of a replica, as the gateway's verbs see them."""

    def __init__(self, replica: Replica, notice: Notice) -> None:
        self._replica = replica
        self.subscribe = notice.subscribe

    def ready(self) -> bool:
        return self._replica.ready.is_set()

    def workers(self, pool: Key) -> Iterable[Worker]:
        return [row.worker for row in self._replica.view.rows(pool)]


class Service:
    """Runs a replica and serves its verbs.

    Flow: ``run`` in a task; ``ready`` tells when it serves; ``stop`` ends it in order:
    no new requests, those under way are answered, the replica hands over.
    """

    def __init__(
        self,
        client: Client,
        *,
        connect: Callable[[], Client],
        options: ServiceOptions,
        random: Random,
        now: Callable[[], datetime],
    ) -> None:
        self.options = options
        self.metrics = PoolMetrics(now=now)
        self.ready = asyncio.Event()
        self.port = options.port
        self.grpc_port = 0
        self._client = client
        self._now = now
        self._caller = Caller(idle=CONNECTIONS)
        self._notice = Notice(self.metrics)
        self.replica = Replica(
            client,
            calls=MeteredCalls(HttpCalls(self._caller), self.metrics),
            keyring=SecretKeyring(client, now=now, random=random),
            options=options.pool,
            random=random,
            now=now,
            connect=connect,
            observed=self._notice,
        )
        self._reviews = Reviews(
            client, audiences=options.audiences, count=self.metrics.review
        )
        self._stop = asyncio.Event()
        self._shown: Pair
        """The certificate as it is now."""
        self._gateway: Gateway | None = None
        self.metrics.add(self._gauges)

    def stop(self, why: str = "") -> None:
        """Have ``run`` stop in order, and return."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until stopped or cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                replica = group.create_task(self.replica.run())
                ready = group.create_task(self.replica.ready.wait())
                stopped = group.create_task(self._stop.wait())
                await asyncio.wait(
                    (replica, ready, stopped), return_when=asyncio.FIRST_COMPLETED
                )
                if ready.done() and not stopped.done():
                    await self._serve(group)
                self.replica.stop()
                ready.cancel()
                stopped.cancel()
        finally:
            await self._caller.close()

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        self._shown = await self._pair()
        api = Api(
            MeteredAcquirer(self.replica.allocator, self.metrics),
            Rows(self.replica, self._notice),
            self._reviews,
            renew_within=self.options.pool.lease_seconds,
            count=self.metrics.request,
        )
        host, port, pair = self.options.host, self.options.port, self._shown
        async with AsyncExitStack() as stack:
            gateway = Gateway(api, host=host, port=port, pair=pair)
            self._gateway = await stack.enter_async_context(gateway)
            self.port = gateway.port
            keeping = group.create_task(self._renewals(gateway))
            if self.options.grpc is not None:
                await stack.enter_async_context(self._remote(api, self.options.grpc))
            self.ready.set()
            logger.info("Serving on %s port %d.", host, self.port)
            await self._stop.wait()
            self.ready.clear()
            keeping.cancel()

    @asynccontextmanager
    async def _remote(self, api: Api, port: int) -> AsyncIterator[None]:
        try:
            # Here, because gRPC takes memory that who does not speak it can spare.
            from trimtab.pool.gateway.remote import remote
        except ImportError as error:
            raise TrimtabError(
                "gRPC is not installed: install trimtab[pool-grpc], or serve HTTP only."
            ) from error
        host = self.options.host
        async with remote(api, host=host, port=port, pair=lambda: self._shown) as made:
            self.grpc_port = made.port
            logger.info("gRPC on %s port %d.", host, made.port)
            yield

    async def _renewals(self, gateway: Gateway) -> None:
        """Show a new certificate before the old one expires."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            given = self.options.certificate is not None
            try:
                if given or secrets.is_due(self._shown.expires, now=self._now()):
                    self._shown = await self._pair()
                    gateway.show(self._shown)
            except (TrimtabError, OSError) as error:
                logger.warning("The certificate was not renewed: %s", error)

    async def _pair(self) -> Pair:
        """The certificate to show: the one that was given, or one made for it."""
        options, now = self.options, self._now()
        if options.certificate is not None and options.key is not None:
            return Pair(
                certificate=options.certificate.read_bytes(),
                private=options.key.read_bytes(),
                expires=now + secrets.LIFETIME,
            )
        namespace = options.pool.lease_namespace
        authority = await stored_authority(
            self._client,
            Metadata(name=authority_name(NAME), namespace=namespace),
            title="pool gateway",
            now=self._now,
        )
        published = ConfigMap(
            metadata=Metadata(name=NAME, namespace=namespace),
            data={secrets.AUTHORITY: authority.pem.decode()},
        )
        await self._client.apply(published, manager=NAME, force=True)
        return authority.issue(*options.names, now=now)

    def _gauges(self) -> Iterator[tuple[str, Labels, float]]:
        gateway, replica = self._gateway, self.replica
        yield "connections", (), gateway.connections if gateway else 0
        yield "is_leader", (), float(replica.leads)
        if not replica.ready.is_set():
            yield "may_act", (), 0.0
            return
        yield "may_act", (), float(replica.may_act())
        ended: Counter[str] = Counter()
        for key in replica.view.pools():
            pool = "/".join(key)
            yield "waiting", (pool,), replica.allocator.waiting(key)
            for state in LIVING:
                yield "workers", (pool, state.value), replica.view.count(key, state)
            for row in replica.view.rows(key):
                if row.worker.status.state in TERMINAL:
                    ended[row.worker.status.retireReason] += 1
        for reason, count in ended.items():
            yield "ended", (reason or "normal",), count
