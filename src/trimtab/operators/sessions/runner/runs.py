"""Runs: what the agent does in each thread, as events that anybody may follow.

A run goes on whether or not somebody listens. Of a thread the last events are kept, so
that who comes late, or comes back, sees what led to the present.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.operators.sessions.runner import agent
from trimtab.operators.sessions.runner.agent import Desk, Failed, Text, Tool

KEPT: Final = 1000
"""Events of a thread."""
THREADS: Final = 64
"""The one that was quiet for longest makes room for another."""

Event: TypeAlias = dict[str, Any]
logger = logging.getLogger("trimtab.operators.sessions.runner")


class Busy(TrimtabError):
    """The thread has a run already."""


class Thread:
    """The events of one conversation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.task: asyncio.Task[str] | None = None
        self.run = ""
        """The run that is under way."""
        self._events: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        self._count = 0
        self._waiters: list[asyncio.Future[None]] = []

    def tell(self, event: Event) -> None:
        self._count += 1
        self._events.append((self._count, event))
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def follow(
        self, *, since: int = 0, run: str = ""
    ) -> AsyncIterator[tuple[int, Event]]:
        """The events after one, and those to come; up to the end of a run, if given."""
        while True:
            for number, event in [each for each in self._events if each[0] > since]:
                since = number
                yield number, event
                if run and event.get("runId") == run and _is_end(event):
                    return
            if self._count > since:
                continue
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    @property
    def count(self) -> int:
        return self._count


class Runs:
    """All threads of a session; see the module's first lines."""

    def __init__(self, desk: Desk, group: asyncio.TaskGroup, *, random: Random) -> None:
        self._desk = desk
        self._group: asyncio.TaskGroup = group
        self._random = random
        self._threads: dict[str, Thread] = {}

    @property
    def busy(self) -> list[Thread]:
        """Threads with a run that is under way."""
        return [each for each in self._threads.values() if each.task is not None]

    def start(self, prompt: str, *, thread: str = "", run: str = "") -> Thread:
        """Begin a run; it is in the thread's events.

        Errors: :class:`Busy`.
        """
        found = self.thread(thread or self._unique())
        if found.task is not None:
            raise Busy(f"The thread {found.name[:80]} has a run already.")
        found.run = run or self._unique()
        ids: Event = {"threadId": found.name, "runId": found.run}
        found.tell({"type": "RUN_STARTED", **ids})
        found.task = self._group.create_task(self._performed(found, prompt))
        # Not in the task: one that is cancelled before it begins does nothing at all.
        found.task.add_done_callback(lambda task: _end(found, ids, task))
        return found

    def thread(self, name: str) -> Thread:
        """A thread, new if need be."""
        found = self._threads.pop(name, None) or Thread(name)
        self._threads[name] = found
        quiet = [each for each in self._threads.values() if each.task is None]
        for each in quiet[: max(0, len(self._threads) - THREADS)]:
            if each is not found:
                del self._threads[each.name]
        return found

    def interrupt(self, thread: str = "") -> int:
        """Break off the run of a thread, or of all; how many there were."""
        chosen = [each for each in self.busy if thread in ("", each.name)]
        for each in chosen:
            assert each.task is not None
            each.task.cancel()
        return len(chosen)

    async def _performed(self, thread: Thread, prompt: str) -> str:
        """Why the run failed; empty if it did not."""
        try:
            async for done in agent.perform(prompt, self._desk):
                for event in self._events(done):
                    thread.tell(event)
                await asyncio.sleep(0)
        except Failed as error:
            return str(error)
        except Exception as error:
            logger.exception("A run of the agent failed.")
            return f"The agent failed ({type(error).__name__})."
        return ""

    def _events(self, done: Text | Tool) -> list[Event]:
        if isinstance(done, Text):
            name = {"messageId": self._unique()}
            text, size = done.text, agent.PIECE
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            return [
                {"type": "TEXT_MESSAGE_START", "role": "assistant", **name},
                *(
                    {"type": "TEXT_MESSAGE_CONTENT", "delta": piece, **name}
                    for piece in pieces
                ),
                {"type": "TEXT_MESSAGE_END", **name},
            ]
        call = {"toolCallId": self._unique()}
        return [
            {"type": "TOOL_CALL_START", "toolCallName": done.name, **call},
            {"type": "TOOL_CALL_ARGS", "delta": done.argument, **call},
            {"type": "TOOL_CALL_END", **call},
            {
                "type": "TOOL_CALL_RESULT",
                "messageId": self._unique(),
                "content": done.result,
                "role": "tool",
                **call,
            },
        ]

    def _unique(self) -> str:
        return f"{self._random.getrandbits(64):016x}"


def _end(thread: Thread, ids: Event, task: asyncio.Task[str]) -> None:
    thread.task, thread.run = None, ""
    failure = "interrupted" if task.cancelled() else task.result()
    if failure:
        thread.tell({"type": "RUN_ERROR", "message": failure, **ids})
    else:
        thread.tell({"type": "RUN_FINISHED", **ids})


def _is_end(event: Event) -> bool:
    return event["type"] in ("RUN_FINISHED", "RUN_ERROR")


def server_sent(number: int, event: Event) -> bytes:
    """An event as a stream of server-sent events has it."""
    return b"id: %d\ndata: %b\n\n" % (number, msgspec.json.encode(event))
