"""Converting: an applied or strategically merged object, made into its Go struct.

The real server does not decode such an object, it converts it value by value, which
forgives other things than its decoder: a number too large for its field loses its upper
bits, a float without a fraction is a whole number; and it says other words when it
cannot.
"""

from __future__ import annotations

from typing import Any

from trimtab.embedded.builtin.shapes import declared
from trimtab.embedded.builtin.values import go_type_of
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.gotext import json_text
from trimtab.embedded.patches import json_kind
from trimtab.embedded.types import Type

BITS = {"int32": 32, "int64": 64}
GO_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "slice",
    dict: "map",
}


def convert(type: Type, obj: dict[str, Any]) -> None:
    """Make the values of an object, in place, what their fields can hold.

    Errors: ``Mistyped`` in the words of the real server's converter.
    """
    _struct(type, obj)


def _struct(type: Type, value: Any) -> Any:
    if not isinstance(value, dict):
        raise Mistyped(f"cannot restore struct from: {_kind(value)}")
    # What is wrong first is told, in the order in which Go declares the fields.
    codes = declared(type.name)
    for key in codes or type.fields:
        item, field = value.get(key), type.fields.get(key)
        if item is not None and field is not None:
            new = _value(field, item, codes.get(key, ""))
            if new is not item:
                value[key] = new
    return value


def _value(type: Type, value: Any, code: str) -> Any:
    if value is None or type.shape == "any":
        return value
    if type.shape == "object":
        # Without fields it is a struct that reads itself.
        return _struct(type, value) if type.fields else value
    if type.shape == "list":
        return _list(type, value, code)
    if type.shape == "map":
        return _map(type, value, code)
    return _scalar(type, value, code)


def _list(type: Type, value: Any, code: str) -> Any:
    if not isinstance(value, list):
        raise Mistyped(f"cannot restore slice from {_kind(value)}")
    if type.element is not None:
        for index, item in enumerate(value):
            new = _value(type.element, item, code.removeprefix("["))
            if new is not item:
                value[index] = new
    return value


def _map(type: Type, value: Any, code: str) -> Any:
    if not isinstance(value, dict):
        raise Mistyped(f"cannot restore map from {_kind(value)}")
    if type.element is not None:
        for key, item in value.items():
            new = _value(type.element, item, code.removeprefix("{"))
            if new is not item:
                value[key] = new
    return value


def _scalar(type: Type, value: Any, code: str) -> Any:
    if type.scalar == "integer":
        return _integer(value, type.format or "int64")
    if type.scalar == "int-or-string" and type.format != "quantity":
        return _int_or_string(value)
    if type.format == "date-time" and not isinstance(value, str):
        raise _unreadable(value, "string")
    if type.scalar == "boolean" and not isinstance(value, bool):
        raise Mistyped("unrecognized type: bool")
    if type.scalar == "string" and not type.format and not isinstance(value, str):
        if isinstance(value, int) and not isinstance(value, bool):
            raise Mistyped(f"cannot convert int64 to {go_type_of(code or 's')}")
        raise Mistyped("unrecognized type: string")
    return value


def _integer(value: Any, format: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Mistyped(f"unrecognized type: {format}")
    if isinstance(value, float) and not value.is_integer():
        raise Mistyped(f"cannot convert float64 to {format}")
    bits = BITS.get(format, 64)
    half = 1 << (bits - 1)
    return (int(value) + half) % (1 << bits) - half


def _int_or_string(value: Any) -> Any:
    """One that reads itself, from JSON, in which a float may look like an integer."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, str) or (whole and -(2**31) <= value < 2**31):
        return value
    raise _unreadable(value, "int32")


def _unreadable(value: Any, go_type: str) -> Mistyped:
    text = json_kind(value)
    if text == "number" and go_type != "string":
        text = f"number {json_text(value)}"
    return Mistyped(f"json: cannot unmarshal {text} into Go value of type {go_type}")


def _kind(value: Any) -> str:
    return GO_KINDS[type(value)]
