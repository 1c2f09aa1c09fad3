"""Managed fields: who owns which fields of an object, kept up with every write.

An entry belongs to a manager and how it writes: for updates also to the version and
the subresource that it writes through, for applies to the subresource. What a write
changes moves to the writer's entry, and out of everybody else's.

Trees in entries are shared with the stored object and never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from trimtab.embedded.builtin.shapes import shape
from trimtab.embedded.comparing import Comparison, compare
from trimtab.embedded.fieldsets import (
    MalformedFields,
    Tree,
    difference,
    read,
    union,
)
from trimtab.embedded.plans import MalformedItem, Plan, plan_of, settled
from trimtab.embedded.types import Type

MAXIMUM_UPDATERS = 10
"""More entries of updates than this, and the oldest are merged into one."""
ANCIENT = "ancient-changes"
"""The manager of the entry that the oldest are merged into."""
BEFORE_APPLY = "before-first-apply"
"""The manager of what was there before anything was tracked."""
UNKNOWN = "unknown"

APPLY, UPDATE = "Apply", "Update"

_UNTRACKED = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
UNTRACKED: Tree = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in _UNTRACKED}},
}
"""Fields that nobody owns."""


class Reset(Protocol):
    """The fields that a write through some path cannot touch, and so does not own."""

    def filtered(self, tree: Tree) -> Tree:
        """The set without them."""
        ...


class Identity(msgspec.Struct, frozen=True):
    """Whose entry it is."""

    manager: str
    operation: str
    api_version: str = ""
    """Empty for applies: a manager has one entry for all versions."""
    subresource: str = ""

    @property
    def text(self) -> str:
        """As the real server sorts them: the entry's JSON without its contents."""
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({k: v for k, v in parts.items() if v}).decode()


class Entry(msgspec.Struct, frozen=True):
    """What somebody owns, since when, and in terms of which version."""

    tree: Tree
    api_version: str
    time: str = ""


Managed = dict[Identity, Entry]


def identity(
    manager: str, operation: str, *, api_version: str, subresource: str
) -> Identity:
    """The identity under which a request writes."""
    version = "" if operation == APPLY else api_version
    return Identity(manager or UNKNOWN, operation, version, subresource)


def decode(raw: Iterable[Mapping[str, Any]] | None) -> Managed:
    """The entries of a stored object, whose trees are canonical."""
    managed: Managed = {}
    for entry in raw or ():
        operation = entry["operation"]
        version = entry["apiVersion"]
        who = Identity(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else version,
            entry.get("subresource", ""),
        )
        tree = entry.get("fieldsV1") or {}
        managed[who] = Entry(tree, version, entry.get("time") or "")
    return managed


