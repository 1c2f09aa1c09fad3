"""Laws of the trainer: what it keeps is better, and what it was told is not lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.operators.vmafx.training.school import (
    NAMES,
    QUICK,
    base,
    poisoned,
    rows,
    samples,
    trainer,
)
from trimtab.operators.vmafx.training import durable, models
from trimtab.operators.vmafx.training.judging import Figures, figures
from trimtab.operators.vmafx.training.learning import Hyper
from trimtab.operators.vmafx.training.outputs import Folder
from trimtab.operators.vmafx.training.problems import StateProblem, UnknownVersion
from trimtab.operators.vmafx.training.trainer import Trainer


def told(model: models.Model) -> Figures:
    """How well a model tells scores that nobody in any test learns from."""
    features, truth = rows(samples(300, seed=999, name="unseen"))
    return figures(model.network.scores(model.vector, features), truth)


def mind(made: Trainer) -> bytes:
    """Everything that a trainer knows, but for the number of its log."""
    found = made._snapshot()
    parts = [each.tobytes() for _, each in sorted(found.arrays.items())]
    meta = msgspec.structs.replace(found.meta, log=0)
    return repr(meta).encode() + b"".join(parts)


def test_a_kept_model_is_better_than_the_base_and_says_where_it_is_from(
    tmp_path: Path,
) -> None:
    with trainer(tmp_path, minimum=800) as made:
        acks = made.accept(samples(800, seed=2), at=0.0)
        status = made.status()
    assert all(ack.ok for ack in acks)
    assert acks[-1].checkpoint == "v000001"
    assert sum(bool(ack.trained) for ack in acks) == status.steps > 30
    assert (status.phase, status.current_samples) == ("running", 800)
    assert status.model_version == "v000001"
    assert status.last_checkpoint_time == "2026-01-02T12:00:00Z"
    assert status.features == NAMES
    kept = models.load(tmp_path / "model_v000001.onnx")
    before, after = told(base()), told(kept)
    assert after.rmse < before.rmse
    assert after.plcc > before.plcc
    assert after.srocc > before.srocc
    gate = status.gate
    assert gate is not None
    assert gate.passed
    assert gate.rmse < gate.base.rmse
    assert gate.held_out >= 32
    assert kept.properties["vmafx.base"] == base().sha256
    assert kept.properties["vmafx.version"] == "v000001"
    assert kept.properties["vmafx.origin"] == "trained"


def test_a_model_is_judged_only_when_time_and_samples_have_passed(
    tmp_path: Path,
) -> None:
    with trainer(tmp_path, interval=600.0, minimum=500) as made:
        made.accept(samples(499, seed=2), at=10_000.0)
        assert made.status().gate is None
        assert made.wait(at=10_000.0) is None
        assert "1 more samples" in made.status().message
    with trainer(tmp_path, interval=600.0, minimum=500) as made:
        made.accept(samples(1, seed=3), at=599.0)
        assert made.status().gate is None
        assert made.wait(at=599.0) == 1.0
        made.tick(at=600.0)
        assert made.status().gate is not None
        assert made.wait(at=600.0) is None


def test_a_poisoned_batch_is_caught_and_everything_is_as_it_was(
    tmp_path: Path,
) -> None:
    with trainer(tmp_path, minimum=600) as made:
        made.accept(samples(600, seed=2), at=0.0)
        good = made.status()
        assert good.model_version == "v000001"
        held = made._held.settled.count
        acks = made.accept(poisoned(600, seed=3), at=1.0)
        status = made.status()
        assert all(ack.ok for ack in acks)
        assert status.gate is not None
        assert status.gate.outcome == "failed"
        assert not status.gate.passed
        assert "worse" in status.gate.reason or "spoils" in status.gate.reason
        assert (status.model_version, status.rollbacks) == ("v000001", 1)
        kept = models.load(tmp_path / "model_v000001.onnx").vector
        learner = made._learner
        assert (learner.live == kept).all()
        assert (learner.shadow == kept).all()
        assert not learner.velocity.any()
        assert learner.replay.all().numbers.max() <= 600
        assert (made._held.settled.count, made._held.fresh.count) == (held, 0)
        assert not (tmp_path / "model_v000002.onnx").exists()
        made.accept(samples(600, seed=4), at=2.0)
        assert made.status().model_version == "v000002"
        assert made._held.settled.count > held


def test_a_poisoned_batch_is_caught_before_it_shows_in_the_weights(
    tmp_path: Path,
) -> None:
    with trainer(tmp_path, minimum=1000, hyper=Hyper()) as made:
        made.accept(samples(1000, seed=2), at=0.0)
        assert made.status().model_version == "v000001"
        made.accept(poisoned(1000, seed=3), at=1.0)
        status = made.status()
        assert status.gate is not None
        assert status.gate.outcome == "failed"
        assert "implausible" in status.gate.reason
        # What shows in the figures is no more than chance.
        assert status.gate.rmse < 1.02 * status.gate.good.rmse
        assert (status.model_version, status.rollbacks) == ("v000001", 1)
        made.accept(samples(1000, seed=4), at=2.0)
        assert made.status().model_version == "v000002"


def test_an_untaught_model_waits_and_is_not_put_anywhere(tmp_path: Path) -> None:
    hyper = msgspec.structs.replace(QUICK, rate=1e-12)
    with trainer(tmp_path, minimum=400, hyper=hyper) as made:
        made.accept(samples(400, seed=2), at=0.0)
        status = made.status()
    assert status.gate is not None
    assert status.gate.outcome == "waiting"
    assert "no better than the base" in status.gate.reason
    assert (status.rollbacks, status.model_version) == (0, "")
    assert not list(tmp_path.glob("model*"))


@pytest.mark.parametrize("cut", [37, 350, 459])
def test_a_killed_trainer_knows_again_what_it_knew_to_the_last_bit(
    tmp_path: Path, cut: int
) -> None:
    # Judged in the middle, so that there is a model, a snapshot and a log.
    parts = [samples(350, seed=5), samples(110, seed=6)]
    with trainer(tmp_path / "whole", minimum=350) as made:
        for part in parts:
            made.accept(part, at=0.0)
        assert made.status().model_version == "v000001"
        expected = mind(made)
    before = [parts[0][:cut], parts[1][: max(0, cut - 350)]]
    with trainer(tmp_path / "killed", minimum=350) as made:
        for part in filter(None, before):
            made.accept(part, at=0.0)
    with trainer(tmp_path / "killed", minimum=350) as made:
        assert made.status().current_samples == cut
        for part, had in zip(parts, before, strict=True):
            if left := part[len(had) :]:
                made.accept(left, at=0.0)
        assert mind(made) == expected


def test_a_model_that_was_written_down_before_a_kill_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    real = durable.write

    def deadly(path: Path, content: bytes, **more: int) -> None:
        real(path, content, **more)
        if path.name == "version.json":
            raise Killed

    with trainer(tmp_path, minimum=600) as made:
        monkeypatch.setattr(durable, "write", deadly)
        with pytest.raises(Killed):
            made.accept(samples(600, seed=2), at=0.0)
        monkeypatch.undo()
    assert not (tmp_path / "model_v000001.onnx").exists()
    with trainer(tmp_path, minimum=600) as made:
        status = made.status()
        assert (status.model_version, status.current_samples) == ("v000001", 600)
        assert made._held.fresh.count == 0
        assert (tmp_path / "model_v000001.onnx").exists()


def test_a_pause_outlives_a_kill_and_what_came_meanwhile_is_learned_after(
    tmp_path: Path,
) -> None:
    with trainer(tmp_path) as made:
        made.pause(at=0.0)
        acks = made.accept(samples(300, seed=2), at=0.0)
        assert not any(ack.trained for ack in acks)
        assert made.status().gate is None
    with trainer(tmp_path) as made:
        assert (made.status().phase, made.status().steps) == ("paused", 0)
        made.resume(at=0.0)
        assert made.status().phase == "running"
        assert made.status().steps > 10


def test_one_can_go_back_to_any_version_and_numbers_go_on(tmp_path: Path) -> None:
    with trainer(tmp_path) as made:
        for number in range(3):
            made.accept(samples(600, seed=10 + number), at=0.0)
        assert made.status().model_version == "v000003"
        made.roll_back("v000001", at=0.0)
        assert made.status().model_version == "v000001"
        assert (tmp_path / "latest").read_text() == "model_v000001.onnx\n"
        assert made._learner.replay.all().numbers.max() <= 600
    with trainer(tmp_path) as made:
        assert made.status().model_version == "v000001"
        first = models.load(tmp_path / "model_v000001.onnx").vector
        assert (made._learner.shadow == first).all()
        made.accept(samples(600, seed=20), at=0.0)
        assert made.status().model_version == "v000004"
        made.roll_back("v000000", at=0.0)
        assert made.status().model_version == ""
        assert not (tmp_path / "latest").exists()
        assert (made._learner.live == base().vector.astype(np.float32)).all()
        for wrong in ("v000009", "latest", "v1x", "v" + "9" * 40):
            with pytest.raises(UnknownVersion, match="no version"):
                made.roll_back(wrong, at=0.0)
        (tmp_path / "model_v000002.onnx").unlink()
        with pytest.raises(StateProblem, match="gone"):
            made.roll_back("v2", at=0.0)


def test_what_the_disk_refuses_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = durable.write

    def full(path: Path, content: bytes, **more: int) -> None:
        if path.name.startswith("model_v"):
            raise OSError(28, "No space left on device")
        real(path, content, **more)

    with trainer(tmp_path, minimum=600, interval=0.0) as made:
        monkeypatch.setattr(durable, "write", full)
        acks = made.accept(samples(600, seed=2), at=0.0)
        assert all(ack.ok for ack in acks)
        status = made.status()
        assert status.phase == "failed"
        assert "No space left" in status.message
        assert made.wait(at=0.0) == 0.1
        monkeypatch.undo()
        made.tick(at=31.0)
        status = made.status()
        assert (status.phase, status.model_version) == ("running", "v000001")


def test_a_rollback_is_not_undone_by_a_model_that_had_to_wait_for_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    with trainer(tmp_path, minimum=600) as made:
        with monkeypatch.context() as patch:
            patch.setattr(Folder, "put", full)
            made.accept(samples(600, seed=2), at=0.0)
            assert made.status().phase == "failed"
            with pytest.raises(OSError, match="No space"):
                made.roll_back("v0", at=0.0)
        made.roll_back("v0", at=0.0)
        assert (made.status().phase, made.status().model_version) == ("running", "")
    with trainer(tmp_path, minimum=600) as made:
        assert made.status().model_version == ""
        made.accept(samples(600, seed=3), at=0.0)
        assert made.status().model_version == "v000002"
        assert sorted(each.name for each in tmp_path.glob("*.onnx")) == [
            "model_v000001.onnx",
            "model_v000002.onnx",
        ]


def test_samples_that_cannot_be_written_down_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trainer(tmp_path) as made:
        made.accept(samples(10, seed=2), at=0.0)

        def full(*arguments: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            made.accept(samples(5, seed=3), at=0.0)
        assert made.status().phase == "failed"
        assert made.status().current_samples == 10
        monkeypatch.undo()
        made.tick(at=31.0)
        assert made.status().phase == "running"
        made.accept(samples(5, seed=3), at=32.0)
    with trainer(tmp_path) as made:
        assert made.status().current_samples == 15


def test_what_was_learned_from_another_base_is_refused(tmp_path: Path) -> None:
    with trainer(tmp_path) as made:
        made.accept(samples(3, seed=2), at=0.0)
        made.stop(at=0.0)
    model = base()
    other = models.write(msgspec.structs.replace(model, vector=model.vector * 1.5))
    with pytest.raises(StateProblem, match="another base model"):
        with trainer(tmp_path, model=models.parse(other, name="other")):
            pass


def test_history_is_what_a_picture_needs_and_no_longer(tmp_path: Path) -> None:
    with trainer(tmp_path) as made:
        made.accept(samples(600, seed=2), at=0.0)
        history = made.history()
        assert len(history.losses) == made.status().steps
        assert [each.gate.outcome for each in history.gates] == ["passed"]
        for step in range(5000):
            made._losses.add(step, 1.0)
        assert len(made._losses.points) <= 1000


def test_a_copy_of_a_folder_is_a_trainer_of_its_own(tmp_path: Path) -> None:
    with trainer(tmp_path / "one") as made:
        made.accept(samples(100, seed=2), at=0.0)
        expected = mind(made)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with trainer(tmp_path / "two") as made:
        assert mind(made) == expected
