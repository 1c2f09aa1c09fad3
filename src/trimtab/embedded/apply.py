"""Apply: server-side apply, a manager's whole intent laid over the live object.

The manager comes to own what it applies. What others own and the intent changes is a
conflict, unless it is forced. What the manager applied last time and no longer does
goes away, unless somebody else owns it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.embedded.checking import problems_of, summary
from trimtab.embedded.comparing import Comparison, compare, fields_of, same
from trimtab.embedded.fieldsets import (
    SELF,
    Path,
    Tree,
    difference,
    has,
    intersection,
    path_text,
    paths,
    union,
)
from trimtab.embedded.gotext import json_text, quoted
from trimtab.embedded.managed import (
    APPLY,
    BEFORE_APPLY,
    UNTRACKED,
    UPDATE,
    Entry,
    Identity,
    Managed,
    Others,
    Reset,
    capped,
    changes,
    changes_elsewhere,
    decode,
    encode,
    identity,
    lost,
    reconciled,
    updated_by,
    with_entries,
    zero,
)
from trimtab.embedded.merging import merge, remove
from trimtab.embedded.plans import MalformedItem, Plan, below, plan_of, with_named
from trimtab.embedded.types import Type

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What client-side apply remembers, and kubectl keeps current on the server side."""
KUBECTL = "kubectl"
_ANNOTATIONS_LIMIT = 256 * 1024

Conflict = tuple[Identity, Path]


class ApplyFailed(Exception):
    """An intent that cannot be applied; ``code`` is the HTTP status."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ApplyConflict(ApplyFailed):
    """Others own what the intent changes. ``causes`` are as the ``Status`` has them."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__(_conflict_message(conflicts), code=409)
        self.conflicts = conflicts
        self.causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager_text(who)}",
                "field": path_text(path),
            }
            for who, path in conflicts
        ]


def manager_text(who: Identity) -> str:
    """A manager as messages name it."""
    text = quoted(who.manager)
    if who.subresource:
        text += f" with subresource {quoted(who.subresource)}"
    return f"{text} using {who.api_version}" if who.operation == UPDATE else text


def _conflict_message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        who, path = conflicts[0]
        return (
            "Apply failed with 1 conflict: "
            f"conflict with {manager_text(who)}: {path_text(path)}"
        )
    lines: list[str] = []
    for manager in sorted({who for who, _ in conflicts}, key=lambda who: who.text):
        lines.append(f"conflicts with {manager_text(manager)}:")
        lines += (f"- {path_text(path)}" for who, path in conflicts if who == manager)
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


class _Request(msgspec.Struct, frozen=True):
    """What stays the same through one apply."""

    live: dict[str, Any]
    intent: dict[str, Any]
    plan: Plan
    who: Identity
    api_version: str
    now: str
    reset: Reset | None
    others: Others | None


def apply(
    live: dict[str, Any] | None,
    intent: dict[str, Any],
    *,
    type: Type,
    api_version: str,
    manager: str,
    force: bool,
    subresource: str = "",
    now: str,
    reset: Reset | None = None,
    kind: str = "",
    others: Others | None = None,
) -> dict[str, Any]:
    """The object after an intent was applied, before defaults are filled in.

    Flow: ``live`` is the stored object, None if the apply creates it.

    Guarantees: nothing given is changed; the result and its metadata are new, the rest
    may be shared with what was given. If nothing but ownership changes, no time moves.

    Errors: `ApplyConflict`; `ApplyFailed` for an intent that does not fit the schema or
    is about something else.
    """
    plan = plan_of(type)
    _check(intent, plan, api_version=api_version, kind=kind)
    who = identity(manager, APPLY, api_version=api_version, subresource=subresource)
    start = live if live is not None else {"metadata": {}}
    managed = reconciled(decode(start["metadata"].get("managedFields")), plan)
    request = _Request(start, intent, plan, who, api_version, now, reset, others)
    if not managed and live is not None:
        managed = _first(request, subresource)
    try:
        merged, managed = _applied(request, managed, force=force)
    except ApplyConflict as conflict:
        if manager != KUBECTL:
            raise
        rest = _not_from_client_side(request, conflict.conflicts)
        if rest:
            raise ApplyConflict(rest) from conflict
        merged, managed = _applied(request, managed, force=True)
    result = with_entries(merged, encode(managed))
    return _with_last_applied(result, intent) if manager == KUBECTL else result


