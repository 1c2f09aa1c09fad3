"""Metadata: what the server itself writes into an object, and what may not change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any
from uuid import UUID

from trimtab.api.times import rfc3339
from trimtab.embedded import status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.status import FieldProblem

NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_BASE = 58
GENERATED_TAIL = 5
KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


class Stamps:
    """Makes what has to be new: names, uids, times."""

    def __init__(self, *, now: Callable[[], datetime], random: Random) -> None:
        self._now = now
        self._random = random

    def now(self) -> datetime:
        return self._now()

    def time(self) -> str:
        return rfc3339(self._now())

    def uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def name(self, base: str) -> str:
        letters = self._random.choices(NAME_LETTERS, k=GENERATED_TAIL)
        return base[:GENERATED_BASE] + "".join(letters)


def metadata_of(obj: Plain) -> Plain:
    """The metadata of an object, made if it has none."""
    found = obj.get("metadata")
    if found is None:
        found = obj["metadata"] = {}
    if not isinstance(found, dict):
        raise status.bad_request("json: cannot unmarshal metadata into ObjectMeta")
    return found


def place(kind: Kind, obj: Plain, *, namespace: str) -> Plain:
    """Put an object where the request says it goes; 400 if it says something else."""
    meta = metadata_of(obj)
    if not kind.namespaced:
        if meta.pop("namespace", ""):
            raise status.bad_request(
                "namespace may not be set on cluster-scoped objects"
            )
        return meta
    if meta.get("namespace", namespace) not in ("", namespace):
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on "
            "the request"
        )
    meta["namespace"] = namespace
    return meta


def before_create(kind: Kind, obj: Plain, stamps: Stamps) -> None:
    """What a new object has that no client decides."""
    meta = metadata_of(obj)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(field, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = stamps.name(meta["generateName"])
    meta["uid"] = stamps.uid()
    meta["creationTimestamp"] = stamps.time()
    meta.pop("generation", None)
    if kind.has_generation:
        meta["generation"] = 1


def before_update(kind: Kind, obj: Plain, old: Plain) -> list[FieldProblem]:
    """Carry over what only the server changes; complain if a client tried to."""
    meta, before = metadata_of(obj), metadata_of(old)
    problems = []
    for field in KEPT:
        given, had = meta.get(field), before.get(field)
        if given not in (None, "", had) and field in ("uid", "creationTimestamp"):
            problems.append(
                status.invalid(f"metadata.{field}", given, "field is immutable")
            )
        if had is None:
            meta.pop(field, None)
        else:
            meta[field] = had
    problems += _finalizer_problems(meta, before)
    return problems


def _finalizer_problems(meta: Plain, before: Plain) -> list[FieldProblem]:
    if not before.get("deletionTimestamp"):
        return []
    had = set(before.get("finalizers") or ())
    added = [each for each in meta.get("finalizers") or () if each not in had]
    if not added:
        return []
    shown = ", ".join(status.quoted(each) for each in added)
    return [
        status.forbidden_value(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{shown}}}",
        )
    ]


def bump_generation(kind: Kind, obj: Plain, old: Plain) -> None:
    """A new generation if anything but metadata and status changed."""
    if kind.has_generation and wish_of(kind, obj) != wish_of(kind, old):
        meta = metadata_of(obj)
        meta["generation"] = int(metadata_of(old).get("generation", 0)) + 1


def wish_of(kind: Kind, obj: Plain) -> dict[str, Any]:
    left_out = {"metadata", "apiVersion", "kind"}
    if kind.has_status:
        left_out.add("status")
    return {key: value for key, value in obj.items() if key not in left_out}
