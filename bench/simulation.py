"""How fast a simulation runs: calls a second, and virtual hours of an idle operator.

``python bench/simulation.py`` prints three figures, each of one core's own time: calls
of a mix of 70 % reads, of half writes (half of those applies), both with the generic
laws on; and how long 50 virtual hours of three idle replicas take.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trimtab.api.resource import Metadata
from trimtab.client import Client
from trimtab.embedded.inprocess import in_process_config
from trimtab.kinds import ConfigMap
from trimtab.sim import Plan, Scenario
from trimtab.sim.loop import SimLoop, simulate
from trimtab.sim.provided import clocked, provided
from trimtab.sim.transport import SimTransport
from trimtab.sim.world import World

CALLS = 4000
WORKERS = 8
HOURS = 50
WANTED = {"70 % reads": 2000, "half writes": 500}


def scenario() -> Scenario:
    return Scenario(operator=importlib.import_module("examples.website").app)


async def calls(client: Client, number: int, *, reads: float, random: Random) -> None:
    """One worker's share of a mix."""
    name = f"thing-{number}"
    metadata = Metadata(name=name, namespace="default")
    await client.create(ConfigMap(metadata=metadata, data={"n": "0"}))
    for turn in range(CALLS // WORKERS):
        chance = random.random()
        if chance < reads:
            await client.get(ConfigMap, name, namespace="default")
        elif chance < reads + (1 - reads) / 2:
            wanted = ConfigMap(metadata=metadata, data={"n": str(turn)})
            await client.apply(wanted, manager="bench", force=True)
        else:
            patch = {"data": {"m": str(turn)}}
            await client.patch(ConfigMap, name, patch, namespace="default")


def rate(reads: float) -> float:
    """Calls in a second of processor time, laws included."""

    async def main(loop: SimLoop) -> float:
        with clocked(loop):
            world = World(scenario(), Plan(seed=1, acts=()), loop)
            world.server.start()
            line = world.replicas[0]
            transport = SimTransport(line, world.server)
            client = Client(in_process_config(), transport=transport, random=Random(1))
            began = time.process_time()
            async with asyncio.TaskGroup() as group:
                for number in range(WORKERS):
                    share = calls(client, number, reads=reads, random=Random(number))
                    group.create_task(share)
            took = time.process_time() - began
            world.server.close()
            return (CALLS + WORKERS) / took

    return simulate(main, seed=1)


def idle(hours: float) -> float:
    """Seconds of processor time for three replicas that have nothing to do."""

    async def main(loop: SimLoop) -> float:
        with clocked(loop):
            world = World(scenario(), Plan(seed=1, acts=()), loop)
            world.server.start()
            world.people.prepare()
            for replica in world.replicas:
                replica.start()
            await asyncio.sleep(60)  # their start is not idleness
            began = time.process_time()
            await asyncio.sleep(hours * 3600)
            took = time.process_time() - began
            for replica in world.replicas:
                assert replica.running
                replica.retire()
            await asyncio.sleep(10)
            assert not world.violations, world.violations
            world.server.close()
            return took

    return simulate(main, seed=1)


def main() -> int:
    # Two hours are enough to know fifty hours by; --whole does not trust that.
    hours = HOURS if "--whole" in sys.argv else 2.0
    measures: dict[str, Callable[[], float]] = {
        "70 % reads": lambda: rate(0.7),
        "half writes": lambda: rate(0.5),
    }
    with provided():
        for name, measure in measures.items():
            found = measure()
            print(f"{name:<12} {found:8.0f} calls/s (wanted: {WANTED[name]})")
        took = idle(hours) * HOURS / hours
        print(f"{HOURS} idle virtual hours take {took:.1f} s (wanted: 60)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
