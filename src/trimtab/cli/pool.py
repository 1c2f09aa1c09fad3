"""``trimtab pool``: warm workers: serve them, see them, have one, and let one go."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.pool.gateway.service import ServiceOptions
    from trimtab.pool.kinds import Worker

ABOUT = "Warm workers: pods that a service hands to its clients, one by one."
SERVE = """
Be a gateway: hand out the workers of the cluster's WorkerPools over HTTPS, spawn, park
and reap them. Several gateways run side by side. Control-C, or SIGTERM, stops it: what
is under way is finished, and the others go on with its workers.
"""
ACQUIRE = """
Have a worker until it is released: a WorkerClaim is made, and its name printed. With
--gateway, have one for as long as a command runs, or until Control-C; the command finds
it in TRIMTAB_WORKER_ADDRESS, _PORT, _NAME, _EPOCH, _TOKEN and _CA (a file).
"""
RELEASE = """
Give back the worker of a claim; or, by its own name, take a worker from whoever has it.
"""
DRAIN = "Let a worker go: at once if nobody has it, else when it is released."
EXPLAIN = "Say how a pool or a worker is, why, and what happens to it next."


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("pool", help="warm workers", description=ABOUT)
    verbs = made.add_subparsers(metavar="VERB", required=True)
    _add_serve(verbs)
    _add_acquire(verbs)
    ls = _verb(verbs, "ls", "list pools, or the workers of one", run_ls)
    ls.add_argument("pool", nargs="?", metavar="POOL", help="the workers of this one")
    ls.add_argument("--all", action="store_true", help="also those that have ended")
    release = _verb(verbs, "release", "give back a worker", run_release, RELEASE)
    release.add_argument("worker", metavar="CLAIM|WORKER")
    drain = _verb(verbs, "drain", "let a worker go", run_drain, DRAIN)
    drain.add_argument("worker", metavar="WORKER")
    explain = _verb(verbs, "explain", "say how it is, and why", run_explain, EXPLAIN)
    explain.add_argument("name", metavar="POOL|WORKER")


def _verb(
    verbs: argparse._SubParsersAction[Any],
    name: str,
    help: str,
    run: Any,
    about: str | None = None,
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = verbs.add_parser(
        name, help=help, description=about or help.capitalize() + "."
    )
    made.set_defaults(run=run)
    common.add_cluster(made)
    made.add_argument("--namespace", "-n", metavar="NAME", help="of the pool")
    return made


def _add_serve(verbs: argparse._SubParsersAction[Any]) -> None:
    made = _verb(verbs, "serve", "be a gateway", run_serve, SERVE)
    made.add_argument(
        "--namespaces",
        type=common.names,
        default=(),
        metavar="NAMES",
        help="serve the pools of these only, with commas between (default: all)",
    )
    _add_listening(made)
    _add_times(made)
    common.add_log(made)


def _add_listening(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen (default: 127.0.0.1)",
    )
    made.add_argument(
        "--port",
        type=common.port,
        default=8444,
        metavar="N",
        help="of HTTPS; 0 is any free port (default: 8444)",
    )
    made.add_argument(
        "--grpc", type=common.port, metavar="N", help="the same verbs over gRPC there"
    )
    made.add_argument(
        "--names",
        type=common.names,
        default=("localhost", "127.0.0.1"),
        metavar="NAMES",
        help="what clients call this gateway, for the certificate that it makes "
        "(default: localhost,127.0.0.1)",
    )
    made.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="a PEM file, read again every hour (default: it makes its own)",
    )
    made.add_argument("--key", type=Path, metavar="FILE", help="its key")
    made.add_argument(
        "--endpoints",
        type=common.port_or_none,
        default=8080,
        metavar="PORT",
        help="health and metrics; 0 is any free port, -1 serves none (default: 8080)",
    )


def _add_times(made: argparse.ArgumentParser) -> None:
    silent = "without a renewal for so long, a gateway or a client counts as dead"
    marked = "between a mark and the end of a worker whose client seems dead"
    kept = "that rows of ended workers stay, for people to see"
    for name, seconds, about in (
        ("--lease", 15.0, silent),
        ("--grace", 10.0, marked),
        ("--period", 5.0, "between two passes of the reaper"),
        ("--keep", 300.0, kept),
    ):
        made.add_argument(
            name,
            type=common.seconds,
            default=seconds,
            metavar="SECONDS",
            help=f"{about} (default: {seconds:g})",
        )


def _add_acquire(verbs: argparse._SubParsersAction[Any]) -> None:
    made = _verb(verbs, "acquire", "have a worker", run_acquire, ACQUIRE)
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--tenant", required=True, metavar="NAME", help="who it is for; required"
    )
    made.add_argument(
        "--shape", default="", metavar="NAME", help="(default: the pool's first)"
    )
    made.add_argument(
        "--wait",
        type=common.seconds,
        default=30.0,
        metavar="SECONDS",
        help="for a worker to be free (default: 30)",
    )
    made.add_argument(
        "--gateway", metavar="URL", help="ask this one, at https://HOST[:PORT]"
    )
    made.add_argument(
        "--service-account",
        default="default",
        metavar="NAME",
        help="whose token is asked for and shown to the gateway (default: default)",
    )
    made.add_argument(
        "--ca", type=Path, metavar="FILE", help="default: what the gateway published"
    )
    made.add_argument(
        "--exec",
        dest="command",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="COMMAND",
        help="what runs meanwhile, with --gateway; all that follows belongs to it",
    )


# Serving


def run_serve(options: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    from trimtab.runtime import logs

    logs.setup(level=options.log.upper())
    common.check_certificate(options.certificate, options.key)
    common.running(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    import logging
    from contextlib import AsyncExitStack
    from datetime import UTC, datetime
    from random import SystemRandom

    from trimtab.cli import allowed
    from trimtab.client import Client
    from trimtab.pool.gateway.service import Service
    from trimtab.pool.kinds import WorkerPool
    from trimtab.runtime.signals import Signals

    def connect() -> Client:
        return Client(common.config_of(options, namespace=options.namespace))

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect())
        await allowed.check_reads(client, WorkerPool, namespaces=options.namespaces)
        service = Service(
            client,
            connect=connect,
            options=_service_options(options, client),
            random=SystemRandom(),  # keys are made of it
            now=lambda: datetime.now(UTC),
        )
        if options.endpoints >= 0:
            made = await stack.enter_async_context(_endpoints(service, options))
            logger = logging.getLogger("trimtab.pool.gateway")
            logger.info("Health and metrics on %s port %d.", made.host, made.port)
        with Signals(service.stop):
            await service.run()


def _service_options(options: argparse.Namespace, client: Client) -> ServiceOptions:
    import os

    from trimtab.pool.gateway.service import ServiceOptions
    from trimtab.pool.parts import PoolOptions

    return ServiceOptions(
        pool=PoolOptions(
            lease_namespace=client.config.namespace,
            namespaces=options.namespaces,
            name=os.environ.get("POD_NAME", ""),
            lease_seconds=options.lease,
            grace=options.grace,
            period=options.period,
            keep_terminal=options.keep,
        ),
        host=options.host,
        port=options.port,
        grpc=options.grpc,
        names=options.names,
        certificate=options.certificate,
        key=options.key,
    )


def _endpoints(service: Any, options: argparse.Namespace) -> Any:
    """Probes and metrics, for the cluster and for Prometheus."""
    from trimtab.runtime.endpoints import Endpoints
    from trimtab.runtime.health import Health
    from trimtab.runtime.metrics import Metrics

    health, metrics = Health(), Metrics()
    health.add_ready(
        "gateway", lambda: None if service.ready.is_set() else "it does not serve yet"
    )
    metrics.registry.register(service.metrics)
    return Endpoints(
        options.host, options.endpoints, health=health, metrics=metrics.render
    )


# Seeing


def run_ls(options: argparse.Namespace) -> int:
    """Print a table."""
    print("\n".join(common.running(_listed(options))))
    return 0


async def _listed(options: argparse.Namespace) -> list[str]:
    from trimtab.client import Client
    from trimtab.pool import tables
    from trimtab.pool.kinds import LABEL_POOL, Worker, WorkerPool

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        namespace = client.config.namespace
        if options.pool is None:
            found = client.list(WorkerPool, namespace=namespace)
            return tables.pools([each async for each in found])
        await client.get(WorkerPool, options.pool)
        labels = f"{LABEL_POOL}={options.pool}"
        rows = client.list(Worker, namespace=namespace, labels=labels)
        workers = [each async for each in rows]
        return tables.workers(workers, ended=options.all)


def run_explain(options: argparse.Namespace) -> int:
    """Print sentences."""
    print("\n".join(common.running(_explained(options))))
    return 0


async def _explained(options: argparse.Namespace) -> list[str]:
    from datetime import UTC, datetime

    from trimtab.client import Client, NotFound
    from trimtab.pool import explaining
    from trimtab.pool.kinds import LABEL_POOL, TenantLedger, Worker, WorkerPool

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        try:
            pool = await client.get(WorkerPool, options.name)
        except NotFound:
            worker = await _worker(client, options.name, what="pool and no worker")
            pool = await client.get(WorkerPool, worker.spec.pool)
            return explaining.worker(worker, pool, now=datetime.now(UTC))
        at, labels = client.config.namespace, f"{LABEL_POOL}={options.name}"
        rows = client.list(Worker, namespace=at, labels=labels)
        books = client.list(TenantLedger, namespace=at)
        workers = [each async for each in rows]
        ledgers = [each async for each in books]
        return explaining.pool(pool, workers, ledgers)


# Having and letting go


def run_acquire(options: argparse.Namespace) -> int:
    """Have a worker."""
    from trimtab.cli import holding
    from trimtab.client import ConfigError

    if options.command and options.gateway is None:
        raise ConfigError("--exec runs a command with a worker of --gateway: name it.")
    if options.gateway is None:
        print(common.running(holding.claimed(options)))
        return 0
    return common.running(holding.acquired(options))


def run_release(options: argparse.Namespace) -> int:
    """Take a worker from whoever holds it."""
    from trimtab.cli.holding import unclaimed

    said = common.running(unclaimed(options))
    print(said or common.running(_let_go(options, keep=False)))
    return 0


def run_drain(options: argparse.Namespace) -> int:
    """Let a worker go."""
    print(common.running(_let_go(options, keep=True)))
    return 0


async def _let_go(options: argparse.Namespace, *, keep: bool) -> str:
    """Write that a worker drains; the gateways do the rest."""
    from trimtab.client import Client
    from trimtab.pool.states import TERMINAL

    config = common.config_of(options, namespace=options.namespace)
    async with Client(config) as client:
        worker = await _worker(client, options.worker, what="worker")
        if worker.status.state in TERMINAL:
            return f"{worker.metadata.name} has ended already."
        if await _drained(client, worker, keep=keep):
            return f"{worker.metadata.name} goes."
        return f"{worker.metadata.name} goes when it is released."


async def _worker(client: Client, name: str, *, what: str) -> Worker:
    from trimtab.client import NotFound
    from trimtab.pool.kinds import Worker

    try:
        return await client.get(Worker, name)
    except NotFound as error:
        if error.reason != "NotFound":  # there are no workers at all
            raise
        raise NotFound(
            f"There is no {what} {name} in {client.config.namespace}: trimtab pool ls"
            " shows what there is, -n names another namespace.",
            status=404,
        ) from error


async def _drained(client: Client, worker: Worker, *, keep: bool) -> bool:
    """Whether nobody has it any more."""
    from trimtab.pool import transitions
    from trimtab.pool.states import Operation, Origin, Reason, State
    from trimtab.pool.swapping import Rows

    if worker.status.state is not State.DRAINING:
        status = transitions.drain(worker, reason=Reason.DRAINED, keep=keep)
    elif keep or worker.status.checkout is None:
        return worker.status.checkout is None
    else:
        status = transitions.give_up(worker)
    rows = Rows(client, saw=lambda _: None, gone=lambda _: None, count=lambda *_: None)
    drained = await rows.swap(
        worker, status, operation=Operation.DRAIN, origin=Origin.REQUEST
    )
    return drained.status.checkout is None
