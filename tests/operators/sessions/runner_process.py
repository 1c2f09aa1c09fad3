"""The real runner as a process, and git repositories for it, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.calling import Caller, Place, Reply
from trimtab.operators.sessions.calling import TOKEN, Runner

SECRET = "agui-" + "s3cret" * 4
LISTENS = re.compile(rb"(Serving|Waiting) on \S+ port (\d+)")
HOST = "127.0.0.1"


class Process:
    """One run of the runner program, and calls to it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.port = 0
        self.worker_port = 0
        """Where the gateways of a pool call it, if it is warm."""
        self.token = SECRET

    def serving(self) -> None:
        """Wait until it serves."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = LISTENS.search(line)
            if found and found[1] == b"Serving":
                self.port = int(found[2])
                return
            if found:
                self.worker_port = int(found[2])
        raise AssertionError(f"It ended with {self.process.wait()}.")

    def runner(self, **more: Any) -> Runner:
        key = ("team", "mine")
        facts = {"key": key, "host": HOST, "port": self.port, "token": self.token}
        return Runner(**{**facts, **more})

    @property
    def place(self) -> Place:
        return Place(host=HOST, port=self.port, name=HOST, tls=False)

    async def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "",
        token: str | None = None,
        caller: Caller | None = None,
    ) -> Reply:
        """One call; the answer."""
        shown = self.token if token is None else token
        own = caller or Caller()
        try:
            return await own.call(
                self.place,
                method or ("GET" if body is None else "POST"),
                path,
                headers=((TOKEN, shown),) if shown else (),
                body=None if body is None else msgspec.json.encode(body),
                within=20.0,
            )
        finally:
            if caller is None:
                await own.close()

    async def said(self, path: str, body: Any = None, **more: Any) -> Any:
        """What a call that goes well answers."""
        reply = await self.ask(path, body, **more)
        assert reply.status == 200, reply.body
        return msgspec.json.decode(reply.body)

    async def run(self, prompt: str, *, thread: str = "t") -> list[dict[str, Any]]:
        """The events of a run, to its end."""
        message = {"id": "1", "role": "user", "content": prompt}
        asked = {"threadId": thread, "runId": "r", "messages": [message]}
        reply = await self.ask("/", asked)
        assert reply.status == 200, reply.body
        return events(reply.body)

    def end(self) -> int:
        """Tell it to stop; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def events(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    lines = [line for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]


def spoken(told: list[dict[str, Any]]) -> str:
    """What the agent said in some events."""
    kind = "TEXT_MESSAGE_CONTENT"
    return "".join(each["delta"] for each in told if each["type"] == kind)


@contextmanager
def started(
    folder: Path, *arguments: str, session: str = "mine", **environment: str
) -> Iterator[Process]:
    """A runner that may not serve yet, or never will."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "trimtab.operators.sessions.runner",
            *("--host", HOST, "--port", "0"),
            *arguments,
        ],
        env={
            **os.environ,
            "AGENTIC_SESSION_NAME": session,
            "AGENTIC_SESSION_NAMESPACE": "team",
            "WORKSPACE_PATH": str(folder),
            "AGUI_TOKEN": SECRET,
            **environment,
        },
        stderr=subprocess.PIPE,
    )
    made = Process(process, folder)
    try:
        yield made
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)
        assert process.stderr is not None
        process.stderr.close()


@contextmanager
def running(
    folder: Path, *arguments: str, session: str = "mine", **environment: str
) -> Iterator[Process]:
    """A runner that serves."""
    with started(folder, *arguments, session=session, **environment) as made:
        made.serving()
        yield made


def repository(folder: Path, *branches: str, file: str = "README.md") -> str:
    """A real repository with a commit on each branch; its address."""
    folder.mkdir(parents=True)
    names = branches or ("main",)
    _git(folder, "init", "--quiet", f"--initial-branch={names[0]}")
    for name in names:
        if name != names[0]:
            _git(folder, "checkout", "--quiet", "-b", name)
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"This is {name}.\n")
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", name)
    _git(folder, "checkout", "--quiet", names[0])
    return str(folder)


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)
