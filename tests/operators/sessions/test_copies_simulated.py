"""A law of copies in the simulation: they live as long as somebody needs them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pytest

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
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told
from trimtab.sim.server import Plain, Server

SEEDS = 2
OPS = "ops"
SETTINGS = Settings(namespace=OPS, langfuse=True)
SESSIONS, SECRETS = f"{GROUP}/agenticsessions", "core/secrets"
NAMES = ("one", "two", "three")


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


async def town(client: Client, here: Here, *, stops: bool) -> None:
    """Starts and stops sessions, as their controller does, and rotates the secret."""
    where = Metadata(name=LANGFUSE_SECRET, namespace=OPS)
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
        if random.random() < 0.2:
            body = {"stringData": {"key": str(number)}}
            await until_done(lambda body=body: rotated(client, body))
        name = random.choice(NAMES)
        phase = random.choice(("Pending", "Stopped", "Failed"))
        await until_done(lambda name=name, phase=phase: become(client, name, phase))
        if phase == "Pending":
            await until_done(lambda: started(client))
            await until_done(lambda name=name: become(client, name, "Running"))
    for name in NAMES if stops else ():
        await until_done(lambda name=name: become(client, name, "Completed"))
    if not stops:
        await until_done(lambda: become(client, NAMES[0], "Running"))
        await until_done(lambda: started(client))
    await until_done(lambda: rotated(client, {"stringData": {"key": "last"}}))


def session(name: str) -> AgenticSession:
    return AgenticSession(metadata=Metadata(name=name, namespace="default"))


async def rotated(client: Client, body: Plain) -> None:
    await client.patch(Secret, LANGFUSE_SECRET, body, namespace=OPS)


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
    copy = server.objects.get(f"{SECRETS}/default/{LANGFUSE_SECRET}")
    source = server.objects.get(f"{SECRETS}/{OPS}/{LANGFUSE_SECRET}")
    if copy is not None and not ACTIVE & set(phases):
        yield "There is a copy, and no session is active."
    if copy is None and "Running" in phases and source is not None:
        yield "A session runs, and there is no copy."
    if copy is not None and source is not None and copy["data"] != source["data"]:
        yield "The copy is not what its source is."


def scenario(*, stops: bool) -> Scenario:
    app = trimtab.Operator("copying")
    copies.register(app, SETTINGS, sessions=Scope(namespaces=("default",)))
    return Scenario(
        operator=app,
        programs=(
            Program("town", partial(town, stops=stops), ends=True, struck=False),
        ),
        kinds=(AgenticSession,),
        samples={AgenticSession: lambda _: {"spec": {}}},
        installs=KINDS,
        at_rest=(copies_live_as_long_as_they_are_needed,),
        same=False,
        keeps=(Secret,),
        seconds=60.0,
        replicas=2,
    )


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("stops", [False, True])
def test_copied_secrets_live_exactly_as_long_as_someone_needs_them(
    stops: bool,
) -> None:
    search = Search(scenario(stops=stops))
    for seed in range(SEEDS):
        # Without other people's sessions, which would be active for ever.
        plan = msgspec.structs.replace(search.plan(seed), acts=())
        report = search.run(plan)
        assert not report.violations, told(report)
