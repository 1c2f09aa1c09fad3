"""Feedback: a node sends what it measured to the models that learn from it.

It never holds up scoring: what does not fit into a queue, or comes to nobody, is
dropped and counted. A sample is one frame: its features, and its score.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from trimtab.client.calling import Caller, NoReply
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.training.calling import place_of
from trimtab.operators.vmafx.training.tokens import bearer
from trimtab.operators.vmafx.wire import controller_pb2 as wire

QUEUE: Final = 1000
"""Samples that wait for one trainer."""
FRAMES: Final = 64
"""Frames of one job that are sent, evenly over its length."""
BATCH: Final = 64
DIAL: Final = 5.0
WITHIN: Final = 10.0
"""Seconds for one batch: a trainer has it on its disk before it answers."""
PAUSE: Final = 10.0
"""Seconds that a trainer is left alone which did not answer."""
TRIES: Final = 60
"""Batches in a row without an answer after which what waits is given up."""
TRAINERS: Final = 32
_MOST: Final = 1 << 20

log = logging.getLogger(__name__)


class Sample(msgspec.Struct, frozen=True):
    """One frame, as a trainer takes it."""

    job_id: str
    features: list[float]
    true_score: float


class Ack(msgspec.Struct):
    """What a trainer says to one sample."""

    ok: bool = False
    retryable: bool = False
    error: str = ""


class FeedbackStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all samples so far."""

    taken: int
    """A trainer has them for good."""
    refused: int
    """A trainer found them wrong."""
    dropped: int
    """They did not fit into a queue, or nobody answered for too long."""
    waiting: int


class _Line:
    """What waits for one trainer."""

    def __init__(self) -> None:
        self.address = ""
        self.token = ""
        self.samples: deque[Sample] = deque()
        self.not_before = 0.0
        self.failures = 0


class Feedback:
    """Queues of samples, and who sends them: ``run`` in a task group.

    Guarantees: :meth:`offer` never waits. A sample is sent until a trainer has it, or
    finds it wrong, or is silent for too long; so it may come twice, and never half.
    """

    def __init__(self, caller: Caller, *, pause: float = PAUSE) -> None:
        self._caller = caller
        self._pause = pause
        self._lines: dict[str, _Line] = {}
        self._stirred = asyncio.Event()
        self._idle = asyncio.Event()
        self._taken = self._refused = self._dropped = 0

    def statistics(self) -> FeedbackStatistics:
        return FeedbackStatistics(
            taken=self._taken,
            refused=self._refused,
            dropped=self._dropped,
            waiting=sum(len(each.samples) for each in self._lines.values()),
        )

    def offer(self, trainers: Iterable[wire.Trainer], *, job: str, found: Score) -> int:
        """Queue samples of a score for each trainer; how many."""
        return sum(self._offer(each, job, found) for each in trainers)

    def _offer(self, trainer: wire.Trainer, job: str, found: Score) -> int:
        line = self._line(trainer.name)
        line.address, line.token = trainer.address, trainer.token
        made = list(samples(found, job=job, features=trainer.features))
        kept = made[: max(0, QUEUE - len(line.samples))]
        line.samples.extend(kept)
        if len(kept) < len(made):
            self._drop(trainer.name, len(made) - len(kept))
        self._idle.clear()
        self._stirred.set()
        return len(kept)

    def _drop(self, name: str, count: int) -> None:
        self._dropped += count
        log.warning("%d samples for the trainer %s were dropped.", count, name)

    def _line(self, name: str) -> _Line:
        found = self._lines.pop(name, None) or _Line()
        if len(self._lines) >= TRAINERS:  # who was not heard of for the longest time
            oldest = next(iter(self._lines))
            self._drop(oldest, len(self._lines.pop(oldest).samples))
        self._lines[name] = found
        return found

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._stirred.clear()
            for name, line in tuple(self._lines.items()):
                if line.samples and line.not_before <= clock():
                    await self._send(name, line)
            waiting = [each for each in self._lines.values() if each.samples]
            if not waiting:
                self._idle.set()
            soonest = min((each.not_before for each in waiting), default=None)
            try:
                async with asyncio.timeout_at(soonest):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def flush(self, *, within: float) -> None:
        """Wait until nothing is left to send, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._idle.wait()

    async def _send(self, name: str, line: _Line) -> None:
        """Send one batch; what was not taken is first in the queue again."""
        batch = [line.samples.popleft() for _ in range(min(BATCH, len(line.samples)))]
        left = batch
        try:
            left = self._counted(batch, await self._acknowledged(line, batch))
        except (NoReply, ValueError) as error:  # an address may be none at all
            log.info("The trainer %s takes no samples: %s", name, error)
        finally:
            line.samples.extendleft(reversed(left))
        self._settle(name, line, moved=len(left) < len(batch))

    async def _acknowledged(self, line: _Line, batch: Sequence[Sample]) -> list[Ack]:
        encode = msgspec.json.Encoder().encode
        reply = await self._caller.call(
            place_of(line.address),
            "POST",
            "/samples",
            headers=(("Content-Type", "application/x-ndjson"), *bearer(line.token)),
            body=b"".join(encode(each) + b"\n" for each in batch),
            dial=DIAL,
            within=WITHIN,
            limit=_MOST,
        )
        if reply.status == 401:  # the next job may bring another
            raise NoReply("it does not know the token that it was shown", sent=True)
        if reply.status != 200:
            raise NoReply(f"it answered {reply.status}", sent=True)
        return acks(reply.body)

    def _counted(self, batch: Sequence[Sample], said: list[Ack]) -> list[Sample]:
        """What of a batch is to be sent again."""
        left: list[Sample] = []
        for sample, ack in zip(batch, said, strict=False):
            if ack.ok:
                self._taken += 1
            elif ack.retryable:
                left.append(sample)
            else:
                self._refused += 1
        return [*left, *batch[len(said) :]]

    def _settle(self, name: str, line: _Line, *, moved: bool) -> None:
        """Leave a trainer alone that took nothing, and give up one that is gone."""
        line.failures = 0 if moved else line.failures + 1
        if moved:
            line.not_before = 0.0
            return
        line.not_before = asyncio.get_running_loop().time() + self._pause
        if line.failures >= TRIES:
            self._drop(name, len(line.samples))
            line.samples.clear()
            line.failures = 0


def samples(
    found: Score, *, job: str, features: Sequence[str], most: int = FRAMES
) -> Iterator[Sample]:
    """Frames of a score, evenly over its length; none where a feature is missing."""
    columns = [found.series.get(name) for name in features]
    known = [column for column in columns if column is not None]
    if not features or len(known) < len(columns):
        return
    frames = len(found.frames)
    count = min(most, frames)
    for at in (index * frames // count for index in range(count)):
        yield Sample(job, [column[at] for column in known], found.frames[at])


def acks(body: bytes) -> list[Ack]:
    """The lines of an answer; what cannot be read ends them."""
    found: list[Ack] = []
    for line in body.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=Ack))
        except msgspec.DecodeError:
            break
    return found
