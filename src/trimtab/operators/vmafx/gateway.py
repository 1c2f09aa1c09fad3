"""The gateway: one replica of what nodes and clients call, put together and served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import grpc
import msgspec

from trimtab.cache import Cache, Scope
from trimtab.client import Client, ConfigError
from trimtab.operators.vmafx.desk import BY_UID, Desk
from trimtab.operators.vmafx.direct import Scoring
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.joining import Joining
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.leases import LEASE
from trimtab.operators.vmafx.metrics import GatewayMetrics
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.nodes import BY_SESSION, Nodes
from trimtab.operators.vmafx.roles import Judge
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scaling.external import External
from trimtab.operators.vmafx.serving import Controller
from trimtab.operators.vmafx.showing import Certificate
from trimtab.operators.vmafx.tenancy.opening import Open, Tenancy
from trimtab.operators.vmafx.tenancy.registry import REFRESH, Registry
from trimtab.operators.vmafx.training.wanted import Wanted
from trimtab.operators.vmafx.web import LIMITS, Web
from trimtab.runtime.metrics import of_client
from trimtab.runtime.serving import Server

_LOOPBACK = ("127.", "localhost", "[::1]")
# A pair of frames in 4K, with ten bits and full chroma.
_MOST_BYTES = 128 << 20
_GRACE = 2.0


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway serves."""

    # Where its nodes are kept, and jobs that name no namespace.
    namespace: str
    scope: Scope
    # Loopback unless asked otherwise; then it must have a certificate.
    host: str = "127.0.0.1"
    port: int = 9090
    # Of its HTTP; None serves none, 0 any that is free.
    http: int | None = None
    # Files of its TLS, which are read again when they change.
    certificate: Path | None = None
    key: Path | None = None
    # What it is called by those who connect: then it makes its own certificate.
    names: tuple[str, ...] = ()
    # Which inputs may be scored: none, unless some are named.
    roots: Roots = Roots()
    lease: float = LEASE
    # Whose tokens are accepted: without, those of the cluster's service accounts.
    tenancy: Tenancy | None = None
    # Whether its HTTP tells autoscalers what waits.
    external_metrics: bool = False


class Served(NamedTuple):
    """The ports that a gateway got; that of HTTP is 0 if there is none."""

    grpc: int
    http: int


@asynccontextmanager
async def serving(
    client: Client,
    *,
    judge: Judge,
    options: GatewayOptions,
    now: Callable[[], datetime],
    random: Random,
    scorer: Scorer | None = None,
) -> AsyncIterator[Served]:
    """Serve for as long as the block runs; the ports.

    Flow: probes are answered at once, calls when the caches were read. Without a
    ``scorer`` it gives jobs away and scores nothing itself. Where it has tenants, the
    ``judge`` is not asked.

    Errors: :class:`ConfigError` for another host than loopback without a certificate,
    a port that is taken, or a tenant that is wrong.
    """
    replica = _Replica(client, judge=judge, options=options, now=now, random=random)
    async with AsyncExitStack() as stack:
        certificate = await _certificate(client, options, now)
        if replica.tenants is not None:
            stack.push_async_callback(replica.tenants.close)
            await replica.tenants.start()
        server, web = replica.servers(scorer)
        port = _bound(server, options, certificate)
        http = await stack.enter_async_context(_http(web, options, certificate))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [
            group.create_task(replica.cache.run()),
            group.create_task(replica.wanted.run()),
            *(group.create_task(each) for each in replica.work()),
        ]
        stack.callback(lambda: [task.cancel() for task in tasks])
        if certificate is not None:
            tasks.append(group.create_task(certificate.run()))
        await replica.cache.wait_synced()
        tasks.append(group.create_task(replica.desk.run()))
        tasks.append(group.create_task(replica.joining.run()))
        await server.start()
        stack.push_async_callback(server.stop, _GRACE)
        replica.problem = ""
        try:
            yield Served(port, http)
        finally:
            replica.problem = "This gateway is stopping: ask another one."


