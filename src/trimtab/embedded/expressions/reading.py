"""Reading: the words of an expression, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from trimtab.embedded.expressions.complaints import Complaint


class Token(msgspec.Struct, frozen=True, gc=False):
    """A word: what kind it is, how it is written, where it stands."""

    kind: str
    text: str
    at: int


_ESCAPE: Final = (
    r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
    r"|[0-3][0-7]{2})"
)
_STRING: Final = "|".join(
    [
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_WORD = re.compile(
    "|".join(
        f"(?P<{kind}>{form})"
        for kind, form in {
            "space": r"[\t \r\n\f]+|//[^\n]*",
            "bytes": f"[bB](?:{_STRING})",
            "string": _STRING,
            "float": r"[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
            r"|\.[0-9]+(?:[eE][+-]?[0-9]+)?",
            "uint": r"(?:0x[0-9a-fA-F]+|[0-9]+)[uU]",
            "int": r"0x[0-9a-fA-F]+|[0-9]+",
            "ident": r"[A-Za-z_][A-Za-z0-9_]*",
            "escaped": r"`[A-Za-z0-9_.\-/ ]+`",
            "sign": r"==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>]",
        }.items()
    )
)
KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
RESERVED: Final = frozenset(
    "as break const continue else false for function if import in let loop package "
    "namespace null return true var void while".split()
)


def tokens(source: str, complaints: list[Complaint]) -> Iterator[Token]:
    """The words of a text, and an ``end`` after them; what is no word is complained
    of."""
    at = 0
    while at < len(source):
        found = _WORD.match(source, at)
        if found is None:
            at = _skip(source, at, complaints)
            continue
        kind, text = found.lastgroup or "", found[0]
        if kind != "space":
            keyword = kind == "ident" and text in KEYWORDS
            yield Token("sign" if keyword else kind, text, at)
        at = found.end()
    yield Token("end", "<EOF>", len(source))


def _skip(source: str, at: int, complaints: list[Complaint]) -> int:
    """Past what is no word: a half operator, a quote without an end, a stray sign."""
    letter = source[at]
    end = at + 1
    if letter in "\"'":
        line = re.compile(r"[^\n\r]*").match(source, at)
        assert line is not None
        end = max(line.end(), at + 1)
    elif letter in "=&|":
        end = min(at + 2, len(source))
    shown = source[at:end]
    text = f"Syntax error: token recognition error at: '{_printed(shown)}'"
    complaints.append(Complaint(at, text))
    return end


def _printed(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_ESCAPED = re.compile(
    r"\\(?:([abfnrtv])|([\"'\\?`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})"
    r"|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)


def string_value(text: str) -> str:
    """What a quoted text stands for."""
    raw, body = _body(text)
    return body if raw else _ESCAPED.sub(_letter, body)


def bytes_value(text: str) -> bytes:
    """What a quoted text with a ``b`` in front stands for."""
    raw, body = _body(text[1:])
    if raw:
        return body.encode()
    parts = []
    at = 0
    for found in _ESCAPED.finditer(body):
        parts.append(body[at : found.start()].encode())
        octet = found[3] or found[6]
        if found[4] or found[5]:
            raise ValueError("Bytes cannot be written as a code point.")
        if octet:
            parts.append(bytes([int(octet, 16 if found[3] else 8)]))
        else:
            parts.append(_letter(found).encode())
        at = found.end()
    return b"".join([*parts, body[at:].encode()])


def _body(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return raw, text[width:-width]


def _letter(found: re.Match[str]) -> str:
    if found[1]:
        return _SIMPLE[found[1]]
    if found[2]:
        return found[2]
    if found[6]:
        return chr(int(found[6], 8))
    return chr(int(found[3] or found[4] or found[5], 16))
