"""The agent: it does what its prompt says, a line at a time, and tells of it.

==================  ===================================================================
``say TEXT``        say it; so is any line that begins with none of these words
``sleep SECONDS``   take time
``write PATH TEXT`` write a file of the workspace
``read PATH``       say what is in one
``repos``           say which repositories there are
``workflow``        say which workflow is active
``env NAME``        say what a variable of the session is, if it is no secret
``fail TEXT``       end the run with an error
``eat MIB``         take memory and keep it
``exit CODE``       end the runner
``kill``            end it without a farewell, as a kernel that runs out of memory does
==================  ===================================================================
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import msgspec

from trimtab.client.errors import TrimtabError

PIECE: Final = 200
"""Letters that are told at a time."""
MOST: Final = 64 * 1024
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL", re.IGNORECASE)


class Failed(TrimtabError):
    """The agent cannot go on; the run ends with what this says."""


class Text(msgspec.Struct, frozen=True):
    """Something that the agent says."""

    text: str


class Tool(msgspec.Struct, frozen=True):
    """Something that the agent did with a tool, and what came of it."""

    name: str
    argument: str
    result: str


class Desk(msgspec.Struct, kw_only=True):
    """What an agent has at hand."""

    folder: Path
    environment: dict[str, str]
    repositories: Callable[[], list[str]]
    workflow: Callable[[], str]
    leave: Callable[[int], None]
    """Ends the program."""
    eaten: list[bytearray] = []


async def perform(prompt: str, desk: Desk) -> AsyncIterator[Text | Tool]:
    """Do what a prompt says.

    Errors: :class:`Failed`.
    """
    for line in prompt.splitlines():
        if not line.strip():
            continue
        word, _, rest = line.strip().partition(" ")
        match word:
            case "sleep":
                yield Tool(word, rest, await _slept(rest))
            case "write":
                path, _, text = rest.partition(" ")
                yield Tool(word, path, _written(desk, path, text))
            case "read":
                yield Tool(word, rest, _read(desk, rest))
            case "eat":
                desk.eaten.append(bytearray(_number(rest) * 1024 * 1024))
                yield Tool(word, rest, "eaten")
            case "fail":
                raise Failed(rest or "The agent was told to fail.")
            case "exit":
                yield Text(f"Leaving with {_number(rest or '0')}.")
                desk.leave(_number(rest or "0"))
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                yield Text(_said(word, rest, desk) or line.strip())


def _said(word: str, rest: str, desk: Desk) -> str:
    match word:
        case "say":
            return rest
        case "repos":
            return ", ".join(desk.repositories()) or "none"
        case "workflow":
            return desk.workflow() or "none"
        case "env" if _SECRET.search(rest):
            return "That is a secret."
        case "env":
            return desk.environment.get(rest, "unset")
    return ""


async def _slept(text: str) -> str:
    try:
        seconds = float(text)
    except ValueError:
        raise Failed(f"{text[:40]!r} is no number of seconds.") from None
    await asyncio.sleep(seconds)
    return f"{seconds:g} s"


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise Failed(f"{text[:40]!r} is no number.")
    return int(text)


def inside(folder: Path, path: str) -> Path:
    """A file of the workspace, wherever a path or a link in it points.

    Errors: :class:`Failed` if it leads out of it.
    """
    try:
        found = (folder / path.lstrip("/")).resolve()
    except (OSError, ValueError):
        raise Failed(f"{path[:80]!r} is no path.") from None
    if not found.is_relative_to(folder.resolve()):
        raise Failed(f"{path[:80]!r} is not in the workspace.")
    return found


def _written(desk: Desk, path: str, text: str) -> str:
    file = inside(desk.folder, path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise Failed(f"{path[:80]!r} cannot be written: {error.strerror}.") from error
    return f"{len(text)} characters"


def _read(desk: Desk, path: str) -> str:
    try:
        with inside(desk.folder, path).open(errors="replace") as file:
            return file.read(MOST)
    except OSError as error:
        raise Failed(f"{path[:80]!r} cannot be read: {error.strerror}.") from error
