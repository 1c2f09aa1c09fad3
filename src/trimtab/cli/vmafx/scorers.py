"""What the programs measure with: one ffmpeg, and one way to the network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.operators.vmafx.node import Scorer
    from trimtab.operators.vmafx.scores import Score
    from trimtab.operators.vmafx.scoring import Progress


@asynccontextmanager
async def scorer(*, ffmpeg: str, threads: int) -> AsyncIterator[Scorer]:
    """What scores, for as long as the block runs."""
    from random import SystemRandom

    import aiohttp

    from trimtab.operators.vmafx import scoring, tools
    from trimtab.operators.vmafx.relay import Way

    tool = await tools.find(ffmpeg)
    async with aiohttp.ClientSession(trust_env=True) as session:
        way = Way(session, SystemRandom())

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
