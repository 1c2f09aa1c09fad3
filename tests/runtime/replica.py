"""A replica as a process of its own: it leads when it can, and tells what happens.

Each line that it prints is an event: a JSON object with the moment ``at``, by a clock
that all processes of a machine share. SIGTERM stops it gracefully.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec

from trimtab.client import Client, load
from trimtab.client.errors import Conflict
from trimtab.kinds import ConfigMap
from trimtab.runtime.fence import Fence, NotLeader
from trimtab.runtime.leadership import Leadership
from trimtab.runtime.lease import LeaseOptions

SHARED = "shared"
"""The ConfigMap that leaders write."""


class Asked(msgspec.Struct, kw_only=True):
    """What a test asks of a replica."""

    kubeconfig: str
    options: LeaseOptions
    work: str = "idle"


def tell(event: str, **more: Any) -> None:
    at = asyncio.get_running_loop().time()
    line = json.dumps({"event": event, "at": at, **more}) + "\n"
    os.write(sys.stdout.fileno(), line.encode())  # whole, whichever thread tells it


class Replica:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.leadership = Leadership(
            self.connect,
            asked.options,
            random=Random(),
            now=lambda: datetime.now(UTC),
        )

    def connect(self) -> Client:
        namespace = self.asked.options.namespace
        return Client(load(kubeconfig=self.asked.kubeconfig, namespace=namespace))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            stop = self.leadership.stop
            loop.add_signal_handler(signal.SIGTERM, lambda: group.create_task(stop()))
            looking = group.create_task(self.look())
            await self.leadership.run(self.lead)
            looking.cancel()
        tell("stopped")

    async def look(self) -> None:
        while not (holder := self.leadership.statistics().holder):
            await asyncio.sleep(0.01)
        tell("sees", holder=holder)

    async def lead(self) -> None:
        fence = self.leadership.fence
        tell("leads")
        try:
            if self.asked.work == "late":
                await asyncio.to_thread(asyncio.run, self.write_late(fence))
            elif self.asked.work == "writes":
                await self.write(fence)
            await asyncio.Event().wait()
        finally:
            tell("ended", refused=refuses(fence))

    async def write(self, fence: Fence) -> None:
        async with self.connect() as client:
            fence.check(1.0)
            await client.patch(ConfigMap, SHARED, {"data": {"by": "new"}}, deadline=1.0)
        tell("wrote")

    async def write_late(self, fence: Fence) -> None:
        """Be stopped between asking the fence and sending, where nobody cancels."""
        async with self.connect() as client:
            metadata = (await client.get(ConfigMap, SHARED)).metadata
            decided_on = {"resourceVersion": metadata.resourceVersion}
            body = {"metadata": decided_on, "data": {"by": "old"}}
            fence.check(1.0)
            be_stopped()
            refused = refuses(fence)
            try:
                await client.patch(ConfigMap, SHARED, body, deadline=5.0)
            except Conflict:
                tell("conflict", refused=refused)
            else:
                tell("wrote")


def be_stopped() -> None:
    """Stop this process until it is told to go on, which takes a while."""
    clock = asyncio.get_running_loop().time
    began = clock()
    os.kill(os.getpid(), signal.SIGSTOP)
    while clock() < began + 1.0:  # it takes effect soon, and not at once
        time.sleep(0.001)


def refuses(fence: Fence) -> bool:
    try:
        fence.check(0.0)
    except NotLeader:
        return True
    return False


if __name__ == "__main__":
    asyncio.run(Replica(msgspec.json.decode(sys.argv[1], type=Asked)).run())
