"""Warm starts: how long a session takes to run, with a runner that waits and without.

A node whose pods are processes, a gateway of the pool, and the operator, each a process
of its own. A start is measured from the create's answer being awaited to the watch that
says Running. The next one begins when the pool is full again and nothing is at work.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from bench.measure import ROOT, cpu
from bench.pool import Figures
from bench.sessions.auditing import GATEWAY, USER, WRITES, Audit, Call, audited
from bench.sessions.operating import operating
from tests.operators.sessions.house import IMAGE, PROFILE
from trimtab.api import Metadata, codec
from trimtab.api.kinds import Secret
from trimtab.cache import Change, Informer, Key, Scope
from trimtab.client import Client, load
from trimtab.operators.sessions.kinds import (
    APP,
    DESIRED,
    KINDS,
    MANAGED,
    SETTINGS,
    AgenticSession,
    AgenticSessionSpec,
    ProjectSettings,
    ProjectSettingsSpec,
    WarmPool,
)
from trimtab.operators.sessions.settings import RUNNER_SECRETS
from trimtab.pool.kinds import KINDS as POOL_KINDS
from trimtab.pool.kinds import LABEL_POOL, Worker, WorkerPool
from trimtab.pool.states import TERMINAL, State
from trimtab.testing import Cluster, cluster
from trimtab.testing.operating import install
from trimtab.testing.waiting import eventually

WARM, COLD, POOL = "warm", "cold", "runners"
BAR = 300.0
"""Milliseconds that half of all warm starts may take."""
IDLE = 2
PAUSE = 1.0
"""Seconds of rest before each start."""
Plain = dict[str, Any]


def pool(folder: Path) -> WorkerPool:
    """Runners that wait."""
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "AMBIENT_TOKEN_FOLDER": str(folder / "tokens" / "$(TRIMTAB_WORKER)"),
    }
    probe = {"path": "/healthz", "port": 8443, "scheme": "HTTPS"}
    container = {
        "name": APP,
        "image": IMAGE,
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "readinessProbe": {"httpGet": probe, "periodSeconds": 1},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 2}
    plain = {
        "metadata": {"name": POOL, "namespace": WARM},
        "spec": {
            "template": {"spec": spec},
            "shapes": [{"name": "small", "cpu": "10m", "memory": "120Mi"}],
            "minIdle": IDLE,
            "maxWorkers": IDLE + 4,
            "idleTTL": 3600,
        },
    }
    return codec.convert(WorkerPool, plain)


class Starts:
    """Starts sessions, and knows when each was first seen in a phase."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self._folder = folder
        self._seen: dict[Key, dict[str, float]] = {}
        self._changed = asyncio.Event()

    def follow(self, change: Change[AgenticSession]) -> None:
        if change.new is not None:
            phases = self._seen.setdefault(change.key, {})
            phases.setdefault(change.new.status.phase, time.perf_counter())
            self._changed.set()

    async def start(self, namespace: str, name: str) -> float:
        """Seconds until it runs."""
        work = {"WORKSPACE_PATH": str(self._folder / name)}
        began = time.perf_counter()
        await self.client.create(
            AgenticSession(
                metadata=Metadata(name=name, namespace=namespace),
                spec=AgenticSessionSpec(environmentVariables=work, repos=[]),
            )
        )
        return await self._until((namespace, name), "Running") - began

    async def _until(self, key: Key, phase: str) -> float:
        """When a session was first seen in a phase."""
        async with asyncio.timeout(120.0):
            while phase not in self._seen.get(key, {}):
                self._changed.clear()
                await self._changed.wait()
        return self._seen[key][phase]

    async def check(self, namespace: str, name: str) -> None:
        """See that it was started in the way that its namespace stands for."""
        found = await self.client.get(AgenticSession, name, namespace=namespace)
        why = found.status.conditions.get("WarmStart")
        is_warm = bool(found.status.worker)
        assert is_warm == (namespace == WARM), f"{name} started otherwise: {why}"

    async def end(self, namespace: str, name: str) -> None:
        """Stop it, and take it away: nobody collects garbage here."""
        body = {"metadata": {"annotations": {DESIRED: "Stopped"}}}
        await self.client.patch(AgenticSession, name, body, namespace=namespace)
        await self._until((namespace, name), "Stopped")
        await self.client.delete(AgenticSession, name, namespace=namespace)

    async def full(self) -> None:
        """Wait until the pool has what it should have, and nothing is under way."""

        async def look() -> bool:
            found = self.client.list(Worker, namespace=WARM, labels=LABEL_POOL)
            states = [each.status.state async for each in found]
            living = Counter(each for each in states if each not in TERMINAL)
            assert dict(living) == {State.IDLE: IDLE}, living
            return True

        await eventually(look, within=60.0, every=0.25)
        await asyncio.sleep(PAUSE)


async def _furnish(client: Client, folder: Path) -> None:
    await install(client, *KINDS, *POOL_KINDS)
    for name in (WARM, COLD):
        metadata = {"name": name, "labels": {MANAGED: "true"}}
        body: Plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        await client.create(body)
        keys = Metadata(name=RUNNER_SECRETS, namespace=name)
        await client.create(Secret(metadata=keys, data={"ANTHROPIC_API_KEY": b"none"}))
        spec = ProjectSettingsSpec(
            groupAccess=[], warmPool=WarmPool(pool=POOL) if name == WARM else None
        )
        settings = Metadata(name=SETTINGS, namespace=name)
        await client.create(ProjectSettings(metadata=settings, spec=spec))
    await client.create(pool(folder))


