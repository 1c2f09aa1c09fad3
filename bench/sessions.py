"""The operator of agent sessions at scale: `python -m bench.sessions`.

A real etcd and kube-apiserver hold the projects, sessions and Pods of a platform, and
the real operator runs on them as a process of its own. What it asks the server for is
read from the server's audit log, not from what it says of itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from bench.board import sessions as board
from bench.board.loading import Written, create
from bench.measure import ROOT
from trimtab.client import Client, NotFound, load
from trimtab.operators.sessions.kinds import (
    APP,
    DESIRED,
    KINDS,
    SESSION_LABEL,
    AgenticSession,
)
from trimtab.operators.sessions.names import pod_name
from trimtab.operators.sessions.settings import RUNNER_SECRETS
from trimtab.testing import Cluster, Options, cluster
from trimtab.testing.operating import install
from trimtab.testing.options import Token
from trimtab.testing.waiting import eventually

USER = "operator"
WRITES = frozenset({"create", "update", "patch", "delete"})
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}
WINDOW = 60.0
"""Seconds of rest that are looked at."""

Plain = dict[str, Any]


class Scale(NamedTuple):
    """How much there is, and what may be used for it."""

    name: str
    namespaces: int
    settings: int
    sessions: int
    pods: int
    running: int
    waiting: int
    rss: float
    """MiB that the operator may have at its peak."""


AUDIT = Scale("as audited", 763, 674, 4319, 477, 80, 136, 80.0)
LARGE = Scale("large", 1000, 1000, 10_000, 477, 80, 420, 110.0)


class Call(msgspec.Struct, frozen=True, rename="camel"):
    """One request of the operator, as the server saw it."""

    verb: str = ""
    request_uri: str = ""
    stage: str = ""
    object_ref: dict[str, str] = {}

    @property
    def what(self) -> tuple[str, str]:
        return self.object_ref.get("namespace", ""), self.object_ref.get("name", "")

    @property
    def resource(self) -> str:
        return self.object_ref.get("resource", "")

    @property
    def subresource(self) -> str:
        return self.object_ref.get("subresource", "")


class Audit:
    """The server's log of what the operator asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def since(self) -> list[Call]:
        """What came since the last look; a watch counts when it begins."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data.rpartition(b"\n")[0]
        self._read += len(whole) + bool(whole)
        calls = [msgspec.json.decode(line, type=Call) for line in whole.splitlines()]
        return [
            each
            for each in calls
            if each.stage != "ResponseComplete" or each.verb != "watch"
        ]


# What there is


def phase_of(scale: Scale, number: int) -> str:
    """Runners and those that wait are spread over all sessions."""
    step = scale.sessions // (scale.running + scale.waiting)
    place, rest = divmod(number, step)
    if rest or place >= scale.running + scale.waiting:
        return board.DONE[number % 3]
    every = (scale.running + scale.waiting) // scale.running
    return (
        "Running"
        if place % every == 0 and place // every < scale.running
        else ("Pending")
    )


def session(scale: Scale, number: int) -> Written:
    made = board.session(number)
    body = made.body
    place = int(body["metadata"]["namespace"].rpartition("-")[2])
    body["metadata"]["namespace"] = board.namespace(
        (place * 7 + number) % scale.namespaces
    )
    del body["metadata"]["annotations"][DESIRED]
    del body["spec"]["interactive"], body["spec"]["project"]
    for each in body["spec"]["repos"]:
        del each["name"]
    status = dict(made.status or {}) | {"phase": phase_of(scale, number)}
    del status["podName"]
    if status["phase"] == "Running":
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        dates = dict.fromkeys(
            ("startTime", "readyAt", "firstStartedAt", "lastActivityTime"), now
        )
        # There is nobody to call: what it wishes for has been brought to it.
        body["spec"] |= {"timeout": 0, "inactivityTimeout": 86400, "repos": []}
        del body["spec"]["activeWorkflow"]
        del status["reconciledWorkflow"], status["reconciledRepos"]
        status |= {**dates, "answeredBy": "", "observedGeneration": 1}
        del status["completionTime"]
    elif status["phase"] == "Pending":
        status = {"phase": "Pending"}
    return Written(body, status)


def all_sessions(scale: Scale) -> Iterator[Written]:
    for number in range(scale.sessions):
        yield session(scale, number)


def namespaces(scale: Scale) -> Iterator[Written]:
    for number in range(scale.namespaces):
        labels = {"ambient-code.io/managed": "true"}
        metadata = {"name": board.namespace(number), "labels": labels}
        yield Written({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def settings(scale: Scale) -> Iterator[Written]:
    """ProjectSettings of most, and the secret that no session starts without."""
    for number in range(scale.namespaces):
        place = board.namespace(number)
        metadata = {"name": "projectsettings", "namespace": place}
        spec = {"groupAccess": [{"groupName": f"team-{number}", "role": "edit"}]}
        kind: Plain = {"apiVersion": board.API, "kind": "ProjectSettings"}
        if number < scale.settings:
            yield Written({**kind, "metadata": metadata, "spec": spec})
        secret = {"name": RUNNER_SECRETS, "namespace": place}
        yield Written({"apiVersion": "v1", "kind": "Secret", "metadata": secret})


def pods(scale: Scale, uids: dict[str, str]) -> Iterator[Written]:
    """Runners that are ready, and Pods that are none of the operator's business."""
    running = [
        each.body["metadata"]
        for each in all_sessions(scale)
        if each.status and each.status["phase"] == "Running"
    ]
    for metadata in running:
        owner = {
            "apiVersion": board.API,
            "kind": "AgenticSession",
            "name": metadata["name"],
            "uid": uids[metadata["name"]],
            "controller": True,
        }
        name = pod_name(metadata["name"])
        labels = {"app": APP, SESSION_LABEL: metadata["name"]}
        yield _pod(metadata["namespace"], name, labels, owners=[owner])
    for number in range(scale.pods - len(running)):
        yield _pod(
            board.namespace(number % scale.namespaces),
            f"other-{number}",
            {"app": "other"},
        )


