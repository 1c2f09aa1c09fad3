"""Laws of the state: what was acknowledged is there, and one at a time has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.operators.vmafx.training.school import samples
from trimtab.operators.vmafx.training.problems import StateProblem
from trimtab.operators.vmafx.training.samples import Sample
from trimtab.operators.vmafx.training.state import Meta, Snapshot, Store

SNAPSHOT = Snapshot(Meta(base="b", samples=3), {"live": np.arange(4.0)})
SOME = samples(6, seed=1)


def log(path: Path) -> Path:
    (found,) = path.glob("samples-*.log")
    return found


def read(path: Path) -> list[Sample]:
    with Store(path) as store:
        return store.read()[1]


def test_what_was_appended_is_read_and_a_snapshot_takes_its_place(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        assert store.read() == (None, [])
        store.append(SOME[:2])
        store.append(SOME[2:3])
    with Store(tmp_path) as store:
        assert store.read() == (None, SOME[:3])
        store.save(SNAPSHOT)
        assert store.logged == 0
        store.append(SOME[3:])
    with Store(tmp_path) as store:
        snapshot, after = store.read()
    assert after == SOME[3:]
    assert snapshot is not None
    assert snapshot.meta.samples == 3
    assert list(snapshot.arrays["live"]) == [0.0, 1.0, 2.0, 3.0]
    assert log(tmp_path).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "snapshot.npz").stat().st_mode & 0o777 == 0o600


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_log_that_ends_anywhere_has_all_samples_before(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log")
    with Store(path) as store:
        store.read()
        store.append(SOME)
    content = log(path).read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    cut = data.draw(st.integers(0, len(content)))
    rest = data.draw(st.binary(max_size=4))
    log(path).write_bytes(content[:cut] + rest)
    whole = sum(end <= cut for end in ends)
    # What was left behind the cut could be the very bytes that were there.
    expected = [whole, whole + 1] if content[cut:].startswith(rest[:1]) else [whole]
    found = read(path)
    assert found == SOME[: len(found)]
    assert len(found) in expected
    with Store(path) as store:
        store.read()
        store.append(SOME[:1])
    assert read(path) == [*found, SOME[0]]


def test_a_flipped_bit_ends_the_log_there(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.read()
        store.append(SOME[:2])
    content = bytearray(log(tmp_path).read_bytes())
    content[content.index(b"\n") + 30] ^= 1
    log(tmp_path).write_bytes(content)
    assert read(tmp_path) == SOME[:1]


def test_a_failed_append_or_save_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with Store(tmp_path) as store:
        store.read()
        store.append(SOME[:1])
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            store.append(SOME[1:2])
        with pytest.raises(OSError, match="No space"):
            store.save(SNAPSHOT)
        assert store.unsure
        monkeypatch.undo()
        store.save(SNAPSHOT)
        store.append(SOME[2:3])
    with Store(tmp_path) as store:
        snapshot, after = store.read()
    assert snapshot is not None
    assert after == SOME[2:3]


def test_one_at_a_time_has_the_folder(tmp_path: Path) -> None:
    with Store(tmp_path):
        with pytest.raises(StateProblem, match="Another trainer"):
            with Store(tmp_path):
                pass
    with Store(tmp_path) as store:
        assert store.read() == (None, [])


def test_a_snapshot_that_cannot_be_read_is_told_and_stays(tmp_path: Path) -> None:
    (tmp_path / "snapshot.npz").write_bytes(b"PK\x03\x04 nothing")
    with Store(tmp_path) as store, pytest.raises(StateProblem, match="cannot be read"):
        store.read()
    assert (tmp_path / "snapshot.npz").exists()
