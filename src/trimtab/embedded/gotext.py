"""Go's text: values in the forms in which a program written in Go prints them.

Error messages quote values, and clients and tests match on messages, so a float, a
string or a whole object is printed here as the real server's ``fmt`` and
``encoding/json`` print it.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
# What encoding/json escapes so that JSON can stand inside HTML and JavaScript.
_HTML: Final = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)


def quoted(text: str) -> str:
    """A string as ``%q`` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A float64 as ``%v`` prints it: ``1``, ``2.5``, ``1e+06``."""
    return _float(value, smallest=-4, largest=21 if value == 0 else 6, places=2)


def _json_number(value: float) -> str:
    """A float64 as ``encoding/json`` prints it: ``1000000``, ``1e+21``."""
    return _float(value, smallest=-6, largest=21, places=1)


def _float(value: float, *, smallest: int, largest: int, places: int) -> str:
    """The shortest digits; an exponent where it is outside the bounds."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = _digits(value)
    if smallest <= exponent < largest:
        return sign + _positional(digits, exponent)
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    mark = "-" if exponent < 0 else "+"
    return f"{sign}{mantissa}e{mark}{abs(exponent):0{places}d}"


def _digits(value: float) -> tuple[str, str, int]:
    """Sign, significant digits and decimal exponent of the shortest form."""
    mantissa, exponent = f"{value!r}e0".lower().split("e")[:2]
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    power = int(exponent) + len(whole) - 1
    digits = (whole + fraction).rstrip("0") or "0"
    leading = len(digits) - len(digits.lstrip("0"))
    if digits == "0":
        return sign, "0", 0
    return sign, digits[leading:], power - leading


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


class Struct(dict[str, Any]):
    """A Go struct: its fields are printed in their own order, not sorted."""


def json_text(value: Any) -> str:
    """A value as ``json.Marshal`` writes it: sorted keys, no spaces, HTML escaped."""
    if isinstance(value, dict):
        keys = value if isinstance(value, Struct) else sorted(value)
        items = (f"{json_text(key)}:{json_text(value[key])}" for key in keys)
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, float):
        return _json_number(value)
    return msgspec.json.encode(value).decode().translate(_HTML)


def shown(value: Any) -> str:
    """A value of any kind as a field error quotes it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return number(value)
    return json_text(value)


def plain(value: Any) -> str:
    """A value as ``fmt.Sprint`` prints it, as far as JSON values go."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        items = (f"{key}:{plain(value[key])}" for key in sorted(value))
        return f"map[{' '.join(items)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(plain, value))}]"
    if isinstance(value, float):
        return number(value)
    if value is None:
        return "<nil>"
    return json_text(value)
