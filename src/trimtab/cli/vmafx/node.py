"""``trimtab vmafx node``: a machine that scores what a gateway gives it."""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.vmafx.gateway import ROOTS, roots_of

if TYPE_CHECKING:
    import grpc

    from trimtab.operators.vmafx.node import NodeOptions

ABOUT = """
Pull jobs from a gateway, score them with the libvmaf of this machine, and report. On
SIGTERM it takes no more, and gives back what it cannot finish in time.
"""
ADDRESS = "127.0.0.1:9090"


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("node", help="score jobs", description=ABOUT)
    made.set_defaults(run=run)
    environment = os.environ
    made.add_argument(
        "--gateway",
        default=environment.get("VMAFX_CONTROLLER_ADDR", ADDRESS),
        metavar="HOST:PORT",
        help=f"(default: $VMAFX_CONTROLLER_ADDR, else {ADDRESS})",
    )
    made.add_argument(
        "--token", type=Path, metavar="FILE", help="its token; read for each call"
    )
    made.add_argument(
        "--ca", type=Path, metavar="FILE", help="who vouches for the gateway"
    )
    made.add_argument(
        "--name",
        default=environment.get("VMAFX_NODE_ID") or socket.gethostname(),
        help="(default: $VMAFX_NODE_ID, else the host's)",
    )
    made.add_argument(
        "--slots",
        type=int,
        default=environment.get("VMAFX_NODE_SLOTS", "1"),
        help="jobs at once, up to 64 (default: $VMAFX_NODE_SLOTS, else 1)",
    )
    made.add_argument("--threads", type=int, default=0, help="of each (default: all)")
    made.add_argument("--ffmpeg", default="", help="the ffmpeg to measure with")
    made.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="FOLDER|URL",
        help=f"what this machine lets be read besides (default: ${ROOTS})",
    )
    made.add_argument(
        "--log", default="info", choices=("debug", "info", "warning", "error")
    )


def run(options: argparse.Namespace) -> int:
    """Work until told to stop."""
    from trimtab.runtime import logs

    logs.setup(level=options.log.upper())
    common.running(_work(options, _settings(options)))
    return 0


def _settings(options: argparse.Namespace) -> NodeOptions:
    from trimtab.client import ConfigError
    from trimtab.operators.vmafx.node import NodeOptions
    from trimtab.operators.vmafx.roots import Roots

    if not 1 <= options.slots <= 64:
        raise ConfigError(f"A node has 1 to 64 slots, not {options.slots}.")
    if (
        options.token is not None
    ):  # it is read for each call; a typing mistake is told now
        common.contents(options.token, what="the token")
    roots = roots_of(options.root, os.environ.get(ROOTS, ""))
    return NodeOptions(name=options.name, slots=options.slots, roots=Roots(roots))


def _channel(options: argparse.Namespace) -> grpc.aio.Channel:
    import grpc

    host = options.gateway.rpartition(":")[0]
    if options.ca is None and (host.startswith("127.") or host == "localhost"):
        return grpc.aio.insecure_channel(options.gateway)
    what = "who vouches for the gateway"
    authority = common.contents(options.ca, what=what) if options.ca else None
    credentials = grpc.ssl_channel_credentials(authority)
    return grpc.aio.secure_channel(options.gateway, credentials)


async def _work(options: argparse.Namespace, settings: NodeOptions) -> None:
    from random import SystemRandom

    from trimtab.cli.vmafx.scorers import scorer
    from trimtab.operators.vmafx.calling import Caller
    from trimtab.operators.vmafx.node import Node
    from trimtab.runtime.signals import Signals

    async with (
        scorer(ffmpeg=options.ffmpeg, threads=options.threads) as score,
        _channel(options) as channel,
    ):
        caller = Caller(channel, token=options.token)
        node = Node(caller, score, options=settings, random=SystemRandom())
        with Signals(lambda name: node.drain()):
            print(f"Node {settings.name} works for {options.gateway}.", flush=True)
            await node.run()
