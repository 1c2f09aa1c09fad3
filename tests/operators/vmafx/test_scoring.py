"""Scores are libvmaf's own, of every frame; what cannot be scored is named."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.operators.vmafx import clips
from trimtab.operators.vmafx import tools
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.testing import eventually


def direct(ffmpeg: Ffmpeg, reference: Path, distorted: Path, folder: Path) -> float:
    """What ffmpeg alone says of two clips, asked as its manual does."""
    command = (
        *(ffmpeg.path, "-loglevel", "error", "-nostdin"),
        *("-i", str(distorted), "-i", str(reference)),
        *("-lavfi", "libvmaf=log_fmt=json:log_path=direct.json", "-f", "null", "-"),
    )
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    found = json.loads((folder / "direct.json").read_text())
    return float(found["pooled_metrics"]["vmaf"]["mean"])


async def test_a_score_is_what_a_direct_run_says(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path, tmp_path: Path
) -> None:
    found = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    assert found.vmaf == pytest.approx(
        direct(ffmpeg, reference, distorted, tmp_path), abs=1e-3
    )
    assert len(found.frames) == clips.FRAMES
    assert sum(found.frames) / clips.FRAMES == pytest.approx(found.vmaf, abs=1e-4)
    scales = {f"{name}_scale{number}" for name in ("adm", "vif") for number in range(4)}
    colours = {"psnr", "psnr_cb", "psnr_cr"}
    assert found.features.keys() == scales | colours | {"adm", "motion", "ssim"}


async def test_a_clip_against_itself_is_nearly_perfect(
    ffmpeg: Ffmpeg, reference: Path
) -> None:
    found = await score(f"file://{reference}", str(reference), ffmpeg=ffmpeg)
    assert found.vmaf > 95
    assert found.features["ssim"] == pytest.approx(1.0)


async def test_frames_are_paired_by_their_number_whatever_the_container_says(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path, tmp_path: Path
) -> None:
    slower = tmp_path / "slower.mkv"
    clips.made(slower, "-itsscale", "1.7", "-i", str(distorted), "-c", "copy")
    plain = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    other = await score(str(reference), str(slower), ffmpeg=ffmpeg)
    assert other.vmaf == plain.vmaf


async def test_a_container_whose_names_need_another_alphabet_is_read(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path, tmp_path: Path
) -> None:
    stream = clips.made(tmp_path / "s.ts", "-i", str(distorted), "-c", "copy")
    found = await score(str(reference), str(stream), ffmpeg=ffmpeg)
    assert len(found.frames) == clips.FRAMES


async def test_progress_counts_up_to_all_frames(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    seen: list[tuple[int, int | None]] = []

    def hear(done: int, expected: int | None) -> None:
        seen.append((done, expected))

    await score(str(reference), str(distorted), ffmpeg=ffmpeg, progress=hear)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (clips.FRAMES, clips.FRAMES)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip that takes some seconds to score."""
    folder = tmp_path_factory.mktemp("long")
    return clips.made(
        folder / "long.mp4",
        *("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-frames:v", "100"),
        *("-c:v", "libx264", "-preset", "ultrafast"),
    )


def bad_clips(folder: Path, reference: Path) -> dict[str, Path]:
    """What people give by mistake, by what is wrong with it."""
    text = folder / "text.mp4"
    text.write_text("this is no video\n")
    empty = folder / "empty.mp4"
    empty.touch()
    sound = clips.made(folder / "sound.m4a", "-f", "lavfi", "-i", "sine=duration=0.2")
    long = clips.picture(folder / "long.mp4", frames=clips.FRAMES + 5)
    return {
        "there is no such file": folder / "nothing.mp4",
        "it is not a file": folder,
        "is not a video that can be read": text,
        "is an empty file": empty,
        "has no video in it": sound,
        "only clips of one size": clips.picture(folder / "small.mp4", size="80x60"),
        "has 20 frames and": long,
        "was cut off": clips.cut(long, folder / "cut.mp4", part=0.6),
    }


