"""Formatting: ``'%s'.format([x])``, and what is wrong with such a call before it runs.

Numbers look as Go's localised printer prints them in English: with commas between the
thousands, and powers of ten written out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from trimtab.embedded.expressions import conversions
from trimtab.embedded.expressions.complaints import Complaint
from trimtab.embedded.expressions.kinds import Type
from trimtab.embedded.expressions.nodes import Call, Entries, Items, Literal, Node
from trimtab.embedded.expressions.values import (
    KINDS,
    Duration,
    EvaluationError,
    Record,
    Timestamp,
    TypeName,
    Uint,
    entries,
    kind_name,
)
from trimtab.embedded.gotext import quoted

_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_CLAUSE = re.compile(r"(?:\.([0-9]*))?(.?)", re.DOTALL)
_DIGITS: Final = 6
_INFINITIES: Final = ("NaN", "Infinity", "-Infinity")
_WHOLE: Final = ("int", "uint")
_STRINGS: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
    "lists, types, durations, and timestamps"
)
_TAKES: Final = {
    "s": (
        _STRINGS,
        *("list", "map", "int", "uint", "double", "bool", "string"),
        *("timestamp", "bytes", "duration", "type", "null"),
    ),
    "d": ("decimal clause can only be used on integers", *_WHOLE),
    "f": ("fixed-point clause can only be used on doubles", "double", "string"),
    "e": ("scientific clause can only be used on doubles", "double", "string"),
    "b": ("only integers and bools can be formatted as binary", *_WHOLE, "bool"),
    "o": ("octal clause can only be used on integers", *_WHOLE),
    "x": (
        "only integers, byte buffers, and strings can be formatted as hex",
        *(*_WHOLE, "string", "bytes"),
    ),
}
"""What is said of a value that a clause does not take, and the kinds that it takes."""


class _Wrong(Exception):
    """A text that cannot be formatted, or a value that a clause does not take."""


class _WrongAt(_Wrong):
    """The same, with the node that is to blame."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.node = node


Clause = Callable[[str, int | None], str]


def format_text(text: str, args: list[Any]) -> str:
    """``%s`` and its like, each replaced with the next argument."""

    def argument(index: int) -> Clause:
        if index >= len(args):
            raise _Wrong(f"index {index} out of range")
        return lambda letter, precision: _formatted(letter, precision, args[index])

    try:
        return "".join(_pieces(text, argument))
    except _Wrong as error:
        raise EvaluationError(str(error)) from None


def complaints(call: Call) -> Iterator[Complaint]:
    """What is wrong with a call whose text and list of arguments are written out."""
    text, given = call.target, call.args[0] if len(call.args) == 1 else None
    if not isinstance(text, Literal) or not isinstance(given, Items):
        return
    asked = 0

    def argument(index: int) -> Clause:
        nonlocal asked
        asked += 1
        return lambda letter, precision: _checked(letter, index, given.items)

    try:
        for _ in _pieces(text.value, argument):
            pass
    except _Wrong as error:
        blamed = error.node if isinstance(error, _WrongAt) else call
        yield Complaint(blamed.at, str(error))
        return
    if len(given.items) > asked:
        count = f"(expected {asked}, got {len(given.items)})"
        said = f"too many arguments supplied to string.format {count}"
        yield Complaint(call.at, said)


def _pieces(text: str, argument: Callable[[int], Clause]) -> Iterator[str]:
    at = index = 0
    while at < len(text):
        mark = text.find("%", at)
        if mark < 0:
            yield text[at:]
            return
        yield text[at:mark]
        if text[mark + 1 : mark + 2] == "%":
            yield "%"
            at = mark + 2
            continue
        clause = argument(index)
        if mark + 1 >= len(text):
            raise _Wrong("unexpected end of string")
        letter, precision, at = _read(text, mark + 1)
        try:
            yield clause(letter, precision)
        except _OutOfRange:
            raise _Wrong(f"index {index} out of range") from None
        except _WrongAt as error:
            said = f"error during formatting: {error}"
            raise _WrongAt(said, error.node) from None
        except _Wrong as error:
            raise _Wrong(f"error during formatting: {error}") from None
        index += 1


class _OutOfRange(Exception):
    """An argument that is not there."""


