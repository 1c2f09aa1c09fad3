"""What a real server made of random histories of writes, ready to be played again."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from hack.apply_corpus import things
from trimtab.embedded import facts, types
from trimtab.embedded.builtin.shapes import shape
from trimtab.embedded.resets import resets_of
from trimtab.embedded.types import Type

JSON = dict[str, Any]

_DATA = Path(__file__).with_name("data")
_API_VERSIONS = {"Thing": "facts.trimtab.dev/v1", "Deployment": "apps/v1"}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A request, what the object was before it, and what the server answered."""

    history: int
    number: int
    kind: str
    before: JSON | None
    verb: str
    body: Any
    code: int
    answer: JSON
    manager: str = ""
    force: bool = False
    subresource: str = ""
    is_ordered: bool
    """Whether the answer's entries are in the order in which they were made. What was
    read again, and what is kept without a schema, is sorted by name."""

    @property
    def now(self) -> str:
        return f"2026-01-01T00:00:{self.number:02d}Z"

    @property
    def api_version(self) -> str:
        return _API_VERSIONS.get(self.kind, "v1")

    @property
    def type(self) -> Type:
        return type_of(self.kind)

    @property
    def place(self) -> str:
        return f"history {self.history}, step {self.number}: {self.verb} {self.kind}"

    @property
    def request(self) -> dict[str, Any]:
        """The arguments that an update and an apply share."""
        custom = self.kind == "Thing"
        group = self.api_version.rpartition("/")[0]
        return {
            "type": self.type,
            "api_version": self.api_version,
            "manager": self.manager or "agent",
            "subresource": self.subresource,
            "now": self.now,
            "reset": resets_of(group, self.kind, self.subresource, custom=custom),
        }


@cache
def type_of(kind: str) -> Type:
    """The type of one of the kinds that are written to."""
    if kind == "Thing":
        return types.of_structural(things.SCHEMA)
    group, _, version = _API_VERSIONS.get(kind, "v1").rpartition("/")
    return facts.definitions().of(group, version, kind)


def read(name: str) -> Any:
    """Recorded facts."""
    return msgspec.json.decode(
        gzip.decompress((_DATA / f"{name}.json.gz").read_bytes())
    )


def steps(*verbs: str) -> Iterator[Step]:
    """Every step that was one of these, and that the server answered somehow."""
    for number, history in enumerate(read("histories")):
        before: JSON | None = None
        scaled = any(told.get("subresource") == "scale" for told in history["steps"])
        for place, told in enumerate(history["steps"]):
            if told["verb"] in verbs:
                yield msgspec.convert(
                    {
                        **told,
                        "history": number,
                        "number": place,
                        "kind": history["kind"],
                        "before": before,
                        "is_ordered": history["kind"] != "Thing" and not scaled,
                    },
                    Step,
                )
            if told["code"] < 300:
                before = told["answer"]


def entries(object: JSON) -> Any:
    """The managed fields, None if there are none."""
    return object["metadata"].get("managedFields")


def settled(kind: str, object: JSON) -> JSON:
    """An object as the server would give it back, without what only it knows.

    The few defaults that a random write can leave open are filled in here, so that
    what is tested does not depend on all the others.
    """
    made: JSON = msgspec.json.decode(msgspec.json.encode(object))
    metadata = made["metadata"]
    for name in ("generation", "managedFields", "creationTimestamp"):
        metadata.pop(name, None)
    made["metadata"] = {k: v for k, v in metadata.items() if v not in (None, {}, [])}
    if kind == "Thing":
        _default_thing(made.get("spec") or {})
        if "spec" in made and (made["spec"] or {}).get("any", 0) is None:
            del made["spec"]["any"]  # null, where null is not a value
        return made
    made.pop("status", None)
    shape(_API_VERSIONS.get(kind, "v1").rpartition("/")[0], kind, made)
    made.pop("status", None)
    _default_builtin(kind, made.get("spec") or {})
    return made


def _default_thing(spec: JSON) -> None:
    lists = [spec.get("items"), *(spec.get("lists") or {}).values()]
    for item in (item for each in lists for item in each or ()):
        for port in item.get("ports") or ():
            port.setdefault("protocol", "TCP")
    for pair in spec.get("pairs") or ():
        pair.setdefault("right", "r")


def _default_builtin(kind: str, spec: JSON) -> None:
    if kind == "Service":
        spec.setdefault("sessionAffinity", "None")
        for port in spec["ports"]:
            port.setdefault("protocol", "TCP")
            port["targetPort"] = port.get("targetPort") or port["port"]
    if kind == "Deployment":
        spec.setdefault("replicas", 1)
        strategy = spec["strategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            limits = strategy.setdefault("rollingUpdate", {})
            limits.setdefault("maxSurge", "25%")
            limits.setdefault("maxUnavailable", "25%")
        spec = spec["template"]["spec"]
    for container in spec.get("containers") or ():
        policy = "IfNotPresent" if ":" in container.get("image", "") else "Always"
        container.setdefault("imagePullPolicy", policy)
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