def decode_sent(raw: Sequence[Any]) -> Managed:
    """The entries that a client sent.

    Errors: `MalformedFields` with the first thing that is wrong.
    """
    for place, entry in enumerate(raw):
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            raise MalformedFields("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise MalformedFields("apiVersion must not be empty")
        form = entry.get("fieldsType", "")
        if not form:
            raise MalformedFields(f"missing fieldsType in managed fields entry {place}")
        if form != "FieldsV1":
            raise MalformedFields(
                f'invalid fieldsType "{form}" in managed fields entry {place}'
            )
    read_entries = [
        {**each, "fieldsV1": read(each.get("fieldsV1") or {})} for each in raw
    ]
    return decode(read_entries)


def encode(managed: Managed) -> list[dict[str, Any]]:
    """Entries as an object has them: applies first, then the oldest, then by name."""
    return [_encoded(who, managed[who]) for who in sorted(managed, key=_place(managed))]


def _place(managed: Managed) -> Any:
    def place(who: Identity) -> tuple[str, ...]:
        entry = managed[who]
        version = entry.api_version
        return who.operation, entry.time, who.manager, version, who.subresource

    return place


def _encoded(who: Identity, entry: Entry) -> dict[str, Any]:
    encoded: dict[str, Any] = {"manager": who.manager} if who.manager else {}
    encoded["operation"] = who.operation
    encoded["apiVersion"] = entry.api_version
    if entry.time:
        encoded["time"] = entry.time
    encoded["fieldsType"] = "FieldsV1"
    encoded["fieldsV1"] = entry.tree
    if who.subresource:
        encoded["subresource"] = who.subresource
    return encoded


Others = Callable[[str, dict[str, Any]], "tuple[dict[str, Any], Type] | None"]
"""An object in another version, and its type there; None if there is no such one."""


def is_reset(raw: Sequence[Any]) -> bool:
    """Whether a client asks for all entries to be forgotten."""
    return not raw or (len(raw) == 1 and not raw[0])


_DEFINITION_ZERO: dict[str, Any] = {
    "metadata": {},
    "spec": {"names": {"kind": "", "plural": ""}},
    "status": {"acceptedNames": {"kind": "", "plural": ""}},
}


@lru_cache(maxsize=256)
def zero(api_version: str, kind: str) -> dict[str, Any]:
    """The object that a new one is compared with.

    A custom kind's is empty. A built-in kind's has the fields that Go cannot leave
    out: they were always there, so nobody adds them.
    """
    if kind == "CustomResourceDefinition":  # the one built-in kind without a shape
        return _DEFINITION_ZERO
    made: dict[str, Any] = {"apiVersion": api_version}
    shape(api_version.rpartition("/")[0], kind, made)
    return {"metadata": {}, **made}


def after_update(
    before: dict[str, Any] | None,
    after: dict[str, Any],
    *,
    type: Type,
    api_version: str,
    manager: str,
    subresource: str = "",
    now: str,
    reset: Reset | None = None,
    others: Others | None = None,
) -> dict[str, Any]:
    """The object with the managed fields that it has after a create, update or patch.

    Flow: ``after`` is what the client wants, defaulted, before the server's own rules
    reset any of it; ``before`` is the stored object, None for a create. What the client
    changed becomes its own; everybody else loses it. The client's own
    ``metadata.managedFields`` count only if they are valid; ``[]`` or ``[{}]`` clears.

    Guarantees: neither object is changed, and the result and its metadata are new. An
    object without any entry stays so until it is applied. Nothing changed, nothing
    written: an entry's time moves only if its writer changed something.
    """
    plan = plan_of(type)
    kept = before["metadata"].get("managedFields") if before else None
    sent = after["metadata"].get("managedFields")
    if subresource or (not sent and not type.name):
        sent = None  # of a custom object, an empty list is as good as none
    managed = _starting_point(kept, sent, plan, custom=not type.name)
    if before is not None and not managed:
        return with_entries(after, None)
    who = identity(manager, UPDATE, api_version=api_version, subresource=subresource)
    old = zero(api_version, after.get("kind", "")) if before is None else before
    try:
        changed = changes(old, after, plan, reset)
    except (MalformedItem, AttributeError, TypeError, KeyError):
        # Validation refuses such an object, so nobody sees that it has no entries.
        return with_entries(after, None)
    updated = updated_by(
        who,
        managed,
        changed,
        api_version=api_version,
        now=now,
        elsewhere=changes_elsewhere(managed, old, after, api_version, others, reset),
    )
    return with_entries(after, encode(capped(updated)))


def _starting_point(
    kept: list[Any] | None, sent: list[Any] | None, plan: Plan, *, custom: bool
) -> Managed:
    """The entries before the write: the stored ones, unless the client sent others."""
    if sent is not None and sent != kept:
        if is_reset(sent):
            return {}
        try:
            managed = decode_sent(sent)
        except MalformedFields:
            managed = {}
        if managed:
            return reconciled(managed, plan)
    stored = decode(kept)
    return reconciled(stored, plan) if custom else stored


def reconciled(managed: Managed, plan: Plan) -> Managed:
    """The entries in terms of the schema as it is now: a custom kind's may change."""
    if not plan.rigid:
        return managed
    return {
        who: Entry(settled(entry.tree, plan), entry.api_version, entry.time)
        for who, entry in managed.items()
    }


def with_entries(
    object: dict[str, Any], entries: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """The object, new down to its metadata, with these managed fields."""
    metadata = dict(object["metadata"])
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries
    return {**object, "metadata": metadata}


def changes(
    before: dict[str, Any], after: dict[str, Any], plan: Plan, reset: Reset | None
) -> Comparison:
    """What changed that somebody can own.

    Errors: `MalformedItem`.
    """
    found = compare(_tracked(before), _tracked(after), plan)
    if reset is None:
        return found
    return Comparison(*(reset.filtered(tree) if tree else tree for tree in found))


def _tracked(object: dict[str, Any]) -> dict[str, Any]:
    metadata = {**object.get("metadata", {})}
    for name in _UNTRACKED:
        metadata.pop(name, None)
    tracked = {**object, "metadata": metadata}
    tracked.pop("apiVersion", None)
    tracked.pop("kind", None)
    return tracked


def changes_elsewhere(
    managed: Managed,
    before: dict[str, Any],
    after: dict[str, Any],
    api_version: str,
    others: Others | None,
    reset: Reset | None,
) -> Mapping[str, Comparison]:
    """What changed, for entries of other versions: in terms of each of them."""
    found: dict[str, Comparison] = {}
    if others is None:
        return found
    for version in {entry.api_version for entry in managed.values()} - {api_version}:
        old, new = others(version, before), others(version, after)
        if old is not None and new is not None:
            found[version] = changes(old[0], new[0], plan_of(old[1]), reset)
    return found


def updated_by(
    who: Identity,
    managed: Managed,
    changed: Comparison,
    *,
    api_version: str,
    now: str,
    elsewhere: Mapping[str, Comparison] | None = None,
) -> Managed:
    """The entries after somebody's update changed these fields."""
    own = union(changed.modified, changed.added)
    result = lost(managed, union(own, changed.removed), elsewhere=elsewhere)
    if own:
        previous = result.get(who)
        tree = union(own, previous.tree) if previous else own
        result[who] = Entry(tree, api_version, now)
    return result


def lost(
    managed: Managed,
    fields: Tree,
    *,
    but: Identity | None = None,
    elsewhere: Mapping[str, Comparison] | None = None,
) -> Managed:
    """The entries after all but one lost these fields; empty ones are gone."""
    by_version = {
        version: union(union(each.modified, each.added), each.removed)
        for version, each in (elsewhere or {}).items()
    }
    result: Managed = {}
    for who, entry in managed.items():
        gone = by_version.get(entry.api_version, fields)
        rest = entry.tree if who == but else difference(entry.tree, gone)
        if rest is entry.tree:
            result[who] = entry
        elif rest:
            result[who] = Entry(rest, entry.api_version, entry.time)
    return result


def capped(managed: Managed) -> Managed:
    """No more updaters than there may be: of each version, the oldest become one."""
    updaters = [who for who in managed if who.operation == UPDATE]
    excess = len(updaters) - MAXIMUM_UPDATERS
    if excess <= 0:
        return managed
    updaters.sort(key=lambda who: (managed[who].time, who.text))
    result = dict(managed)
    first: dict[str, Identity] = {}
    for who in updaters:
        if excess <= 0:
            break
        entry = managed[who]
        version = entry.api_version
        bucket = Identity(ANCIENT, UPDATE, version)
        if version not in first:
            first[version] = who
            continue
        if bucket not in result:
            result[bucket] = result.pop(first[version])
        tree = union(entry.tree, result[bucket].tree)
        del result[who]
        result[bucket] = Entry(tree, version, entry.time)
        excess -= 1
    return result
