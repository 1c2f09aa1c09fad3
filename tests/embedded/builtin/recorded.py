"""Recorded answers of a real server, and the same questions asked of the rules here."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

from trimtab.embedded.builtin import generation, prepare, set_defaults, shape, validate
from trimtab.embedded.builtin.strategy import services
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.status import ApiProblem, bad_request

JSON = dict[str, Any]
Cause = tuple[str, str, str]

_DATA = Path(__file__).parents[1] / "data"
_RESOURCES = (
    Path(__file__).parents[3] / "src" / "trimtab" / "embedded" / "data"
) / "resources.jsonl"
UID = "00000000-1111-4222-8333-444444444444"
CREATED = "2026-01-02T03:04:05Z"
NAMESPACED = {
    f"{each['group']}/{each['version']}/{each['kind']}".lstrip("/"): each["namespaced"]
    for each in map(json.loads, _RESOURCES.read_text().splitlines())
}
_NOT_GIVEN = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
    "generation",
)


def rows(name: str) -> dict[str, list[JSON]]:
    """The answers in a file, by kind."""
    found: dict[str, list[JSON]] = {}
    data = gzip.decompress((_DATA / f"{name}.jsonl.gz").read_bytes())
    for row in map(json.loads, data.splitlines()):
        found.setdefault(row["kind"], []).append(row)
    return found


def group_and_kind(row: JSON) -> tuple[str, str]:
    version, _, kind = row["kind"].rpartition("/")
    return version.rpartition("/")[0], kind


class Allocator:
    """Gives the addresses and ports that the real server gave."""

    def __init__(self, row: JSON) -> None:
        self._spec = row.get("object", {}).get("spec", {})
        self._ports = [
            port["nodePort"]
            for port in self._spec.get("ports") or ()
            if "nodePort" in port
        ]

    def __call__(self, what: str, wanted: Any) -> Any:
        if what == "clusterIP":
            if wanted and not wanted.startswith("10.0.0."):
                raise ValueError(services.out_of_range(what))
            if wanted == "10.0.0.1":
                raise ValueError(services.TAKEN[what])
            return wanted or self._spec.get("clusterIP", "10.0.0.9")
        if wanted and not 30000 <= wanted <= 32767:
            raise ValueError(services.out_of_range(what))
        if wanted or not self._ports:
            return wanted or self._spec.get("healthCheckNodePort", 30000)
        return self._ports.pop(0)


class Answer:
    """What came of a question: an object, the causes why not, or another problem."""

    def __init__(
        self,
        *,
        obj: JSON | None = None,
        causes: list[Cause] | None = None,
        problem: tuple[int, str] | None = None,
        generation: int = 0,
    ) -> None:
        self.object = obj
        self.causes = causes
        self.problem = problem
        self.generation = generation


def told(row: JSON) -> Answer:
    """The real server's answer."""
    if "object" in row:
        number = row["object"]["metadata"].get("generation", 0)
        return Answer(obj=_stored(row["object"]), generation=number)
    if row["code"] == 422:
        return Answer(causes=[_cause(each) for each in row["causes"]])
    return Answer(problem=(row["code"], row["message"]))


def asked(row: JSON) -> Answer:
    """The answer of the rules here."""
    obj, old = copy.deepcopy(row["request"]), copy.deepcopy(row.get("old"))
    try:
        return _asked(row, obj, old)
    except ApiProblem as problem:
        if problem.code == 422:
            causes = problem.status["details"]["causes"]
            return Answer(causes=[_cause(each) for each in causes])
        return Answer(problem=(problem.code, problem.message))


def read(group: str, kind: str, obj: JSON) -> None:
    """Make an object, in place, what the server reads and fills in."""
    version = obj.get("apiVersion", "v1").rpartition("/")[2]
    try:
        shape(group, kind, obj)
    except Mistyped as problem:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'
        ) from None
    set_defaults(group, kind, obj)


def _asked(row: JSON, obj: JSON, old: JSON | None) -> Answer:
    group, kind = group_and_kind(row)
    part = row.get("subresource", "")
    read(group, kind, obj)
    _metadata(row, obj, old)
    kept = copy.deepcopy(old)
    if kind == "CertificateSigningRequest" and old is None:
        _signed_by(row, obj)
    prepare(group, kind, obj, old, subresource=part, allocate=Allocator(row))
    if old is not None:
        obj["metadata"].setdefault("uid", UID)
        obj["metadata"]["creationTimestamp"] = CREATED
        obj["metadata"].setdefault("resourceVersion", "1")
    problems = validate(group, kind, obj, old, subresource=part)
    assert old == kept, "the object as it was has been changed"
    if problems:
        return Answer(causes=[(each.type, each.body, each.field) for each in problems])
    number = generation(group, kind, obj, old, subresource=part)
    return Answer(obj=_stored(obj), generation=number)


def _signed_by(row: JSON, obj: JSON) -> None:
    """Who asks for a certificate is written into the request by admission."""
    given = row.get("object", {}).get("spec", {})
    for field in ("username", "uid", "groups", "extra"):
        if field in given:
            obj["spec"][field] = given[field]


def _metadata(row: JSON, obj: JSON, old: JSON | None) -> None:
    """What the server itself gives every object."""
    metadata = obj["metadata"]
    if old is None:
        metadata |= {"uid": UID, "creationTimestamp": CREATED}
        for field in _NOT_GIVEN:
            metadata.pop(field, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = _generated(row, metadata["generateName"])
    else:
        metadata.pop("generation", None)
        if "generation" in old["metadata"]:
            metadata["generation"] = old["metadata"]["generation"]
    if NAMESPACED[row["kind"]]:
        metadata.setdefault("namespace", "default")
    else:
        metadata.pop("namespace", None)


def _generated(row: JSON, prefix: str) -> str:
    if "object" in row:
        name: str = row["object"]["metadata"]["name"]
        return name
    for cause in row["causes"]:
        if cause["field"] == "metadata.name":
            shown: str = cause["message"].split('"')[1]
            return shown
    return f"{prefix}abcde"


def _cause(cause: JSON) -> Cause:
    return cause["reason"], cause["message"], cause["field"]


def _stored(obj: JSON) -> JSON:
    """An object without what the store and others add."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("resourceVersion", "managedFields", "generation")
    }
    return {**obj, "metadata": metadata}