def _check(intent: dict[str, Any], plan: Plan, *, api_version: str, kind: str) -> None:
    version = str(intent.get("apiVersion", ""))
    what = str(intent.get("kind", ""))
    group, _, rest = version.rpartition("/")
    named = f"{group}/{rest}, Kind={what}"
    if version != api_version or (kind and what != kind):
        raise ApplyFailed(f"invalid object type: {named}", code=400)
    metadata = intent.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise ApplyFailed("metadata.managedFields must be nil", code=400)
    problems = problems_of(intent, plan)
    if problems:
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        raise ApplyFailed(
            f"failed to create typed patch object ({where}; {named}): "
            f"{summary(problems)}",
            code=500,
        )


def _first(request: _Request, subresource: str) -> Managed:
    """Entries for an object that has none: all it has is somebody's from before."""
    version = request.api_version
    who = identity(BEFORE_APPLY, UPDATE, api_version=version, subresource=subresource)
    old = zero(version, request.live.get("kind", ""))
    found = changes(old, request.live, request.plan, request.reset)
    return capped(updated_by(who, {}, found, api_version=version, now=request.now))


def _applied(
    request: _Request, managed: Managed, *, force: bool
) -> tuple[dict[str, Any], Managed]:
    """The merged object and its entries."""
    live, plan, who, reset = request.live, request.plan, request.who, request.reset
    merged = merge(live, request.intent, plan)
    own = fields_of(request.intent, plan)
    own = reset.filtered(own) if reset and own else own
    last = managed.get(who)
    time = last.time if last else ""
    claimed = {**managed, who: Entry(own, request.api_version, time)}
    if last is not None and last.tree:
        if request.others is None:
            merged = _pruned(merged, claimed, last.tree, own, plan)
        else:
            merged = _pruned_across(request, merged, claimed, last)
    found = changes(live, merged, plan, reset)
    written = union(found.modified, found.added)
    elsewhere = changes_elsewhere(
        claimed, live, merged, request.api_version, request.others, reset
    )
    conflicts = [] if force else list(_conflicts(claimed, written, who, elsewhere))
    if conflicts:
        raise ApplyConflict(conflicts)
    gone = union(written, found.removed)
    result = lost(claimed, gone, but=who, elsewhere=elsewhere)
    tree = difference(own, UNTRACKED)
    if tree:
        if not same(live, merged, plan):
            time = request.now
        result[who] = Entry(tree, request.api_version, time)
    else:
        del result[who]
    return merged, result


def _conflicts(
    managed: Managed,
    written: Tree,
    who: Identity,
    elsewhere: Mapping[str, Comparison],
) -> Sequence[Conflict]:
    by_version = {
        version: union(each.modified, each.added) for version, each in elsewhere.items()
    }
    return [
        (other, path)
        for other in sorted(managed, key=lambda each: each.text)
        if other != who
        for path in paths(
            intersection(
                managed[other].tree,
                by_version.get(managed[other].api_version, written),
            )
        )
    ]


def _pruned_across(
    request: _Request, merged: dict[str, Any], managed: Managed, last: Entry
) -> dict[str, Any]:
    """The merged object without what was applied last time and nobody owns now, where
    versions differ in more than their names.

    What was applied is taken away in the version that it was applied in; what others
    own comes back in theirs.
    """
    assert request.others is not None, "only asked if versions are converted"
    versions = {entry.api_version for entry in managed.values()}
    here = request.others(last.api_version, merged)
    if here is None:
        return merged
    value, plan = here[0], plan_of(here[1])
    previous = with_named(last.tree, plan)
    pruned, at = remove(value, previous, plan), last.api_version
    for version in [at, *sorted(versions - {at, request.api_version})]:
        pruned = _with_owned(request, merged, pruned, managed, version) or pruned
    pruned = _with_owned(request, merged, pruned, managed, request.api_version)
    return merged if pruned is None else pruned


