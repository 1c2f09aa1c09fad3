"""The keeper: a small process that runs a control plane's programs for its parent.

It is run as a script by `trimtab.testing.processes`, and needs only the standard
library, so that it starts in a few hundredths of a second.

Guarantees: when the parent closes the pipe, or dies in whatever way (a closed pipe is
how the kernel tells), each program gets SIGTERM, then SIGKILL, and the folder is
deleted. On Linux the programs die even if the keeper itself is killed: it asks the
kernel for that between fork and exec, which is safe because it has only one thread.
A parent could not ask the same: the signal comes when the *thread* that started a
program ends, and a test's threads end before the test does.

Flow: one JSON object per line, a request on standard input and its reply on standard
output; the first line out is `{"folder": …}`.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL. Nothing the programs hold is kept."""

ORPHAN_CHECK = 1.0
"""Seconds between looks at the parent, for when a fork of it holds the pipe open."""

PR_SET_PDEATHSIG = 1


def die_with_keeper() -> Callable[[], None] | None:
    """What a program does between fork and exec, or None where it cannot be done."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    keeper = os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != keeper:  # it died before the line above
            os._exit(1)

    return tie


class Programs:
    """The programs that run, in the order in which they were started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.tie = die_with_keeper()

    def start(self, name: str, argv: list[str]) -> dict[str, Any]:
        with (self.folder / f"{name}.log").open("ab") as log:
            program = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=self.tie,
            )
        self.running[name] = program
        return {"pid": program.pid}

    def stop(self, name: str) -> dict[str, Any]:
        program = self.running.pop(name)
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGTERM)
            try:
                program.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
        return {"code": program.wait()}

    def codes(self) -> dict[str, Any]:
        """The exit code of each program, None while it runs."""
        return {name: program.poll() for name, program in self.running.items()}

    def stop_all(self) -> None:
        """Last started, first stopped: each can still say goodbye to those below."""
        for name in reversed(list(self.running)):
            self.stop(name)


def requests() -> Iterator[dict[str, Any]]:
    """The parent's requests, until it closes the pipe or is gone."""
    parent, pending = os.getppid(), b""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], ORPHAN_CHECK)
        if not readable:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        yield from map(json.loads, lines)


def answer(programs: Programs, request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks for."""
    match request:
        case {"do": "start", "name": name, "argv": argv}:
            return programs.start(name, argv)
        case {"do": "stop", "name": name}:
            return programs.stop(name)
        case {"do": "codes"}:
            return programs.codes()
    raise ValueError(f"unknown request {request}")


def reply(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def serve(programs: Programs) -> None:
    """Answer the parent until it is gone."""
    reply({"folder": str(programs.folder)})
    for request in requests():
        try:
            reply(answer(programs, request))
        except (OSError, ValueError, KeyError) as error:
            reply({"error": f"{type(error).__name__}: {error}"})


def end(number: int, frame: object) -> None:
    """Signals end the keeper through `finally`, like everything else does."""
    sys.exit(0)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    programs = Programs(Path(tempfile.mkdtemp(prefix="trimtab-cluster-")))
    try:
        serve(programs)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        programs.stop_all()
        shutil.rmtree(programs.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
