"""A town whose sessions end, and stay for as long as their project says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import trimtab
from trimtab import Client, Metadata
from trimtab.api import owner_of
from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.cache import Scope
from trimtab.client import AlreadyExists, NotFound, TrimtabError
from trimtab.kinds import Secret
from trimtab.operators.sessions import retention
from trimtab.operators.sessions.kinds import (
    DESIRED,
    GROUP,
    KEEP,
    KINDS,
    SETTINGS,
    TERMINAL,
    AgenticSession,
    ProjectSettings,
    ProjectSettingsSpec,
    Retention,
)
from trimtab.operators.sessions.operator import kept
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.server import Plain, Server

SESSIONS, SECRETS = f"{GROUP}/agenticsessions", "core/secrets"
AGE, COUNT = 30, 2
"""Seconds that a session stays after its end, and how many do at most."""
LATE = 5.0
"""Seconds that clocks and the work itself may take."""
NAMES = tuple(f"session-{number}" for number in range(6))


async def until_done(work: Callable[[], Any]) -> None:
    while True:
        try:
            await work()
        except (AlreadyExists, NotFound):
            return
        except TrimtabError:
            await asyncio.sleep(1)
        else:
            return


async def town(client: Client, here: Here) -> None:
    """Sessions begin, end, are kept, and are started again."""
    metadata = Metadata(name=SETTINGS, namespace="default")
    spec = ProjectSettingsSpec(
        groupAccess=[], retention=Retention(maxAgeSeconds=AGE, maxCount=COUNT)
    )
    project = ProjectSettings(metadata=metadata, spec=spec)
    await until_done(partial(client.create, project))
    for name in NAMES:
        await until_done(partial(begun, client, name))
    for _ in range(24):
        await asyncio.sleep(random.expovariate(1 / 2))
        name, act = random.choice(NAMES), random.random()
        with suppress(TrimtabError):  # whoever is gone does nothing any more
            if act < 0.1:
                await marked(client, name, {KEEP: random.choice(("true", None))})
            elif act < 0.3:
                await marked(client, name, {DESIRED: "Running"})
                await become(client, name, "Running")
                await marked(client, name, {DESIRED: None})
            elif act < 0.8:
                phase = random.choice(sorted(TERMINAL))
                await become(client, name, phase)
            else:
                await begun(client, name)


async def begun(client: Client, name: str) -> None:
    """A session, and something that is its own."""
    metadata = Metadata(name=name, namespace="default")
    made = await client.create(AgenticSession(metadata=metadata))
    owned = Metadata(
        name=f"of-{name}-{made.metadata.uid[:8]}",
        namespace="default",
        ownerReferences=[owner_of(made)],
    )
    await client.create(Secret(metadata=owned))


async def marked(client: Client, name: str, annotations: Plain) -> None:
    body = {"metadata": {"annotations": annotations}}
    await client.patch(AgenticSession, name, body, namespace="default")


async def become(client: Client, name: str, phase: str) -> None:
    over = rfc3339(datetime.now(UTC)) if phase in TERMINAL else None
    body = {"status": {"phase": phase, "completionTime": over}}
    await client.patch(
        AgenticSession, name, body, namespace="default", subresource="status"
    )


def _over(server: Server) -> Iterator[Plain]:
    """Sessions that are over, and that nobody wants to keep or to go on with."""
    for each in server.of(SESSIONS):
        phase = (each.get("status") or {}).get("phase", "Pending")
        annotations = each["metadata"].get("annotations") or {}
        if phase in TERMINAL and KEEP not in annotations and DESIRED not in annotations:
            yield each


def nothing_outlives_its_retention(server: Server) -> Iterator[str]:
    """At rest no session is over for too long, and none too many are."""
    found = list(_over(server))
    if len(found) > COUNT:
        yield f"{len(found)} sessions are over, and {COUNT} may stay."
    for each in found:
        ended = parse_rfc3339(each["status"]["completionTime"])
        if server.now() - ended > timedelta(seconds=AGE + LATE):
            yield f"{each['metadata']['name']} is over since {ended} and there."
    living = {each["metadata"]["uid"] for each in server.of(SESSIONS)}
    for each in server.of(SECRETS):
        owners = each["metadata"].get("ownerReferences") or ()
        if owners and not any(owner["uid"] in living for owner in owners):
            yield f"{each['metadata']['name']} is there, and its session is not."


def retention_scenario(**changes: Any) -> Scenario:
    """A town of which only the retention is operated."""
    app = trimtab.Operator("retaining")
    where = Scope(namespaces=("default",))
    retention.register(app, scope=where, sessions=where, keep=kept)
    given: dict[str, Any] = {
        "operator": app,
        "programs": (Program("town", town, ends=True, struck=False),),
        "kinds": (AgenticSession,),
        "samples": {AgenticSession: lambda _: {"spec": {}}},
        "objects": 0,
        "installs": KINDS,
        "at_rest": (nothing_outlives_its_retention,),
        "same": False,
        "keeps": (Secret, ProjectSettings),
        "seconds": 60.0,
        "replicas": 2,
    }
    return Scenario(**{**given, **changes})
