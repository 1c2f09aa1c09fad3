"""What the real server says of a selector that it cannot read.

Only the words are here: whether a selector can be read is for
:mod:`trimtab.api.selectors` to say.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trimtab.embedded import status
from trimtab.embedded.builtin.validation import texts

_SPECIAL = "=!(),<>"
_TOKENS = ("(", ")", ",", "!", "==", "=", "!=", ">", "<", "in", "notin")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_KEYED = frozenset({"in", "notin"})
_BINARY = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})


class _Trouble(Exception):
    """What is wrong."""


class _Token(NamedTuple):
    sort: str
    """A token of the grammar, ``word`` or ``end``."""
    text: str


def of_labels(text: str) -> str:
    """Why a label selector cannot be read; empty if it can."""
    try:
        _Labels(text).read()
    except _Trouble as trouble:
        return str(trouble)
    return ""


class _Labels:
    """Reads a label selector as far as it goes."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0

    def read(self) -> None:
        while True:
            token = self._peek()
            if token.sort == "end":
                return
            if token.sort not in ("word", "!"):
                expected = "!, identifier, or 'end of string'"
                raise _Trouble(f"found '{token.text}', expected: {expected}")
            try:
                self._requirement()
            except _Trouble as trouble:
                raise _Trouble(f"unable to parse requirement: {trouble}") from None
            if self._ends():
                return

    def _ends(self) -> bool:
        token = self._take()
        if token.sort == "end":
            return True
        if token.sort != ",":
            expected = "',' or 'end of string'"
            raise _Trouble(f"found '{token.text}', expected: {expected}")
        after = self._peek()
        if after.sort not in ("word", "!"):
            raise _Trouble(f"found '{after.text}', expected: identifier after ','")
        return False

    def _requirement(self) -> None:
        token = self._take()
        absent = token.sort == "!"
        if absent:
            token = self._take()
        if token.sort != "word":
            raise _Trouble(f"found '{token.text}', expected: identifier")
        problems = "; ".join(texts.key(token.text))
        if problems:
            raise _Trouble(_invalid("<nil>", token.text, problems))
        if absent or self._peek().sort in ("end", ","):
            return
        operator = self._take(words=True)
        if operator.sort not in _BINARY:
            raise _Trouble(f"found '{operator.text}', expected: {_OPERATORS}")
        if operator.sort in _KEYED:
            values = self._values()
        else:
            values = [self._value()]
        _check(token.text, operator.sort, values)

    def _value(self) -> str:
        if self._peek().sort in ("end", ","):
            return ""
        token = self._take()
        if token.sort != "word":
            raise _Trouble(f"found '{token.text}', expected: identifier")
        return token.text

    def _values(self) -> list[str]:
        token = self._take()
        if token.sort != "(":
            raise _Trouble(f"found '{token.text}' expected: '('")
        token = self._peek()
        if token.sort == ")":
            self._take()
            return [""]
        if token.sort not in ("word", ","):
            raise _Trouble(f"found '{token.text}', expected: ',', ')' or identifier")
        return self._words()

    def _words(self) -> list[str]:
        found: list[str] = []
        while True:
            token = self._take()
            if token.sort == "word":
                found.append(token.text)
                after = self._peek()
                if after.sort not in (",", ")"):
                    raise _Trouble(f"found '{after.text}', expected: ',' or ')'")
            elif token.sort == ",":
                if not found or self._peek().sort in (",", ")"):
                    found.append("")
            elif token.sort == ")":
                return found
            else:
                raise _Trouble(f"found '{token.text}', expected: ',', or identifier")

    def _peek(self) -> _Token:
        return _as_word(self._tokens[self._place])

    def _take(self, *, words: bool = False) -> _Token:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token if words else _as_word(token)


def _as_word(token: _Token) -> _Token:
    """Where a value stands, an operator that is a word is a value."""
    return _Token("word", token.text) if token.sort in _KEYED else token


def _tokens(text: str) -> list[_Token]:
    found = []
    for part in re.findall(r"[=!<>]+|[(),]|[^\s=!(),<>]+", text):
        if part[0] in "=!<>":
            found += _operators(part)
        else:
            found.append(_Token(part if part in _TOKENS else "word", part))
    return [*found, _Token("end", "")]


def _operators(run: str) -> list[_Token]:
    """A run of signs, cut into the longest ones that mean something."""
    found = []
    while run:
        size = 2 if run[:2] in _TOKENS else 1
        found.append(_Token(run[:size], run[:size]))
        run = run[size:]
    return found


def _check(key: str, operator: str, values: list[str]) -> None:
    found = []
    for index, value in enumerate(sorted(set(values))):
        if operator in "<>" and not re.fullmatch(r"[+-]?\d+", value):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(_invalid(f"values[{index}]", value, detail))
        problems = "; ".join(texts.label_value(value))
        if problems:
            found.append(_invalid(f"values[{index}][{key}]", value, problems))
    if found:
        raise _Trouble(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _invalid(path: str, value: str, detail: str) -> str:
    return f"{path}: Invalid value: {status.quoted(value)}: {detail}"


def of_fields(text: str) -> str:
    """Why a field selector cannot be read; empty if it can."""
    for term in sorted(re.split(r"(?<!\\),", text)):
        found = re.search(r"!=|==|=", term)
        if term and found is None:
            return f"invalid selector: '{text}'; can't understand '{term}'"
        if found is not None:
            trouble = _value_trouble(term[found.end() :])
            if trouble:
                return f"invalid field selector: {trouble}"
    return ""


def _value_trouble(value: str) -> str:
    letters = iter(value)
    for letter in letters:
        if letter == "\\":
            after = next(letters, "")
            if after not in ("\\", ",", "="):
                return f"invalid escape sequence: \\{after}"
        elif letter in ",=":
            return f"unescaped character in value: {ord(letter)}"
    return ""
