"""The commands that ffmpeg is given: what may be opened, and what is measured."""

from __future__ import annotations

from trimtab.operators.vmafx.tools import Ffmpeg

LOG = "log.json"

# Frames are paired by their number: the times of two containers differ in rounding.
_PAIRED = "settb=1/25,setpts=N"
_FEATURES = "name=psnr|name=float_ssim"
_NOWHERE = ("-f", "null", "-")


def measure(
    reference: str, distorted: str, *, ffmpeg: Ffmpeg, model: str, threads: int
) -> tuple[str, ...]:
    """Compare two inputs; the log of libvmaf goes to a file in the current folder."""
    options = f"log_fmt=json:log_path={LOG}:n_threads={threads}"
    graph = (
        f"[1:v:0]{_PAIRED}[distorted];[0:v:0]{_PAIRED}[reference];"
        f"[distorted][reference]libvmaf={options}"
        f":model=version={model}:feature='{_FEATURES}'"
    )
    return (
        *_quiet(ffmpeg),
        *_input(reference, ffmpeg),
        *_input(distorted, ffmpeg),
        *("-filter_complex", graph, "-progress", "pipe:1", *_NOWHERE),
    )


def look(clip: str, *, ffmpeg: Ffmpeg) -> tuple[str, ...]:
    """Decode the first frame of one input."""
    first = ("-map", "0:v:0", "-frames:v", "1")
    return (*_quiet(ffmpeg), *_input(clip, ffmpeg), *first, *_NOWHERE)


def _quiet(ffmpeg: Ffmpeg) -> tuple[str, ...]:
    # Its last lines count the frames that were decoded, at this level only.
    return (ffmpeg.path, "-hide_banner", "-nostdin", "-nostats", "-loglevel", "verbose")


def _input(clip: str, ffmpeg: Ffmpeg) -> tuple[str, ...]:
    # What a clip is, and where its bytes lie, is never what the clip itself says.
    protocols = "file" if clip.startswith("file:") else "http,tcp"
    return (
        *("-protocol_whitelist", protocols),
        *("-format_whitelist", ffmpeg.formats),
        *("-i", clip),
    )
