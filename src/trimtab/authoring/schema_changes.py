"""Schema changes: what two schemas of one version say differently, field by field.

Each difference says what it means for whoever has objects: what is refused from then
on, what is dropped, what becomes something else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.authoring.findings import Difference, Level, Touch

Raw = Mapping[str, Any]

KEEP: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"
INVALID: Final = "would be invalid, so a write that touches that part is refused"
DROPPED: Final = "would lose it at their next write, and do not show it any more"

# The bounds, and whether a larger number is the stricter one.
BOUNDS: Final = {
    "minimum": True,
    "minLength": True,
    "minItems": True,
    "minProperties": True,
    "maximum": False,
    "maxLength": False,
    "maxItems": False,
    "maxProperties": False,
}
# Conditions that cannot be compared: another one may refuse what was accepted.
OTHER: Final = (
    *("pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
    *("allOf", "anyOf", "oneOf", "not", "uniqueItems", "x-kubernetes-int-or-string"),
)
MERGING: Final = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def compare(old: Raw, new: Raw, *, version: str) -> Iterator[Difference]:
    """What the classes (``new``) say otherwise than what is deployed (``old``)."""
    described = sum(1 for _ in _descriptions(old, new))
    yield from _Node(version, "").compare(old, new)
    if described:
        fields = "field" if described == 1 else "fields"
        what = f"the descriptions of {described} {fields} differ"
        yield Difference(path=version, level="differs", what=what)


class _Node:
    """One place in the two schemas."""

    def __init__(self, version: str, path: str) -> None:
        self.version = version
        self.path = path

    def at(self, name: str) -> _Node:
        if name in ("[]", "{}"):
            return _Node(self.version, f"{self.path}{name}")
        return _Node(self.version, f"{self.path}.{name}" if self.path else name)

    def says(
        self,
        level: Level,
        what: str,
        *,
        touch: Touch = "",
        effect: str = "",
        value: Any = None,
    ) -> Difference:
        return Difference(
            path=f"{self.version} {self.path}".strip(),
            level=level,
            what=what,
            touch=touch,
            effect=effect,
            value=value,
        )

    def stricter(self, what: str) -> Difference:
        return self.says("breaks", what, touch="invalid", effect=INVALID)

    def compare(self, old: Raw, new: Raw) -> Iterator[Difference]:
        if _type(old) != _type(new):
            what = f"its type was {_type(old)} and is {_type(new)}"
            yield self.stricter(what)
            return
        yield from self._values(old, new)
        yield from self._default(old, new)
        yield from self._rules(old, new)
        yield from self._shape(old, new)
        yield from self._properties(old, new)
        for name, key in (("[]", "items"), ("{}", "additionalProperties")):
            one, other = old.get(key), new.get(key)
            if isinstance(one, Mapping) and isinstance(other, Mapping):
                yield from self.at(name).compare(one, other)

    def _values(self, old: Raw, new: Raw) -> Iterator[Difference]:
        yield from self._enum(old.get("enum"), new.get("enum"))
        for key, larger_is_stricter in BOUNDS.items():
            before, now = old.get(key), new.get(key)
            if before == now:
                continue
            what = f"its {key} was {_shown(before)} and is {_shown(now)}"
            if now is None or (
                before is not None and (now > before) != larger_is_stricter
            ):
                yield self.says("differs", what)
            else:
                yield self.stricter(what)
        for key in OTHER:
            before, now = old.get(key), new.get(key)
            if before == now:
                continue
            what = f"its {key} was {_shown(before)} and is {_shown(now)}"
            yield self.says("differs", what) if now is None else self.stricter(what)
        if old.get("nullable") and not new.get("nullable"):
            what = "it may not be null any more; a null that is there is dropped"
            yield self.says("changes", what)
        elif new.get("nullable") and not old.get("nullable"):
            yield self.says("differs", "it may be null")

    def _enum(self, old: Any, new: Any) -> Iterator[Difference]:
        if old == new or (old and new and sorted(old, key=str) == sorted(new, key=str)):
            return
        if not new:
            yield self.says("differs", "it takes any value, not only those listed")
        elif not old:
            yield self.stricter(f"it takes only {_listed(new)} and took any value")
        elif gone := [each for each in old if each not in new]:
            yield self.stricter(f"it no longer takes {_listed(gone)}")
        if old and new and (added := [each for each in new if each not in old]):
            yield self.says("differs", f"it takes {_listed(added)}, too")

    def _default(self, old: Raw, new: Raw) -> Iterator[Difference]:
        before, now = old.get("default"), new.get("default")
        if before == now:
            return
        if before is None:
            what = f"where it is missing, objects now get {_shown(now)}"
            yield self.says("changes", what)
            return
        then = "nothing" if now is None else _shown(now)
        yield self.says(
            "changes",
            f"its default was {_shown(before)} and is {then}: new objects get {then}, "
            f"and so do old ones that were stored before there was a default",
            touch="value",
            effect=f"have {_shown(before)} written down and keep it",
            value=before,
        )

    def _rules(self, old: Raw, new: Raw) -> Iterator[Difference]:
        before = {each.get("rule"): each for each in old.get(RULES) or ()}
        now = {each.get("rule"): each for each in new.get(RULES) or ()}
        for rule in now:
            if rule not in before:
                yield self.stricter(f"there is a new rule: {rule}")
            elif now[rule] != before[rule]:
                yield self.says("differs", f"the rule {rule} says something else")
        for rule in before:
            if rule not in now:
                yield self.says("differs", f"the rule {rule} is gone")

    def _shape(self, old: Raw, new: Raw) -> Iterator[Difference]:
        if old.get(KEEP) and not new.get(KEEP):
            what = "what the classes do not name is kept now and would be dropped"
            yield self.says("loses", what, touch="pruned", effect=DROPPED)
        elif new.get(KEEP) and not old.get(KEEP):
            yield self.says("differs", "what the classes do not name is kept")
        if old.get("additionalProperties") and not new.get("additionalProperties"):
            what = "it took any key and takes only those that are named"
            yield self.says("loses", what, touch="pruned", effect=DROPPED)
        for key in MERGING:
            if old.get(key) != new.get(key):
                what = f"its {key} was {_shown(old.get(key))} and is "
                what += f"{_shown(new.get(key))}: applies merge it in another way"
                yield self.says("changes", what)

    def _properties(self, old: Raw, new: Raw) -> Iterator[Difference]:
        before, now = old.get("properties") or {}, new.get("properties") or {}
        required = set(new.get("required") or ())
        was_required = set(old.get("required") or ())
        for name in before:
            if name not in now and not (new.get(KEEP) or _open(new)):
                what = "the classes do not name it, so the server would drop it"
                yield self.at(name).says("loses", what, touch="pruned", effect=DROPPED)
        for name, schema in now.items():
            place = self.at(name)
            if name in required and name not in was_required:
                what = "it is required" + ("" if name in before else ", and is new")
                yield place.stricter(what)
            elif name in before and name in was_required and name not in required:
                yield place.says("differs", "it is no longer required")
            elif name not in before:
                yield place.added(schema, open=bool(old.get(KEEP)) or _open(old))
            if name in before:
                yield from place.compare(before[name], schema)

    def added(self, schema: Raw, *, open: bool) -> Difference:
        """A field that the deployed schema does not have."""
        if open:
            return self.says("differs", "it is new, and kept as an unknown field now")
        if self.path.partition(".")[0] == "status":
            return self.says(
                "loses",
                "the deployed schema does not have it: what the operator writes there "
                "is refused or dropped until the CRD is applied",
            )
        given = schema.get("default")
        get = "" if given is None else f"; objects without it get {_shown(given)}"
        return self.says("differs", f"it is new{get}")


def _open(schema: Raw) -> bool:
    return bool(schema.get("additionalProperties"))


def _type(schema: Raw) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(schema.get("type") or "anything")


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value)


def _listed(values: Any) -> str:
    return ", ".join(_shown(each) for each in values)


def _descriptions(old: Any, new: Any) -> Iterator[None]:
    """One for each field that both have and describe in other words."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return
    if old.get("description") != new.get("description"):
        yield None
    before, now = old.get("properties") or {}, new.get("properties") or {}
    for name in before.keys() & now.keys():
        yield from _descriptions(before[name], now[name])
    for key in ("items", "additionalProperties"):
        yield from _descriptions(old.get(key), new.get(key))
