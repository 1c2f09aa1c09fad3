"""What tests of leadership share: replicas in this process, and beside it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import trimtab
from tests.runtime import replica
from trimtab.client import Client, load
from trimtab.runtime.fence import Fence
from trimtab.runtime.leadership import Leadership, State
from trimtab.runtime.lease import LeaseOptions
from trimtab.testing import Cluster, eventually

NAME = "lock"
DURATION, RENEW_DEADLINE, RETRY = 2.0, 1.4, 0.3
MARGIN = 5.0
"""Seconds that a busy machine may take on top of what is promised."""
LASTING: dict[str, float] = {"duration": 60.0, "renew_deadline": 40.0}
"""Of a lease that no busy machine loses, so that what happens is not its end."""
SOURCE = str(Path(str(trimtab.__file__)).absolute().parents[1])
"""Where the Trimtab comes from that is tested."""


def quick(namespace: str, who: str, **more: Any) -> LeaseOptions:
    """A lease for tests: everything takes a few moments."""
    given: dict[str, Any] = {
        "duration": DURATION,
        "renew_deadline": RENEW_DEADLINE,
        "retry": RETRY,
        **more,
    }
    return LeaseOptions(name=NAME, namespace=namespace, identity=who, **given)


def connecting(
    cluster: Cluster, namespace: str, *, server: str = ""
) -> Callable[[], Client]:
    """How a replica gets a client of its own, perhaps through a relay."""

    def connect() -> Client:
        config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
        if server:
            config = msgspec.structs.replace(config, server=server)
        return Client(config)

    return connect


class Local:
    """A replica in this process, whose work only says when it runs."""

    def __init__(
        self, connect: Callable[[], Client], options: LeaseOptions, **more: Any
    ) -> None:
        self.changes: list[bool] = []
        self.fences: list[Fence] = []
        self.running = 0
        self.leadership = Leadership(
            connect,
            options,
            random=Random(5),
            now=lambda: datetime.now(UTC),
            on_change=self.changes.append,
            **more,
        )

    @property
    def leads(self) -> bool:
        return self.leadership.is_leader and self.running == 1

    @property
    def state(self) -> State:
        return self.leadership.statistics().state

    async def lead(self) -> None:
        self.fences.append(self.leadership.fence)
        self.running += 1
        assert self.running == 1
        try:
            await asyncio.Event().wait()
        finally:
            await self.ending()
            self.running -= 1

    async def ending(self) -> None:
        """What the work does when it is cancelled."""


@asynccontextmanager
async def running(*replicas: Local) -> AsyncIterator[None]:
    """Replicas contend inside, and are stopped at the end."""
    async with asyncio.TaskGroup() as group:
        for each in replicas:
            group.create_task(each.leadership.run(each.lead))
        await asyncio.sleep(0)
        try:
            yield
        finally:
            for each in replicas:
                await each.leadership.stop()
                assert each.running == 0
                assert each.state is State.IDLE


async def comes_to_lead(replica: Local, *, within: float = 10.0) -> None:
    who = replica.leadership.options.identity
    await eventually(lambda: replica.leads, within=within, describe=f"{who} leads")


class Beside:
    """A replica in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def event(self, name: str, *, within: float = 40.0) -> dict[str, Any]:
        """The next event of that name; what comes before it is passed over."""
        assert self._process.stdout is not None
        async with asyncio.timeout(within):
            while line := await self._process.stdout.readline():
                event: dict[str, Any] = json.loads(line)
                if event["event"] == name:
                    return event
        raise AssertionError(f"the replica ended and never said {name!r}")

    def send(self, number: signal.Signals) -> float:
        """Send it a signal; says when."""
        self._process.send_signal(number)
        return asyncio.get_running_loop().time()


@asynccontextmanager
async def beside(
    cluster: Cluster, namespace: str, who: str, *, work: str = "idle"
) -> AsyncIterator[Beside]:
    """A replica in a process of its own, which is killed at the end."""
    asked = replica.Asked(
        kubeconfig=str(cluster.kubeconfig), options=quick(namespace, who), work=work
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        replica.__file__,
        msgspec.json.encode(asked).decode(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    try:
        yield Beside(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
