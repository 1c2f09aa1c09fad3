"""Certificate signing requests: asking, deciding and signing are kept apart."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.builtin.strategy.common import keep

JSON = dict[str, Any]

_DECIDED: Final = ("Approved", "Denied")


def update(obj: JSON, old: JSON) -> None:
    """What was asked for stays; what comes of it is not decided here."""
    keep(obj, old, "spec")
    keep(obj, old, "status")


def status(obj: JSON, old: JSON) -> None:
    """Signing leaves the decision as it is."""
    keep(obj, old, "spec")
    for kind in _DECIDED:
        _keep_conditions(obj, old, kind)


def approval(obj: JSON, old: JSON) -> None:
    """Deciding leaves the certificate as it is."""
    conditions = (obj.get("status") or {}).get("conditions")
    keep(obj, old, "spec")
    kept = dict(old.get("status") or {})
    kept.pop("conditions", None)
    obj["status"] = {**kept, **({"conditions": conditions} if conditions else {})}


def _keep_conditions(obj: JSON, old: JSON, kind: str) -> None:
    """Conditions of one type, unless some were added or removed."""
    given = (obj.get("status") or {}).get("conditions") or []
    before = [
        each
        for each in (old.get("status") or {}).get("conditions") or ()
        if each["type"] == kind
    ]
    places = [index for index, each in enumerate(given) if each["type"] == kind]
    if len(places) == len(before):
        for index, each in zip(places, before, strict=True):
            given[index] = each
