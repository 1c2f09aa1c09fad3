"""Random kinds: classes with fields of any type and any notes that can be defined."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Optional

from msgspec import NODEFAULT

from tests.api.kitchen import Door, Heat, Level, Loose, Mark, Port
from tests.api.strategies import samples, values
from trimtab.api.conditions import Conditions
from trimtab.api.objects import ObjectMeta, Schema, Spec, Status, field
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Resource, ResourceMeta
from trimtab.api.selectors import LabelSelector
from trimtab.api.times import Duration, MicroTime
from trimtab.kinds import ConfigMap

_TYPES: Final[tuple[Any, ...]] = (
    *(str, int, float, bool, bytes, datetime, MicroTime, Duration, Quantity),
    *(int | str, Any, Literal["a", "b"], Literal[1, 2], Heat, Level),
    *(Door, Port, Mark, Loose, Conditions, LabelSelector, ConfigMap),
)
_NOTES: Final[Mapping[str, tuple[Any, ...]]] = {
    "minimum": (0, 1, -5, 0.5),
    "maximum": (10, 2**40, 1.5),
    "exclusive_minimum": (True, False),
    "multiple_of": (1, 2, 0.5),
    "min_length": (0, 1),
    "max_length": (5, 50),
    "pattern": ("^a+$", "x", r"\d{2,}"),
    "format": ("date", "uuid", "int32", "float", "double"),
    "min_items": (0, 1),
    "max_items": (5,),
    "min_properties": (1,),
    "max_properties": (9,),
    "list_type": ("set", "map", "atomic"),
    "list_keys": (("port",), ("port", "protocol"), ("color",), ("x", "y")),
    "map_type": ("atomic", "granular"),
    "preserve_unknown": (True,),
    "embedded_resource": (True,),
    "nullable": (True,),
    "doc": ("Word by word.\n\nAnd more: é.",),
}


def random_kind(*, seeded: int, size: int) -> type[Resource]:
    """A kind with so many random fields, in its spec or in its status."""
    choose = random.Random(seeded)
    base, part = choose.choice([(Spec, "spec"), (Status, "status")])
    hints: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    while len(hints) < size:
        name, hint = f"field{len(hints)}", _hint(choose)
        default = _default(choose, hint, needed=base is Status)
        if _defined("Trial", base, {name: hint}, {name: default}):
            hints[name], defaults[name] = hint, default
    whole = _defined("Random", base, hints, defaults)
    namespace = {"__module__": __name__, "__annotations__": {part: whole}}
    made: type[Resource] = ResourceMeta(
        "Random", (Resource,), namespace, group="random.example.com", version="v1"
    )
    return made


def _defined(
    name: str, base: Any, hints: dict[str, Any], defaults: dict[str, Any]
) -> Any:
    """The class, or None where it cannot be defined."""
    given = {key: value for key, value in defaults.items() if value is not NODEFAULT}
    fields = {key: field(default_factory=_same(value)) for key, value in given.items()}
    namespace = {"__module__": __name__, "__annotations__": hints, **fields}
    try:
        return ObjectMeta(name, (base,), namespace)
    except TypeError:
        return None


def _same(value: Any) -> Any:
    return lambda: value


def _hint(choose: random.Random, depth: int = 0) -> Any:
    lot = choose.random()
    if depth > 2 or lot < 0.5:
        hint = choose.choice(_TYPES)
    elif lot < 0.65:
        hint = list[_hint(choose, depth + 1)]  # type: ignore[misc]
    elif lot < 0.72:
        hint = set[_hint(choose, depth + 1)]  # type: ignore[misc]
    elif lot < 0.85:
        hint = dict[str, _hint(choose, depth + 1)]  # type: ignore[misc]
    else:
        hint = Optional[_hint(choose, depth + 1)]  # noqa: UP045 (made at run time)
    return Annotated[hint, _note(choose)] if choose.random() < 0.4 else hint


def _note(choose: random.Random) -> Schema:
    names = choose.sample(sorted(_NOTES), choose.choice([1, 1, 2, 2, 3]))
    return Schema(**{name: choose.choice(_NOTES[name]) for name in names})


def _default(choose: random.Random, hint: Any, *, needed: bool) -> Any:
    lot = choose.random()
    if lot < 0.4 and not needed:
        return NODEFAULT
    if lot < 0.6:
        return None
    try:
        return samples(values(hint), 1, seeded=choose.randrange(2**32))[0]
    except Exception:  # what no value fits, no default fits either
        return None
