"""Auditing: what a program asked the server for, read from the server's own log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from trimtab.testing import Options
from trimtab.testing.options import Token

USER = "operator"
"""Whom the measured program is at the server."""
GATEWAY = "gateway"
"""Whom the pool's gateway is, where there is one."""
WRITES = frozenset({"create", "update", "patch", "delete"})
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER, GATEWAY]}, {"level": "None"}],
}


class Call(msgspec.Struct, frozen=True, rename="camel"):
    """One request of the operator, as the server saw it."""

    verb: str = ""
    request_uri: str = ""
    stage: str = ""
    object_ref: dict[str, str] = {}
    user: dict[str, Any] = {}
    request_received_timestamp: datetime | None = None
    stage_timestamp: datetime | None = None

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


@contextmanager
def audited(folder: Path, *, collects: bool = False) -> Iterator[tuple[Options, Audit]]:
    """A server that logs what the measured program asks for, and its log."""
    policy, log = folder / "policy.json", folder / "audit.log"
    policy.write_text(json.dumps(POLICY))
    log.touch()
    flags = (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=10000",
        "--service-cluster-ip-range=10.0.0.0/16",  # a Service for each session
        "--disable-admission-plugins=ServiceAccount",  # as many Pods name none
    )
    tokens = [
        Token(token=f"bench-{user}", user=user, groups=("system:masters",))
        for user in (USER, GATEWAY)
    ]
    options = Options(
        apiserver_flags=flags,
        etcd_flags=("--unsafe-no-fsync",),
        controllers=collects,
        controller_flags=(
            "--controllers=serviceaccount-controller,garbage-collector-controller",
        ),
        tokens=tokens,
    )
    yield options, Audit(log)