def _read(text: str, at: int) -> tuple[str, int | None, int]:
    """The letter of a clause, its precision, and where it ends."""
    found = _CLAUSE.match(text, at)
    assert found is not None
    digits, letter = found[1], found[2]
    said = "could not parse formatting clause"
    if digits is not None:
        within = f"{said}: error while parsing precision"
        if not letter:
            raise _Wrong(f"{within}: could not find end of precision specifier")
        if not digits:
            reason = 'strconv.Atoi: parsing "": invalid syntax'
            text = f"error while converting precision to integer: {reason}"
            raise _Wrong(f"{within}: {text}")
    if letter.lower() not in _TAKES or (letter.isupper() and letter != "X"):
        shown = chr(letter.encode()[0])
        raise _Wrong(f'{said}: unrecognized formatting clause "{shown}"')
    return letter, int(digits) if digits is not None else None, found.end()


def _refusal(letter: str, kind: str) -> str:
    return f"{_TAKES[letter.lower()][0]}, was given {kind}"


def _checked(letter: str, index: int, items: list[Node]) -> str:
    """Nothing, if an argument's type fits a clause."""
    if index >= len(items):
        raise _OutOfRange
    wrong = _unfit(letter, items[index])
    if wrong is not None:
        raise _WrongAt(_refusal(letter, type_name(wrong.type)), wrong)
    return ""


def _unfit(letter: str, node: Node) -> Node | None:
    """The node that a clause does not take: this one or one in it."""
    if node.type.kind != "dyn" and node.type.kind not in _TAKES[letter.lower()][1:]:
        return node
    inner: list[Node] = []
    if letter == "s" and isinstance(node, (Items, Entries)):
        inner = list(node.parts())
    return next((each for part in inner if (each := _unfit(letter, part))), None)


def type_name(type: Type) -> str:
    """The name of a type without its parameters."""
    long = {"duration": "google.protobuf.Duration", "null": "null_type"}
    long["timestamp"] = "google.protobuf.Timestamp"
    return type.name or long.get(type.kind, type.kind)


def _formatted(letter: str, precision: int | None, value: Any) -> str:
    special = letter in "ef" and value in _INFINITIES
    kind = KINDS.get(type(value), "")
    takes = _TAKES[letter.lower()][1:]
    if kind not in takes or (letter in "ef" and kind == "string" and not special):
        raise _Wrong(_refusal(letter, kind_name(value)))
    if letter == "s":
        return _shown(value)
    if letter == "f":
        return _fixed(float(value), _DIGITS if precision is None else precision)
    if letter == "e":
        return _scientific(float(value), _DIGITS if precision is None else precision)
    if letter in "xX" and isinstance(value, (str, bytes)):
        raw = value.encode() if isinstance(value, str) else value
        return raw.hex().upper() if letter == "X" else raw.hex()
    return format(int(value), letter)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_member, value))}]"
    if isinstance(value, (dict, Record)):
        pairs = sorted((_key(key), _member(item)) for key, item in entries(value))
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeName):
        return value.name
    try:
        return conversions.to_string(value)
    except EvaluationError as error:
        said = f'could not convert argument "{error}" to string'
        raise _Wrong(said) from None


def _key(value: Any) -> str:
    if not isinstance(value, (str, bool, int, Uint)):
        said = f"no formatting function for map key of type {kind_name(value)}"
        raise _Wrong(said)
    return _member(value)


def _member(value: Any) -> str:
    """An item of a list or a map, as it could stand in an expression."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(_shown(value))}"
    if isinstance(value, float):
        text = f"{value:.{_DIGITS}f}"
        return text if math.isfinite(value) else quoted(conversions.to_string(value))
    if isinstance(value, Timestamp):
        return f"timestamp({quoted(conversions.to_string(value))})"
    if isinstance(value, Duration):
        return f"duration({quoted(conversions.to_string(value))})"
    if type(value) not in KINDS or KINDS[type(value)] == "optional_type":
        raise _Wrong(f"no formatting function for {kind_name(value)}")
    return _shown(value)


def _infinite(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(value: float, places: int) -> str:
    if not math.isfinite(value):
        return _infinite(value)
    return f"{value:,.{places}f}"


def _scientific(value: float, width: int) -> str:
    """What is called precision is a width here, as in the real server."""
    if not math.isfinite(value):
        return _infinite(value).rjust(width)
    mantissa, _, exponent = f"{value:.{_DIGITS}e}".partition("e")
    raised = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
    return f"{mantissa}×10{raised.translate(_RAISED)}".rjust(width)
