"""Laws of commands, with real programs; those of exec plugins cover the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.testing.helpers import is_alive
from trimtab.client.commands import CommandFailed, output
from trimtab.testing import eventually


async def test_it_reads_all_that_it_is_given_and_prints_as_much() -> None:
    given = b"0123456789abcdef" * (1 << 16)
    assert await output("cat", within=60, given=given) == given
    assert await output("cat", within=60) == b""


async def test_a_command_that_does_not_read_what_it_is_given_ends_well() -> None:
    assert await output("echo", "hi", within=60, given=bytes(1 << 20)) == b"hi\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no >&2; exit 3", "failed with exit code 3"),
        ("echo no >&2; kill -9 $$", "failed with signal 9"),
        ("echo no >&2; yes", "printed more than 1000 bytes and was stopped"),
        ("echo no >&2; sleep 600", "did not finish within 0.5 s and was stopped"),
    ],
)
async def test_a_failure_says_why_and_has_the_complaint(script: str, why: str) -> None:
    within = 0.5 if "sleep" in script else 60
    with pytest.raises(CommandFailed) as caught:
        await output("sh", "-c", script, within=within, most=1000)
    assert (str(caught.value), caught.value.__cause__) == (why, None)
    assert "yes" in script or caught.value.complaint == "no\n"


async def test_what_cannot_be_started_has_what_the_system_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="No such file or directory") as caught:
        await output(str(tmp_path / "nothing"), within=60)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@asynccontextmanager
async def given_up(folder: Path, times: int) -> AsyncIterator[None]:
    """A command with a child that runs, cancelled; in the end both are gone."""
    script = "sleep 600 & echo $$ $! . > pids; wait"
    pids = folder / "pids"
    async with asyncio.TaskGroup() as group:
        call = group.create_task(
            output("sh", "-c", f"cd {folder}; {script}", within=60)
        )
        await eventually(lambda: pids.exists() and pids.read_text().endswith(".\n"))
        for _ in range(times):
            call.cancel()
            await asyncio.sleep(0)
        yield
    processes = [int(each) for each in pids.read_text().split()[:2]]
    await eventually(lambda: not any(map(is_alive, processes)))


@pytest.mark.parametrize("times", [1, 2])
async def test_no_process_of_its_group_outlives_a_cancellation(
    tmp_path: Path, times: int
) -> None:
    async with given_up(tmp_path, times):
        pass


@pytest.mark.parametrize("times", [1, 2])
async def test_a_start_that_is_given_up_half_way_leaves_nothing_either(
    tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real, go_on = loop.connect_read_pipe, asyncio.Event()

    async def slow(*arguments: Any, **named: Any) -> Any:
        await go_on.wait()
        return await real(*arguments, **named)

    monkeypatch.setattr(loop, "connect_read_pipe", slow)
    async with given_up(tmp_path, times):
        go_on.set()
