"""Scores are reused for the same bytes, and for nothing else; and no more than fit."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from trimtab.operators.vmafx import reuse as reusing
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.problems import ToolFailed
from trimtab.operators.vmafx.reuse import Reuse
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL, score
from trimtab.operators.vmafx.segments import Part, Segment
from trimtab.operators.vmafx.tools import Ffmpeg


def now() -> datetime:
    return datetime.now(UTC)


SCORE = Score(
    vmaf=90.0,
    features={"psnr": 40.0},
    frames=(89.0, 91.0),
    model="m",
    series={"psnr": array("d", (39.0, 41.0))},
    part=Part(first=1, count=2, total=9),
)


class Measuring:
    """A scorer that says how often it was asked."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.times = 0
        self._meanwhile = meanwhile

    async def __call__(
        self,
        reference: str,
        distorted: str,
        *,
        model: str,
        progress: Callable[[int, int | None], None],
        segment: Segment | None = None,
    ) -> Score:
        self.times += 1
        self._meanwhile()
        return SCORE


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("reference", "distorted"):
        (tmp_path / name).write_text(name)
    return tmp_path / "reference", tmp_path / "distorted"


async def asked(
    scorer: Scorer,
    pair: tuple[Path, Path],
    model: str = MODEL,
    segment: Segment | None = None,
) -> Score:
    return await scorer(
        *map(str, pair),
        model=model,
        progress=lambda done, expected: None,
        segment=segment,
    )


async def test_the_same_clips_cost_no_second_run_whatever_they_are_called(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"

    def by(tool: Ffmpeg) -> Scorer:
        async def measured(
            reference: str,
            distorted: str,
            *,
            model: str,
            progress: object,
            segment: Segment | None = None,
        ) -> Score:
            clips = (reference, distorted)
            return await score(*clips, ffmpeg=tool, model=model, segment=segment)

        return Reuse(kept, tool="a", now=now).scorer(measured)

    first = await asked(by(ffmpeg), (reference, distorted))
    copies = (tmp_path / "one.mp4", tmp_path / "two.mp4")
    shutil.copy(reference, copies[0])
    shutil.copy(distorted, copies[1])
    broken = by(replace(ffmpeg, path=str(tmp_path / "no-such-program")))
    again = await asked(broken, copies)
    assert again == replace(first, reused=True)
    with pytest.raises(ToolFailed, match="did not start"):
        await asked(broken, (copies[1], copies[0]))


async def test_anything_else_is_scored(pair: tuple[Path, Path]) -> None:
    kept, measuring = pair[0].parent / "kept", Measuring()
    reuse = Reuse(kept, tool="a", now=now)
    scorer = reuse.scorer(measuring)
    assert await asked(scorer, pair) == SCORE
    assert await asked(scorer, pair) == replace(SCORE, reused=True)
    assert (measuring.times, reuse.counts.hits) == (1, 1)
    await asked(scorer, pair, model="vmaf_4k_v0.6.1")
    await asked(scorer, pair, segment=Segment(0, 2))
    await asked(scorer, pair, segment=Segment(1, 2))
    await asked(scorer, (pair[1], pair[0]))
    await asked(Reuse(kept, tool="b", now=now).scorer(measuring), pair)
    before = pair[0].stat()
    pair[0].write_text("Reference")
    os.utime(pair[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    await asked(scorer, pair)
    assert measuring.times == 7
    assert (reuse.counts.hits, reuse.counts.misses) == (1, 6)


@pytest.mark.parametrize(("age", "times"), [(0.5, 2), (60.0, 1)])
async def test_what_a_file_contains_is_remembered_only_when_its_times_can_be_believed(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, age: float, times: int
) -> None:
    changed = round((now().timestamp() - age) * 1e9)

    def mark(file: int) -> tuple[int, int, int, int, int]:
        """As on a file system whose times do not show that it was written again."""
        return (0, os.fstat(file).st_ino, 9, changed, changed)

    monkeypatch.setattr(reusing, "_mark", mark)
    measuring = Measuring()
    scorer = Reuse(pair[0].parent / "kept", tool="a", now=now).scorer(measuring)
    await asked(scorer, pair)
    pair[0].write_text("Reference")
    await asked(scorer, pair)
    assert measuring.times == times


@pytest.mark.parametrize("damage", [lambda content: content[:-1], bytes.upper, bytes])
async def test_a_damaged_entry_is_as_if_it_were_not_there(
    pair: tuple[Path, Path], damage: Callable[[bytes], bytes]
) -> None:
    kept, measuring = pair[0].parent / "kept", Measuring()
    reuse = Reuse(kept, tool="a", now=now)
    scorer = reuse.scorer(measuring)
    await asked(scorer, pair)
    (entry,) = kept.iterdir()
    entry.write_bytes(damage(entry.read_bytes()) if damage is not bytes else b"")
    assert not (await asked(scorer, pair)).reused
    assert (measuring.times, reuse.counts.damaged) == (2, 1)
    assert (await asked(scorer, pair)).reused


async def test_no_more_is_kept_than_may_be_and_what_was_not_used_goes_first(
    pair: tuple[Path, Path],
) -> None:
    kept, measuring = pair[0].parent / "kept", Measuring()
    scorer = Reuse(kept, tool="a", now=now, most_entries=2).scorer(measuring)
    for index in range(2):
        await asked(scorer, pair, segment=Segment(index, 9))
        (newest,) = kept.iterdir() if index == 0 else (max(kept.iterdir(), key=_used),)
        os.utime(newest, (index, index))
    await asked(scorer, pair, segment=Segment(0, 9))  # used again, and so the newest
    await asked(scorer, pair, segment=Segment(2, 9))
    assert len(list(kept.iterdir())) == 2
    assert (await asked(scorer, pair, segment=Segment(0, 9))).reused
    assert not (await asked(scorer, pair, segment=Segment(1, 9))).reused
    size = next(kept.iterdir()).stat().st_size
    small = Reuse(kept, tool="a", now=now, most_bytes=size).scorer(measuring)
    await asked(small, pair, segment=Segment(3, 9))
    assert sum(each.stat().st_size for each in kept.iterdir()) <= size
    tiny = Reuse(kept, tool="a", now=now, most_bytes=size // 2).scorer(measuring)
    await asked(tiny, pair, segment=Segment(4, 9))
    assert not (await asked(tiny, pair, segment=Segment(4, 9))).reused


def _used(entry: Path) -> int:
    return entry.stat().st_mtime_ns


async def test_a_clip_that_changes_while_it_is_scored_is_not_kept(
    pair: tuple[Path, Path],
) -> None:
    def change() -> None:
        pair[1].write_text("other")

    kept = pair[0].parent / "kept"
    reuse = Reuse(kept, tool="a", now=now)
    await asked(reuse.scorer(Measuring(meanwhile=change)), pair)
    assert list(kept.iterdir()) == []


async def test_what_is_not_a_file_is_left_to_who_measures(tmp_path: Path) -> None:
    measuring = Measuring()
    reuse = Reuse(tmp_path / "kept", tool="a", now=now)
    scorer = reuse.scorer(measuring)
    for clip in ("http://h/a.mp4", str(tmp_path / "nothing"), ""):
        await scorer(clip, clip, model=MODEL, progress=lambda done, expected: None)
    assert measuring.times == 3
    assert reuse.counts.hits + reuse.counts.misses == 0


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(PermissionError, match="by others"):
        Reuse(shared, tool="a", now=now)
