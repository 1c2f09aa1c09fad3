"""Verbs: commands that do one thing with a client, in one namespace."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.api import Resource
    from trimtab.client import Client

R = TypeVar("R", bound="Resource")
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
    made.add_argument(
        "--namespace", "-n", metavar="NAME", help="(default: the context's)"
    )
    common.add_cluster(made)
    return made


def _run(options: argparse.Namespace) -> int:
    return common.running(_called(options))


async def _called(options: argparse.Namespace) -> int:
    from trimtab.client import Client

    async with Client(common.config_of(options, namespace=options.namespace)) as client:
        code: int = await options.call(client, options)
        return code


async def followed(
    client: Client, obj: R, told: Callable[[R], int | None], *, gone: int = 1
) -> int:
    """Follow an object until ``told`` has an exit code for it; ``gone`` if it goes.

    A watch that ends is begun again.
    """
    from trimtab.client import Bookmark

    namespace, name = obj.key
    while True:
        async with client.watch(
            type(obj), namespace=namespace, fields=f"metadata.name={name}"
        ) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                if event.type == "DELETED":
                    print(f"{obj.kind.lower()}/{name} was deleted")
                    return gone
                if (code := told(event.object)) is not None:
                    return code
