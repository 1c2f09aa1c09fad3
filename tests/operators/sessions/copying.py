"""A town whose secrets are copied: sessions that come and go, sources that do, too."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import trimtab
from trimtab import Client, Metadata
from trimtab.cache import Scope
from trimtab.client import NotFound, TrimtabError
from trimtab.kinds import Namespace, Secret
from trimtab.operators.sessions import copies
from trimtab.operators.sessions.kinds import ACTIVE, GROUP, KINDS, AgenticSession
from trimtab.operators.sessions.settings import LANGFUSE_SECRET, Settings
from trimtab.runtime import Retry
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.server import Server

OPS = "ops"
SETTINGS = Settings(namespace=OPS, langfuse=True)
SESSIONS, SECRETS = f"{GROUP}/agenticsessions", "core/secrets"
SOURCE = LANGFUSE_SECRET
NAMES = ("one", "two", "three")
End = Literal["runs", "stops", "orphaned"]


async def until_done(work: Any) -> None:
    while True:
        try:
            return void(await work())
        except NotFound:
            return None
        except (TrimtabError, Retry):
            await asyncio.sleep(1)


def void(_: object) -> None:
    return None


async def town(client: Client, here: Here, *, ends: End) -> None:
    """Starts and stops sessions, as their controller does, and changes the source."""
    where = Metadata(name=SOURCE, namespace=OPS)
    for each in (
        Namespace(metadata=Metadata(name=OPS)),
        Secret(metadata=where, data={"key": b"0"}),
        *(
            AgenticSession(metadata=Metadata(name=n, namespace="default"))
            for n in NAMES
        ),
    ):
        with suppress(TrimtabError):
            await client.create(each)
    for number in range(20):
        await asyncio.sleep(random.expovariate(1 / 3))
        chance = random.random()
        if chance < 0.2:
            await until_done(partial(rotated, client, str(number)))
        elif chance < 0.3:
            await until_done(partial(client.delete, Secret, SOURCE, namespace=OPS))
        name = random.choice(NAMES)
        phase = random.choice(("Pending", "Stopped", "Failed"))
        await until_done(partial(become, client, name, phase))
        if phase == "Pending":
            await until_done(partial(started, client))
            await until_done(partial(become, client, name, "Running"))
    await ended(client, ends)


async def ended(client: Client, ends: End) -> None:
    """The end of the day: somebody works on, or nobody does, with a source or not."""
    await until_done(partial(rotated, client, "last but one"))
    await until_done(partial(become, client, NAMES[0], "Running"))
    await until_done(partial(started, client))
    if ends == "orphaned":
        await until_done(partial(client.delete, Secret, SOURCE, namespace=OPS))
    for name in NAMES if ends != "runs" else ():
        await until_done(partial(become, client, name, "Completed"))
    if ends != "orphaned":
        await until_done(partial(rotated, client, "last"))


async def rotated(client: Client, key: str) -> None:
    """The source has another content, and is there if it was not."""
    try:
        body = {"stringData": {"key": key}}
        await client.patch(Secret, SOURCE, body, namespace=OPS)
    except NotFound:
        where = Metadata(name=SOURCE, namespace=OPS)
        await client.create(Secret(metadata=where, data={"key": key.encode()}))


async def started(client: Client) -> None:
    await copies.ensure(client, "default", project=None, settings=SETTINGS)


async def become(client: Client, name: str, phase: str) -> None:
    body = {"status": {"phase": phase}}
    await client.patch(
        AgenticSession, name, body, namespace="default", subresource="status"
    )


def copies_live_as_long_as_they_are_needed(server: Server) -> Iterator[str]:
    """At rest there is a copy exactly if a session runs, and it is as its source."""
    phases = [
        each.get("status", {}).get("phase", "Pending") for each in server.of(SESSIONS)
    ]
    copy = server.objects.get(f"{SECRETS}/default/{SOURCE}")
    source = server.objects.get(f"{SECRETS}/{OPS}/{SOURCE}")
    if copy is not None and not ACTIVE & set(phases):
        yield "There is a copy, and no session is active."
    if copy is None and "Running" in phases and source is not None:
        yield "A session runs, and there is no copy."
    if copy is not None and source is not None and copy["data"] != source["data"]:
        yield "The copy is not what its source is."


def copies_scenario(*, ends: End = "orphaned", **changes: Any) -> Scenario:
    """A town of which only the copies are operated."""
    app = trimtab.Operator("copying")
    copies.register(app, SETTINGS, sessions=Scope(namespaces=("default",)))
    given: dict[str, Any] = {
        "operator": app,
        "programs": (
            Program("town", partial(town, ends=ends), ends=True, struck=False),
        ),
        "kinds": (AgenticSession,),
        "samples": {AgenticSession: lambda _: {"spec": {}}},
        "objects": 0,  # other people's would be active for ever
        "installs": KINDS,
        "at_rest": (copies_live_as_long_as_they_are_needed,),
        "same": False,
        "keeps": (Secret,),
        "seconds": 60.0,
        "replicas": 2,
    }
    return Scenario(**{**given, **changes})


running_scenario = partial(copies_scenario, ends="runs")
