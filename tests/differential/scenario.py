"""Scenarios: requests one after another in a namespace of their own.

A scenario is a function of a :class:`Run`. It is played on a server and leaves what was
asked and answered, so that two servers, or a server and what was recorded of the real
one, can be compared answer by answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tests.differential import normal
from tests.differential.normal import Numbers
from tests.differential.wire import JSON, Plain, Reply, Wire
from trimtab.testing.cluster import Cluster

GROUP = "differential.example"
AGENT = "tests/1.0"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
LAST = "zz-last"
"""The object whose event ends a watch."""

_CONTINUE = re.compile(r"continue=[\w%.-]{9,}")

GROUPS = {
    "controllerrevisions": "apps",
    "cronjobs": "batch",
    "customresourcedefinitions": "apiextensions.k8s.io",
    "daemonsets": "apps",
    "deployments": "apps",
    "horizontalpodautoscalers": "autoscaling",
    "ingresses": "networking.k8s.io",
    "jobs": "batch",
    "leases": "coordination.k8s.io",
    "networkpolicies": "networking.k8s.io",
    "poddisruptionbudgets": "policy",
    "priorityclasses": "scheduling.k8s.io",
    "replicasets": "apps",
    "roles": "rbac.authorization.k8s.io",
    "rolebindings": "rbac.authorization.k8s.io",
    "statefulsets": "apps",
    "storageclasses": "storage.k8s.io",
    "things": GROUP,
    "strangers": GROUP,
    "worlds": GROUP,
}
VERSIONS = {"horizontalpodautoscalers": "v2"}
CLUSTER_WIDE = frozenset(
    "customresourcedefinitions namespaces nodes priorityclasses storageclasses worlds "
    "persistentvolumes".split()
)

Scenario = Callable[["Run"], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Note a scenario under its name."""
    name = function.__name__
    assert name not in SCENARIOS, f"two scenarios are called {name}"
    SCENARIOS[name] = function
    return function


