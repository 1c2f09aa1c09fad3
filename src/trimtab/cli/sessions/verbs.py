"""What the verbs of ``trimtab sessions`` share: where, and with which client."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.client import Client

Call: TypeAlias = "Callable[[Client, argparse.Namespace], Awaitable[int]]"


def add_verb(
    verbs: argparse._SubParsersAction[Any],
    name: str,
    call: Call,
    *,
    help: str,
    about: str = "",
) -> argparse.ArgumentParser:
    """A verb that calls something with a client."""
    made: argparse.ArgumentParser = verbs.add_parser(
        name, help=help, description=about or help.capitalize() + "."
    )
    made.set_defaults(run=_run, call=call)
    made.add_argument("--namespace", "-n", metavar="NAME", help="the project")
    common.add_cluster(made)
    return made


def _run(options: argparse.Namespace) -> int:
    return common.running(_called(options))


async def _called(options: argparse.Namespace) -> int:
    from trimtab.client import Client

    async with Client(common.config_of(options, namespace=options.namespace)) as client:
        code: int = await options.call(client, options)
        return code
