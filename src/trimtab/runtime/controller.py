"""The controller: changes become keys in a queue, and keys become calls of a handler.

A fixed number of workers, one task each, take keys and reconcile them. There is no
task, no timer and no client per object: what waits is an entry in the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

from trimtab.api.resource import Resource
from trimtab.cache import Cache, Informer, Key, owner
from trimtab.client import Client
from trimtab.client.budget import budget
from trimtab.client.errors import NotFound, TrimtabError
from trimtab.runtime import outcomes
from trimtab.runtime.context import Context
from trimtab.runtime.deadline import Deadline
from trimtab.runtime.definitions import Definition
from trimtab.runtime.events import Recorder
from trimtab.runtime.handling import Handling
from trimtab.runtime.history import History, Reconciled
from trimtab.runtime.lanes import Entry
from trimtab.runtime.metrics import ControllerMetrics, Outcome
from trimtab.runtime.queue import Priority, Queue
from trimtab.runtime.reconcile import Cause, Result
from trimtab.runtime.sources import Children, Chosen, Others, Primary
from trimtab.runtime.threads import Threads
from trimtab.runtime.tracing import Span, tracer
from trimtab.runtime.watchdog import Watchdog
from trimtab.runtime.wishes import is_paused
from trimtab.runtime.workqueue import QueueClosed, WorkQueue
from trimtab.runtime.writing import Writer

RESYNC = int(Priority.RESYNC)
LOOK_AGAIN = Cause("resync")
# A handler that never waits would keep the loop from reading what comes meanwhile.
TURN = 0.005
TRACER = tracer("trimtab.runtime")

logger = logging.getLogger("trimtab.runtime")


class Controller:
    """Runs one definition, for as long as this process may.

    Flow: :meth:`watch` takes the informers, which stay warm whether or not this
    process leads. :meth:`run` waits until they are complete, takes all objects as new,
    and works until :meth:`stop` or cancellation. It can be run again.
    """

    def __init__(
        self,
        definition: Definition,
        *,
        client: Client,
        recorder: Recorder,
        metrics: ControllerMetrics,
        threads: Threads,
        watchdog: Watchdog,
        random: Random,
        now: Callable[[], datetime],
        fenced: bool,
    ) -> None:
        self.definition = definition
        self.history = History()
        self.informers: dict[type[Resource], Informer[Any]] = {}
        self._metrics = metrics
        self._threads = threads
        self._watchdog = watchdog
        self._random = random
        self._queue: WorkQueue | None = None
        self._stopped = asyncio.Event()
        self._writer = Writer(
            definition,
            client=client,
            informers=self.informers,
            recorder=recorder,
            metrics=metrics,
            now=now,
            fenced=fenced,
        )
        self._chosen = Chosen(definition)
        self._handling = Handling(definition, writer=self._writer, threads=threads)

    def watch(self, cache: Cache) -> None:
        """Take the informers of every kind that matters here."""
        for source in self.definition.sources:
            owned = source in self.definition.owns
            indexes = (*source.indexes, owner()) if owned else source.indexes
            if source is self.definition.primary and self.definition.when:
                indexes = (*indexes, self._chosen.index)
            self.informers[source.kind] = cache.informer(
                source.kind, source.scope, indexes=indexes, keep=source.keep
            )

    async def run(self) -> None:
        """Reconcile until stopped.

        Guarantees: when it returns or raises, no handler runs any more, in no task and
        in no thread.
        """
        queue = self._queue = WorkQueue(Queue(random=self._random))
        subscriptions: list[Callable[[], None]] = []
        try:
            if not await self._synced():
                return
            subscriptions = self._subscribed(queue)
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.definition.concurrency):
                    workers.create_task(self._work(queue))
        finally:
            for unsubscribe in subscriptions:
                unsubscribe()
            # Its timer would keep it, and all that waits in it, until the next is due.
            queue.close()
            self._queue = None
            # Nobody tells it any more what is gone.
            self._writer.ledger.clear()
            await self._threads.drained()

    def stop(self) -> None:
        """Take no more keys; :meth:`run` returns when those in hand are done."""
        self._stopped.set()
        if self._queue is not None:
            self._queue.close()

    async def _synced(self) -> bool:
        """Whether the caches are complete; False if it was stopped before they were."""
        if all(each.synced for each in self.informers.values()):
            return not self._stopped.is_set()
        async with asyncio.TaskGroup() as group:
            complete = group.create_task(self._complete())
            stopped = group.create_task(self._stopped.wait())
            await asyncio.wait([complete, stopped], return_when=asyncio.FIRST_COMPLETED)
            complete.cancel()
            stopped.cancel()
        return not self._stopped.is_set()

    async def _complete(self) -> None:
        for informer in self.informers.values():
            await informer.wait_synced()

    @property
    def queue(self) -> WorkQueue | None:
        return self._queue

    def _subscribed(self, queue: WorkQueue) -> list[Callable[[], None]]:
        """Have the changes of every source fill the queue."""
        definition, writer = self.definition, self._writer
        # The primary comes last: it fills the queue with all there is.
        subscribers = [
            *(Children(definition, each, queue, writer) for each in definition.owns),
            *(Others(definition, each, queue, writer) for each in definition.watches),
            Primary(definition, definition.primary, queue, writer),
        ]
        ends = [
            self.informers[each.source.kind].subscribe(each) for each in subscribers
        ]
        for each in subscribers:
            each.replaying = False
        return ends

    async def _work(self, queue: WorkQueue) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.time() + TURN
        entry: Entry | None = None
        task = asyncio.current_task()
        assert task is not None
        self._watchdog.register(task, lambda: self._describe(entry))
        deadline = Deadline(task)
        try:
            while True:
                if (entry := queue.poll()) is None:
                    entry = await queue.get()
                    turn = loop.time() + TURN
                ended = await self._one(queue, entry, loop, deadline)
                if task.cancelling():  # and the handler has swallowed it
                    return
                if ended > turn:
                    await asyncio.sleep(0)
                    turn = loop.time() + TURN
        except QueueClosed:
            return
        finally:
            deadline.close()

    async def _one(
        self,
        queue: WorkQueue,
        entry: Entry,
        loop: asyncio.AbstractEventLoop,
        deadline: Deadline,
    ) -> float:
        """Reconcile one key; when it ended."""
        began = loop.time()
        key = entry.key
        obj = self.informers[self.definition.kind].store.get(key)
        if obj is None:
            obj = await self._fetched(queue, key)
        if obj is None:
            return began
        chosen = self._chosen(obj)
        if is_paused(obj) or not chosen:
            queue.done(key)
            if not chosen:
                self.history.settled(key)
            return began
        ctx = Context(self._writer, obj, causes=entry.causes, failures=entry.failures)
        outcome: Outcome
        failure = ""
        try:
            result = await self._within(deadline, entry, obj, ctx)
            queue.done(key, after=result.after)
            if result.after is None and self.definition.resync is not None:
                self._later(queue, key)
            outcome = "ok" if result.after is None else "requeue"
        except Exception as error:
            outcome = outcomes.settle(queue, key, error, ctx)
            failure = outcomes.told(error)
        finally:
            ctx.end("the reconcile is over")
        ended = loop.time()
        why = entry.causes[0].why if entry.causes else "change"
        self._metrics.reconciled(ended - began, outcome, why, ctx.writes)
        self.history.add(
            key,
            Reconciled(
                entry.causes, outcome, ended - began, ctx.writes, ended, failure
            ),
        )
        return ended

    async def _within(
        self, deadline: Deadline, entry: Entry, obj: Any, ctx: Context
    ) -> Result:
        """Reconcile within the budget.

        Errors: what the handler raises, ``TimeoutError`` when time is up, and
        ``CancelledError`` only if somebody asked this very task to end.
        """
        seconds = self.definition.budget
        cancelled: asyncio.CancelledError | None = None
        deadline.begins(seconds)
        try:
            with budget(seconds):
                if not TRACER.active:
                    return await self._handling.reconcile(obj, ctx)
                with self._span(entry):
                    return await self._handling.reconcile(obj, ctx)
        except asyncio.CancelledError as error:
            cancelled = error
        finally:
            late = deadline.ends()
        if _cancelled():
            raise cancelled
        if late:
            raise TimeoutError from cancelled
        # The handler's own: something that it waited for was cancelled.
        wrong = "the handler was cancelled by what it waited for"
        raise RuntimeError(wrong) from cancelled

    async def _fetched(self, queue: WorkQueue, key: Key) -> Any:
        """An object that the cache knows the key of only; None puts the key away."""
        kind = self.definition.kind
        try:
            if self.informers[kind].store.form(key) == "key":
                return await self._writer.client.get(
                    kind,
                    key[1],
                    namespace=key[0] or None,
                    deadline=self.definition.budget,
                )
        except NotFound:
            pass
        except TrimtabError as error:
            pause = queue.failed(key)
            logger.warning("%s Again in %.3g s.", error, pause)
            return None
        queue.done(key)
        queue.forget(key)
        return None

    def _span(self, entry: Entry) -> Span:
        """The trace of a reconcile, linked to those of the events that caused it."""
        return TRACER.span(
            f"reconcile {self.definition.name}",
            links=[cause.link for cause in entry.causes],
            attributes={"object": "/".join(entry.key), "failures": entry.failures},
        )

    def _describe(self, entry: Entry | None) -> str:
        name, kind = self.definition.name, self.definition.kind.kind
        place = "/".join(part for part in entry.key if part) if entry else "nothing"
        return f"reconciler {name} of {kind} {place}"

    def _later(self, queue: WorkQueue, key: Key) -> None:
        resync = self.definition.resync or 0.0
        pause = resync * (0.9 + 0.2 * self._random.random())
        due = asyncio.get_running_loop().time() + pause
        queue.add(key, due=due, priority=RESYNC, cause=LOOK_AGAIN)


def _cancelled() -> bool:
    """Whether somebody asked this very task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
