"""``trimtab run``: an operator on the current cluster, until it is told to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.client import Config
    from trimtab.runtime.manager import ManagerOptions
    from trimtab.runtime.operator import Operator

ABOUT = """
Run the operator that a Python file declares, on the cluster of the kubeconfig (or, in a
pod, on the pod's own). Control-C, or SIGTERM, stops it: what is in hand is finished,
the lease is released.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("run", help="run an operator", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument("file", type=Path, metavar="FILE", help="the operator's file")
    made.add_argument("--operator", metavar="NAME", help="which, if FILE has several")
    made.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="instead of $KUBECONFIG"
    )
    made.add_argument("--context", metavar="NAME", help="a context of the kubeconfig")
    made.add_argument(
        "--namespace",
        metavar="NAME",
        help="where the lease is kept (default: the context's namespace)",
    )
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where health and metrics are served (default: 127.0.0.1)",
    )
    made.add_argument(
        "--port",
        type=int,
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
        type=int,
        default=15,
        metavar="SECONDS",
        help="how long leadership lasts without a renewal (default: 15)",
    )
    made.add_argument(
        "--log",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="what is logged (default: info)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the operator; the exit code."""
    import asyncio
    from functools import partial

    from trimtab.cli.loading import operator_in
    from trimtab.client import load
    from trimtab.runtime import logs
    from trimtab.runtime.manager import ManagerOptions

    logs.setup(level=options.log.upper())
    operator = operator_in(options.file, name=options.operator)
    if options.no_leader:
        operator.leader = False
    configure = partial(
        load,
        kubeconfig=options.kubeconfig,
        context=options.context,
        namespace=options.namespace,
    )
    settings = ManagerOptions(
        host=options.host, port=None if options.port < 0 else options.port
    )
    try:
        asyncio.run(_run(operator, configure, settings, options.lease))
    except ExceptionGroup as failures:
        raise _first(failures) from failures
    return 0


def _first(error: Exception) -> Exception:
    """The failure itself, out of the task groups that it went through."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run(
    operator: Operator,
    configure: Callable[[], Config],
    settings: ManagerOptions,
    lease: int,
) -> None:
    from datetime import UTC, datetime
    from random import Random

    import msgspec

    from trimtab.client import Client
    from trimtab.runtime.lease import lasting
    from trimtab.runtime.manager import Manager
    from trimtab.runtime.signals import Signals

    random = Random()
    async with Client(configure()) as client:
        held = lasting(
            lease, name=operator.name, namespace=client.config.namespace, random=random
        )
        settings = msgspec.structs.replace(settings, lease=held)
        manager = Manager(
            operator,
            client,
            # Credentials of its own: it is used in another thread.
            connect=lambda: Client(configure()),
            random=random,
            now=lambda: datetime.now(UTC),
            options=settings,
        )
        with Signals(manager.stop):
            await manager.run()
