"""Measuring: what a program costs that operates the sessions of a whole platform."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.board import sessions as board
from bench.board.loading import Written, create
from bench.sessions import platform
from bench.sessions.auditing import WRITES, Audit, Call, audited, quiet
from bench.sessions.operating import OURS, Peer, operating
from bench.sessions.platform import Scale
from bench.sessions.table import Column
from trimtab.client import Client, NotFound, load
from trimtab.operators.sessions.kinds import APP, DESIRED, KINDS, AgenticSession
from trimtab.operators.sessions.names import pod_name
from trimtab.testing import Cluster, cluster
from trimtab.testing.operating import install
from trimtab.testing.waiting import eventually

WINDOW = 60.0
"""Seconds of rest that are looked at."""
Key = tuple[str, str]


class Site:
    """A cluster with a platform on it, and the log of what is asked of it."""

    def __init__(
        self, scale: Scale, here: Cluster, client: Client, folder: Path, audit: Audit
    ) -> None:
        self.scale = scale
        self.cluster = here
        self.client = client
        self.folder = folder
        self.audit = audit
        phases = dict(map(_phase, platform.all_sessions(scale)))
        self.over = {key for key, phase in phases.items() if phase in board.DONE}
        self.running = {key for key, phase in phases.items() if phase == "Running"}
        self.waiting = [key for key, phase in phases.items() if phase == "Pending"]


def _phase(made: Written) -> tuple[Key, str]:
    metadata = made.body["metadata"]
    return (metadata["namespace"], metadata["name"]), (made.status or {})["phase"]


@asynccontextmanager
async def site(scale: Scale, *, collects: bool = False) -> AsyncIterator[Site]:
    """A real server that holds all that a platform has, and that nobody operates.

    If it ``collects``, what belonged to an object that is gone goes as well.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        options, audit = stack.enter_context(audited(folder, collects=collects))
        here = await stack.enter_async_context(cluster("real", options=options))
        config = load(kubeconfig=here.kubeconfig)
        client = await stack.enter_async_context(Client(config))
        began = time.perf_counter()
        await install(client, *KINDS)
        await eventually(partial(_are_known, client), within=60.0, every=0.5)
        await create(client, platform.namespaces(scale))
        await create(client, platform.settings(scale))
        made = await create(client, platform.all_sessions(scale))
        await create(client, platform.pods(scale, made.uids))
        print(f"loaded in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        yield Site(scale, here, client, folder, audit)


async def measure(scale: Scale, peer: Peer = OURS) -> Column:
    """One column of the table: a first start, a second one, and what comes then."""
    column = Column(peer.name)
    async with site(scale) as here:
        async with operating(here.cluster, here.folder, peer=peer) as first:
            calls = await quiet(here.audit, seconds=10.0, within=peer.patience)
            column.row("peak RSS, first start", first.memory(), scale.rss, unit="MiB")
            column.row("calls for sessions that are over", about(calls, here.over), 0)
            column.row("SIGTERM to exit", await first.stop(), 5.0, unit="s")
        here.audit.since()
        async with operating(here.cluster, here.folder, peer=peer) as second:
            await _second(here, column)
            await _rest(here, column)
            await _events(here, column)
            column.row("peak RSS, second start", second.memory(), scale.rss, unit="MiB")
            column.row(
                "SIGTERM to exit, second start", await second.stop(), 5.0, unit="s"
            )
    return column


async def _second(here: Site, column: Column) -> None:
    """What a program asks for that finds everything as it left it."""
    calls = await quiet(here.audit, seconds=10.0, within=120.0)
    written = [each for each in calls if each.verb in WRITES]
    ours = [each for each in written if each.resource == "agenticsessions"]
    rest = [each for each in written if each.resource != "leases"]
    column.row("writes for projects, second start", len(rest) - len(ours), 0)
    each = len(ours) / (len(here.running) + len(here.waiting))
    column.row("writes per living session, second start", each, 2.0)
    column.row(
        "calls for sessions that are over, second start", about(calls, here.over), 0
    )
    _tell(rest)


async def _rest(here: Site, column: Column) -> None:
    await asyncio.sleep(WINDOW)
    calls = here.audit.since()
    lists = [each for each in calls if each.verb == "list"]
    column.row(f"LISTs in {WINDOW:g} s of rest", len(lists), 0)
    each = about(calls, here.running) / max(1, len(here.running))
    column.row("calls per runner and minute at rest", each, 1.0)
    _tell(calls)


async def _events(here: Site, column: Column) -> None:
    client = here.client
    seconds = await stopped(client, here.waiting[0])
    column.row("stop of one that cannot start", seconds, 5.0, unit="s")
    seconds = await lost(client, min(here.running))
    column.row("loss of a runner seen", seconds, 5.0, unit="s")


def _tell(calls: list[Call]) -> None:
    """What was asked for, for who wants to know."""
    found = Counter((each.verb, each.resource, each.subresource) for each in calls)
    for (verb, *resource), count in found.most_common(8):
        print(f"  {count} × {verb} {'/'.join(filter(None, resource))}", file=sys.stderr)


def about(calls: list[Call], keys: set[Key]) -> int:
    """How many calls were about one of these sessions, or its runner."""
    return sum(
        1
        for each in calls
        if each.what in keys
        or (each.what[0], each.what[1].removesuffix("-runner")) in keys
    )


async def stopped(client: Client, key: Key, *, within: float = WINDOW) -> float:
    """It is told to stop; how long until it has."""
    body = {"metadata": {"annotations": {DESIRED: "Stopped"}}}
    await client.patch(AgenticSession, key[1], body, namespace=key[0])
    return await _until(client, key, lambda phase: phase == "Stopped", within)


async def lost(client: Client, key: Key, *, within: float = WINDOW) -> float:
    """The runner runs out of memory; how long until the session says so."""
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    status = {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": APP,
                "image": "none",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
        ],
    }
    info = await client.discover("v1", "Pod")
    await client.patch(
        info,
        pod_name(key[1]),
        {"status": status},
        namespace=key[0],
        subresource="status",
    )
    return await _until(client, key, lambda phase: phase != "Running", within)


async def _until(
    client: Client, key: Key, holds: Callable[[str], bool], within: float
) -> float:
    """Seconds until a session is in such a phase; for ever if it takes too long."""

    async def look() -> bool:
        found = await client.get(AgenticSession, key[1], namespace=key[0])
        return holds(found.status.phase)

    began = time.perf_counter()
    try:
        await eventually(look, within=within, every=0.05)
    except AssertionError:
        return inf
    return time.perf_counter() - began


async def _are_known(client: Client) -> bool:
    try:
        for kind in KINDS:
            await client.discover(board.API, kind.__resource__.kind)
    except NotFound:
        return False
    return True