class _Replica:
    """The parts of one gateway."""

    def __init__(
        self,
        client: Client,
        *,
        judge: Judge,
        options: GatewayOptions,
        now: Callable[[], datetime],
        random: Random,
    ) -> None:
        self.problem = "This gateway has not read the jobs yet: ask again."
        self._options = options
        self._now = now
        self.cache = Cache(client, random=random)
        tenancy = options.tenancy
        self._registry = Registry(
            home=options.namespace,
            roots=options.roots,
            refresh=tenancy.refresh if tenancy else REFRESH,
            provider=tenancy.provider if tenancy else None,
        )
        self._metrics = GatewayMetrics(tenant_of=self._registry.tenant_of)
        self.desk = self._made_desk(client, random)
        self.wanted = Wanted(
            client,
            scope=options.scope,
            namespace=options.namespace,
            random=random,
            tenant_of=self._registry.tenant_of,
        )
        self.joining = Joining(client, self.desk, now=now)
        self._metrics.watch(self.desk, now=now, problem=self._unready)
        self._metrics.all.add(lambda: of_client(client.statistics()))
        self.tenants = self._opened(client, tenancy) if tenancy else None
        self._guard = Guard(
            judge,
            namespace=options.namespace,
            count=self._metrics.request,
            tenants=self.tenants.doorkeeper if self.tenants else None,
        )
        self._controller = Controller(
            client,
            self.desk,
            guard=self._guard,
            namespace=options.namespace,
            registry=self._registry,
            now=now,
            learning=self.wanted.by,
        )

    def _made_desk(self, client: Client, random: Random) -> Desk:
        options = self._options
        places = Scope(namespaces=(options.namespace,))
        nodes = Nodes(
            client,
            self.cache.informer(VmafxNode, places, indexes=(BY_SESSION,)),
            namespace=options.namespace,
            random=random,
        )
        return Desk(
            client,
            jobs=self.cache.informer(VmafxJob, options.scope, indexes=(BY_UID,)),
            nodes=nodes,
            now=self._now,
            lease=options.lease,
            told=self._metrics.step,
            tenant_of=self._registry.tenant_of,
            share_of=self._registry.share_of,
        )

    def _opened(self, client: Client, tenancy: Tenancy) -> Open:
        return Open(
            self._registry,
            tenancy=tenancy,
            client=client,
            cache=self.cache,
            namespace=self._options.namespace,
            now=self._now,
            changed=self.desk.regroup,
        )

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What runs for tenants, if there are any."""
        return self.tenants.work() if self.tenants else []

    def _unready(self) -> str:
        """Why nobody should call it now; empty if nothing is in the way."""
        if self.problem:
            return self.problem
        found = self.cache.problem(asyncio.get_running_loop().time())
        return f"This gateway may not see jobs as they are: {found}" if found else ""

    def _external(self) -> External:
        return External(
            self.desk.demand,
            home=self._options.namespace,
            now=self._now,
            problem=self._unready,
        )

    def servers(self, scorer: Scorer | None) -> tuple[grpc.aio.Server, Web]:
        """What answers gRPC, and what answers HTTP."""
        metered = self._metrics.metered(scorer) if scorer else None
        scoring = Scoring(metered, guard=self._guard, registry=self._registry)
        web = Web(
            scoring,
            guard=self._guard,
            problem=self._unready,
            metrics=self._metrics.render,
            external=self._external() if self._options.external_metrics else None,
        )
        server = grpc.aio.server(
            handlers=(self._controller.handler(), scoring.handler()),
            options=[("grpc.max_receive_message_length", _MOST_BYTES)],
        )
        return server, web


async def _certificate(
    client: Client, options: GatewayOptions, now: Callable[[], datetime]
) -> Certificate | None:
    """What it shows, if it is to show one."""
    files = None
    if options.certificate is not None and options.key is not None:
        files = (options.certificate, options.key)
    if files is None and not options.names:
        if not options.host.startswith(_LOOPBACK):
            raise ConfigError(
                f"A gateway on {options.host} needs a certificate and a key, or names "
                "to make one for: only on loopback does it serve without."
            )
        return None
    made = Certificate(
        client, namespace=options.namespace, now=now, names=options.names, files=files
    )
    await made.load()
    return made


@asynccontextmanager
async def _http(
    web: Web, options: GatewayOptions, certificate: Certificate | None
) -> AsyncIterator[int]:
    """Its HTTP while the block runs; the port."""
    if options.http is None:
        yield 0
        return
    context = certificate.context if certificate else None
    host = options.host.strip("[]")
    server = Server(
        host, options.http, handle=web.handle, context=context, limits=LIMITS
    )
    async with server:
        yield server.port


def _bound(
    server: grpc.aio.Server, options: GatewayOptions, certificate: Certificate | None
) -> int:
    address = f"{options.host}:{options.port}"
    try:
        if certificate is not None:
            return server.add_secure_port(address, certificate.credentials())
        return server.add_insecure_port(address)
    except RuntimeError:
        raise ConfigError(
            f"The gateway cannot listen on {address}: is the port taken?"
        ) from None
