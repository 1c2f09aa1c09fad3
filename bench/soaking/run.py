"""One soak: two replicas, churn and faults, and what is left when it is quiet again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeAlias

import msgspec

from bench.soak_operator import Load
from bench.soaking.churn import NAMESPACES, Churn
from bench.soaking.faults import Faults, Pace
from bench.soaking.laws import broken
from bench.soaking.relay import Relay
from bench.soaking.replica import Held, Replica
from trimtab import Client, crd, load
from trimtab.client.http import KEEP_ALIVE
from trimtab.runtime.threads import LIMIT
from trimtab.testing import Cluster, Kind, Options, cluster, eventually

Say: TypeAlias = Callable[[str], None]

MiB = 1 << 20
CALM = 12.0
"""Seconds at the end of the churn in which nothing is disturbed any more."""
CONVERGED_WITHIN = 10.0
WARM_UP = 0.1
"""The share of the run after which memory must not grow any more."""
SLOPE_LIMIT = 1.0
"""MiB for each 10,000 events."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done, and for how long."""

    cluster: Kind = "embedded"
    seconds: float = 1800.0
    rate: float = 60.0
    live: int = 300
    lease: int = 6
    seed: int = 1
    pace: Pace = Pace()


class Sample(msgspec.Struct, frozen=True, gc=False):
    """The witness at one moment."""

    seconds: float
    events: int
    resident: int


class Outcome(msgspec.Struct, kw_only=True):
    """What came of a soak."""

    plan: Plan
    events: dict[str, int] = {}
    faults: dict[str, int] = {}
    samples: list[Sample] = []
    revisions: int = 0
    """Writes of everybody, as the server counts them."""
    broken: list[str] = []
    converged: float = 0.0
    began: Held | None = None
    ended: Held | None = None
    metrics: dict[str, float] = {}
    """Of the witness, at its end."""
    problems: list[str] = []
    """What else went wrong, a sentence each."""

    @property
    def slope(self) -> float:
        """MiB for each 10,000 events, by least squares after the warm-up."""
        first = WARM_UP * self.plan.seconds
        return slope([each for each in self.samples if each.seconds >= first])

    @property
    def left(self) -> list[str]:
        """What the witness holds beyond what it held at the beginning."""
        assert self.began is not None
        assert self.ended is not None
        before, after = (
            msgspec.structs.asdict(each) for each in (self.began, self.ended)
        )
        return [
            f"{after[name] - before[name]:+d} {name}"
            for name in before
            # A task that is missing is a worker that has died.
            if after[name] > before[name]
            or (name == "tasks" and after[name] < before[name])
        ]


def slope(samples: list[Sample]) -> float:
    """The growth of memory with events, in MiB for each 10,000."""
    count = max(1, len(samples))
    x = sum(each.events for each in samples) / count
    y = sum(each.resident for each in samples) / count
    spread = sum((each.events - x) ** 2 for each in samples)
    common = sum((each.events - x) * (each.resident - y) for each in samples)
    return common / max(spread, 1.0) * 10_000 / MiB


async def soak(plan: Plan, *, say: Say = print) -> Outcome:
    """Run it all; the cluster is the soak's own."""
    # The real one's garbage collector is a program of its own.
    options = Options(controllers=plan.cluster == "real")
    async with cluster(plan.cluster, options=options) as server:
        async with Client(load(kubeconfig=server.kubeconfig)) as client:
            await _prepare(client)
            async with _replicas(plan, server) as (witness, other):
                return await Soak(plan, client, witness, other, say=say).run()


