"""Subjects: the informers under test, in this process or in one of their own.

Whoever wants to test another informer writes a program that starts it on the cluster
of ``$KUBECONFIG`` and then answers lines on its standard input: ``report`` with a line
of JSON (see :class:`Report`), ``reset`` with ``{}`` once its peak of memory is
forgotten (``peers/common.py`` does all of this for Python).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

Way: TypeAlias = Literal["pages", "stream"]


class Report(msgspec.Struct, kw_only=True):
    """What an informer has, and what it told."""

    snapshot: dict[str, str]
    """Revisions by ``namespace/name``."""
    added: dict[str, int] = {}
    """How often each object was reported as new."""
    deleted: dict[str, int] = {}
    """How often each was reported as gone."""
    rss: int = 0
    """Bytes of memory of its process, if it has one of its own."""
    peak: int = 0


class Ended(Exception):
    """The process of an informer ended by itself."""


class Subject(Protocol):
    """An informer that watches the widgets of one cluster."""

    async def start(self, kubeconfig: Path, *, way: Way, idle: float) -> None:
        """Begin; ``idle`` is the silence after which a watch shall count as dead."""

    async def report(self) -> Report: ...

    async def reset(self) -> None:
        """Forget the peak of memory."""

    async def stop(self) -> None: ...


class Program:
    """A subject in a process of its own."""

    def __init__(
        self, *command: str, environ: Mapping[str, str] | None = None, log: Path
    ) -> None:
        self._command = command
        self._environ = dict(os.environ if environ is None else environ)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, kubeconfig: Path, *, way: Way, idle: float) -> None:
        settings = {
            "KUBECONFIG": str(kubeconfig),
            "CONFORMANCE_WAY": way,
            "CONFORMANCE_IDLE": str(idle),
        }
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environ | settings,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=1 << 28,
            )

    async def report(self) -> Report:
        return msgspec.json.decode(await self._ask("report"), type=Report)

    async def reset(self) -> None:
        json.loads(await self._ask("reset"))

    async def _ask(self, command: str) -> bytes:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(command.encode() + b"\n")
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        if not line:
            raise Ended
        return line

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            # Else the pipes are collected after the loop, with a warning.
            process._transport.close()  # type: ignore[attr-defined]
