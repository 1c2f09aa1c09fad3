"""Wishes: what people ask of any operator by an annotation of an object.

=========================  ============================================================
``trimtab.dev/paused``     any value but ``"false"``: the object is left alone, its
                           deletion too, until the annotation goes
``trimtab.dev/reconcile``  any new value (a date, say): it is reconciled once, now
=========================  ============================================================

Both count whatever fields a controller listens to, and bring back an object whose
failures have put it off.
"""

from __future__ import annotations

from typing import Any, Final

PAUSED: Final = "trimtab.dev/paused"
RECONCILE: Final = "trimtab.dev/reconcile"
FIELD: Final = "metadata.annotations"


def is_paused(obj: Any) -> bool:
    """Whether an object is to be left alone."""
    said = obj.metadata.annotations
    return PAUSED in said and said[PAUSED] != "false"


def asks(old: Any, new: Any) -> bool:
    """Whether a change of an object is such a wish."""
    if old is None or new is None:
        return False
    before, now = old.metadata.annotations, new.metadata.annotations
    if before == now:
        return False
    return any(before.get(name) != now.get(name) for name in (PAUSED, RECONCILE))