@asynccontextmanager
async def _process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


def _node(here: Cluster, folder: Path) -> Sequence[str]:
    where = ("--kubeconfig", str(here.kubeconfig), "--folder", str(folder / "node"))
    return "bench.pool_node", *where


def _gateway(here: Cluster) -> Sequence[str]:
    return (
        *("trimtab", "pool", "serve", "--kubeconfig", str(here.kubeconfig)),
        *("--context", GATEWAY, "--namespace", WARM, "--namespaces", WARM),
        *("--port", "0", "--endpoints", "-1"),
    )


async def compare(count: int) -> int:
    """Warm and cold starts; 0 if the warm ones are quick enough."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        registry = folder / "registry.json"
        registry.write_text(json.dumps([PROFILE]))
        options, audit = stack.enter_context(audited(folder))
        here = await stack.enter_async_context(cluster("real", options=options))
        config = load(kubeconfig=here.kubeconfig)
        client = await stack.enter_async_context(Client(config))
        await _furnish(client, folder)
        await stack.enter_async_context(_process(*_node(here, folder)))
        gateway = await stack.enter_async_context(_process(*_gateway(here)))
        variables = {
            "WARM_POOLS": "true",
            "NAMESPACE": COLD,
            "AMBIENT_CODE_RUNNER_IMAGE": IMAGE,
            "AGENT_REGISTRY_PATH": str(registry),
            "POD_RUN_AS_NON_ROOT": "false",
        }
        operator = await stack.enter_async_context(
            operating(here, folder, environment=variables)
        )
        group = await stack.enter_async_context(asyncio.TaskGroup())
        starts = Starts(client, folder)
        informer = Informer(
            client, AgenticSession, Scope(everything=True), random=Random(1)
        )
        informer.subscribe(starts.follow)
        watching = group.create_task(informer.run())
        await informer.wait_synced()
        pids = (operator.process.pid, gateway.pid)
        try:
            return await _compared(starts, audit, pids, count)
        finally:
            watching.cancel()


async def _compared(
    starts: Starts, audit: Audit, pids: tuple[int, int], count: int
) -> int:
    figures = {WARM: Figures(), COLD: Figures()}
    for number in range(count + 1):  # the first one of each opens connections
        for namespace in (WARM, COLD):
            await starts.full()
            audit.since()
            before = [cpu(pid) for pid in pids]
            name = f"{namespace}-{number}"
            seconds = await starts.start(namespace, name)
            spent = [cpu(pid) - was for pid, was in zip(pids, before, strict=True)]
            calls = audit.since()
            _tell(f"{name}: {seconds * 1000:.0f} ms", calls, spent)
            if number:
                await starts.check(namespace, name)
                figures[namespace].add(seconds)
            await starts.end(namespace, name)
    print("| start | p50 | p99 | most | bar of the p50 | |\n|---|---|---|---|---|---|")
    for namespace, found in figures.items():
        _row(namespace, found)
    return 0 if figures[WARM].at(0.5) <= BAR else 1


def _row(namespace: str, found: Figures) -> None:
    shown = f"{found.at(0.5):.0f} ms | {found.at(0.99):.0f} ms | {found.at(1.0):.0f} ms"
    word = "pass" if found.at(0.5) <= BAR else "FAIL"
    bar = f"≤ {BAR:g} ms | {word}" if namespace == WARM else "– | "
    print(f"| {namespace} | {shown} | {bar} |")


def _tell(name: str, calls: list[Call], spent: list[float]) -> None:
    """One start, call by call, and how many of them had to wait for another."""
    calls = [each for each in calls if each.verb != "watch"]
    calls.sort(key=_received)
    began = _received(calls[0]) if calls else 0.0
    for each in calls:
        at, took = _received(each) - began, _ended(each) - _received(each)
        who = each.user.get("username", "")
        what = f"{each.verb} {each.resource}/{each.subresource}".rstrip("/")
        print(
            f"  {at * 1000:7.1f} ms {who:9} {what} {each.what[1]} ({took * 1000:.1f})",
            file=sys.stderr,
        )
    for user, used in zip((USER, GATEWAY), spent, strict=True):
        own = [each for each in calls if each.user.get("username") == user]
        writes = sum(each.verb in WRITES for each in own)
        print(
            f"{name}: {user}: {len(own)} calls, {writes} of them writes, "
            f"{_chain(own)} one after the other, {used * 1000:.0f} ms of CPU",
            file=sys.stderr,
        )
    print(f"{name}: {_chain(calls)} one after the other in all", file=sys.stderr)


def _chain(calls: list[Call]) -> int:
    """The longest row of calls of which each began when the one before had ended."""
    longest: list[tuple[float, int]] = []
    for each in sorted(calls, key=_ended):
        begun = _received(each)
        before = max((steps for ended, steps in longest if ended <= begun), default=0)
        longest.append((_ended(each), before + 1))
    return max((steps for _, steps in longest), default=0)


def _received(call: Call) -> float:
    at = call.request_received_timestamp
    return at.timestamp() if at else 0.0


def _ended(call: Call) -> float:
    return call.stage_timestamp.timestamp() if call.stage_timestamp else 0.0
