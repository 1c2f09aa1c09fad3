"""``trimtab vmafx node``: a machine that scores what a gateway gives it."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.vmafx.gateway import ROOTS, roots_of

if TYPE_CHECKING:
    import grpc

    from trimtab.operators.vmafx.feedback import Feedback
    from trimtab.operators.vmafx.node import NodeOptions

ABOUT = """
Pull jobs from a gateway, score them with the libvmaf of this machine, and report. On
SIGTERM it takes no more, and gives back what it cannot finish in time.
"""
ADDRESS = "127.0.0.1:9090"
LABELS = "VMAFX_NODE_LABELS"
CACHE = "VMAFX_NODE_CACHE"


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
    made.add_argument(
        "--threads", type=common.whole, default=0, help="of each (default: all)"
    )
    made.add_argument("--ffmpeg", default="", help="the ffmpeg to measure with")
    made.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="FOLDER|URL",
        help=f"what this machine lets be read besides (default: ${ROOTS})",
    )
    made.add_argument(
        "--patience",
        type=float,
        default=environment.get("VMAFX_NODE_PATIENCE", "20"),
        metavar="SECONDS",
        help="how long it may finish what it has when it is to stop; the rest it gives "
        "back (default: $VMAFX_NODE_PATIENCE, else 20)",
    )
    _add_keeping(made, environment)
    common.add_log(made)


def _add_keeping(made: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """What becomes of its scores besides: who learns from them, and what is kept."""
    made.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"of its VmafxNode, for who learns from it (default: ${LABELS}, with "
        "commas between)",
    )
    made.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        default=environment.get(CACHE) or None,
        help="keep scores there, so that the same clips are not scored twice "
        f"(default: ${CACHE}, else none are kept)",
    )
    made.add_argument(
        "--cache-size",
        type=int,
        metavar="MIB",
        default=1024,
        help="how much it may hold (default: %(default)s)",
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
    if not options.patience >= 0:
        raise ConfigError(f"A node's patience is 0 s or more, not {options.patience}.")
    if (
        options.token is not None
    ):  # it is read for each call; a typing mistake is told now
        common.contents(options.token, what="the token")
    roots = roots_of(options.root, os.environ.get(ROOTS, ""))
    return NodeOptions(
        name=options.name,
        slots=options.slots,
        roots=Roots(roots),
        labels=labels_of(options, os.environ),
        patience=options.patience,
    )


def labels_of(
    options: argparse.Namespace, environment: Mapping[str, str]
) -> dict[str, str]:
    """What the arguments name, else what the environment does."""
    given = options.label or environment.get(LABELS, "").replace(",", " ").split()
    return dict(map(_label, given))


def _label(text: str) -> tuple[str, str]:
    from trimtab.api.names import InvalidName, check_label_key, check_label_value
    from trimtab.client import ConfigError

    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"A label is KEY=VALUE, and not {text}.")
    try:
        check_label_key(key, what="The label")
        check_label_value(value, what=f"The value of the label {key}")
    except InvalidName as error:
        raise ConfigError(str(error)) from None
    return key, value


def _channel(options: argparse.Namespace) -> grpc.aio.Channel:
    import grpc

    host = options.gateway.rpartition(":")[0]
    if options.ca is None and (host.startswith("127.") or host == "localhost"):
        return grpc.aio.insecure_channel(options.gateway)
    what = "who vouches for the gateway"
    authority = common.contents(options.ca, what=what) if options.ca else None
    credentials = grpc.ssl_channel_credentials(authority)
    return grpc.aio.secure_channel(options.gateway, credentials)


@asynccontextmanager
async def _feedback() -> AsyncIterator[Feedback]:
    """The way to models that learn, for as long as the block runs."""
    from trimtab.client.calling import Caller
    from trimtab.operators.vmafx.feedback import Feedback

    calls = Caller()
    try:
        yield Feedback(calls)
    finally:
        await calls.close()


async def _work(options: argparse.Namespace, settings: NodeOptions) -> None:
    from random import SystemRandom

    from trimtab.cli.vmafx.scorers import scorer
    from trimtab.operators.vmafx.calling import Caller
    from trimtab.operators.vmafx.node import Node
    from trimtab.runtime.signals import Signals

    async with (
        scorer(
            ffmpeg=options.ffmpeg,
            threads=options.threads,
            kept=options.cache,
            most_bytes=options.cache_size << 20,
        ) as score,
        _channel(options) as channel,
        _feedback() as feedback,
    ):
        caller = Caller(channel, token=options.token)
        node = Node(
            caller,
            score,
            options=settings,
            random=SystemRandom(),
            feedback=feedback,
        )
        with Signals(lambda name: node.drain()):
            print(f"Node {settings.name} works for {options.gateway}.", flush=True)
            await node.run()
