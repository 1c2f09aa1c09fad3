"""Churn: Loads come, change and go at a steady rate, and it is known which should be.

It speaks to the server directly, past the relays: what it was told is so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from random import Random

import msgspec

from bench.soak_operator import Load, LoadSpec
from trimtab import Client, Metadata
from trimtab.cache import Key
from trimtab.client.errors import AlreadyExists, NotFound, TrimtabError
from trimtab.kinds import ConfigMap

NAMESPACES = tuple(f"soak-{number}" for number in range(6))
WORKERS = 12
MAKES, ENDS, SPOILS = 0.2, 0.4, 0.45
"""Of all steps, a fifth each makes and ends a Load, and one in twenty spoils a part;
the others change a Load."""


class Churn:
    """Keeps about ``live`` Loads in motion, ``rate`` writes per second at most."""

    def __init__(self, client: Client, *, random: Random, live: int, rate: float):
        self.wished: dict[Key, LoadSpec] = {}
        """What should be there, as the server has acknowledged it."""
        self.counts: Counter[str] = Counter()
        """Writes that were acknowledged."""
        self._client = client
        self._random = random
        self._live = live
        self._rate = rate
        self._busy: set[Key] = set()
        self._numbers = count()
        self._stopped = False

    @property
    def events(self) -> int:
        """Writes so far. What the operator writes in answer is not counted."""
        return self.counts.total()

    async def fill(self) -> None:
        """Make the first Loads."""
        await self._all(lambda: len(self.wished) < self._live, self._make)

    async def run(self) -> None:
        """Make, change and end Loads until stopped."""
        self._due = asyncio.get_running_loop().time()
        await self._all(lambda: not self._stopped, self._step)

    def stop(self) -> None:
        self._stopped = True

    async def _all(
        self, more: Callable[[], bool], step: Callable[[], Awaitable[None]]
    ) -> None:
        async def worker() -> None:
            while more():
                await step()

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(worker())

    async def _step(self) -> None:
        await self._turn()
        share, held = self._random.random(), len(self.wished) / self._live
        if share < MAKES:
            await (self._make() if held < 1.1 else self._end())
        elif share < ENDS:
            await (self._end() if held > 0.9 else self._make())
        elif share < SPOILS:
            await self._spoil()
        else:
            await self._change()

    async def _turn(self) -> None:
        """Wait until the next write is due; what was missed is not made up for."""
        now = asyncio.get_running_loop().time()
        self._due = max(self._due + 1 / self._rate, now - 1.0)
        await asyncio.sleep(self._due - now)

    async def _make(self) -> None:
        number = next(self._numbers)
        # Half of the names were there before, half never come again: both leak in
        # their own way.
        name = f"load-{number}"
        if self._random.random() < 0.5:
            name = f"again-{self._random.randrange(2 * self._live)}"
        key = (self._random.choice(NAMESPACES), name)
        if key in self.wished or key in self._busy:
            return
        spec = self._spec()
        metadata = Metadata(namespace=key[0], name=name)
        self._busy.add(key)
        try:
            await self._client.create(Load(metadata=metadata, spec=spec))
            self.wished[key] = spec
            self.counts["created"] += 1
        except AlreadyExists:
            pass  # the one before it is still being finalized
        except TrimtabError:
            await self._settle(key)
        finally:
            self._busy.discard(key)

    async def _change(self) -> None:
        if (key := self._pick()) is None:
            return
        spec = self._spec()
        try:
            body = {"spec": msgspec.structs.asdict(spec)}
            await self._client.patch(Load, key[1], body, namespace=key[0])
            self.wished[key] = spec
            self.counts["patched"] += 1
        except TrimtabError:
            await self._settle(key)
        finally:
            self._busy.discard(key)

    async def _end(self) -> None:
        if (key := self._pick()) is None:
            await asyncio.sleep(0.01)
            return
        try:
            await self._client.delete(Load, key[1], namespace=key[0])
            del self.wished[key]
            self.counts["deleted"] += 1
        except TrimtabError:
            await self._settle(key)
        finally:
            self._busy.discard(key)

    async def _spoil(self) -> None:
        """Delete or change what the operator made, for it to repair."""
        if (key := self._pick()) is None:
            return
        part = f"{key[1]}-0"
        try:
            if self._random.random() < 0.5:
                await self._client.delete(ConfigMap, part, namespace=key[0])
            else:
                body = {"data": {"text": "spoiled"}}
                await self._client.patch(ConfigMap, part, body, namespace=key[0])
            self.counts["spoiled"] += 1
        except TrimtabError:
            pass  # it may not be there yet
        finally:
            self._busy.discard(key)

    def _pick(self) -> Key | None:
        """A Load that nobody else works on; it must be put back."""
        free = [key for key in self.wished if key not in self._busy]
        if not free:
            return None
        key = self._random.choice(free)
        self._busy.add(key)
        return key

    def _spec(self) -> LoadSpec:
        random = self._random
        return LoadSpec(
            text=f"{random.getrandbits(64):016x}" * random.randrange(1, 8),
            copies=random.choice((0, 1, 1, 2, 3)),
            stumbles=random.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2)),
        )

    async def _settle(self, key: Key) -> None:
        """A write failed, or its answer was lost: what is there is what is wished."""
        try:
            found = await self._client.get(Load, key[1], namespace=key[0])
        except NotFound:
            self.wished.pop(key, None)
            return
        if found.metadata.deletionTimestamp is None:
            self.wished[key] = found.spec
        else:
            self.wished.pop(key, None)
