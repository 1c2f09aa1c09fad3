"""Cells: the pieces that tables of many kinds are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from trimtab.embedded.tables import Column, age

TableColumn = Column
Plain = Mapping[str, Any]
Row = list[Any]
Print = Callable[[Plain, datetime], Row]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"

_AT_MOST: Final = 3
_OPERATORS: Final = {"In": " in ", "NotIn": " notin "}


class Printer(msgspec.Struct, frozen=True):
    """How objects of one kind are shown: the header and the cells under it."""

    columns: tuple[TableColumn, ...]
    row: Print


def printer(notation: str, row: Print) -> Printer:
    """A printer whose header is written short.

    Columns are separated by commas. A type other than string follows a colon, a format
    a slash, and a star marks a column that only a wide table shows.
    """
    return Printer(tuple(_column(each) for each in notation.split(", ")), row)


def _column(text: str) -> TableColumn:
    wide = text.endswith("*")
    name, _, format_ = text.rstrip("*").partition("/")
    name, _, type_ = name.partition(":")
    return TableColumn(
        name=name, type=type_ or "string", format=format_, priority=int(wide)
    )


def part(obj: Plain, *names: str) -> Any:
    """What is in a struct within structs; an empty one if there is none."""
    for name in names:
        obj = obj.get(name) or {}
    return obj


def since(moment: str | None, now: datetime) -> str:
    """How long ago that was."""
    if not moment:
        return UNKNOWN
    return age((now - datetime.fromisoformat(moment)).total_seconds())


def between(start: str, end: str) -> str:
    """How long it was from one moment to another."""
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return age(passed.total_seconds())


def created(obj: Plain, now: datetime) -> str:
    """How old an object is."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def labels(given: Mapping[str, str] | None) -> str:
    """Labels, or a selector that is no more than labels."""
    if not given:
        return NONE
    return ",".join(sorted(f"{key}={value}" for key, value in given.items()))


def selector(given: Plain | None) -> str:
    """A label selector as its query; empty for one of everything or nothing."""
    if not given:
        return ""
    terms = [
        (key, f"{key}={value}")
        for key, value in (given.get("matchLabels") or {}).items()
    ]
    terms += [
        (each["key"], _expression(each)) for each in given.get("matchExpressions") or ()
    ]
    terms.sort(key=lambda term: term[0])
    return ",".join(text for _, text in terms)


def _expression(given: Plain) -> str:
    key, operator = given["key"], given["operator"]
    if operator == "Exists":
        return f"{key}"
    if operator == "DoesNotExist":
        return f"!{key}"
    values = ",".join(sorted(set(given.get("values") or ())))
    return f"{key}{_OPERATORS[operator]}({values})"


def containers(template: Plain | None) -> tuple[str, str]:
    """The names and the images of a pod template's containers."""
    found = part(template or {}, "spec").get("containers") or ()
    names = ",".join(each["name"] for each in found)
    return names, ",".join(each.get("image") or "" for each in found)


def some(texts: Iterable[str], *, of: int) -> str:
    """The first few texts, and how many more there are."""
    shown = ",".join(texts)
    if of > _AT_MOST:
        return f"{shown} + {of - _AT_MOST} more..."
    return shown or UNSET


def condition(obj: Plain, kind: str) -> Plain | None:
    """The first condition of that type in the status."""
    for each in part(obj, "status").get("conditions") or ():
        if each["type"] == kind:
            found: Plain = each
            return found
    return None


def count(number: int | None) -> int:
    """A number; one that is not there is zero."""
    return number or 0
