"""Reloading: an operator in a process that is replaced whenever a file is saved.

The API server stays while the operator, a process of its own, is replaced, so objects
are kept; they are on disk, so they are kept until the next time, too. A file that does
not load replaces nothing: the operator that runs goes on. At the start there is none
that could, and nothing is begun.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from trimtab.cli import node
from trimtab.cli.loading import NotAnOperator
from trimtab.cli.up import default_data
from trimtab.client import Client, load
from trimtab.client.errors import TrimtabError
from trimtab.embedded.server import Server

EVERY = 0.3
"""Seconds between two looks at the files."""
GRACE = 6.0
"""Seconds that an operator has to stop; it needs five at most."""
SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
FILES = 5000

Seen = dict[Path, tuple[int, int]]


async def develop(options: argparse.Namespace, folders: Sequence[Path]) -> None:
    """Serve, run and look, until a signal comes.

    Errors: ``NotAnOperator`` when a source cannot be loaded to begin with.
    """
    node.check_images(options)
    seen, first = dict(files(folders)), await definitions(options)
    data = (options.data or default_data() / "dev").expanduser().absolute()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    server = Server(data=data, port=0)
    async with server, node.beside(options, server, data=data):
        _say(f"The API server is ready at {server.url}; its objects are in {data}.")
        _say(f"export KUBECONFIG={shlex.quote(str(server.kubeconfig))}")
        async with Client(load(kubeconfig=server.kubeconfig, environ={})) as client:
            session = Session(options, client, kubeconfig=server.kubeconfig)
            try:
                await session.begin(first)
                await session.run(folders, stop, seen)
            finally:
                await session.end()


async def definitions(options: argparse.Namespace) -> list[Any]:
    """The CRDs of all sources, each loaded in a process of its own.

    Errors: ``NotAnOperator``, in the words of that process.
    """
    found: list[Any] = []
    for source in options.source:
        process = await _started("crd", source, *_chosen(options), piped=True)
        out, problem = await process.communicate()
        if process.returncode:
            said = problem.decode(errors="replace").strip()
            raise NotAnOperator(said.removeprefix("trimtab: ") or f"{source} fails.")
        found += yaml.safe_load_all(out)
    return found


class Session:
    """The operator's process, and what it was begun from."""

    def __init__(
        self, options: argparse.Namespace, client: Client, *, kubeconfig: Path
    ) -> None:
        self._options = options
        self._client = client
        self._kubeconfig = kubeconfig
        self._process: asyncio.subprocess.Process | None = None

    async def run(
        self, folders: Sequence[Path], stop: asyncio.Event, seen: Seen
    ) -> None:
        """Begin anew at every change of the files, until told to stop."""
        while not stop.is_set():
            now = dict(files(folders))
            if now != seen:
                seen = now
                await self.begin()
            elif self._process is not None and self._process.returncode is not None:
                _say("The operator has ended; it begins anew when a file is saved.")
                self._process = None
            try:
                await asyncio.wait_for(stop.wait(), EVERY)
            except TimeoutError:
                continue

    async def end(self) -> None:
        """Stop the operator's process, if it runs."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def begin(self, given: list[Any] | None = None) -> None:
        """Replace the operator by what the files say now, if they say something."""
        try:
            for each in await definitions(self._options) if given is None else given:
                await self._client.apply(each, manager="trimtab-dev", force=True)
        except TrimtabError as error:
            said = str(error).rstrip(".")
            _say(f"{said}. What ran goes on; save a file to try again.")
            return
        await self.end()
        _say(f"Running {', '.join(self._options.source)}.")
        self._process = await _started(
            "run",
            *self._options.source,
            f"--kubeconfig={self._kubeconfig}",
            f"--port={self._options.port}",
            f"--log={self._options.log}",
            "--no-leader",
            # The cluster is on this machine.
            "--webhook-url=https://127.0.0.1:0",
            "--webhook-port=0",
            *_chosen(self._options),
        )


def _chosen(options: argparse.Namespace) -> list[str]:
    return [] if options.operator is None else [f"--operator={options.operator}"]


async def _started(*arguments: str, piped: bool = False) -> asyncio.subprocess.Process:
    into = subprocess.PIPE if piped else None
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=into,
        stderr=into,
        # Control-C is for the parent, which then stops it in its turn.
        start_new_session=True,
    )


def files(folders: Sequence[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The Python files below some folders, with what changes when they are saved."""
    count = 0
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = [
                name for name in below if name[0] != "." and name not in SKIPPED
            ]
            for name in names:
                if name.endswith(".py") and count < FILES:
                    count += 1
                    path = Path(place, name)
                    try:
                        status = path.stat()
                    except FileNotFoundError:  # an editor is replacing it
                        continue
                    yield path, (status.st_mtime_ns, status.st_size)


def _say(text: str) -> None:
    print(text, flush=True)
