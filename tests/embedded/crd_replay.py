"""Replays what a real API server was asked about custom resources.

The questions and answers under ``data/crd_*.json.gz`` are made by
``hack/record_crd_facts.py``. Here each question is put to the embedded server's own
functions, in the order in which its registry calls them, and the answer is brought into
a form that can be compared.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from trimtab.embedded import definition_checks, definitions
from trimtab.embedded.conform import Mistyped, conform
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.facts import definitions as types
from trimtab.embedded.facts import resources
from trimtab.embedded.status import FieldProblem

JSON = dict[str, Any]

DATA: Final = Path(__file__).with_name("data")
# What the server adds to every object that it stores.
STORED: Final[JSON] = {"namespace": "default", "generation": 1}


class Answer(msgspec.Struct, frozen=True):
    """An answer, real or our own, without what cannot be compared."""

    code: int
    message: str = ""
    """Of a refusal that has no causes."""
    causes: tuple[str, ...] = ()
    object: Any = None
    warnings: tuple[str, ...] = ()

    def unordered(self) -> Answer:
        """The same, where the real server goes over a map, as it likes."""
        return msgspec.structs.replace(
            self,
            causes=tuple(sorted(self.causes)),
            warnings=tuple(sorted(self.warnings)),
        )


@lru_cache(maxsize=8)
def facts(name: str) -> Any:
    """What was recorded under a name; nobody may change it."""
    return json.loads(gzip.decompress((DATA / f"crd_{name}.json.gz").read_bytes()))


def recorded(answer: Mapping[str, Any]) -> Answer:
    """What the real server answered."""
    body = answer["body"]
    warnings = tuple(answer.get("warnings", ()))
    if body.get("kind") != "Status":
        return Answer(200, object=body, warnings=warnings)
    if answer["code"] != 422:
        return Answer(answer["code"], body["message"], warnings=warnings)
    return Answer(422, causes=_written(body["details"]["causes"]), warnings=warnings)


def _written(causes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(json.dumps(cause, sort_keys=True) for cause in causes)


def causes(problems: list[FieldProblem]) -> tuple[str, ...]:
    """Problems in the form of a Status."""
    return _written(
        {"reason": each.type, "message": each.body, "field": each.field}
        for each in problems
    )


def whole(kind: CustomKind, body: Mapping[str, Any], *, name: str = "it") -> JSON:
    """An object as a client sends it."""
    return deepcopy(
        {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            **body,
            "metadata": {"name": name, **body.get("metadata", {})},
        }
    )


def created(kind: CustomKind, body: JSON, *, check: str = "Warn") -> Answer:
    """What becomes of a new object."""
    obj = whole(kind, body)
    named = kind.resource.kind
    refusal = f'{named} in version "v1" cannot be handled as a {named}: '
    try:
        unknown = [f'unknown field "{each}"' for each in kind.conform(obj)]
    except Mistyped as error:
        return Answer(400, f"{refusal}{error}")
    if unknown and check == "Strict":
        text = f"strict decoding error: {', '.join(unknown)}"
        return Answer(400, f"{refusal}{text}")
    kind.default(obj)
    obj["metadata"].update(STORED)
    if kind.resource.subresource("status") is not None:
        obj.pop("status", None)
    warnings = tuple(unknown) if check == "Warn" else ()
    problems = kind.validate(obj)
    if problems:
        return Answer(422, causes=causes(problems), warnings=warnings)
    return Answer(200, object=obj, warnings=warnings)


def stored(kind: CustomKind, body: JSON, *, name: str = "it") -> JSON:
    """An object as it was stored some time ago."""
    obj = whole(kind, body, name=name)
    kind.conform(obj)
    kind.default(obj)
    obj["metadata"].update(STORED, uid="u", resourceVersion="1")
    return obj


def changed(
    kind: CustomKind, old: JSON, body: JSON, *, part: str = "", name: str = "it"
) -> Answer:
    """What becomes of a stored object that is replaced, or a part of it."""
    before, obj = stored(kind, old, name=name), whole(kind, body, name=name)
    unknown = [f'unknown field "{each}"' for each in kind.conform(obj)]
    kind.default(obj)
    obj["metadata"] = deepcopy(before["metadata"])
    if part == "status":
        obj = {**deepcopy(before), **{k: obj[k] for k in ("status",) if k in obj}}
    elif kind.resource.subresource("status") is not None:
        obj.pop("status", None)
    said: list[str] = []
    problems = kind.validate(obj, before, subresource=part, warnings=said)
    if problems:
        return Answer(422, causes=causes(problems), warnings=(*unknown, *said))
    if not part and _without_metadata(obj) != _without_metadata(before):
        obj["metadata"]["generation"] += 1
    for key in ("uid", "resourceVersion"):
        del obj["metadata"][key]
    return Answer(200, object=obj, warnings=(*unknown, *said))


def _without_metadata(obj: JSON) -> JSON:
    return {key: value for key, value in obj.items() if key != "metadata"}


def defined(crd: JSON, old: JSON | None = None) -> Answer:
    """What becomes of a definition."""
    obj, before = deepcopy(crd), deepcopy(old)
    conform(_definition_type(), obj)
    definitions.set_defaults(obj)
    definitions.prepare(obj, before)
    metadata = obj["metadata"]
    metadata["generation"] = 1
    if before is not None:
        before["metadata"]["resourceVersion"] = "1"
        metadata.update(before["metadata"])
    problems = definition_checks.problems(obj, before)
    warnings = tuple(definitions.warnings(obj, before))
    if problems:
        return Answer(422, causes=causes(problems), warnings=warnings)
    metadata.pop("resourceVersion", None)
    if before is not None and obj["spec"] != before["spec"]:
        metadata["generation"] += 1
    return Answer(200, object=obj, warnings=warnings)


@lru_cache(maxsize=1)
def _definition_type() -> Any:
    kind = "CustomResourceDefinition"
    found = next(each for each in resources() if each.kind == kind)
    return types().type(found.definition)
