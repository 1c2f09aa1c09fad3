"""The intake: whatever is asked of a trainer waits here, and is done by one task.

Samples that wait together are written down together: one flush to the disk is shared
by all who wait for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from trimtab.operators.vmafx.training.problems import BadSample, TrainingError
from trimtab.operators.vmafx.training.samples import Ack, Sample, read, refused
from trimtab.operators.vmafx.training.trainer import Trainer

T = TypeVar("T")

ROOM: Final = 4_096
"""Samples that may wait; more are sent back."""
_ACTIONS: Final = 64


class Busy(TrainingError):
    """Too much is waiting, or the trainer ends: it is to be asked again."""


class _Group(NamedTuple):
    """Samples that came together, and who waits for their answers."""

    samples: list[Sample]
    done: asyncio.Future[list[Ack]]


class _Action(NamedTuple):
    """Something else that is asked for."""

    call: Callable[[float], Any]
    done: asyncio.Future[Any]


class Intake:
    """The only one who calls a trainer, in a thread, one thing after the other.

    Guarantees: answers are given when what they say is on the disk. What was taken in
    before :meth:`close` is done before :meth:`run` ends.

    Errors: what a trainer should never raise ends :meth:`run`, and with it the program:
    the next start begins from the disk.
    """

    def __init__(self, trainer: Trainer, *, room: int = ROOM) -> None:
        self.trainer = trainer
        self.status = trainer.status()
        """How it was after the last thing that was done."""
        self._room = room
        self._groups: deque[_Group] = deque()
        self._actions: deque[_Action] = deque()
        self._waiting = 0
        self._wake = asyncio.Event()
        self._closed = False

    async def offer(self, lines: Sequence[bytes]) -> list[Ack]:
        """Have samples learned from; the answer to each line, in order."""
        found = [self._read(line) for line in lines]
        good = [each for each in found if isinstance(each, Sample)]
        kept = iter(await self._offered(good))
        return [each if isinstance(each, Ack) else next(kept) for each in found]

    async def do(self, call: Callable[[float], T]) -> T:
        """Call the trainer, after what came before; the call is told the time.

        Errors: what the call raises; :class:`Busy` if too many wait.
        """
        if self._closed or len(self._actions) >= _ACTIONS:
            raise Busy("The trainer has no time for this now: ask again.")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._actions.append(_Action(call, done))
        self._wake.set()
        return await done

    def close(self) -> None:
        """Take in nothing more."""
        self._closed = True
        self._wake.set()

    async def run(self) -> None:
        """Do what is asked for until it is closed, and write down what is known."""
        clock = asyncio.get_running_loop().time
        while self._groups or self._actions or not self._closed:
            if not (self._groups or self._actions):
                await self._asked(self.trainer.wait(at=clock()))
            groups, self._groups = self._groups, deque()
            actions, self._actions = self._actions, deque()
            self._waiting = 0
            results = await asyncio.to_thread(self._work, groups, actions, clock())
            self.status = self.trainer.status()
            asked: list[_Group | _Action] = [*groups, *actions]
            for each, result in zip(asked, results, strict=True):
                _answer(each.done, result)
        await asyncio.to_thread(self.trainer.stop, at=clock())

    async def _asked(self, seconds: float | None) -> None:
        """Wait until there is something to do, or the trainer has something itself."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _work(
        self, groups: Iterable[_Group], actions: Iterable[_Action], at: float
    ) -> list[Any]:
        """Call the trainer, in a thread; what came of each, or what was raised."""
        results = self._accepted([each.samples for each in groups], at)
        self.trainer.tick(at=at)
        for action in actions:
            try:
                results.append(action.call(at))
            except (TrainingError, OSError) as error:
                results.append(error)
        return results

    def _accepted(self, groups: list[list[Sample]], at: float) -> list[Any]:
        samples = [sample for group in groups for sample in group]
        if not samples:
            return []
        try:
            acks: Iterator[Ack] = iter(self.trainer.accept(samples, at=at))
        except OSError as error:
            reason = error.strerror or "the disk refused"
            why = f"The sample could not be kept ({reason}): send it again."
            acks = (refused(why, job_id=s.job_id, retryable=True) for s in samples)
        return [list(islice(acks, len(group))) for group in groups]

    def _read(self, line: bytes) -> Sample | Ack:
        try:
            return read(line, width=self.trainer.width)
        except BadSample as error:
            return refused(str(error))

    async def _offered(self, samples: list[Sample]) -> list[Ack]:
        if not samples:
            return []
        if self._closed or self._waiting + len(samples) > self._room:
            why = "The trainer has too much to do: send it again."
            return [
                refused(why, job_id=each.job_id, retryable=True) for each in samples
            ]
        done: asyncio.Future[list[Ack]] = asyncio.get_running_loop().create_future()
        self._groups.append(_Group(samples, done))
        self._waiting += len(samples)
        self._wake.set()
        return await done


def _answer(done: asyncio.Future[Any], result: Any) -> None:
    if done.done():  # whoever asked has gone
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)
