"""The manager: runs an operator in this process, from the first list to the last lease.

Everything that runs is in its task group. It starts in groups, each when the one before
stands: endpoints, webhooks (which the caches' own objects may be converted by), caches,
controllers of every replica, the leader's controllers. It stops in the other direction:
no new work, what is in hand is finished, the lease is released, the watches end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.api.resource import Resource
from trimtab.cache import Cache, FeedOptions, Key
from trimtab.client import Client, guarded
from trimtab.runtime import logs
from trimtab.runtime.controller import Controller
from trimtab.runtime.definitions import Definition
from trimtab.runtime.endpoints import Endpoints
from trimtab.runtime.events import Recorder
from trimtab.runtime.explaining import awaited
from trimtab.runtime.fence import Fence
from trimtab.runtime.health import Health
from trimtab.runtime.history import told
from trimtab.runtime.leadership import Leadership
from trimtab.runtime.lease import LeaseOptions, identity
from trimtab.runtime.metrics import Metrics, Sample, of_client, of_queue
from trimtab.runtime.operator import Operator
from trimtab.runtime.threads import Threads
from trimtab.runtime.watchdog import Watchdog
from trimtab.runtime.webhooks.options import WebhookOptions
from trimtab.runtime.wishes import is_paused

if TYPE_CHECKING:
    from trimtab.runtime.webhooks.running import Webhooks

logger = logging.getLogger("trimtab.runtime")

WRITE_SECONDS = 5.0
"""No call of a leader's work that writes takes longer: the lease must outlast it."""


GRACE = 0.5
"""Seconds that reconciles have to end once they are cancelled."""
LAST_EVENTS = 1.0
"""Seconds to write the Events that are left at the end."""
LEADERSHIP = "leadership"


class ManagerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator runs here. Each has a default that is safe on a laptop."""

    host: str = "127.0.0.1"
    """Where health and metrics are served; in a pod, where probes come from outside,
    it is 0.0.0.0."""
    port: int | None = 8080
    """0 is any free port, None serves nothing."""
    debug: bool = False
    """Serve /debug to other machines, too."""
    lease: LeaseOptions | None = None
    """Default: the operator's name, in the namespace of the client's context."""
    drain: float = 2.0
    """Seconds that reconciles have to end when the process is told to stop."""
    threads: int = 16
    """Plain functions that run at once, of all the leader's controllers together; and
    as many of those that run in every replica."""
    feeds: FeedOptions = FeedOptions()
    """How lists and watches are read, and how long silence is borne."""
    webhooks: WebhookOptions | None = None
    """How declared webhooks are served and reached; without any, none are."""


class Manager:
    """One operator, in one process.

    Flow: ``await run()`` in the main task; ``stop()`` from a signal handler or another
    task lets it return.

    Guarantees: when ``run`` has ended, nothing of it runs any more, and the lease is
    released. It ends within five seconds of ``stop()``, even if handlers do not.

    Assumptions: ``connect`` makes another client of the same server; the lease is
    renewed by it, in another thread. With ``thread=False`` that and the rest is done in
    the running loop, which nobody watches then, and ``threads`` says where handlers
    that block run: for simulations. ``webhooks`` are those of all operators of the
    process, if there are several; who made them runs them.

    Errors: whatever a part of the runtime raises ends all of it; handlers' own errors
    do not.
    """

    def __init__(
        self,
        operator: Operator,
        client: Client,
        *,
        connect: Callable[[], Client],
        random: Random,
        now: Callable[[], datetime],
        options: ManagerOptions | None = None,
        thread: bool = True,
        threads: type[Threads] = Threads,
        webhooks: Webhooks | None = None,
    ) -> None:
        self.operator = operator
        self.options = options or ManagerOptions()
        self.client = client
        self.metrics = Metrics()
        self.health = Health()
        self.watchdog = Watchdog()
        self.threads = threads(self.options.threads)
        # Of their own: a term of leadership ends when no thread of it runs any more.
        self.threads_everywhere = threads(self.options.threads)
        self.cache = Cache(
            client,
            random=random,
            budget=operator.cache_budget,
            options=self.options.feeds,
        )
        self._now = now
        self._thread = thread
        name = identity(random)
        self.recorder = self._recorder(name, random)
        self._own: Webhooks | None = None
        """Those that it runs itself."""
        if operator.webhooks and webhooks is None:
            self._own = self._webhooks(random, threads)
        self.webhooks = webhooks or self._own
        definitions = operator.controllers()
        self.leadership: Leadership | None = None
        if operator.leader and definitions:
            self.leadership = self._leadership(name, connect, random)
        self.controllers = tuple(
            self._controller(definition, random) for definition in definitions
        )
        self.endpoints: Endpoints | None = None
        self.ready = asyncio.Event()
        """Set when webhooks are served and the caches are complete."""
        self._stopping = asyncio.Event()
        self._observe()

    def _recorder(self, name: str, random: Random) -> Recorder:
        return Recorder(
            self.client,
            component=self.operator.name,
            instance=name,
            now=self._now,
            random=random,
            drain=LAST_EVENTS,
        )

    def _leadership(
        self, name: str, connect: Callable[[], Client], random: Random
    ) -> Leadership:
        lease = self.options.lease or LeaseOptions(
            name=self.operator.name,
            namespace=self.client.config.namespace,
            identity=name,
        )
        return Leadership(
            connect, lease, random=random, now=self._now, thread=self._thread
        )

    def _controller(self, definition: Definition, random: Random) -> Controller:
        fenced = definition.leader and self.leadership is not None
        return Controller(
            definition,
            client=self.client,
            recorder=self.recorder,
            metrics=self.metrics.controller(definition.name),
            threads=self.threads if fenced else self.threads_everywhere,
            watchdog=self.watchdog,
            random=random,
            now=self._now,
            fenced=fenced,
        )

    def _webhooks(self, random: Random, threads: type[Threads]) -> Webhooks:
        # Here, because TLS and a server cost every operator that has no webhooks.
        from trimtab.runtime.webhooks.running import Webhooks

        return Webhooks(
            (self.operator,),
            self.client,
            self.options.webhooks,
            random=random,
            now=self._now,
            threads=threads(self.options.threads),
        )

    def stop(self, why: str = "") -> None:
        """Let ``run`` come to its end."""
        if not self._stopping.is_set():
            logger.info("Stopping%s.", f" on {why}" if why else "")
            self._stopping.set()

    async def run(self) -> None:
        """Run until stopped."""
        for controller in self.controllers:
            controller.watch(self.cache)
        async with AsyncExitStack() as stack:
            if self._thread:
                stack.enter_context(self.watchdog)
            stack.callback(self._abandon_threads)
            if self.options.port is not None:
                self.endpoints = await stack.enter_async_context(self._endpoints())
                place = f"{self.endpoints.host}:{self.endpoints.port}"
                logger.info("Health and metrics are at http://%s.", place)
            for opens in self.operator.opened:
                await stack.enter_async_context(opens())
            async with asyncio.TaskGroup() as group:
                group.create_task(self.recorder.run(), name="events")
                support = [
                    group.create_task(self._cache(), name="caches"),
                    group.create_task(self._synced(), name="synced"),
                ]
                if self._own is not None:
                    task = group.create_task(self._own.run(), name="webhooks")
                    support.append(task)
                work = [
                    group.create_task(each, name=name) for name, each in self._work()
                ]
                await self._stopping.wait()
                if self._own is not None:
                    self._own.stop()
                await self._drain(work)
                if self._own is not None:
                    await self._own.lingered()
                for task in support:
                    task.cancel()

    def _work(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """What reconciles: in every replica, and in the one that leads."""
        for controller in self.controllers:
            if not self._leads(controller):
                yield controller.definition.name, controller.run()
        if self.leadership is not None:
            yield LEADERSHIP, self.leadership.run(self._lead)

    def _leads(self, controller: Controller) -> bool:
        return controller.definition.leader and self.leadership is not None

    async def _lead(self) -> None:
        """The leader's controllers; it ends when nothing of them runs any more."""
        assert self.leadership is not None
        fence = self.leadership.fence
        seconds = min(WRITE_SECONDS, self.leadership.options.duration / 3)
        with guarded(_guard(fence, seconds)):
            async with asyncio.TaskGroup() as group:
                for controller in filter(self._leads, self.controllers):
                    group.create_task(controller.run(), name=controller.definition.name)

    async def _drain(self, work: list[asyncio.Task[Any]]) -> None:
        """Let reconciles end, then end them; release the lease in any case."""
        for controller in self.controllers:
            controller.stop()
        left = set(work)
        if self.leadership is not None and not self.leadership.is_leader:
            for task in work:
                if task.get_name() == LEADERSHIP:
                    task.cancel()  # nothing of it is in hand
        if left:
            _, left = await asyncio.wait(left, timeout=self.options.drain)
        self.recorder.stop()
        if not left:
            return
        logger.warning("Some reconciles did not end in time; they are cancelled.")
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=GRACE)
        self._abandon_threads()

    def _abandon_threads(self) -> None:
        """Wait for no thread any more: it can write nothing, and ends as we do."""
        self.threads.close()
        self.threads_everywhere.close()

    async def _cache(self) -> None:
        if self.webhooks is not None:
            await self.webhooks.ready.wait()
        await self.cache.run()

    async def _synced(self) -> None:
        if self.webhooks is not None:
            await self.webhooks.ready.wait()
        await self.cache.wait_synced()
        self.ready.set()
        held = self.cache.statistics()
        logger.info("%s runs: %d objects are cached.", self.operator.name, held.objects)

    def _endpoints(self) -> Endpoints:
        return Endpoints(
            self.options.host,
            self.options.port or 0,
            health=self.health,
            metrics=self.metrics.render,
            why=self.why,
            log=logs.level,
            debug=self.options.debug,
        )

    def why(self, kind: str, namespace: str, name: str) -> Any:
        """What is known of an object's reconciles; None if there is no such kind."""
        found = [
            self._told(controller, (namespace, name))
            for controller in self.controllers
            if kind.lower() in _names_of(controller.definition.kind)
        ]
        return {"controllers": found} if found else None

    def _told(self, controller: Controller, key: Key) -> dict[str, Any]:
        kind = controller.definition.kind
        last = controller.history.of(key)
        now = asyncio.get_running_loop().time()
        store = controller.informers[kind].store
        obj = store.get(key)
        return {
            "operator": self.operator.name,
            "controller": controller.definition.name,
            "manager": controller.definition.manager,
            "object": " ".join((kind.kind, "/".join(filter(None, key)))),
            "cached": key in store,
            "leads": self.leadership is None or self.leadership.is_leader,
            "paused": obj is not None and is_paused(obj),
            "last": told(last, now=now, clock=self._now()) if last else None,
            **awaited(controller.queue, controller.history, key, now=now),
        }

    def _observe(self) -> None:
        """Wire health and metrics to what they are about."""
        if self.webhooks is not None:
            self.health.add_ready("webhooks", self.webhooks.problem)
        else:
            # With webhooks, a Service sends reviews only to who is ready: caches that
            # wait for a conversion, or for a server in trouble, must not end that.
            self.health.add_ready("caches", self._cache_problem)
            self.health.add_ready("watches", self._watch_problem)
        if self._own is not None:
            self.metrics.add(self._own.samples)
        self.metrics.add(lambda: of_client(self.client.statistics()))
        self.metrics.add(self._samples)
        self.metrics.add(self.watchdog.samples)

    def _cache_problem(self) -> str | None:
        if self.cache.synced:
            return None
        now = asyncio.get_running_loop().time()
        return self.cache.problem(now) or "the first lists are not complete"

    def _watch_problem(self) -> str | None:
        return self.cache.problem(asyncio.get_running_loop().time())

    def _samples(self) -> Iterator[Sample]:
        yield Sample("loop_tasks", (), len(asyncio.all_tasks()))
        for controller in self.controllers:
            if controller.queue is not None:
                held = controller.queue.statistics()
                yield from of_queue(
                    controller.definition.name,
                    depth=held.ready + held.delayed,
                    oldest=held.oldest,
                )
        yield from self._cached()
        told_of = self.recorder.statistics()
        yield Sample("events_dropped", (), told_of.limited + told_of.dropped)
        if self.leadership is not None:
            held_lease = self.leadership.statistics()
            yield Sample("is_leader", (), held_lease.is_leader)
            yield Sample("leader_transitions", (), held_lease.transitions)

    def _cached(self) -> Iterator[Sample]:
        held = self.cache.statistics()
        yield Sample("cache_budget_bytes", (), self.operator.cache_budget or 0)
        yield Sample("cache_demotions", ("bytes",), held.accountant.packed)
        yield Sample("cache_demotions", ("key",), held.accountant.dropped)
        for kind, informer in held.informers:
            for form, count in informer.by_form.items():
                yield Sample("cache_objects", (kind, form), count)
            for (index, value), count in informer.counted.items():
                yield Sample("cache_indexed", (kind, index, value), count)
            yield Sample("cache_bytes", (kind,), informer.bytes)
            yield Sample("relists", (kind,), informer.relists)
            yield Sample("watch_restarts", (kind,), max(0, informer.watches - 1))


def _names_of(kind: type[Resource]) -> tuple[str, str]:
    return kind.kind.lower(), kind.__resource__.plural


def _guard(fence: Fence, most: float) -> Callable[[float], float]:
    """Every write of a leader's work asks the fence, and gets so much time at most."""

    def check(seconds: float) -> float:
        granted = min(seconds, most)
        fence.check(granted)
        return granted

    return check
