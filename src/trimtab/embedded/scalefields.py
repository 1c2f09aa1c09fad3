"""Scale fields: the entries of an object's managed fields as its scale has them.

A write to the scale is a write to one field of the object. The scale is given the
entries of those who own that field, the write changes them, and they are carried back.
That is how the real server does it, and so are the oddities: what comes back has no
time, and an updater who owned more than that field has two entries for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.embedded.fieldsets import LEAF, Path, Tree, difference, has, insert
from trimtab.embedded.managed import Entry, Managed, decode, encode

SCALE_VERSION = "autoscaling/v1"
REPLICAS: Path = ("f:spec", "f:replicas")
"""Where a scale has them, and most kinds too."""
_OWNED: Tree = {"f:spec": {"f:replicas": LEAF}}

Entries = Sequence[dict[str, Any]]


def to_scale(
    entries: Entries | None, *, api_version: str, replicas: Path = REPLICAS
) -> list[dict[str, Any]]:
    """The entries of an object's scale.

    ``replicas`` is where the object, which is of ``api_version``, has them.
    """
    owners: Managed = {
        who: Entry(_OWNED, SCALE_VERSION, entry.time)
        for who, entry in decode(entries).items()
        if entry.api_version == api_version and has(entry.tree, replicas)
    }
    return encode(owners)


def from_scale(
    entries: Entries | None,
    scaled: Entries | None,
    *,
    api_version: str,
    replicas: Path = REPLICAS,
) -> list[dict[str, Any]]:
    """The entries of an object whose scale came to have others."""
    field = insert({}, replicas)
    owners = decode(scaled)
    stored = decode(entries)
    result: Managed = {}
    for who, entry in stored.items():
        if entry.api_version != api_version:
            continue
        if not has(entry.tree, replicas):
            result[who] = entry
        elif who in owners:
            result[who] = entry
            del owners[who]
        elif rest := difference(entry.tree, field):
            result[who] = Entry(rest, api_version, entry.time)
    for who, entry in owners.items():
        if has(entry.tree, REPLICAS):
            time = stored[who].time if who in stored else ""
            result[who] = Entry(field, api_version, time)
    return encode(result)
