"""The trainer: takes samples, learns, judges what it learned, and keeps what is good.

It is synchronous, and one caller at a time has it; :mod:`.intake` sees to that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random
from typing import Final

import msgspec
import numpy as np

from trimtab.api.times import rfc3339
from trimtab.operators.vmafx.training import models
from trimtab.operators.vmafx.training.candidates import candidate, compared, written
from trimtab.operators.vmafx.training.checkpoints import Record, Shelf, find
from trimtab.operators.vmafx.training.holdout import HeldOut
from trimtab.operators.vmafx.training.judging import Figures, Verdict
from trimtab.operators.vmafx.training.learning import Hyper, Learner, Rows
from trimtab.operators.vmafx.training.models import Model
from trimtab.operators.vmafx.training.network import Array, rounded
from trimtab.operators.vmafx.training.packing import pack, unpack
from trimtab.operators.vmafx.training.problems import (
    Diverged,
    StateProblem,
    TrainingError,
)
from trimtab.operators.vmafx.training.samples import Ack, Sample
from trimtab.operators.vmafx.training.state import Meta, Snapshot, Store
from trimtab.operators.vmafx.training.status import (
    History,
    Judged,
    Losses,
    Phase,
    TrainerStatus,
    gate_of,
)

_LOG: Final = 5_000
"""Samples in the log, after which there is a snapshot."""
_AGAIN: Final = 30.0
"""Seconds until what the disk refused is tried again."""
_GATES: Final = 100

logger = logging.getLogger("trimtab.operators.vmafx.training")


class TrainerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """When a model is judged: both have to have passed since the last time."""

    interval: float = 600.0
    samples: int = 1000
    hyper: Hyper = Hyper()


class Trainer:
    """One model that learns.

    Flow: ``begin`` once, then ``accept`` and the rest in any order; each is told what
    time it is by the loop's clock.

    Guarantees: a sample whose acknowledgement was returned is never lost, and what was
    learned is the same as if nothing had been killed. Only a model that passed the gate
    is ever put where models are kept. After a judgement that failed, the weights and
    their average are the last good ones, and all samples that came since are forgotten.

    Errors: ``begin`` raises :class:`StateProblem`; ``accept`` raises ``OSError`` when
    the samples could not be written down, and then they were not taken.
    """

    def __init__(
        self,
        base: Model,
        *,
        store: Store,
        shelf: Shelf,
        options: TrainerOptions,
        random: Random,
        now: Callable[[], datetime],
    ) -> None:
        self.base = base
        self._store = store
        self._shelf = shelf
        self._options = options
        self._random = random
        self._now = now
        start = rounded(base.vector)
        self._learner = Learner(base.network, start, hyper=options.hyper, random=random)
        self._held = HeldOut(base.network.inputs)
        self._losses = Losses()
        self._weights = start
        """Those of the last good model."""
        self._known = Meta(base=base.sha256)
        """What is not in the parts above, as of now."""
        self._due = 0.0
        self._problem = ""

    @property
    def width(self) -> int:
        """How many features a sample has."""
        return self.base.network.inputs

    def begin(self, *, at: float) -> None:
        """Know again what was learned before, if something was."""
        snapshot, samples = self._store.read()
        if snapshot is not None:
            self._restore(snapshot)
        for each in samples:
            self._take(each)
        self._due = at + self._options.interval
        try:
            self._adopt()
        except OSError as error:
            raise StateProblem(f"Models cannot be kept: {error}.") from error

    def accept(self, samples: Sequence[Sample], *, at: float) -> list[Ack]:
        """Take samples, learn what is due, and judge if it is time; their answers."""
        self._mend()
        try:
            self._store.append(samples)
        except OSError as error:
            self._trouble(error, at=at)
            raise
        acks = [self._take(each) for each in samples]
        if self._store.logged >= _LOG:
            self._save(at=at)
        before = self._known.newest
        self.tick(at=at)
        if acks and self._known.newest > before:
            name = self._known.good.name
            acks[-1] = msgspec.structs.replace(acks[-1], checkpoint=name)
        return acks

    def tick(self, *, at: float) -> None:
        """Judge if it is time; try again what the disk refused."""
        if self._problem and at >= self._due:
            self._save(at=at)
        if self._is_due(at):
            self._judge(at=at)

    def wait(self, *, at: float) -> float | None:
        """Seconds until ``tick`` may have something to do; None if only samples can."""
        if self._problem or self._is_ripe():
            return max(0.0, self._due - at)
        return None

    def pause(self, *, at: float) -> None:
        """Learn no more; samples are taken still, and wait."""
        self._know(paused=True)
        self._save(at=at)

    def resume(self, *, at: float) -> None:
        """Learn again, from what waits first."""
        self._know(paused=False)
        self._learn()
        self._save(at=at)

    def roll_back(self, version: str, *, at: float) -> None:
        """Go on from a version, and forget what came after it.

        Errors: :class:`UnknownVersion`; :class:`StateProblem` for one that is gone;
        ``OSError`` for what the disk refuses. Then nothing has changed.
        """
        self._adopt()
        record = find(version, good=self._known.good, history=self._known.history)
        weights = self._read(record)
        self._shelf.point(record.version)
        self._weights = weights
        self._know(good=record)
        self._back()
        self._save(at=at)

    def stop(self, *, at: float) -> None:
        """Write down what is known, so that the next start is quick."""
        self._save(at=at)

    def status(self) -> TrainerStatus:
        """How it is."""
        known = self._known
        return TrainerStatus(
            phase=self._phase,
            current_samples=known.samples,
            last_checkpoint_time=known.good.time,
            model_version=known.good.name,
            loss=known.loss,
            steps=self._learner.steps,
            gate=gate_of(known.gate) if known.gate else None,
            message=self._problem or self._message(),
            features=self.base.names,
            rollbacks=known.rollbacks,
        )

    @property
    def _phase(self) -> Phase:
        if self._problem:
            return "failed"
        return "paused" if self._known.paused else "running"

    def history(self) -> History:
        """What there is to draw."""
        gates = (Judged(step=step, gate=gate_of(it)) for step, it in self._known.gates)
        return History(losses=tuple(self._losses.points), gates=tuple(gates))

    def _message(self) -> str:
        known = self._known
        if known.paused:
            return f"Paused: {self._learner.waiting} samples wait to be learned from."
        missing = self._options.samples - (known.samples - known.judged)
        if missing > 0:
            return f"{missing} more samples until the model is judged."
        if not self._held.enough:
            return "Too few samples are held out yet to judge the model."
        return "The model is judged when its time has come."

    def _take(self, sample: Sample) -> Ack:
        seen = self._known.samples
        self._know(samples=seen + 1)
        features = np.array(sample.features, dtype=np.float32)
        if self._held.takes(sample.job_id, seen=seen):
            self._held.add(features, sample.true_score, seen + 1)
            losses, error = list[float](), ""
        else:
            self._learner.feed(features, sample.true_score, seen + 1)
            losses, error = self._learn()
        return Ack(
            ok=True,
            job_id=sample.job_id,
            step=self._learner.steps,
            trained=bool(losses),
            loss=losses[-1] if losses else None,
            training_error=error,
        )

    def _learn(self) -> tuple[list[float], str]:
        """The losses of the steps that are due, and what went wrong."""
        if self._known.paused:
            return [], ""
        try:
            losses = self._learner.learn()
        except Diverged as error:
            self._back()
            return [], str(error)
        for number, loss in enumerate(losses, self._learner.steps - len(losses) + 1):
            self._losses.add(number, loss)
        if losses:
            self._know(loss=losses[-1])
        return losses, ""

    def _back(self) -> None:
        """The last good weights again, and nothing of what came since."""
        good = self._known.good
        self._learner.reset(self._weights, number=good.samples)
        self._held.drop_after(good.samples)
        self._know(rollbacks=self._known.rollbacks + 1)
        name = good.name or "the base"
        logger.warning("The model is %s again; what came since is forgotten.", name)

    def _is_ripe(self) -> bool:
        """Whether there is something to judge, but for the time."""
        known = self._known
        enough = known.samples - known.judged >= self._options.samples
        return enough and self._held.enough and not known.paused

    def _is_due(self, at: float) -> bool:
        return at >= self._due and self._is_ripe() and not self._problem

    def _judge(self, *, at: float) -> None:
        self._due = at + self._options.interval
        rows = self._held.jury(self._scored)
        try:
            version, samples = self._shelf.next, self._known.samples
            model = candidate(
                self.base, self._learner, version=version, samples=samples
            )
            content = written(model, rows)
            verdict = self._verdict(rows)
            if verdict.outcome == "passed":
                self._publish(content, version)
        except (TrainingError, OSError) as error:
            self._trouble(error, at=at)
            return
        if verdict.outcome == "failed":
            self._back()
        logger.info("The gate: %s, %s. %s", *_told(verdict))
        gates = (*self._known.gates, (self._learner.steps, verdict))[-_GATES:]
        self._know(gate=verdict, gates=gates, judged=self._known.samples)
        self._save(at=at)

    def _verdict(self, rows: Rows) -> Verdict:
        doubtful = self._held.doubtful(
            self._learner.replay, self._scored, since=self._known.good.samples
        )
        return compared(
            self.base, self._learner, rows, good=self._weights, doubtful=doubtful
        )

    def _publish(self, content: bytes, version: int) -> None:
        now, samples = rfc3339(self._now()), self._known.samples
        record = Record(version=version, time=now, samples=samples)
        kept = self._shelf.publish(content, record)
        self._settle(kept, rounded(self._learner.shadow))

    def _scored(self, features: Array) -> Array:
        """How the last good model scores."""
        return self.base.network.scores(self._weights, features)

    def _settle(self, record: Record, weights: Array) -> None:
        """A model is the good one from now on."""
        self._held.settle(self._held.jury(self._scored))
        self._weights = weights
        history = (*self._known.history, record)[-_GATES:]
        self._know(good=record, newest=record.version, history=history)
        self._know(judged=record.samples)
        logger.info("%s was kept, after %d samples.", record.name, record.samples)

    def _adopt(self) -> None:
        """Take up a model that was written down, if something ended right then."""
        record = self._shelf.finish()
        if record.version > self._known.newest:
            self._settle(record, self._read(record))

    def _read(self, record: Record) -> Array:
        if not record.version:
            return rounded(self.base.vector)
        found = models.parse(self._shelf.read(record.version), name=record.name)
        if found.network.size != self.base.network.size:
            raise StateProblem(f"{record.name} has another form than the base model.")
        return found.vector

    def _know(self, **changes: object) -> None:
        self._known = msgspec.structs.replace(self._known, **changes)

    def _mend(self) -> None:
        """Samples cannot be written down before a save has succeeded."""
        if self._store.unsure:
            self._store.save(self._snapshot())

    def _save(self, *, at: float) -> None:
        try:
            self._adopt()
            self._store.save(self._snapshot())
        except (TrainingError, OSError) as error:
            self._trouble(error, at=at)
        else:
            self._problem = ""

    def _trouble(self, error: Exception, *, at: float) -> None:
        seconds = min(_AGAIN, max(self._options.interval, 0.1))
        self._due = at + seconds
        why = str(error)
        if isinstance(error, OSError):
            why = f"The state cannot be written: {error.strerror or error}."
        self._problem = why
        logger.error("%s It is tried again in %.1f s.", why, seconds)

    def _snapshot(self) -> Snapshot:
        return pack(
            self._known,
            self._learner,
            self._held,
            weights=self._weights,
            losses=self._losses,
            random=self._random,
        )

    def _restore(self, snapshot: Snapshot) -> None:
        meta = snapshot.meta
        if meta.base != self.base.sha256:
            raise StateProblem(
                f"{self._store.folder} has what was learned from another base model: "
                "name that one, or another folder."
            )
        unpack(snapshot, self._learner, self._held, random=self._random)
        self._weights = snapshot.arrays["good"]
        self._losses.restore(meta.losses)
        self._known = meta


def _told(verdict: Verdict) -> tuple[str, Figures, str]:
    return verdict.outcome, verdict.candidate, verdict.reason
