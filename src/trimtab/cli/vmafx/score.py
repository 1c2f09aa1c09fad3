"""``trimtab vmafx score``: the score of a clip, here and now."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.vmafx.bar import Bar

if TYPE_CHECKING:
    from trimtab.operators.vmafx.relay import Way
    from trimtab.operators.vmafx.scores import Score

ABOUT = """
Score a clip against the one it was made from, here and now: no cluster is needed. An
input is a path, or a file://, http(s):// or s3:// address, of any format that ffmpeg
reads. For s3:// the keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
"""
# What is shown of the features, in this order; --json has all.
SHOWN = ("psnr", "ssim", "motion", "adm")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    scoring = commands.add_parser("score", help="score one pair", description=ABOUT)
    scoring.set_defaults(run=run)
    scoring.add_argument("reference", metavar="REF", help="the clip as it was")
    scoring.add_argument("distorted", metavar="DIST", help="the clip to judge")
    scoring.add_argument("--model", default="", help="a model of libvmaf, by its name")
    scoring.add_argument(
        "--threads", type=common.whole, default=0, help="(default: all cores)"
    )
    scoring.add_argument(
        "--segments",
        type=common.count,
        metavar="N",
        help="score it in so many parts, by one thread each, as many at once as there "
        "are cores",
    )
    scoring.add_argument("--ffmpeg", default="", help="the ffmpeg to measure with")
    scoring.add_argument("--json", action="store_true", help="print JSON, all frames")
    scoring.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the score of each frame"
    )


def run(options: argparse.Namespace) -> int:
    """Measure it and tell."""
    found = common.running(_measure(options))
    if options.plot is not None:
        from trimtab.operators.vmafx import pictures

        title = f"{Path(options.distorted).name}: VMAF {found.vmaf:.2f}"
        pictures.plot(found, options.plot, title=title)
    print(_as_json(found) if options.json else _as_text(found))
    return 0


async def _measure(options: argparse.Namespace) -> Score:
    from trimtab.operators.vmafx import scoring, tools

    ffmpeg = await tools.find(options.ffmpeg)
    bar = Bar() if sys.stderr.isatty() else None
    async with _way(options) as way:
        try:
            given: dict[str, Any] = {
                "ffmpeg": ffmpeg,
                "model": options.model or scoring.MODEL,
                "way": way,
                "progress": bar.show if bar else lambda done, expected: None,
            }
            clips = (options.reference, options.distorted)
            if options.segments is None:
                return await scoring.score(*clips, threads=options.threads, **given)
            return await scoring.score_split(
                *clips, parts=options.segments, slots=options.threads, **given
            )
        finally:
            if bar:
                bar.clear()


@contextlib.asynccontextmanager
async def _way(options: argparse.Namespace) -> AsyncIterator[Way | None]:
    """The network, if an input needs it: most do not, and it costs time to import."""
    from trimtab.operators.vmafx.sources import is_remote

    if not is_remote(options.reference) and not is_remote(options.distorted):
        yield None
        return
    from trimtab.cli.vmafx.scorers import network

    async with network() as way:
        yield way


def _as_text(found: Score) -> str:
    from trimtab.operators.vmafx.pictures import sparkline

    features = ", ".join(
        f"{name} {found.features[name]:.4g}" for name in SHOWN if name in found.features
    )
    frames = found.frames
    return (
        f"VMAF {found.vmaf:.4f}  ({found.model}, {len(frames)} frames)\n"
        f"{features}\n"
        f"{min(frames):.1f} {sparkline(frames)} {max(frames):.1f}"
    )


def _as_json(found: Score) -> str:
    import msgspec

    from trimtab.operators.vmafx.pooling import pooled

    content = msgspec.structs.asdict(found) | {"pooled": pooled(found.frames)}
    return msgspec.json.format(msgspec.json.encode(content, enc_hook=list)).decode()
