"""Values: the leaves of Go's types, each read as Go reads it.

A function takes a JSON value and gives what Go would write for it; what a field cannot
hold is a :class:`Mismatch`, in the words of Go's decoder.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from trimtab.api.quantity import Quantity
from trimtab.api.times import Duration, MicroTime, parse_rfc3339, rfc3339
from trimtab.embedded import status
from trimtab.embedded.builtin.remembered import remembered
from trimtab.embedded.conform import Mistyped

Fix = Callable[[Any], Any]


class Mismatch(Mistyped):
    """A value that Go could not read into the type of its field."""

    def __init__(self, text: str, go_type: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.go_type = go_type
        self.path: list[str] = []
        self.struct = ""

    def __str__(self) -> str:
        if not self.go_type:
            return self.text
        where = f"Go struct field {self.struct}.{'.'.join(self.path)}"
        return f"json: cannot unmarshal {self.text} into {where} of type {self.go_type}"


def leaf(code: str) -> Fix:
    """The function of a value that is neither a struct nor a list nor a map."""
    return _LEAVES[code[0]](go_type_of(code))


def _typed(wanted: type, go_type: str) -> Fix:
    def typed(value: Any) -> Any:
        if type(value) is not wanted:
            refuse(value, go_type)
        return value

    return typed


def _number(go_type: str) -> Fix:
    def number(value: Any) -> Any:
        if type(value) is not float and type(value) is not int:
            refuse(value, go_type)
        return value

    return number


def _integer(go_type: str) -> Fix:
    bits = 32 if go_type in ("int32", "uint32") else 64
    low = 0 if go_type.startswith("u") else -(2 ** (bits - 1))
    high = 2 ** (bits - (not go_type.startswith("u"))) - 1

    def integer(value: Any) -> Any:
        if type(value) is not int or not low <= value <= high:
            refuse(value, go_type, numbers=True)
        return value

    return integer


def refuse(value: Any, go_type: str, *, numbers: bool = False) -> NoReturn:
    names = {dict: "object", list: "array", str: "string", bool: "bool"}
    name = names.get(type(value), f"number {value}" if numbers else "number")
    raise Mismatch(name, go_type)


def go_type_of(code: str) -> str:
    """The name of a type as Go prints it."""
    kind, _, named = code.partition(":")
    if code[0] == "@":
        _, version, name = code[1:].split(".")
        return f"{version}.{name}"
    if code[0] in "[{*":
        prefix = {"[": "[]", "{": "map[string]", "*": "*"}[code[0]]
        return prefix + go_type_of(code[1:])
    return named or {"s": "string", "b": "bool", "y": "[]uint8"}.get(kind, kind)


_is_canonical_time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII).fullmatch


def _time(value: Any) -> str | None:
    if type(value) is not str:
        refuse(value, "string")
    if _is_canonical_time(value):
        return value
    return rfc3339(_instant(value))


_micro_parts = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)?(.*)", re.ASCII | re.DOTALL
).fullmatch
_is_micro = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch


def _micro_time(value: Any) -> str:
    if type(value) is not str:
        refuse(value, "string")
    parts = _micro_parts(value)
    if parts is None or not parts[1] or not _is_micro(parts[2]):
        begun = parts is not None and parts[1]
        rest, wanted = (parts[2], ".000000") if parts and begun else (value, "2006")
        layout = "2006-01-02T15:04:05.000000Z07:00"
        raise Mismatch(
            f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{wanted}"'
        )
    moment = _instant(value)
    return value if parts[2][-1] == "Z" else MicroTime.of(moment).__encode__()


def _instant(value: Any) -> Any:
    if type(value) is not str:
        refuse(value, "string")
    try:
        return parse_rfc3339(value)
    except ValueError:
        layout = "2006-01-02T15:04:05Z07:00"
        raise Mismatch(
            f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        ) from None


def _duration(value: Any) -> str:
    if type(value) is not str:
        refuse(value, "string")
    try:
        return str(Duration(value))
    except ValueError:
        raise Mismatch(f"time: invalid duration {status.quoted(value)}") from None


_PATTERN: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


@remembered
def canonical(text: str) -> str:
    """A quantity in canonical form. The same few texts stand in every object."""
    shown = str(Quantity(text))
    return text if shown == text else shown


def _quantity(value: Any) -> str:
    if type(value) is int:
        value = str(value)
    elif type(value) is float:
        value = repr(value)
    try:
        return canonical(value if type(value) is str else "")
    except ValueError:
        text = f"quantities must match the regular expression '{_PATTERN}'"
        raise Mismatch(text) from None


def _int_or_string(value: Any) -> Any:
    if type(value) is str:
        return value
    return _int32(value)


_int32 = _integer("int32")


def _bytes(value: Any) -> str:
    if type(value) is not str:
        refuse(value, "[]uint8")
    plain = value.replace("\n", "").replace("\r", "") if "\n" in value else value
    try:
        base64.b64decode(plain, validate=True)
    except binascii.Error:
        position = _illegal_position(plain)
        raise Mismatch(f"illegal base64 data at input byte {position}") from None
    return value if plain == value else str(plain)


_is_base64 = re.compile("[A-Za-z0-9+/]*").match


def _illegal_position(text: str) -> int:
    """Where Go gives up: at the first letter that cannot be, or at a short end."""
    found = _is_base64(text)
    end = found.end() if found else 0
    return end if end < len(text) and text[end] != "=" else len(text) // 4 * 4


_LEAVES: Final[dict[str, Callable[[str], Fix]]] = {
    "s": lambda go_type: _typed(str, go_type),
    "b": lambda go_type: _typed(bool, go_type),
    "i": _integer,
    "f": _number,
    "y": lambda _: _bytes,
    "q": lambda _: _quantity,
    "x": lambda _: _int_or_string,
    "t": lambda _: _time,
    "u": lambda _: _micro_time,
    "d": lambda _: _duration,
    "j": lambda _: lambda value: value,
}
