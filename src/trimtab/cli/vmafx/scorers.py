"""What the programs measure with: one ffmpeg, and one way to the network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.operators.vmafx.node import Scorer
    from trimtab.operators.vmafx.relay import Way
    from trimtab.operators.vmafx.reuse import Reuse
    from trimtab.operators.vmafx.scores import Score
    from trimtab.operators.vmafx.scoring import Progress
    from trimtab.operators.vmafx.segments import Segment
    from trimtab.operators.vmafx.tools import Ffmpeg


@asynccontextmanager
async def scorer(
    *, ffmpeg: str, threads: int, kept: Path | None = None, most_bytes: int = 0
) -> AsyncIterator[Scorer]:
    """What scores, for as long as the block runs; scores are ``kept`` in a folder."""
    from trimtab.operators.vmafx import scoring, tools

    tool = await tools.find(ffmpeg)
    async with network() as way:

        async def score(
            reference: str,
            distorted: str,
            *,
            model: str,
            progress: Progress,
            segment: Segment | None = None,
        ) -> Score:
            return await scoring.score(
                reference,
                distorted,
                ffmpeg=tool,
                model=model or scoring.MODEL,
                threads=threads,
                way=way,
                segment=segment,
                progress=progress,
            )

        reuse = await _reuse(tool, kept, most_bytes) if kept else None
        yield reuse.scorer(score) if reuse else score


async def _reuse(tool: Ffmpeg, folder: Path, most_bytes: int) -> Reuse | None:
    """Scores from before; None, and a warning, where the folder cannot be used."""
    import asyncio
    import logging
    from datetime import UTC, datetime

    from trimtab.operators.vmafx.reuse import Reuse, digest

    try:
        # Of the program itself: two of one version may have been built differently.
        built = await asyncio.to_thread(digest, Path(tool.path))
        name = f"{tool.version} {built}"
        return Reuse(
            folder, tool=name, now=lambda: datetime.now(UTC), most_bytes=most_bytes
        )
    except OSError as error:
        log = logging.getLogger(__name__)
        log.warning("No score is kept for another time: %s", error)
        return None


@asynccontextmanager
async def network() -> AsyncIterator[Way]:
    """One way to the network, with the keys for S3 that the environment names."""
    import os
    from datetime import UTC, datetime
    from random import SystemRandom

    import aiohttp

    from trimtab.operators.vmafx.relay import Way
    from trimtab.operators.vmafx.s3 import S3

    objects = S3(os.environ, now=lambda: datetime.now(UTC))
    async with aiohttp.ClientSession(trust_env=True) as session:
        yield Way(session, SystemRandom(), objects)
