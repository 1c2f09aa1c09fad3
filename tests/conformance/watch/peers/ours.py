"""Trimtab's informer in a process of its own, for what is measured of a process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Literal, cast

from tests.conformance.watch.ours import Ours
from tests.conformance.watch.peers.common import Reporter


async def main() -> None:
    subject = Ours()
    way = cast("Literal['pages', 'stream']", os.environ["CONFORMANCE_WAY"])
    idle = float(os.environ["CONFORMANCE_IDLE"])
    await subject.start(Path(os.environ["KUBECONFIG"]), way=way, idle=idle)
    loop = asyncio.get_running_loop()

    def snapshot() -> dict[str, str]:
        report = asyncio.run_coroutine_threadsafe(subject.report(), loop).result()
        reporter.added, reporter.deleted = subject.added, subject.deleted
        return report.snapshot

    reporter = Reporter(snapshot)
    await asyncio.to_thread(reporter.serve)
    await subject.stop()


if __name__ == "__main__":
    asyncio.run(main())
