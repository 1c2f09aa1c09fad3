"""One run of ffmpeg: in a process group of its own, followed, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from trimtab.operators.vmafx.problems import ToolFailed
from trimtab.operators.vmafx.telling import Told

# A line longer than this is not one that is read for anything.
_LONGEST = 1 << 16
# A static ffmpeg that meets the modules of another libc crashes: it gets none.
_ENVIRONMENT = {"LC_ALL": "C", "GCONV_PATH": "/nonexistent"}
_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PATH", "LD_LIBRARY_PATH")


async def run(
    command: tuple[str, ...],
    *,
    folder: Path,
    told: Told,
    frame: Callable[[int], None] = lambda number: None,
) -> int:
    """Run it in a folder; its exit code.

    Flow: each line of its log goes to ``told``, each number of frames that it reports
    on its output to ``frame``.

    Guarantees: whatever ends the wait, cancellation too, no process of the group is
    left when this returns.

    Errors: :class:`ToolFailed` if it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LONGEST,
        )
    except OSError as error:
        reason = error.strerror or "it cannot be run"
        raise ToolFailed(f"{command[0]} did not start: {reason}.") from error
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_progress(process.stdout, frame))
            group.create_task(_log(process.stderr, told))
        return await process.wait()
    finally:
        await _end(process)


def _environment() -> dict[str, str]:
    """No more of ours than it needs: it reads what strangers made."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed, **_ENVIRONMENT}


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left, and see it gone: no cancellation comes in between."""
    cancelled = False
    while process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            await process.wait()
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _progress(stream: asyncio.StreamReader, frame: Callable[[int], None]) -> None:
    async for line in _lines(stream):
        key, _, value = line.partition("=")
        if key == "frame" and value.strip().isdigit():
            frame(int(value))


async def _log(stream: asyncio.StreamReader, told: Told) -> None:
    async for line in _lines(stream):
        told.line(line)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Its lines; one that is too long is passed over in pieces."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue
        if not line:
            return
        yield line.decode(errors="replace").rstrip()
