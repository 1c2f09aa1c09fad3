"""Gateways that hand out tokens, for the tests of programs in the simulation.

There is a fixed number of tokens, each an object. A customer asks any gateway for one;
the gateway takes a free token for it by a compare-and-swap. No token may ever change
its holder: that is a law of this scenario, checked within every write.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from trimtab import Metadata, Resource, Spec
from trimtab.client import Client, Conflict
from trimtab.client.errors import TrimtabError
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.server import ObjectChange, Server

GATEWAYS, CUSTOMERS, TOKENS, WISHES = 2, 3, 24, 6
KEY = "sim.example.com/tokens"


class TokenSpec(Spec):
    """Who has it."""

    holder: str = ""


class Token(Resource, group="sim.example.com", version="v1"):
    """Something that one customer can have."""

    spec: TokenSpec = TokenSpec()


async def gateway(client: Client, here: Here) -> None:
    """Makes the tokens if nobody has, and hands them out."""

    async def hand_out(message: bytes) -> bytes:
        return (await token_for(client, message.decode())).encode()

    here.serve(hand_out)
    for number in range(TOKENS):
        metadata = Metadata(name=f"token-{number:02}", namespace="default")
        await persist(client, Token(metadata=metadata))
    await asyncio.Event().wait()


async def persist(client: Client, token: Token) -> None:
    """Make an object, however often it takes.

    It tries again after any failure, and not only after a lost answer. (The simulation
    found this, after 24 seeds.)
    """
    while True:
        try:
            await client.create(token)
            return
        except Conflict:
            return
        except TrimtabError:
            await asyncio.sleep(1)


async def token_for(client: Client, holder: str) -> str:
    """A token of this holder: the one it has already, or a free one."""
    while True:
        listed = [each async for each in client.list(Token, namespace="default")]
        for token in listed:
            if token.spec.holder == holder:
                return token.metadata.name
        free = [each for each in listed if not each.spec.holder]
        with suppress(Conflict):
            await take(client, free[0], holder)
            return free[0].metadata.name


async def take(client: Client, token: Token, holder: str) -> None:
    metadata = {"resourceVersion": token.metadata.resourceVersion}
    patch = {"metadata": metadata, "spec": {"holder": holder}}
    name = token.metadata.name
    await client.patch(Token, name, patch, namespace="default", deadline=5)


async def customer(client: Client, here: Here) -> None:
    """Wishes for a few tokens, and asks gateways in turn until it has each."""
    for wish in range(WISHES):
        wished = f"{here.name}.{wish}".encode()
        await asyncio.sleep(random.uniform(0, 6))
        for attempt in range(1000):
            with suppress(TrimtabError):
                address = f"gateway-{attempt % GATEWAYS}"
                await here.call(address, wished, deadline=8.0)
                break
            await asyncio.sleep(0.5)


def no_token_changes_hands(server: Server, change: ObjectChange) -> Iterator[str]:
    """The law: once a token has a holder, it keeps it."""
    if change.resource == KEY and change.before and change.after:
        before, after = _holder(change.before), _holder(change.after)
        if before and before != after:
            yield f"{change.key} was {before}'s and is {after}'s now."


class EveryWriteIsNewer:
    """A law that remembers: no revision comes twice."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self, server: Server, change: ObjectChange) -> Iterator[str]:
        if change.after is not None:
            revision = int(change.after["metadata"]["resourceVersion"])
            if revision <= self._last:
                yield f"{change.key} is at {revision} after {self._last}."
            self._last = revision


def everybody_has_what_was_wished_for(server: Server) -> Iterable[str]:
    held = [_holder(each) for each in server.of(KEY) if _holder(each)]
    wished = {f"customer-{n}.{w}" for n in range(CUSTOMERS) for w in range(WISHES)}
    if not wished <= set(held):
        yield f"Without a token: {', '.join(sorted(wished - set(held)))}."


def _holder(token: dict[str, Any]) -> str:
    return str(token.get("spec", {}).get("holder", ""))


def token_scenario(**changes: object) -> Scenario:
    given: dict[str, Any] = {
        "programs": (
            Program("gateway", gateway, replicas=GATEWAYS),
            Program("customer", customer, replicas=CUSTOMERS, ends=True),
        ),
        "installs": (Token,),
        "always": (no_token_changes_hands, EveryWriteIsNewer),
        "at_rest": (everybody_has_what_was_wished_for,),
        "skew": 20.0,
        "seconds": 40.0,
    }
    return Scenario(**{**given, **changes})
