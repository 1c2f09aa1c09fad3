"""Stored objects: what another definition would make of each of them.

They are read, pruned, defaulted and validated as the server would do it, by the very
code that the embedded server uses, so that nobody has to find out on a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.authoring.definition_changes import storage
from trimtab.authoring.findings import (
    Difference,
    Finding,
    Objects,
    Touch,
    covers,
    general,
    values_at,
)
from trimtab.authoring.schema_changes import DROPPED, INVALID
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.shaping import copied

Plain = dict[str, Any]


class Effect(msgspec.Struct, frozen=True):
    """What happens to a part of an object."""

    touch: Touch
    field: str
    body: str = ""


class Survey:
    """Goes through stored objects, and tells whom each difference concerns."""

    def __init__(self, wanted: Plain, differences: Iterable[Difference]) -> None:
        self._version = storage(wanted["spec"])
        self._kind = CustomKind(_defined(wanted), self._version)
        self._found = [(each, Objects()) for each in differences]
        self._others: dict[tuple[Touch, str], tuple[str, Objects]] = {}
        self.stored = 0

    def add(self, obj: Plain) -> None:
        """Count one object."""
        self.stored += 1
        name = _name(obj)
        touched: set[int] = set()
        for effect in self._effects(obj):
            known = list(self._known(effect))
            touched.update(known)
            if not known:
                self._other(effect, name)
        for index, (difference, _) in enumerate(self._found):
            if difference.touch == "value" and self._has(difference, obj):
                touched.add(index)
        for index in touched:
            self._found[index][1].add(name)

    def findings(self) -> tuple[Finding, ...]:
        """All differences, and then what is wrong with objects for other reasons."""
        known = [
            Finding(difference=difference, objects=objects, stored=self.stored)
            for difference, objects in self._found
        ]
        others = [
            Finding(
                difference=Difference(
                    path=f"{self._version} {field}",
                    level="breaks" if touch == "invalid" else "loses",
                    what=body or "it is dropped",
                    touch=touch,
                    effect=INVALID if touch == "invalid" else DROPPED,
                ),
                objects=objects,
                stored=self.stored,
            )
            for (touch, field), (body, objects) in self._others.items()
        ]
        return (*known, *others)

    def _effects(self, obj: Plain) -> Iterator[Effect]:
        """What becomes of an object under the new definition."""
        made = copied(obj)
        made["apiVersion"] = self._kind.resource.api_version
        try:
            for path in self._kind.conform(made):
                yield Effect("pruned", general(path))
        except Mistyped as error:
            yield Effect("invalid", "metadata", str(error))
            return
        self._kind.default(made)
        for problem in self._kind.validate(made):
            if problem.field != "<nil>":
                yield Effect("invalid", general(problem.field), problem.body)

    def _known(self, effect: Effect) -> Iterator[int]:
        """The differences that an effect comes from."""
        for index, (difference, _) in enumerate(self._found):
            field = difference.field
            if difference.touch != effect.touch:
                continue
            inside = effect.touch == "pruned" and effect.field.startswith(f"{field}.")
            if inside or covers(field, effect.field):
                yield index

    def _other(self, effect: Effect, name: str) -> None:
        place = (effect.touch, effect.field)
        _, objects = self._others.setdefault(place, (effect.body, Objects()))
        objects.add(name)

    def _has(self, difference: Difference, obj: Plain) -> bool:
        return any(
            value == difference.value for value in values_at(obj, difference.field)
        )


def _defined(wanted: Plain) -> Plain:
    """The definition as a server would have it: every version served."""
    versions = [{**each, "served": True} for each in wanted["spec"]["versions"]]
    return {**wanted, "spec": {**wanted["spec"], "versions": versions}}


def _name(obj: Plain) -> str:
    metadata = obj.get("metadata") or {}
    return "/".join(
        part for part in (metadata.get("namespace"), metadata.get("name")) if part
    )
