"""Objects: what ``Object.spec{replicas: 3}`` and ``JSONPatch{op: "add"}`` make.

Mutating policies say with them what an object should become. A type is named after
where its values stand, ``Object.spec.template``, and any field may be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded.expressions.conversions import to_string
from trimtab.embedded.expressions.kinds import DYN, STRING, Type
from trimtab.embedded.expressions.values import (
    Duration,
    EvaluationError,
    Optional,
    Record,
    Timestamp,
    Uint,
    equal,
    kind_name,
)
from trimtab.embedded.gotext import quoted

OBJECT: Final = "Object"
JSON_PATCH: Final = "JSONPatch"
_PATCH_FIELDS: Final = {"op": STRING, "from": STRING, "path": STRING, "value": DYN}


class AnyFields(Mapping[str, Type]):
    """The fields of a type that has every one."""

    def __getitem__(self, name: str) -> Type:
        return DYN

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY: Final = AnyFields()


def fields_of(name: str) -> Mapping[str, Type] | None:
    """The fields of a type that can be made here; None if there is no such type."""
    if name == JSON_PATCH:
        return _PATCH_FIELDS
    return _ANY if name == OBJECT or name.startswith(f"{OBJECT}.") else None


class Made:
    """An object that an expression made."""

    __slots__ = ("cel_name", "fields")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.cel_name = name
        self.fields = fields

    def has(self, name: str) -> bool:
        return name in self.fields

    def get(self, name: str) -> Any:
        if name not in self.fields:
            raise EvaluationError(f"no such key: {name}")
        return self.fields[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Made) or self.cel_name != other.cel_name:
            return False
        return equal(self.fields, other.fields)

    def __hash__(self) -> int:
        return hash(self.cel_name)

    def misnamed(self) -> list[str]:
        """What is wrong with the types of the objects in it, by where they stand."""
        return list(_misnamed(self, self.cel_name))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Made):
        if value.cel_name != path:
            yield (
                f"unexpected type name {quoted(value.cel_name)}, expected "
                f"{quoted(path)}, which matches field name path from root Object type"
            )
        for name, inner in value.fields.items():
            yield from _misnamed(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _misnamed(inner, path)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _misnamed(inner, path)


def plain(value: Any) -> Any:
    """A value as it stands in JSON.

    Errors: ``EvaluationError`` for one that has no JSON.
    """
    if isinstance(value, Made):
        return {name: plain(inner) for name, inner in value.fields.items()}
    if isinstance(value, Record):
        return value.raw
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, dict):
        return {to_string(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (Timestamp, Duration, bytes)):
        return to_string(value)
    if isinstance(value, Uint):
        return int(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Optional) and value.items:
        return plain(value.items[0])
    raise EvaluationError(f"unable to convert {kind_name(value)} to JSON")
