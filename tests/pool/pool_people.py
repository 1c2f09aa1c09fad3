"""The people of a simulated town: how many there are, its workers and its customers.

Workers are model pods with the real gate inside; each says so itself if it is ever
used by two at once. Customers acquire, use, renew and release, and go away without a
word now and then.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Any, cast

import msgspec

from tests.pool.pool_laws import OPTIONS, TENANTS
from trimtab.client import Client, TrimtabError
from trimtab.pool.kinds import Worker
from trimtab.pool.worker.gate import Gate, Refused
from trimtab.sim import Here
from trimtab.sim.server import Plain

SHARED = "a worker serves one at a time"
CLEANED = "a worker is cleaned before it is begun again"
TOLD = "who is told of a worker has it by its row"


class Town(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are of each."""

    pools: tuple[str, ...] = ("plain", "bound")
    replicas: int = 3
    customers: int = 5
    rounds: int = 4
    tidy: float = 0.8
    """How many of the checkouts are released, and not just left."""
    warm: int = 1
    """What each pool keeps idle."""
    room: int = 1
    """Placeholders of the pool without activation."""
    watched: bool = False
    """Whether replicas show that they take steps."""


FULL = Town()
SMALL = Town(pools=("bound",), replicas=2, customers=2, rounds=2, tidy=0.5)
LEADERLESS = Town(rounds=2, tidy=0.5, warm=0, room=0)
UNLED = Town(watched=True)
LONE = Town(pools=("bound",), replicas=1, customers=2, rounds=2)
TINY = Town(pools=("bound",), replicas=2, customers=1, rounds=2, tidy=0.5)


# Workers


async def worker(client: Client, here: Here) -> None:
    """A model pod with the real gate: it says so if two use it at once."""
    assert here.pod is not None
    uid = here.pod["metadata"]["ownerReferences"][0]["uid"]
    gate = Gate(uid.encode(), uid)
    users: Counter[str] = Counter()
    used = ""
    """The checkout that used it, and after which it was not cleaned."""

    async def answer(message: bytes) -> bytes:
        nonlocal used
        asked = msgspec.json.decode(message)
        try:
            if asked["uid"] != uid:
                return b"another worker"
            if asked["do"] == "use":
                await use(asked["token"], asked["holder"])
            elif asked["do"] == "begin":
                gate.begin(
                    asked["epoch"], checkout=asked["checkout"], tenant=asked["tenant"]
                )
                if used not in ("", asked["checkout"]):
                    here.broken(CLEANED, f"{asked['checkout']} came after {used}.")
                await gate.quiet()
            elif asked["do"] == "clean":
                gate.clean(asked["epoch"], checkout=asked["checkout"])
                await gate.quiet(altogether=True)
                used = ""
            elif asked["do"] == "activate":
                gate.fence(asked["epoch"])
        except Refused as error:
            return str(error).encode()
        return b"ok"

    async def use(token: str, holder: str) -> None:
        nonlocal used
        dropped = asyncio.Event()
        passage = gate.admit(token, drop=dropped.set)
        used = passage.checkout
        users[holder] += 1
        if len(+users) > 1:
            here.broken(SHARED, f"{sorted(+users)} are here.")
        try:
            async with asyncio.timeout(0.5):
                await dropped.wait()
        except TimeoutError:
            pass
        finally:
            users[holder] -= 1
            passage.end()

    here.serve(answer)
    await asyncio.Event().wait()


# Customers


async def customer(client: Client, here: Here, *, town: Town) -> None:
    """Has a worker now and then, and is sometimes gone without releasing it."""
    mine = Customer(client, here, town)
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(mine.renew())
        for _ in range(town.rounds):
            await asyncio.sleep(random.uniform(0, 6))
            await mine.round()
        renewing.cancel()


class Customer:
    """One holder: its name, and what it has."""

    def __init__(self, client: Client, here: Here, town: Town) -> None:
        self.client = client
        self.here = here
        self.town = town
        self.holder = here.name
        self.tenant = TENANTS[int(here.name.rpartition("-")[2])]
        self.held: set[str] = set()

    async def ask(self, what: str, **more: Any) -> Plain:
        body = msgspec.json.encode({"do": what, "holder": self.holder, **more})
        for attempt in range(20):
            gateway = f"replica-{random.randrange(self.town.replicas)}"
            with suppress(TrimtabError):
                answer = await self.here.call(gateway, body, deadline=30.0)
                found = cast(Plain, msgspec.json.decode(answer))
                if "error" not in found or what == "release":
                    return found
            await asyncio.sleep(0.5 + attempt / 4)
        return {"error": "nobody answers"}

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(OPTIONS.lease_seconds / 3)
            await self.ask("renew", checkouts=sorted(self.held))

    async def round(self) -> None:
        grant = await self.ask(
            "acquire", pool=random.choice(self.town.pools), tenant=self.tenant
        )
        if "error" in grant:
            return
        self.held.add(grant["checkout"])
        await self.look(grant)
        for _ in range(random.randrange(4)):
            await self.use(grant)
            await asyncio.sleep(random.uniform(0, 2))
        self.held.discard(grant["checkout"])
        if random.random() < self.town.tidy:
            await self.ask(
                "release", checkout=grant["checkout"], worker=grant["worker"]
            )

    async def look(self, grant: Plain) -> None:
        """See to it that what we were told is written."""
        with suppress(TrimtabError):
            row = await self.client.get(Worker, grant["worker"], namespace="default")
            same = row.metadata.uid == grant["uid"]
            if same and row.status.epoch < grant["epoch"]:
                told = f"Of {grant['worker']} {self.holder} was told {grant['epoch']}"
                self.here.broken(TOLD, f"{told}, and it has {row.status.epoch}.")

    async def use(self, grant: Plain) -> None:
        body = {"do": "use", "token": grant["token"], "holder": self.holder}
        message = msgspec.json.encode({**body, "uid": grant["uid"]})
        with suppress(TrimtabError):
            await self.here.call(grant["address"], message, deadline=10.0)