async def test_a_clip_that_cannot_be_scored_is_named_and_told_why(
    ffmpeg: Ffmpeg, reference: Path, tmp_path: Path
) -> None:
    for why, clip in bad_clips(tmp_path, reference).items():
        with pytest.raises(BadInput, match=why) as refused:
            await score(str(reference), str(clip), ffmpeg=ffmpeg)
        assert str(clip) in str(refused.value)
        assert str(refused.value).endswith(".")


async def test_a_broken_frame_is_no_score(
    ffmpeg: Ffmpeg, reference: Path, tmp_path: Path
) -> None:
    content = bytearray(reference.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 600] = bytes(600)
    hole = tmp_path / "hole.mp4"
    hole.write_bytes(content)
    with pytest.raises(BadInput, match="could not be decoded"):
        await score(str(reference), str(hole), ffmpeg=ffmpeg)


async def test_a_list_of_clips_is_not_a_clip(
    ffmpeg: Ffmpeg, reference: Path, distorted: Path, tmp_path: Path
) -> None:
    lists = {
        "list.m3u8": f"#EXTM3U\n#EXTINF:1,\nfile://{distorted}\n#EXT-X-ENDLIST\n",
        "list.ffconcat": f"ffconcat version 1.0\nfile {distorted}\n",
    }
    for name, content in lists.items():
        playlist = tmp_path / name
        playlist.write_text(content)
        with pytest.raises(BadInput, match="is not a video that can be read"):
            await score(str(reference), str(playlist), ffmpeg=ffmpeg)


@pytest.mark.parametrize("name", ["nope", "vmaf_v0.6.1:path=/etc/passwd", ""])
async def test_an_unknown_model_is_refused(
    ffmpeg: Ffmpeg, reference: Path, name: str
) -> None:
    with pytest.raises(BadInput, match="model"):
        await score(str(reference), str(reference), ffmpeg=ffmpeg, model=name)


@pytest.mark.parametrize(
    "text", ["", "s4://bucket/a.mp4", "file://host/a.mp4", "a%00b"]
)
async def test_an_address_nobody_can_read_is_refused(
    ffmpeg: Ffmpeg, reference: Path, text: str
) -> None:
    with pytest.raises(BadInput):
        await score(str(reference), text, ffmpeg=ffmpeg)


async def test_a_name_that_looks_like_an_option_is_a_name(
    ffmpeg: Ffmpeg, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(reference, tmp_path / "-y")
    found = await score(str(reference), "-y", ffmpeg=ffmpeg)
    assert len(found.frames) == clips.FRAMES


async def test_a_cancelled_score_leaves_no_process(ffmpeg: Ffmpeg, long: Path) -> None:
    begun = asyncio.Event()
    scoring = asyncio.ensure_future(
        score(
            str(long),
            str(long),
            ffmpeg=ffmpeg,
            threads=1,
            progress=lambda done, expected: begun.set(),
        )
    )
    await asyncio.wait_for(begun.wait(), 30)
    assert running(long)
    scoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scoring
    assert not running(long)


def running(clip: Path) -> list[str]:
    """The processes that were given this clip."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        except OSError:
            continue
        if os.fsencode(clip) in command and b"libvmaf" in command:
            found.append(command.decode(errors="replace"))
    return found


async def test_an_ffmpeg_that_is_killed_may_be_tried_again(
    ffmpeg: Ffmpeg, long: Path
) -> None:
    scoring = asyncio.ensure_future(
        score(str(long), str(long), ffmpeg=ffmpeg, threads=1)
    )

    def found() -> bool:
        return bool(running(long))

    await eventually(found)
    subprocess.run(("pkill", "-KILL", "-f", f"{long}.*libvmaf"), check=True)
    with pytest.raises(ToolFailed, match="signal 9"):
        await scoring


async def test_no_ffmpeg_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolFailed, match="is not a program that can be run"):
        await tools.find(str(tmp_path / "ffmpeg"))
    monkeypatch.setenv(tools.SETTING, "/bin/echo")
    with pytest.raises(ToolFailed, match="without libvmaf"):
        await tools.find()
