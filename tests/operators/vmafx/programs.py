"""The programs of vmafx as processes of a test."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trimtab.testing import Cluster

TRIMTAB = (sys.executable, "-m", "trimtab", "vmafx")


@asynccontextmanager
async def program(cluster: Cluster, *arguments: str) -> AsyncIterator[str]:
    """One of the programs, while the block runs; the line that it begins with."""
    process = await started(cluster, *arguments)
    try:
        yield await first_line(process)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def started(cluster: Cluster, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *TRIMTAB,
        *arguments,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def first_line(process: asyncio.subprocess.Process) -> str:
    """What a program begins with."""
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
