"""``trimtab run``: operators on the current cluster, until they are told to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from random import Random

    from trimtab.client import Client, Config
    from trimtab.runtime.manager import Manager, ManagerOptions
    from trimtab.runtime.operator import Operator
    from trimtab.runtime.webhooks.options import WebhookOptions
    from trimtab.runtime.webhooks.running import Webhooks

LINGER = 3.0
"""Seconds that webhooks behind a Service are still answered at the end."""

ABOUT = """
Run the operator that a Python file or module declares, on the cluster of the kubeconfig
(or, in a pod, on the pod's own); several of them run in one process. Control-C, or
SIGTERM, stops it: what is in hand is finished, the lease is released.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("run", help="run operators", description=ABOUT)
    made.set_defaults(run=run)
    common.add_source(made, several=True)
    common.add_cluster(made)
    made.add_argument(
        "--namespace",
        metavar="NAME",
        help="where the lease is kept (default: the context's namespace)",
    )
    made.add_argument(
        "--namespaces",
        type=common.names,
        metavar="NAMES",
        help="work in these namespaces only, with commas between: Roles are enough "
        "then (default: what the operator's scopes say)",
    )
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where health and metrics are served (default: 127.0.0.1)",
    )
    made.add_argument(
        "--port",
        type=common.port_or_none,
        default=8080,
        metavar="N",
        help="0 is any free port, -1 serves nothing (default: 8080)",
    )
    made.add_argument(
        "--no-leader",
        action="store_true",
        help="do not elect a leader: there is one replica, and you know it",
    )
    made.add_argument(
        "--lease",
        type=common.count,
        default=15,
        metavar="SECONDS",
        help="how long leadership lasts without a renewal (default: 15)",
    )
    _add_webhooks(made)
    common.add_log(made)


def _add_webhooks(made: argparse.ArgumentParser) -> None:
    ways = made.add_mutually_exclusive_group()
    ways.add_argument(
        "--webhook-service",
        metavar="NAME",
        help="the Service by which the API server reaches the webhooks, where the "
        "operator runs: NAME, or NAME:PORT if that is not 443",
    )
    ways.add_argument(
        "--webhook-url",
        metavar="URL",
        help="the address by which it does, outside a cluster: https://HOST:PORT",
    )
    made.add_argument(
        "--webhook-port",
        type=common.port,
        default=9443,
        metavar="N",
        help="where webhooks are served, at --host; 0 is any (default: 9443)",
    )
    made.add_argument(
        "--webhook-certificates",
        default="",
        metavar="DIR",
        help="serve the tls.crt and tls.key of this folder, also when they change "
        "(default: certificates of its own, in a Secret)",
    )
    made.add_argument(
        "--webhook-inject-from",
        default="",
        metavar="NAMESPACE/NAME",
        help="cert-manager's Certificate that those are of; it tells the API server "
        "whom to trust (default: the ca.crt of the folder is trusted)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the operators; the exit code."""
    from functools import partial

    from trimtab.runtime import logs
    from trimtab.runtime.manager import ManagerOptions

    logs.setup(level=options.log.upper())
    operators = _operators(options)
    configure = partial(common.config_of, options, namespace=options.namespace)
    settings = ManagerOptions(
        host=options.host,
        port=None if options.port < 0 else options.port,
        webhooks=_webhooks(options, operators),
    )
    common.running(_run(operators, configure, settings, options.lease))
    return 0


def _operators(options: argparse.Namespace) -> list[Operator]:
    from trimtab.cli.loading import NotAnOperator, operators_of
    from trimtab.runtime.webhooks.declarations import Declarations

    operators = operators_of(options.source, name=options.operator)
    unreached = not (options.webhook_service or options.webhook_url)
    for operator in operators:
        if options.no_leader:
            operator.leader = False
        if operator.optional_webhooks and unreached:
            operator.webhooks = Declarations()
        if options.namespaces:
            try:
                operator.within(options.namespaces)
            except ValueError as error:
                raise NotAnOperator(f"{operator.name}: {error}") from error
    return operators


def _webhooks(
    options: argparse.Namespace, operators: Sequence[Operator]
) -> WebhookOptions | None:
    """How webhooks are reached; None if there are none, or nothing says."""
    from trimtab.cli.loading import NotAnOperator
    from trimtab.runtime.webhooks.declarations import together
    from trimtab.runtime.webhooks.options import WebhookOptions

    having = [operator for operator in operators if operator.webhooks]
    try:
        together(operator.webhooks for operator in having).check()
        if not having or not (options.webhook_service or options.webhook_url):
            return None
        return WebhookOptions(
            host=options.host,
            port=options.webhook_port,
            service=options.webhook_service or "",
            url=options.webhook_url or "",
            certificates=options.webhook_certificates,
            inject_from=options.webhook_inject_from,
            # Others learn of the end by a Service that no longer leads here.
            linger=LINGER if options.webhook_service else 0.0,
        )
    except ValueError as error:
        names = ", ".join(operator.name for operator in having)
        raise NotAnOperator(f"{names}: {error}") from error


async def _run(
    operators: Sequence[Operator],
    configure: Callable[[], Config],
    settings: ManagerOptions,
    lease: int,
) -> None:
    from contextlib import AsyncExitStack
    from random import Random

    import msgspec

    from trimtab.cli import allowed
    from trimtab.client import Client
    from trimtab.runtime.several import Several
    from trimtab.runtime.signals import Signals

    random = Random()
    alone = len(operators) == 1
    own = settings if alone else msgspec.structs.replace(settings, port=None)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(configure())) for _ in operators
        ]
        for operator, client in zip(operators, clients, strict=True):
            await allowed.check(operator, client)
        served = None if alone else _served(operators, clients[0], settings, random)
        managers = [
            _manager(operator, client, configure, own, lease, random, served)
            for operator, client in zip(operators, clients, strict=True)
        ]
        if alone:
            with Signals(managers[0].stop):
                return await managers[0].run()
        several = Several(
            managers, host=settings.host, port=settings.port, webhooks=served
        )
        with Signals(several.stop):
            await several.run()


def _served(
    operators: Sequence[Operator],
    client: Client,
    settings: ManagerOptions,
    random: Random,
) -> Webhooks | None:
    """The webhooks of several operators, at one port; None if none has any."""
    from datetime import UTC, datetime

    having = [operator for operator in operators if operator.webhooks]
    if not having:
        return None
    from trimtab.runtime.threads import Threads
    from trimtab.runtime.webhooks.running import Webhooks

    return Webhooks(
        having,
        client,
        settings.webhooks,
        random=random,
        now=lambda: datetime.now(UTC),
        threads=Threads(settings.threads),
    )


def _manager(
    operator: Operator,
    client: Client,
    configure: Callable[[], Config],
    settings: ManagerOptions,
    lease: int,
    random: Random,
    webhooks: Webhooks | None,
) -> Manager:
    from datetime import UTC, datetime

    import msgspec

    from trimtab.client import Client
    from trimtab.runtime.lease import lasting
    from trimtab.runtime.manager import Manager

    held = lasting(
        lease, name=operator.name, namespace=client.config.namespace, random=random
    )
    return Manager(
        operator,
        client,
        # Credentials of its own: it is used in another thread.
        connect=lambda: Client(configure()),
        random=random,
        now=lambda: datetime.now(UTC),
        options=msgspec.structs.replace(settings, lease=held),
        webhooks=webhooks if operator.webhooks else None,
    )