def _with_owned(
    request: _Request,
    merged: dict[str, Any],
    pruned: dict[str, Any],
    managed: Managed,
    version: str,
) -> dict[str, Any] | None:
    """A pruned object, in a version, with what somebody owns in that version."""
    assert request.others is not None, "only asked if versions are converted"
    whole, rest = request.others(version, merged), request.others(version, pruned)
    if whole is None or rest is None:
        return None
    plan = plan_of(whole[1])
    owned: Tree = {}
    for entry in managed.values():
        if entry.api_version == version:
            owned = union(owned, entry.tree)
    everything = _members(whole[0], plan)
    kept = union(_members(rest[0], plan), with_named(owned, plan))
    left: dict[str, Any] = remove(whole[0], difference(everything, kept), plan)
    return left


def _pruned(
    merged: dict[str, Any], managed: Managed, last: Tree, own: Tree, plan: Plan
) -> dict[str, Any]:
    """The merged object without what was applied last time and nobody owns now."""
    if _covers(own, last, plan):
        return merged
    owned: Tree = {}
    for entry in managed.values():
        owned = union(owned, entry.tree)
    everything = with_named(fields_of(merged, plan), plan)
    previous = with_named(last, plan)
    # Taking an item takes all that is in it; what others own in it comes back.
    left = _members(remove(merged, previous, plan), plan)
    gone = difference(everything, union(left, with_named(owned, plan)))
    # And so does what nobody owns, or only ever was somebody else's.
    left = _members(remove(merged, gone, plan), plan)
    dropped = intersection(difference(everything, left), previous)
    pruned: dict[str, Any] = remove(merged, dropped, plan)
    return pruned


def _members(value: Any, plan: Plan) -> Tree:
    return with_named(fields_of(value, plan), plan)


def _covers(own: Tree, last: Tree, plan: Plan | None) -> bool:
    """Whether all that was applied is applied again, down to the items it is in."""
    for element, node in last.items():
        if element == SELF:
            continue
        mine = own.get(element)
        if mine is None:
            return False
        is_member = not mine or SELF in mine
        is_named = plan is not None and element[0] == "f" and element[2:] in plan.fields
        if not is_member and (not node or not is_named):
            return False
        if node and (not mine or not _covers(mine, node, below(plan, element))):
            return False
    return True


def _not_from_client_side(
    request: _Request, conflicts: Sequence[Conflict]
) -> Sequence[Conflict]:
    """The conflicts about fields that kubectl did not apply itself on the client side.

    What it applied then, and is still as it was, it may take over.
    """
    allowed = _client_side_fields(request)
    if allowed is None:
        return conflicts
    return [(who, path) for who, path in conflicts if not has(allowed, path)]


def _client_side_fields(request: _Request) -> Tree | None:
    live, plan = request.live, request.plan
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        remembered = msgspec.json.decode(text or "")
        if remembered["apiVersion"] != request.api_version:
            return None
        if problems_of(remembered, plan) or problems_of(live, plan):
            return None
        found = compare(remembered, live, plan)
    except (ValueError, TypeError, KeyError, MalformedItem):
        return None
    return difference(fields_of(remembered, plan), union(union(*found[:2]), found[2]))


def _with_last_applied(
    object: dict[str, Any], intent: dict[str, Any]
) -> dict[str, Any]:
    """The object whose annotation of client-side apply, if any, is the intent."""
    metadata = object["metadata"]
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return object
    said = dict(intent.get("metadata") or {})
    if "annotations" in said:
        said["annotations"] = dict(said["annotations"] or {})
        said["annotations"].pop(LAST_APPLIED, None)
    text = json_text({**intent, "metadata": said}) + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > (
        _ANNOTATIONS_LIMIT
    ):
        del annotations[LAST_APPLIED]
    return {**object, "metadata": {**metadata, "annotations": annotations}}
