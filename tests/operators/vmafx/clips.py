"""Clips for the tests, made by the same ffmpeg that judges them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from trimtab.operators.vmafx import tools

SIZE = "160x90"
FRAMES = 20


def made(to: Path, *arguments: str) -> Path:
    """What ffmpeg makes of these arguments."""
    program = tools.where()
    quiet = (program, "-hide_banner", "-loglevel", "error", "-nostdin", "-y")
    subprocess.run((*quiet, *arguments, str(to)), check=True, timeout=60)
    return to


def picture(
    to: Path, *, size: str = SIZE, frames: int = FRAMES, crf: int = 10, rate: int = 25
) -> Path:
    """A moving test picture; the higher the `crf`, the worse it looks."""
    return made(
        to,
        *("-f", "lavfi", "-i", f"testsrc2=size={size}:rate={rate}"),
        *("-frames:v", str(frames), "-c:v", "libx264", "-crf", str(crf)),
        *("-movflags", "+faststart"),
    )


def cut(whole: Path, to: Path, *, part: float) -> Path:
    """The first part of a file, as a broken copy leaves it."""
    content = whole.read_bytes()
    to.write_bytes(content[: int(len(content) * part)])
    return to
