"""Allowed: whether a server answers, and lets an operator read what it watches.

What runs bears it if not, for servers are restarted and roles are changed. At the start
it is a mistake, which somebody should read in one sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from trimtab.api.kinds.coordination import Lease
from trimtab.api.resource import Resource
from trimtab.client import Client
from trimtab.client.errors import (
    ApiError,
    DeadlineExceeded,
    Forbidden,
    TrimtabError,
    Unauthorized,
    Unreachable,
)
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.declarations import definition_name

PATIENCE = 5.0
"""Seconds in which a role that was just granted is known to the server, and a server
that is being restarted is back."""
EVERY = 0.5
WITHIN = 2.0
"""Seconds for one try."""
REFUSALS = (Forbidden, Unauthorized, Unreachable, DeadlineExceeded)


class NotAllowed(TrimtabError):
    """The server refuses what an operator must do, or there is none."""


async def check(operator: Operator, client: Client) -> None:
    """Try whatever an operator begins with, until it may, or has waited long enough.

    Errors: :class:`NotAllowed`, in the server's own words; ``Unreachable``.
    """
    ends = asyncio.get_running_loop().time() + PATIENCE
    for read in _reads(operator, client):
        try:
            await _tried(read, ends)
        except (Forbidden, Unauthorized) as error:
            raise NotAllowed(
                f"{error}: that is what the operator {operator.name} begins with, and "
                "trimtab rbac prints the roles that it needs."
            ) from error


async def check_reads(
    client: Client, *kinds: type[Resource], namespaces: Iterable[str] = ()
) -> None:
    """The same for a program that watches some kinds, everywhere or somewhere.

    Errors: ``Forbidden``, ``Unauthorized``, ``Unreachable``.
    """
    ends = asyncio.get_running_loop().time() + PATIENCE
    for kind in kinds:
        for namespace in tuple(namespaces) or (None,):
            query = {"namespace": namespace, "page": 1, "deadline": WITHIN}
            await _tried(partial(_first, client, kind, query), ends)


async def _tried(read: Callable[[], Awaitable[object]], ends: float) -> None:
    while True:
        try:
            await read()
        except REFUSALS:
            if asyncio.get_running_loop().time() >= ends:
                raise
            await asyncio.sleep(EVERY)
        except ApiError:
            return  # what is not there may come, and other troubles may go
        else:
            return


def _reads(
    operator: Operator, client: Client
) -> Iterator[Callable[[], Awaitable[object]]]:
    """One object of all that is watched, and the lease."""
    # What it converts itself cannot be read before it runs.
    converted = {definition_name(each) for each, *_ in operator.webhooks.converted()}
    definitions = operator.controllers()
    for source in [source for each in definitions for source in each.sources]:
        scope = source.scope
        if scope.namespaces_where or definition_name(source.kind) in converted:
            continue
        query: dict[str, Any] = {"labels": scope.labels, "fields": scope.fields}
        for namespace in scope.namespaces or (None,):
            place = {**query, "namespace": namespace, "page": 1, "deadline": WITHIN}
            yield partial(_first, client, source.kind, place)
    if operator.leader and any(each.leader for each in definitions):
        yield partial(client.get, Lease, operator.name, deadline=WITHIN)


async def _first(client: Client, kind: Any, query: dict[str, Any]) -> None:
    await client.list(kind, **query).next_page()
