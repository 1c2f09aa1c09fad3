"""Laws of ``trimtab vmafx``: a score for people, for programs and as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import printed, refused
from tests.operators.vmafx import clips


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("clips")
    good = clips.picture(folder / "good.mp4")
    return str(good), str(clips.picture(folder / "bad.mp4", crf=42))


def test_a_score_is_told_for_people_and_for_programs(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = json.loads(printed(capsys, "vmafx", "score", *pair, "--json"))
    assert len(told["frames"]) == len(told["series"]["psnr"]) == clips.FRAMES
    assert told["pooled"]["min"] == min(told["frames"])
    split = printed(capsys, "vmafx", "score", *pair, "--json", "--segments", "2")
    assert json.loads(split) == told
    picture = tmp_path / "frames.png"
    text = printed(capsys, "vmafx", "score", *pair, "--plot", str(picture))
    first, features, line = text.splitlines()
    assert first == f"VMAF {told['vmaf']:.4f}  ({told['model']}, {clips.FRAMES} frames)"
    assert f"ssim {told['features']['ssim']:.4g}" in features
    assert line.startswith(f"{min(told['frames']):.1f} ")
    assert "▁" in line
    assert "█" in line
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_scored_is_one_sentence(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good, bad = pair
    assert "there is no such file" in refused(capsys, "vmafx", "score", good, "no.mp4")
    assert "is not a program" in refused(
        capsys, "vmafx", "score", good, bad, "--ffmpeg", str(tmp_path / "none")
    )
    nowhere = str(tmp_path / "none" / "frames.png")
    assert "cannot be written" in refused(
        capsys, "vmafx", "score", good, bad, "--plot", nowhere
    )
    assert "the following arguments are required" in refused(capsys, "vmafx", "score")


def test_a_file_that_is_not_there_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone")
    assert "the token, cannot be read: no such file" in refused(
        capsys, "vmafx", "node", "--token", gone
    )
    assert "who vouches for the gateway, cannot be read" in refused(
        capsys, "vmafx", "node", "--ca", gone
    )
    assert "1 to 64 slots" in refused(capsys, "vmafx", "node", "--slots", "65")
