"""JSON text: read as Go reads it, and refused in the words of Go's scanner.

What is right is read by msgspec. Only a text that it refuses is looked at again, by a
scanner that finds what Go would have found; letters that are no UTF-8 are none of that:
Go replaces them and reads on.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

import msgspec

from trimtab.embedded.gotext import quoted

ENDED: Final = "unexpected end of JSON input"
DEEP: Final = "exceeded max depth"
REPLACEMENT: Final = "\ufffd"

_space = re.compile("[ \t\r\n]*").match
_string = re.compile(r'"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*').match
_number = re.compile(r"-?(?:0|[1-9][0-9]*)").match
_fraction = re.compile(r"\.[0-9]+").match
_exponent = re.compile(r"[eE][+-]?[0-9]+").match
_hexadecimal = re.compile("[0-9a-fA-F]*").match
# A number that is whole though it is written as if it were not; or a text like one.
_point_zero = re.compile(rb"[0-9](?:\.0+(?![0-9])|[eE])").search
# From here on Go writes an exponent too.
_EXPONENT: Final = 1e21
_LONE = re.compile("[\ud800-\udfff]")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}


class Malformed(Exception):
    """A text that is no JSON, or that Go has no room for."""


def decode(body: bytes) -> Any:
    """The value in a text.

    Errors: :class:`Malformed` in the words of Go's decoder.
    """
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise Malformed(DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _lenient(body)


def whole(value: Any, body: bytes) -> Any:
    """A value with 2 where its text has 2.0, which is how Go writes it.

    What is found in ``body``, its text, decides whether there is anything to do.
    """
    return _as_written(value) if _point_zero(body) else value


def _as_written(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_written(each) for each in value]
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if is_whole and abs(value) < _EXPONENT else value


def pairs(body: bytes, make: Any) -> Any:
    """The value in a text whose objects are made by ``make`` from all their pairs."""
    return json.loads(_text(body), object_pairs_hook=make, parse_float=_float)


def _lenient(body: bytes) -> Any:
    """A value of which only letters are wrong."""
    try:
        _Scanner(body.decode("latin-1")).check()
        return json.loads(_text(body), object_pairs_hook=_clean, parse_float=_float)
    except RecursionError:
        raise Malformed(DEEP) from None


def _text(body: bytes) -> str:
    """Bytes as text; every byte that is no UTF-8 becomes one replacement letter."""
    return body.decode("utf-8", errors="trimtab.go")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError), "only used to decode"
    return REPLACEMENT * (error.end - error.start), error.end


codecs.register_error("trimtab.go", _replaced)


def _clean(found: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_whole(key): _whole(value) for key, value in found}


def _whole(value: Any) -> Any:
    """A value without halves of letters."""
    if isinstance(value, str):
        return _LONE.sub(REPLACEMENT, value)
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Malformed(
            f"json: cannot unmarshal number {text} into Go value of type float64"
        )
    return value


class _Scanner:
    """Goes through a text, one letter for each byte, until something is wrong."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[str] = []

    def check(self) -> None:
        """Find the first thing that is wrong, if anything is."""
        self._value()
        while self._open:
            self._next()
        self._skip()
        if self._at < len(self._text):
            raise self._wrong("after top-level value")

    def _next(self) -> None:
        """What follows a value inside of a list or an object."""
        self._skip()
        letter = self._letter()
        inside = self._open[-1]
        if letter == ("]" if inside == "[" else "}"):
            self._at += 1
            self._open.pop()
        elif letter != ",":
            what = "array element" if inside == "[" else "object key:value pair"
            raise self._wrong(f"after {what}")
        else:
            self._at += 1
            if inside == "{":
                self._key()
            self._value()

    def _value(self) -> None:
        """One value; of a list or an object only its beginning."""
        self._skip()
        letter = self._letter()
        if letter == '"':
            self._scan_string()
        elif letter in "-0123456789":
            self._scan_number()
        elif letter in _LITERALS:
            self._scan_literal(_LITERALS[letter])
        elif letter in "[{":
            self._begin(letter)
        else:
            raise self._wrong("looking for beginning of value")

    def _begin(self, letter: str) -> None:
        self._at += 1
        self._open.append(letter)
        self._skip()
        if self._letter() == ("]" if letter == "[" else "}"):
            self._at += 1
            self._open.pop()
            return
        if letter == "{":
            self._key()
        self._value()

    def _key(self) -> None:
        self._skip()
        if self._letter() != '"':
            raise self._wrong("looking for beginning of object key string")
        self._scan_string()
        self._skip()
        if self._letter() != ":":
            raise self._wrong("after object key")
        self._at += 1

    def _scan_string(self) -> None:
        found = _string(self._text, self._at)
        assert found is not None, "it begins with a quote"
        self._at = found.end()
        letter = self._letter()
        if letter == "\\":
            self._at += 1
            if self._letter() != "u":
                raise self._wrong("in string escape code")
            digits = _hexadecimal(self._text, self._at + 1)
            self._at = digits.end() if digits else self._at
            raise self._wrong("in \\u hexadecimal character escape")
        if letter != '"':
            raise self._wrong("in string literal")
        self._at += 1

    def _scan_number(self) -> None:
        found = _number(self._text, self._at)
        if found is None:
            self._at += 1
            raise self._wrong("in numeric literal")
        self._at = found.end()
        for mark, match, where in (
            (".", _fraction, "after decimal point in numeric literal"),
            ("eE", _exponent, "in exponent of numeric literal"),
        ):
            if self._text[self._at : self._at + 1] not in tuple(mark):
                continue
            found = match(self._text, self._at)
            if found is None:
                self._at += 1
                if mark == "eE" and self._letter() in "+-":
                    self._at += 1
                raise self._wrong(where)
            self._at = found.end()

    def _scan_literal(self, word: str) -> None:
        for wanted in word:
            if self._letter() != wanted:
                raise self._wrong(f"in literal {word} (expecting '{wanted}')")
            self._at += 1

    def _skip(self) -> None:
        found = _space(self._text, self._at)
        self._at = found.end() if found else self._at

    def _letter(self) -> str:
        if self._at >= len(self._text):
            raise Malformed(ENDED)
        return self._text[self._at]

    def _wrong(self, where: str) -> Malformed:
        letter = self._letter()
        shown = "'\\''" if letter == "'" else f"'{quoted(letter)[1:-1]}'"
        if letter == '"':
            shown = "'\"'"
        return Malformed(f"invalid character {shown} {where}")
