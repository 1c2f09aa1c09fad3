"""Metadata: what the server itself writes into an object, and what may not change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random

from trimtab.api.times import rfc3339
from trimtab.embedded import status
from trimtab.embedded.calls import Calls
from trimtab.embedded.kinds import Kind, Plain

NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_BASE = 58
GENERATED_TAIL = 5
SERVER_SET = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)


TWICE = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix "
    "your requests; duplicate UID(s) observed: {}"
)
AFTER_MUTATION = " after mutating admission happens"


class Stamps:
    """Makes what is new: names, uids, times; the same if a request runs again."""

    def __init__(
        self, *, now: Callable[[], datetime], random: Random, calls: Calls
    ) -> None:
        self._now = now
        self._random = random
        self._calls = calls

    def now(self) -> datetime:
        return self._calls.now(self._now)

    def time(self) -> str:
        return rfc3339(self.now())

    def uid(self) -> str:
        return self._calls.draw("uid", self._calls.new_uid)

    def name(self, base: str) -> str:
        return base[:GENERATED_BASE] + self._calls.draw("name", self._letters)

    def _letters(self) -> str:
        return "".join(self._random.choices(NAME_LETTERS, k=GENERATED_TAIL))


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


def wipe(meta: Plain) -> None:
    """Drop what no client decides, before anybody notes who wrote it."""
    for field in SERVER_SET:
        meta.pop(field, None)


def drop_equal_owners(obj: Plain, warnings: list[str], *, when: str = "") -> None:
    """Keep each owner once; whoever writes one twice is warned."""
    owners = metadata_of(obj).get("ownerReferences") or ()
    if len(owners) < 2:
        return
    kept: list[Plain] = []
    dropped = []
    for owner in owners:
        if owner in kept:
            dropped.append(owner.get("uid", ""))
        else:
            kept.append(owner)
    if dropped:
        metadata_of(obj)["ownerReferences"] = kept
        warnings.append(TWICE.format(when, ", ".join(dropped)))


def before_create(obj: Plain, stamps: Stamps) -> None:
    """What a new object has that no client decides."""
    meta = metadata_of(obj)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = stamps.name(meta["generateName"])
    meta["uid"] = stamps.uid()
    meta["creationTimestamp"] = stamps.time()


def before_update(obj: Plain, old: Plain) -> None:
    """Carry over what only the server changes.

    A deletion that a client made up stays in, for the rules of metadata to refuse.
    """
    meta, before = metadata_of(obj), metadata_of(old)
    meta.pop("selfLink", None)
    meta.pop("generation", None)
    for field in ("generation", "creationTimestamp", "deletionTimestamp"):
        if before.get(field) is not None:
            meta[field] = before[field]
    for field in ("uid", "deletionGracePeriodSeconds"):
        if meta.get(field) in (None, "") and field in before:
            meta[field] = before[field]


def count_generation(
    kind: Kind, obj: Plain, old: Plain | None, *, subresource: str
) -> None:
    """A new generation if what is wished for changed, in kinds that count it."""
    generation = kind.generation(obj, old, subresource=subresource)
    if generation:
        metadata_of(obj)["generation"] = generation
