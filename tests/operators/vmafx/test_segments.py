"""Segments: scored apart, every frame has the value that it has in the whole."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.vmafx import clips
from trimtab.operators.vmafx import commands, cutting, pooling, scores, segments
from trimtab.operators.vmafx.measuring import Measurement, Pair
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL, score, score_split
from trimtab.operators.vmafx.segments import Part, Segment
from trimtab.operators.vmafx.sources import source
from trimtab.operators.vmafx.telling import Told
from trimtab.operators.vmafx.tools import Ffmpeg

FRAMES = 41
PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25", "-frames:v")
GROUPS = ("-g", "6", "-bf", "2")
X264 = ("-c:v", "libx264", *GROUPS)
long = pytest.mark.long


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("segments") / "original.y4m"
    return clips.made(to, *PICTURE, str(FRAMES))


def encoded(original: Path, name: str, *arguments: str) -> Path:
    return clips.made(original.with_name(name), "-i", str(original), *arguments)


# Which clip, and whether ffmpeg may begin in the middle of it.
KINDS = [
    ("open.mkv", (*X264, "-x264-params", "open-gop=1"), True),
    ("timeless.avi", ("-c:v", "mpeg4", *GROUPS, "-q:v", "9"), False),
    *(
        pytest.param(*each, marks=long)
        for each in (
            ("closed.mp4", X264, True),
            ("refreshed.mp4", ("-c:v", "libx264", "-g", "6", "-intra-refresh", "1"), 1),
            ("leading.mp4", ("-c:v", "libx265", "-x265-params", "keyint=6"), True),
            ("hidden.webm", ("-c:v", "libvpx-vp9", "-g", "6", "-cpu-used", "8"), True),
            ("av1.mkv", ("-c:v", "libaom-av1", "-g", "6", "-cpu-used", "8"), True),
            ("broadcast.ts", ("-c:v", "mpeg2video", *GROUPS, "-q:v", "9"), True),
            ("raw.h264", X264, False),
            ("late.mkv", (*X264, "-output_ts_offset", "3.3"), True),
            ("intra.mkv", ("-c:v", "ffv1"), True),
        )
    ),
]


@pytest.mark.parametrize(("name", "arguments", "seeks"), KINDS)
async def test_every_value_of_every_frame_is_that_of_the_whole(
    ffmpeg: Ffmpeg, original: Path, name: str, arguments: tuple[str, ...], seeks: bool
) -> None:
    clip = encoded(original, name, *arguments)
    whole = await score(str(original), str(clip), ffmpeg=ffmpeg, threads=1)
    assert len(whole.frames) == FRAMES
    for parts in (4,) if name == KINDS[0][0] else (2, 4, 7):
        split = await score_split(str(original), str(clip), parts=parts, ffmpeg=ffmpeg)
        assert split == whole
    _, known = await cutting.indexes(measurement(ffmpeg, original, clip))
    assert (known.sought(range(25, FRAMES), is_last=True) is not None) == seeks


def measurement(ffmpeg: Ffmpeg, reference: Path, distorted: Path) -> Measurement:
    pair = Pair(source(str(reference)), source(str(distorted)))
    return Measurement(pair, ffmpeg=ffmpeg, model=MODEL, threads=1, relay=None)


@pytest.mark.long
async def test_one_frame_on_each_side_decides_what_motion_is(
    ffmpeg: Ffmpeg, original: Path
) -> None:
    """What the margin is for, measured: without it, values at the seams are others."""
    clip = encoded(original, "seam.mkv", *X264)
    measured = measurement(ffmpeg, original, clip)
    whole = await score(str(original), str(clip), ffmpeg=ffmpeg, threads=1)
    unlike: dict[int, set[str]] = {}
    for margin in (0, 1, 2):
        cut = segments.dropped(range(10 - margin, 20 + margin), is_last=False)
        told = Told()
        async with measured.ran(told, frame=lambda _: None, cuts=(cut, cut)) as log:
            own = slice(margin, margin + 10)
            found = scores.read(log, model=MODEL, pair="", own=own)
        unlike[margin] = {
            name
            for name, values in found.series.items()
            if list(values) != list(whole.series[name][10:20])
        }
    assert unlike == {0: {"motion"}, 1: set(), 2: set()}
    assert segments.MARGIN >= 1


async def test_pooled_values_are_libvmafs_own(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    measured = measurement(ffmpeg, reference, distorted)
    async with measured.ran(Told(), frame=lambda number: None) as log:
        found = scores.read(log, model=MODEL, pair="the pair")
        said = json.loads(log.read_text())["pooled_metrics"]
    for name, values in (("vmaf", found.frames), ("psnr_y", found.series["psnr"])):
        ours = pooling.pooled(values)
        for how in ("min", "max", "mean", "harmonic_mean"):
            # It prints six decimals, of values of which we have six.
            assert getattr(ours, how) == pytest.approx(said[name][how], abs=1.01e-6)


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_segments_are_all_frames_once_and_of_about_one_length(
    total: int, of: int
) -> None:
    frames = [Segment(index, of).frames(total) for index in range(of)]
    assert frames[0].start == 0
    assert frames[-1].stop == total
    assert all(one.stop == other.start for one, other in pairwise(frames))
    assert max(map(len, frames)) - min(map(len, frames)) <= 1


@given(st.lists(st.lists(st.floats(0, 100), max_size=40), min_size=1, max_size=9))
def test_what_is_joined_is_the_mean_of_all(parts: list[list[float]]) -> None:
    filled = [(pooling.mean(each), len(each)) for each in parts if each]
    every = [value for each in parts for value in each]
    if every:
        assert pooling.joined(filled) == pytest.approx(pooling.mean(every), abs=1e-9)


@pytest.mark.parametrize(
    ("why", "parts"),
    [
        ("", [(0, 3, 6), (3, 3, 6)]),
        ("", [(0, 3, 9), (3, 1, 9), (6, 0, 9)]),
        ("different lengths", [(0, 3, 6), (3, 3, 7)]),
        ("first frames", [(3, 3, 6)]),
        ("first frames", [(0, 0, 0)]),
        ("frame 2 is not", [(0, 2, 6), (3, 3, 6)]),
    ],
)
def test_only_parts_that_meet_are_a_clip(
    why: str, parts: list[tuple[int, int, int]]
) -> None:
    made = [Part(first=one, count=two, total=three) for one, two, three in parts]
    problem = segments.problem(made)
    assert why in problem
    assert bool(why) == bool(problem)


def listing(*packets: str, codec: str = "h264") -> list[str]:
    return ["#tb 0: 1/1000", f"#codec_id 0: {codec}", *packets]


def packet(time: int, flags: str = "") -> str:
    return f"0, {time}, {time}, 40, 99, 0x1234{flags}"


SHOWN = [
    packet(time, "" if time % 80 == 0 else ", F=0x10") for time in range(0, 400, 40)
]
UNTIMED = f"0, 400, {-(2**63)}, 40, 99, 0x1, F=0x0"


@pytest.mark.parametrize(
    ("lines", "exact"),
    [
        (listing(*SHOWN), True),
        (listing(*SHOWN, packet(400, ", F=0x4")), False),  # not shown
        (listing(*SHOWN, packet(360, ", F=0x0")), False),  # two at one time
        (listing(*SHOWN, UNTIMED), False),
        (listing(*SHOWN, codec="snow"), False),  # nobody has measured it
    ],
)
def test_nothing_begins_in_the_middle_of_a_clip_that_does_not_say_where_it_is(
    lines: list[str], exact: bool
) -> None:
    index = segments.index(lines)
    assert (index.sought(range(5, 8), is_last=False) is not None) == exact


async def test_what_cannot_be_split_is_told_as_of_the_whole(
    ffmpeg: Ffmpeg, original: Path
) -> None:
    shorter = clips.made(original.with_name("shorter.mkv"), *PICTURE, "33", *X264)
    with pytest.raises(BadInput, match=r"has 41 frames and .* has 33 frames"):
        await score_split(str(original), str(shorter), parts=3, ffmpeg=ffmpeg)
    with pytest.raises(BadInput, match="is not a video"):
        await score_split(str(original), __file__, parts=2, ffmpeg=ffmpeg)


async def test_a_clip_of_fewer_frames_than_segments_is_split_as_far_as_it_goes(
    ffmpeg: Ffmpeg, original: Path
) -> None:
    short = clips.made(original.with_name("short.mkv"), *PICTURE, "3", *X264)
    heard: list[tuple[int, int | None]] = []
    whole = await score(str(short), str(short), ffmpeg=ffmpeg)
    split = await score_split(
        str(short),
        str(short),
        parts=9,
        ffmpeg=ffmpeg,
        progress=lambda done, expected: heard.append((done, expected)),
    )
    assert split == whole
    assert heard[-1] == (3, 3)
    empty = await score(str(short), str(short), ffmpeg=ffmpeg, segment=Segment(0, 9))
    assert empty.part == Part(first=0, count=0, total=3)
    with pytest.raises(ToolFailed, match="in no segment"):
        scores.joined([empty], pair="it")


def test_what_is_dropped_is_not_given_to_libvmaf(ffmpeg: Ffmpeg) -> None:
    cut = segments.dropped(range(10, 20), is_last=False)
    command = commands.measure(
        "file:a", "file:b", ffmpeg=ffmpeg, model=MODEL, threads=1, cuts=(cut, cut)
    )
    graph = command[command.index("-filter_complex") + 1]
    for chain in graph.split(";")[:2]:
        assert chain.split("]", 1)[1].startswith("trim=start_frame=10:end_frame=20,")


def test_a_score_has_the_values_of_all_its_frames(tmp_path: Path) -> None:
    metrics = [{"vmaf": 90.0 + n, "integer_motion2": float(n)} for n in range(5)]
    log = tmp_path / "log.json"
    frames = [{"frameNum": n, "metrics": each} for n, each in enumerate(metrics)]
    log.write_text(json.dumps({"frames": frames}))
    found: Score = scores.read(log, model=MODEL, pair="it", own=slice(1, 4))
    assert list(found.series["motion"]) == [1.0, 2.0, 3.0]
    assert (found.vmaf, found.features["motion"]) == (92.0, 2.0)
