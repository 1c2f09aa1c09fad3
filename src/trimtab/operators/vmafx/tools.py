"""The ffmpeg that measures: where it is, and what it can really do."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

import msgspec

from trimtab.client.commands import CommandFailed, output
from trimtab.operators.vmafx.problems import ToolFailed

SETTING = "VMAFX_FFMPEG_BIN"

# Formats that name further files or addresses, or that are devices: a clip in one of
# them could make ffmpeg read what nobody gave it.
_REACHING = frozenset(
    {
        "alsa",
        "concat",
        "concatf",
        "dash",
        "dshow",
        "fbdev",
        "ffmetadata",
        "hls",
        "imf",
        "jack",
        "kmsgrab",
        "lavfi",
        "oss",
        "pulse",
        "rtp",
        "rtsp",
        "sap",
        "sdp",
        "tedcaptions",
        "v4l2",
        "video4linux2",
        "webm_dash_manifest",
        "x11grab",
    }
)
# `ffmpeg -demuxers` and `-filters`: flags, then names that commas join.
_LISTED = re.compile(r"^ ([A-Z.| ]{2,3}) ([\w,]+)\s", re.MULTILINE)
_WITHIN = 20.0


class Ffmpeg(msgspec.Struct, frozen=True):
    """An ffmpeg that has libvmaf."""

    path: str
    version: str
    # What `-format_whitelist` is given: the formats that hold a clip by themselves.
    formats: str


def where(path: str = "") -> str:
    """The ffmpeg to use.

    Flow: the one that is named here or by ``VMAFX_FFMPEG_BIN``, else the one inside the
    ``imageio-ffmpeg`` package, else the first on the path.

    Errors: :class:`ToolFailed` when there is none, with what to install.
    """
    named = path or os.environ.get(SETTING, "")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ToolFailed(
                f"{named} is not a program that can be run: name another ffmpeg, or "
                "none to use the one that comes with trimtab[vmafx]."
            )
        return found
    try:
        import imageio_ffmpeg
    except ImportError:
        found = shutil.which("ffmpeg")
        if found is None:
            raise ToolFailed(
                "Scoring needs ffmpeg and there is none here: run pip install "
                f"'trimtab[vmafx]', or name one with {SETTING}."
            ) from None
        return found
    # Its own lookup would run the program once to see whether it works.
    binaries = Path(imageio_ffmpeg.__file__).parent / "binaries"
    packed = sorted(binaries.glob("ffmpeg-*"))
    return str(packed[0]) if packed else str(imageio_ffmpeg.get_ffmpeg_exe())


async def find(path: str = "") -> Ffmpeg:
    """The ffmpeg to use, asked what it can do.

    Errors: :class:`ToolFailed` when there is none, or it has no libvmaf.
    """
    program = where(path)
    version, filters, demuxers = await asyncio.gather(
        *(_told(program, what) for what in ("-version", "-filters", "-demuxers"))
    )
    if "libvmaf" not in _names(filters):
        raise ToolFailed(
            f"{program} was built without libvmaf and cannot score: name another "
            f"ffmpeg with {SETTING}, or use the one that comes with trimtab[vmafx]."
        )
    formats = ",".join(sorted(_names(demuxers) - _REACHING))
    return Ffmpeg(path=program, version=_version(version), formats=formats)


def _names(listing: str) -> set[str]:
    return {name for _, names in _LISTED.findall(listing) for name in names.split(",")}


def _version(listing: str) -> str:
    found = re.search(r"^ffmpeg version (\S+)", listing, re.MULTILINE)
    return found[1] if found else "unknown"


async def _told(program: str, question: str) -> str:
    """What it prints about itself."""
    try:
        printed = await output(program, question, within=_WITHIN)
    except CommandFailed as error:
        raise ToolFailed(f"{program} {question} {error}: is it ffmpeg?") from None
    return printed.decode(errors="replace")
