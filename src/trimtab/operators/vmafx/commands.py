"""The commands that ffmpeg is given: what may be opened, and what is measured."""

from __future__ import annotations

from trimtab.operators.vmafx.segments import Cut
from trimtab.operators.vmafx.tools import Ffmpeg

LOG = "log.json"
INDEX = "index.txt"
REFERENCE, DISTORTED = "reference", "distorted"

# Frames are paired by their number: the times of two containers differ in rounding.
_PAIRED = "settb=1/25,setpts=N"
_FEATURES = "name=psnr|name=float_ssim"
_NOWHERE = ("-f", "null", "-")


def measure(
    reference: str,
    distorted: str,
    *,
    ffmpeg: Ffmpeg,
    model: str,
    threads: int,
    cuts: tuple[Cut, Cut] | None = None,
) -> tuple[str, ...]:
    """Compare two inputs; the log of libvmaf goes to a file in the current folder.

    With ``cuts``, of each the frames of a segment, whose times are told.
    """
    options = f"log_fmt=json:log_path={LOG}:n_threads={threads}"
    first, second = cuts or (None, None)
    graph = (
        f"[1:v:0]{_chosen(second, DISTORTED)}{_PAIRED}[{DISTORTED}];"
        f"[0:v:0]{_chosen(first, REFERENCE)}{_PAIRED}[{REFERENCE}];"
        f"[{DISTORTED}][{REFERENCE}]libvmaf={options}"
        f":model=version={model}:feature='{_FEATURES}'"
    )
    return (
        *_quiet(ffmpeg),
        *(*_begin(first, threads), *_input(reference, ffmpeg)),
        *(*_begin(second, threads), *_input(distorted, ffmpeg)),
        *(("-copyts",) if cuts else ()),
        *("-filter_complex", graph, "-progress", "pipe:1", *_NOWHERE),
    )


def _chosen(cut: Cut | None, name: str) -> str:
    return f"{cut.filter},showinfo@{name}=checksum=0," if cut else ""


def _begin(cut: Cut | None, threads: int) -> tuple[str, ...]:
    of_decoder = ("-threads", str(threads))
    if cut is None or cut.seek is None:
        return of_decoder
    # By the file's own times, and with all that comes before the frame we want.
    seek = ("-noaccurate_seek", "-seek_timestamp", "1", "-ss", f"{cut.seek}us")
    return (*of_decoder, *seek)


def listing(clip: str, *, ffmpeg: Ffmpeg) -> tuple[str, ...]:
    """List the packets of one input, not decoded, to a file in the current folder."""
    packets = ("-map", "0:v:0", "-c", "copy", "-copyts", "-f", "framecrc", INDEX)
    return (*_quiet(ffmpeg), *_input(clip, ffmpeg), *packets)


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