class Soak:
    """The parts of a soak while it runs."""

    def __init__(
        self,
        plan: Plan,
        client: Client,
        witness: Replica,
        other: Replica,
        *,
        say: Say,
    ) -> None:
        random = Random(plan.seed)
        self.outcome = Outcome(plan=plan)
        self._plan = plan
        self._client = client
        self._witness = witness
        self._other = other
        self._say = say
        self._churn = Churn(client, random=random, live=plan.live, rate=plan.rate)
        self._faults = Faults(
            witness, other, random=random, pace=plan.pace, lease=plan.lease
        )

    async def run(self) -> Outcome:
        await self._begin()
        first = await self._revision()
        await self._disturbed()
        await self._converge()
        self.outcome.revisions = await self._revision() - first
        await self._end()
        return self.outcome

    async def _begin(self) -> None:
        """The witness leads and has nothing to do: that is how it must end."""
        await self._witness.start()
        await self._witness.ready()
        await eventually(self._witness.leads, within=30, every=0.2)
        await self._other.start()
        await self._other.ready()
        began = await self._witness.held()
        # Those of plain handlers are started when they are needed first, and stay.
        threads = began.threads + LIMIT
        self.outcome.began = msgspec.structs.replace(began, threads=threads)
        self._tell(f"The witness begins with {self.outcome.began}.")

    async def _disturbed(self) -> None:
        await self._churn.fill()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._churn.run())
            sampling = group.create_task(self._sample())
            await self._faults.run(seconds=self._plan.seconds - CALM)
            await asyncio.sleep(max(0.0, self._plan.seconds - self._elapsed()))
            self._churn.stop()
            sampling.cancel()
        self.outcome.events = dict(self._churn.counts)
        self.outcome.faults = dict(self._faults.counts)

    async def _sample(self) -> None:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        next_word = 0.0
        while True:
            at = self._elapsed()
            sample = Sample(at, self._churn.events, self._witness.resident())
            self.outcome.samples.append(sample)
            if at >= next_word:
                next_word += 60.0
                self._tell(
                    f"{at:6.0f} s  {sample.events:7,} events  "
                    f"{sample.resident / MiB:6.2f} MiB  {dict(self._faults.counts)}"
                )
            await asyncio.sleep(1.0 - (loop.time() - self._began) % 1.0)

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    async def _converge(self) -> None:
        """All is as it should be, soon after the last change."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            asked = loop.time()
            self.outcome.broken = await broken(self._client, self._churn.wished)
            if not self.outcome.broken or asked - began > CONVERGED_WITHIN:
                break
            await asyncio.sleep(0.2)
        self.outcome.converged = loop.time() - began

    async def _end(self) -> None:
        """The other stops; the witness leads, has nothing to do, and stops as well."""
        await self._stop(self._other)
        await eventually(self._witness.leads, within=30, every=0.2)
        try:
            await eventually(self._is_as_before, within=KEEP_ALIVE + 15, every=1.0)
        except AssertionError as error:
            self.outcome.problems.append(str(error))
        self.outcome.metrics = await self._witness.metrics()
        for sentence in await broken(self._client, self._churn.wished):
            self.outcome.problems.append(f"After the handover: {sentence}")
        await self._stop(self._witness)
        for replica in (self._witness, self._other):
            found = replica.trouble()
            if found:
                self.outcome.problems.append(
                    f"{replica.name} logged {len(found)} errors; the first: {found[0]}"
                )

    async def _is_as_before(self) -> bool:
        self.outcome.ended = await self._witness.held()
        return not self.outcome.left

    async def _stop(self, replica: Replica) -> None:
        try:
            code = await replica.stop()
        except TimeoutError:
            self.outcome.problems.append(
                f"{replica.name} did not stop in five seconds."
            )
            return
        if code != 0:
            self.outcome.problems.append(f"{replica.name} ended with code {code}.")

    async def _revision(self) -> int:
        """How many writes the server has seen, of whatever kind."""
        listing = self._client.list(Load, page=1)
        await listing.next_page()
        return int(listing.resource_version)

    def _tell(self, text: str) -> None:
        self._say(text)


async def _prepare(client: Client) -> None:
    """The kind, and the namespaces."""
    definition = crd(Load)
    await client.create(definition)
    for name in NAMESPACES:
        await client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
    kinds = await client.discover("apiextensions.k8s.io/v1", definition["kind"])
    name = definition["metadata"]["name"]

    async def is_served() -> bool:
        found = await client.get(kinds, name)
        conditions = found.get("status", {}).get("conditions", ())
        return any(
            each["type"] == "Established" and each["status"] == "True"
            for each in conditions
        )

    await eventually(is_served, within=20)


@asynccontextmanager
async def _replicas(
    plan: Plan, server: Cluster
) -> AsyncIterator[tuple[Replica, Replica]]:
    """Two replicas that were not started yet, and are killed at the end."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="trimtab-soak-")))
        made = []
        for name in ("witness", "other"):
            relay = await stack.enter_async_context(Relay(server.server))
            replica = Replica(
                name,
                relay=relay,
                kubeconfig=server.kubeconfig,
                folder=folder,
                lease=plan.lease,
            )
            stack.push_async_callback(replica.kill)
            made.append(replica)
        yield made[0], made[1]
