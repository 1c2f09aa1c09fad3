"""What the programs measure with: one ffmpeg, and one way to the network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.operators.vmafx.node import Scorer
    from trimtab.operators.vmafx.relay import Way
    from trimtab.operators.vmafx.scores import Score
    from trimtab.operators.vmafx.scoring import Progress


@asynccontextmanager
async def scorer(*, ffmpeg: str, threads: int) -> AsyncIterator[Scorer]:
    """What scores, for as long as the block runs."""
    from trimtab.operators.vmafx import scoring, tools

    tool = await tools.find(ffmpeg)
    async with network() as way:

        async def score(
            reference: str, distorted: str, *, model: str, progress: Progress
        ) -> Score:
            return await scoring.score(
                reference,
                distorted,
                ffmpeg=tool,
                model=model or scoring.MODEL,
                threads=threads,
                way=way,
                progress=progress,
            )

        yield score


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