def _pod(
    namespace: str, name: str, labels: dict[str, str], *, owners: Sequence[Plain] = ()
) -> Written:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    container = {"name": APP, "image": "none"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [*owners]},
        "spec": {"nodeName": "somewhere", "containers": [container]},
    }
    since = {"startedAt": "2026-01-01T00:00:00Z"}
    status = {
        "phase": "Running",
        "podIP": "127.0.0.9",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                **container,
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": since},
            }
        ],
    }
    return Written(body, status)


# The operator


class Operator:
    """One run of the operator."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    def port(self) -> int:
        text = self._log.read_text(errors="replace")
        assert self.process.returncode is None, text[-3000:]
        found = re.search(r"http://[\d.]+:(\d+)", text)
        return int(found[1]) if found else 0

    def memory(self, field: str = "VmHWM") -> float:
        """MiB; at its peak, or now (``VmRSS``)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else 0.0

    async def ready(self) -> None:
        port = await eventually(self.port, within=60.0)

        async def look() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()

        await eventually(look, within=120.0, every=0.1)

    async def stop(self) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        await self.process.wait()
        return time.perf_counter() - began


@asynccontextmanager
async def operating(here: Cluster, folder: Path) -> AsyncIterator[Operator]:
    log = folder / f"operator-{time.monotonic_ns()}.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "run"),
            *("trimtab.operators.sessions.app", "--port", "0"),
            *("--kubeconfig", str(here.kubeconfig), "--context", USER),
            stderr=file,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
    made = Operator(process, log)
    try:
        await made.ready()
        yield made
    finally:
        if process.returncode is None:
            await made.stop()


class Table:
    """What was asked for, and what it came to."""

    def __init__(self) -> None:
        self.failed = 0

    def row(self, what: str, found: float, bar: float, *, unit: str = "") -> None:
        """A figure that must not be above its bar."""
        word = "pass" if found <= bar else "FAIL"
        self.failed += found > bar
        print(f"| {what} | {found:.4g} {unit} | ≤ {bar:g} {unit} | {word} |")


async def quiet(audit: Audit, *, seconds: float, within: float) -> list[Call]:
    """Wait until nothing is written for a while; all that was asked meanwhile."""
    every: list[Call] = []
    ends = time.monotonic() + within
    calm = time.monotonic()
    while time.monotonic() - calm < seconds and time.monotonic() < ends:
        await asyncio.sleep(1.0)
        fresh = audit.since()
        every += fresh
        if any(each.verb in WRITES and each.resource != "leases" for each in fresh):
            calm = time.monotonic()
    return every


