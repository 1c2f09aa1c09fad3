"""The gateway: one replica of what nodes and clients call, put together and served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random

import grpc
import msgspec

from trimtab.cache import Cache, Scope
from trimtab.client import Client, ConfigError
from trimtab.operators.vmafx.desk import BY_UID, Desk
from trimtab.operators.vmafx.direct import Scoring
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.leases import LEASE
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.nodes import BY_SESSION, Nodes
from trimtab.operators.vmafx.roles import Judge
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.serving import Controller

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
    certificate: bytes = b""
    key: bytes = b""
    # Which inputs may be scored: none, unless some are named.
    roots: Roots = Roots()
    lease: float = LEASE


@asynccontextmanager
async def serving(
    client: Client,
    *,
    judge: Judge,
    options: GatewayOptions,
    now: Callable[[], datetime],
    random: Random,
    scorer: Scorer | None = None,
) -> AsyncIterator[int]:
    """Serve for as long as the block runs; the port.

    Flow: the caches are read once before the first call is taken. Without a ``scorer``
    it gives jobs away and scores nothing itself.

    Errors: :class:`ConfigError` for another host than loopback without a certificate,
    or a port that is taken.
    """
    cache = Cache(client, random=random)
    places = Scope(namespaces=(options.namespace,))
    nodes = Nodes(
        client,
        cache.informer(VmafxNode, places, indexes=(BY_SESSION,)),
        namespace=options.namespace,
        random=random,
    )
    desk = Desk(
        client,
        jobs=cache.informer(VmafxJob, options.scope, indexes=(BY_UID,)),
        nodes=nodes,
        now=now,
        lease=options.lease,
    )
    guard = Guard(judge, namespace=options.namespace)
    controller = Controller(
        client,
        desk,
        guard=guard,
        namespace=options.namespace,
        roots=options.roots,
        now=now,
    )
    server = grpc.aio.server(
        handlers=(
            controller.handler(),
            Scoring(scorer, guard=guard, roots=options.roots).handler(),
        ),
        options=[("grpc.max_receive_message_length", _MOST_BYTES)],
    )
    port = _bound(server, options)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cache.run())]
        await cache.wait_synced()
        tasks.append(group.create_task(desk.run()))
        await server.start()
        try:
            yield port
        finally:
            await server.stop(_GRACE)
            for task in tasks:
                task.cancel()


def _bound(server: grpc.aio.Server, options: GatewayOptions) -> int:
    address = f"{options.host}:{options.port}"
    try:
        if options.certificate:
            pair = (options.key, options.certificate)
            credentials = grpc.ssl_server_credentials([pair])
            return server.add_secure_port(address, credentials)
        if not options.host.startswith(_LOOPBACK):
            raise ConfigError(
                f"A gateway on {options.host} needs a certificate and a key: only on "
                "loopback does it serve without."
            )
        return server.add_insecure_port(address)
    except RuntimeError:
        raise ConfigError(
            f"The gateway cannot listen on {address}: is the port taken?"
        ) from None