class Run:
    """One scenario on one server."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.namespace = name.replace("_", "-")[:60].strip("-")
        self.story: list[Plain] = []
        self._numbers = Numbers()
        self._columns: list[Plain] = []

    def path(self, plural: str, *, namespace: str | None = None) -> str:
        """Where a kind is: ``things/a/status?x=y`` without what comes before."""
        name = plural.partition("/")[0].partition("?")[0]
        group = GROUPS.get(name, "")
        root = f"/apis/{group}" if group else "/api"
        root += "/" + VERSIONS.get(name, "v1")
        if name in CLUSTER_WIDE or namespace == "":
            return f"{root}/{plural}"
        return f"{root}/namespaces/{namespace or self.namespace}/{plural}"

    def prepare(self, method: str, target: str, body: Any = None) -> Reply:
        """Ask for something that is not compared."""
        return self._send(method, target, body, {"User-Agent": AGENT})

    def __call__(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        media: str = "",
        accept: str = JSON,
        agent: str = AGENT,
        **headers: str,
    ) -> Reply:
        """Ask; the target is a path, or a kind with what follows it."""
        given = {"Accept": accept, "User-Agent": agent}
        given |= {key.replace("_", "-"): value for key, value in headers.items()}
        if media:
            given["Content-Type"] = media
        given = {key: value for key, value in given.items() if value}
        reply = self._send(method, target, body, given)
        asked = f"{method} {_CONTINUE.sub('continue=T', target)}"
        self.story.append({"asked": asked, **normal.answer(reply, self._numbers)})
        return reply

    def _send(
        self, method: str, target: str, body: Any, headers: dict[str, str]
    ) -> Reply:
        if not target.startswith("/"):
            target = self.path(target)
        if body is not None and "Content-Type" not in headers:
            headers["Content-Type"] = JSON
        encoded = None if body is None else encode(body)
        return self.wire.send(method, target, encoded, headers)

    def create(self, plural: str, body: Plain, query: str = "") -> Plain:
        reply = self("POST", plural + query, body)
        obj: Plain = reply.obj
        return obj

    def get(self, target: str) -> Plain:
        obj: Plain = self("GET", target).obj
        return obj

    def patch(self, target: str, body: Any, media: str = MERGE) -> Reply:
        return self("PATCH", target, body, media=media)

    def apply(
        self, target: str, body: Plain, manager: str = "alice", *, force: bool = False
    ) -> Reply:
        glue = "&" if "?" in target else "?"
        query = f"{glue}fieldManager={manager}" + ("&force=true" if force else "")
        return self("PATCH", target + query, body, media=APPLY)

    def settle(self, target: str, reply: Reply) -> None:
        """Wait until the next write to an object starts from what this one left.

        A real server tries a write on the object in its watch cache, which lags behind,
        and again on the stored one if that was another: but what the first try warned
        of is told all the same. A read of at least some version waits for the cache.
        """
        if reply.status in (200, 201):
            version = reply.obj["metadata"]["resourceVersion"]
            self.prepare("GET", f"{target}?resourceVersion={version}")

    def watch(
        self,
        target: str,
        *,
        accept: str = JSON,
        last: str = LAST,
        until: Callable[[Plain], bool] | None = None,
    ) -> list[Plain]:
        """The events up to the one about `last`, or up to what `until` says."""
        full = target if target.startswith("/") else self.path(target)
        headers = {"Accept": accept, "User-Agent": AGENT}
        reply, events = self.wire.watch(
            full, until=until or (lambda event: _is_about(event, last)), headers=headers
        )
        told = normal.answer(reply, self._numbers)
        told["events"] = [self._event(event) for event in events]
        self.story.append({"asked": f"WATCH {target}", **told})
        return events

    def _event(self, event: Plain) -> Plain:
        table = event.get("object") or {}
        if table.get("kind") == "Table":
            self._columns = table.get("columnDefinitions") or self._columns
            normal.hide_columns(table, self._columns)
        if event.get("type") == "BOOKMARK":
            event["object"]["metadata"]["resourceVersion"] = "<bookmark>"
        told: Plain = normal.tidy(event, self._numbers)
        return told

    def last(self, plural: str, **more: Any) -> None:
        """Make the object whose event ends a watch."""
        self.prepare("POST", plural, {"metadata": {"name": LAST}, **more})


def _is_about(event: Plain, name: str) -> bool:
    if event.get("type") == "ERROR":
        return True
    obj = event.get("object") or {}
    rows = obj.get("rows") or [{"object": obj}]
    return any(_name(row.get("object") or {}) == name for row in rows)


def _name(obj: Plain) -> str:
    found: str = (obj.get("metadata") or {}).get("name", "")
    return found


def encode(body: Any) -> bytes:
    """Text and bytes as they are, anything else as JSON."""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else msgspec.json.encode(body)


def play(wire: Wire, name: str) -> list[Plain]:
    """What a server answers to a scenario."""
    run = Run(wire, name)
    namespace = {"metadata": {"name": run.namespace}}
    assert run.prepare("POST", "/api/v1/namespaces", namespace).status == 201
    SCENARIOS[name](run)
    return run.story


def differences(here: Iterable[Plain], there: Iterable[Plain]) -> list[str]:
    """In words, how the answers of two servers differ; none if they agree."""
    found: list[str] = []
    for mine, theirs in zip(here, there, strict=True):
        if mine != theirs:
            found.append(mine["asked"])
            found += compared(mine, theirs, "")
    return found


def compared(mine: Any, theirs: Any, path: str) -> list[str]:
    """The places at which two values differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = sorted({*mine, *theirs})
        pairs = [(key, mine.get(key, ...), theirs.get(key, ...)) for key in keys]
    elif isinstance(mine, list) and isinstance(theirs, list):
        most = max(len(mine), len(theirs))
        pairs = [
            (str(i), (mine[i : i + 1] or [...])[0], (theirs[i : i + 1] or [...])[0])
            for i in range(most)
        ]
    else:
        same = mine == theirs and type(mine) is type(theirs)
        return [] if same else [f"  {path}:\n    {mine!r}\n    {theirs!r} (real)"]
    return [line for key, a, b in pairs for line in compared(a, b, f"{path}.{key}")]


__all__ = ["Cluster", "Run", "Scenario", "scenario"]