async def measure(scale: Scale, here: Cluster, folder: Path, audit: Audit) -> int:
    table = Table()
    phases = {
        (each.body["metadata"]["namespace"], each.body["metadata"]["name"]): (
            each.status or {}
        )["phase"]
        for each in all_sessions(scale)
    }
    over = {key for key, phase in phases.items() if phase in board.DONE}
    running = {key for key, phase in phases.items() if phase == "Running"}
    waiting = [key for key, phase in phases.items() if phase == "Pending"]
    print(f"\n## {scale.name}: {scale.sessions} sessions, {scale.namespaces} projects")
    print("| what | found | bar | |\n|---|---|---|---|")
    async with Client(load(kubeconfig=here.kubeconfig)) as client:
        async with operating(here, folder) as first:
            calls = await quiet(audit, seconds=10.0, within=600.0)
            table.row("peak RSS, first start", first.memory(), scale.rss, unit="MiB")
            table.row("calls for sessions that are over", _about(calls, over), 0)
            table.row("SIGTERM to exit", await first.stop(), 5.0, unit="s")
        audit.since()
        async with operating(here, folder) as second:
            calls = await quiet(audit, seconds=10.0, within=120.0)
            written = [each for each in calls if each.verb in WRITES]
            ours = [each for each in written if each.resource == "agenticsessions"]
            rest = [each for each in written if each.resource != "leases"]
            table.row("writes for projects, second start", len(rest) - len(ours), 0)
            about = len(ours) / (len(running) + len(waiting))
            table.row("writes per living session, second start", about, 2.0)
            _tell(rest)
            table.row("calls for sessions that are over", _about(calls, over), 0)
            await asyncio.sleep(WINDOW)
            calls = audit.since()
            lists = [each for each in calls if each.verb == "list"]
            table.row(f"LISTs in {WINDOW:g} s of rest", len(lists), 0)
            about = _about(calls, running) / max(1, len(running))
            table.row("calls per runner and minute at rest", about, 1.0)
            _tell(calls)
            table.row(
                "stop of one that cannot start",
                await _stopped(client, waiting[0]),
                5.0,
                unit="s",
            )
            table.row(
                "loss of a runner seen",
                await _lost(client, min(running)),
                5.0,
                unit="s",
            )
            table.row("peak RSS, second start", second.memory(), scale.rss, unit="MiB")
            table.row("SIGTERM to exit", await second.stop(), 5.0, unit="s")
    return table.failed


def _tell(calls: list[Call]) -> None:
    """What was asked for, for who wants to know."""
    found = Counter((each.verb, each.resource, each.subresource) for each in calls)
    for (verb, *resource), count in found.most_common(8):
        print(f"  {count} × {verb} {'/'.join(filter(None, resource))}", file=sys.stderr)


def _about(calls: list[Call], keys: set[tuple[str, str]]) -> int:
    """How many calls were about one of these sessions, or its runner."""
    return sum(
        1
        for each in calls
        if each.what in keys
        or (each.what[0], each.what[1].removesuffix("-runner")) in keys
    )


async def _stopped(client: Client, key: tuple[str, str]) -> float:
    began = time.perf_counter()
    body = {"metadata": {"annotations": {DESIRED: "Stopped"}}}
    await client.patch(AgenticSession, key[1], body, namespace=key[0])
    await _until(client, key, lambda phase: phase == "Stopped")
    return time.perf_counter() - began


async def _lost(client: Client, key: tuple[str, str]) -> float:
    """The runner runs out of memory; how long until the session says so."""
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    status = {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": APP,
                "image": "none",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
        ],
    }
    began = time.perf_counter()
    info = await client.discover("v1", "Pod")
    await client.patch(
        info,
        pod_name(key[1]),
        {"status": status},
        namespace=key[0],
        subresource="status",
    )
    await _until(client, key, lambda phase: phase != "Running")
    return time.perf_counter() - began


async def _until(client: Client, key: tuple[str, str], holds: Any) -> None:
    async def look() -> bool:
        found = await client.get(AgenticSession, key[1], namespace=key[0])
        return bool(holds(found.status.phase))

    await eventually(look, within=60.0, every=0.05)


async def _are_known(client: Client) -> bool:
    try:
        for kind in KINDS:
            await client.discover(board.API, kind.__resource__.kind)
    except NotFound:
        return False
    return True


async def run(scale: Scale) -> int:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.json").write_text(json.dumps(POLICY))
        log = folder / "audit.log"
        log.touch()
        flags = (
            f"--audit-policy-file={folder / 'policy.json'}",
            f"--audit-log-path={log}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=10000",
        )
        options = Options(
            apiserver_flags=flags,
            etcd_flags=("--unsafe-no-fsync",),
            tokens=(Token(token="bench", user=USER, groups=("system:masters",)),),
        )
        async with (
            cluster("real", options=options) as here,
            Client(load(kubeconfig=here.kubeconfig)) as client,
        ):
            began = time.perf_counter()
            await install(client, *KINDS)
            await eventually(partial(_are_known, client), within=60.0, every=0.5)
            await create(client, namespaces(scale))
            await create(client, settings(scale))
            made = await create(client, all_sessions(scale))
            await create(client, pods(scale, made.uids))
            print(f"loaded in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            return await measure(scale, here, folder, Audit(log))


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    made.add_argument("--scale", choices=("audited", "large", "both"), default="both")
    made.add_argument("--small", action="store_true", help="a tenth, to try it out")
    options = made.parse_args()
    chosen = {"audited": [AUDIT], "large": [LARGE], "both": [AUDIT, LARGE]}
    failed = 0
    for scale in chosen[options.scale]:
        if options.small:
            scale = Scale("small", 40, 30, 400, 60, 8, 12, scale.rss)
        failed += asyncio.run(run(scale))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
