"""A crowd of tasks that do what tasks do; prints the digest of all their steps.

Run as a program, by tests that compare processes: ``python -m tests.sim.crowd SEED``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from random import Random

from trimtab.sim.loop import SimLoop, simulate

TASKS = 600


async def ticks(random: Random) -> AsyncIterator[float]:
    while True:
        pause = random.random()
        await asyncio.sleep(pause)
        yield pause


async def crowd(loop: SimLoop) -> str:
    random, seen = Random(1), []
    lock, queue = asyncio.Lock(), asyncio.Queue[int](10)

    async def member(number: int) -> None:
        try:
            async for _ in ticks(random):
                async with lock:
                    await asyncio.sleep(0.001)
                if number % 3:
                    await queue.put(number)
                else:
                    seen.append(await queue.get())
                if len(seen) > 800:
                    break
            await asyncio.to_thread(seen.append, number)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(-number)
            raise

    try:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(member(number))
    except TimeoutError:
        seen.append(0)
    loop.tell(repr(seen))
    return loop.digest()


if __name__ == "__main__":
    if "imports" in sys.argv:
        import decimal
        import email.message
        import xml.dom.minidom

        used = decimal.Decimal(1), email.message.Message(), xml.dom.minidom.Document()
    print(simulate(crowd, seed=int(sys.argv[1])))
