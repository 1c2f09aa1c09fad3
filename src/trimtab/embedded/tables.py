"""Tables of custom kinds: columns that JSON paths fill, as ``kubectl get`` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from trimtab.api.times import parse_rfc3339
from trimtab.embedded.gotext import json_text, plain
from trimtab.embedded.jsonpath import Path, PathError

Plain = dict[str, Any]

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_YEAR: Final = 365 * _DAY


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column as the header of a table describes it."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0


class Printer:
    """Makes the rows of a custom kind's table."""

    def __init__(self, columns: list[Mapping[str, Any]]) -> None:
        if not columns:
            columns = [_AGE]
        self.columns = (_NAME, *map(_column, columns))
        self._cells = [(Path(each["jsonPath"]), each["type"]) for each in columns]

    def row(self, obj: Plain, *, now: datetime) -> list[Any]:
        """The cells of one object; an empty one is None."""
        name = obj.get("metadata", {}).get("name", "")
        cells = (self._cell(obj, path, kind, now) for path, kind in self._cells)
        return [name, *cells]

    def _cell(self, obj: Plain, path: Path, kind: str, now: datetime) -> Any:
        try:
            found = path.find(obj)
        except PathError:
            return None
        return _SHOWN[kind](found[0], now) if found else None


_NAME: Final = Column(
    name="Name", type="string", format="name", description="The name of the object."
)
_AGE: Final = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "How long ago the object was created.",
}


def _column(given: Mapping[str, Any]) -> Column:
    where = (
        f"Custom resource definition column (in JSONPath format): {given['jsonPath']}"
    )
    return Column(
        name=given["name"],
        type=given["type"],
        format=given.get("format") or "",
        description=given.get("description") or where,
        priority=given.get("priority") or 0,
    )


def _string(value: Any, now: datetime) -> str:
    if isinstance(value, (dict, list)):
        return json_text(value)
    return "<no value>" if value is None else plain(value)


def _integer(value: Any, now: datetime) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value)


def _number(value: Any, now: datetime) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Written without a fraction where it has none, as Go writes it.
    return int(value) if value == int(value) else value


def _boolean(value: Any, now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return "<unknown>"
    try:
        moment = parse_rfc3339(value)
    except ValueError:
        return "<invalid>"
    return age((now - moment).total_seconds())


_SHOWN: Final[dict[str, Callable[[Any, datetime], Any]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}


def age(passed: float) -> str:
    """A length of time in one or two units, as ``kubectl`` has it: ``5m3s``, ``2d``."""
    seconds = int(passed)
    if seconds < 0:
        return "0s" if seconds == -1 else "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _units(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _units(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _units(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _units(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _units(seconds: int, large: int, mark: str, small: int, smaller: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{mark}" + (f"{rest}{smaller}" if rest else "")
