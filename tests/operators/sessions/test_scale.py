"""Laws of scale: what many sessions cost that nobody is doing anything with."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.operators.sessions.house import House, house, profile
from trimtab.api.kinds import Pod
from trimtab.operators.sessions.kinds import (
    GROUP,
    SETTINGS,
    VERSION,
    AgenticSession,
)
from trimtab.operators.sessions.names import pod_name
from trimtab.runtime.controller import Controller
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import Running

pytestmark = pytest.mark.cluster("embedded", "real")
MOST = 25
"""Calls that a start may take, a new project's included."""
CALM = 0.4
"""Seconds for which nobody does anything if nothing is to be done."""
FOLLOWS = ("list", "watch", "discover")
"""Calls of caches, which go on for as long as the operator runs: when each watch begins
after its list is not a matter of the start."""


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[House]:
    async with house(cluster, namespace, tmp_path) as made:
        yield made


def calls(run: Running) -> Counter[str]:
    """What the operator has asked the server for, by verb."""
    found: Counter[str] = Counter()
    for (verb, _), count in run.manager.client.statistics().requests.items():
        found[verb] += count
    return found


def session_controller(run: Running) -> Controller:
    [found] = [
        each for each in run.manager.controllers if each.definition.name == "session"
    ]
    return found


def last_look(run: Running, here: House, name: str) -> Any:
    return session_controller(run).history.of((here.namespace, name))


def gauge(run: Running, phase: str) -> float:
    """How many sessions a scrape says are in a phase."""
    _, text = run.manager.metrics.render()
    labels = f'index="phase",kind="agenticsessions[^"]+",value="{phase}"'
    found = re.search(rf"trimtab_cache_indexed{{{labels}}} (\S+)", text.decode())
    assert found is not None, text.decode()
    return float(found[1])


async def at_rest(run: Running) -> None:
    """Wait until nobody has anything to do but to wait.

    What was written last comes back by a watch, and wakes once more who wrote it.
    """
    clock, calm = asyncio.get_running_loop().time, (Counter[str](), 0.0)

    def is_idle() -> bool:
        nonlocal calm
        queues = [each.queue for each in run.manager.controllers]
        held = [each.statistics() for each in queues if each is not None]
        made = calls(run)
        if any(each.ready or each.working for each in held) or made != calm[0]:
            calm = made, clock() + CALM
        return clock() > calm[1]

    await eventually(is_idle)


async def test_faults_a_and_b_nothing_is_listed_again_and_who_waits_asks_nothing(
    here: House,
) -> None:
    async with here.operated() as run:
        await at_rest(run)
        before = calls(run)
        await here.start("one")
        await here.until("one", "Creating")
        await at_rest(run)
        after = calls(run)
        assert after["list"] == before["list"]
        assert sum(after[each] for each in after if each not in FOLLOWS) <= MOST
        seen = last_look(run, here, "one")
        # Others come and go meanwhile; this one is not looked at for it.
        await here.start("two")
        await here.until("two", "Creating")
        await here.command("two", "Stopped")
        await here.until("two", "Stopped")
        assert last_look(run, here, "one") == seen
        await eventually(
            lambda: (gauge(run, "Creating"), gauge(run, "Stopped")) == (1, 1)
        )
        assert calls(run)["list"] == before["list"]


async def test_audit_1_pods_that_are_no_runners_are_not_in_the_cache(
    here: House,
) -> None:
    for number in range(3):
        container = {"name": "main", "image": "none"}
        metadata = {"name": f"other-{number}", "namespace": here.namespace}
        await here.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"containers": [container]},
            }
        )
    async with here.operated() as run:
        await here.start("one")
        await here.until("one", "Creating")
        store = session_controller(run).informers[Pod].store
        await eventually(lambda: len(store) == 1)
        assert list(store.keys()) == [(here.namespace, pod_name("one"))]


async def test_fault_e_activity_is_written_all_the_time_and_wakes_nobody(
    here: House,
) -> None:
    async with here.operated() as run:
        await here.start("one")
        await here.until("one", "Creating")
        await at_rest(run)
        seen, store = last_look(run, here, "one"), session_controller(run).informers
        for second in range(5):
            at = f"2026-01-02T03:04:0{second}Z"
            await here.client.patch(
                AgenticSession,
                "one",
                {"status": {"lastActivityTime": at}},
                namespace=here.namespace,
                subresource="status",
            )

        def is_known() -> bool:
            held = store[AgenticSession].store.get((here.namespace, "one"))
            last = held.status.lastActivityTime if held else None
            return last is not None and last.second == 4

        await eventually(is_known)
        assert last_look(run, here, "one") == seen


async def test_audit_4_there_is_no_cache_of_timeouts_a_changed_project_counts_at_once(
    here: House,
) -> None:
    async with here.operated() as run:
        await here.start("one")
        await here.until("one", "Creating")
        await at_rest(run)
        seen = last_look(run, here, "one")
        body = {"spec": {"groupAccess": [], "inactivityTimeoutSeconds": 60}}
        await here.client.apply(
            {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "ProjectSettings",
                "metadata": {"name": SETTINGS, "namespace": here.namespace},
                **body,
            },
            manager="people",
            force=True,
        )
        await eventually(lambda: last_look(run, here, "one") != seen)


async def test_audit_5_an_operator_that_is_told_to_stop_ends_with_all_its_watches(
    here: House,
) -> None:
    clock = asyncio.get_running_loop().time
    async with here.operated() as run:
        await here.start("one")
        await here.until("one", "Creating")
        client = run.manager.client
        assert client.statistics().streams_open > 0
        began = clock()
        run.manager.stop()
        await eventually(lambda: not client.statistics().streams_open)
        assert clock() - began < 5.0


@asynccontextmanager
async def mute() -> AsyncIterator[int]:
    """A server that takes calls and answers none; its port."""
    over = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])
        over.set()


async def test_fault_g_runners_that_never_answer_delay_no_start_and_no_stop(
    here: House,
) -> None:
    here.settings = replace(here.settings, concurrency=1)
    async with mute() as port:
        here.profile(profile("claude-agent-sdk", port=port))
        async with here.operated():
            for name in ("mute-1", "mute-2", "mute-3"):
                await here.start(name)
                await here.until(name, "Creating")
                await ready(here, name)
            for name in ("mute-1", "mute-2", "mute-3"):
                await here.until(name, asks)
            await here.start("one")
            await here.until("one", "Creating", within=9.0)
            for name in ("one", "mute-1"):
                await here.command(name, "Stopped")
                await here.until(name, "Stopped", within=9.0)


def asks(session: AgenticSession) -> bool:
    told = session.status.conditions.get("Ready")
    return told is not None and told.reason == "AskingRunner"


async def ready(here: House, name: str) -> None:
    """Say of a pod, as a node would, that it is ready."""
    status = {
        "phase": "Running",
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "ambient-code-runner",
                "image": "none",
                "imageID": "none",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            }
        ],
    }
    await here.client.patch(
        Pod,
        pod_name(name),
        {"status": status},
        namespace=here.namespace,
        subresource="status",
    )
