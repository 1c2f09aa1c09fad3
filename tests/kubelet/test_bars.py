"""The bars of the node: how soon pods run, and what it costs to have them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
async def test_many_pods_run_soon_cost_little_and_leave_nothing() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "bench/kubelet.py", "--bars"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
