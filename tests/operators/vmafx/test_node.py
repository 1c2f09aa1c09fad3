"""Laws of a node by itself: what it does where no gateway answers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from trimtab.operators.vmafx.node import Node, NodeOptions
from trimtab.testing import virtual_time


class Silence:
    """A gateway that is asked, and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def register(self, request: object) -> object:
        self.asked.set()
        return await asyncio.Event().wait()


@virtual_time
async def test_a_node_that_no_gateway_knows_stops_at_once() -> None:
    caller: Any = Silence()
    scorer: Any = None  # there is nothing to score
    made = Node(
        caller, scorer, options=NodeOptions(name="one", slots=2), random=Random(1)
    )
    clock = asyncio.get_running_loop().time
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.run())
        await caller.asked.wait()
        began = clock()
        made.drain()
        await running
    assert clock() - began < 1.0
