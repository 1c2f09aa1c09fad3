"""Patterns: regular expressions in Go's syntax, run by Python's engine.

A CRD's ``pattern`` and the ``matches`` of a rule are written for RE2. What RE2 refuses
(look-around, back-references) is refused here with its words; what the two engines read
differently (``$``, ``\\d``, ``\\z``, POSIX and Unicode classes) is translated.

RE2 matches in linear time; Python's engine may take exponential time on a pattern such
as ``(a+)+$``. Whoever may create CRDs may make this server slow.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_WORD: Final = "0-9A-Za-z_"
_PERL: Final = {"d": "0-9", "w": _WORD, "s": r"\t\n\f\r "}
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": _WORD,
    "xdigit": "0-9A-Fa-f",
}
_CONTROLS: Final = {
    "a": "\a",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_LARGEST_REPEAT: Final = 1000
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_NAMED_GROUP = re.compile(r"\(\?P?<(\w+)>", re.ASCII)
_FLAGS_GROUP = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")


class PatternError(ValueError):
    """A pattern that Go's parser refuses, in its words."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{text}`")


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to search with.

    Errors: :class:`PatternError` with the message of Go's ``regexp`` package.
    """
    return re.compile(_Translator(pattern).whole())


@lru_cache(maxsize=64)
def _unicode_class(name: str) -> str | None:
    """The ranges of a general category (``L``, ``Lu``) or of a script by name."""
    if name == "Any":
        return "\\U00000000-\\U0010ffff"
    if len(name) <= 2:
        members = [
            code
            for code in range(sys.maxunicode + 1)
            if unicodedata.category(chr(code)).startswith(name)
        ]
    else:
        prefix = {"Han": "CJK UNIFIED"}.get(name, name.replace("_", " ").upper())
        members = [
            code
            for code in range(sys.maxunicode + 1)
            if unicodedata.name(chr(code), "").startswith(prefix)
        ]
    return "".join(_ranges(members)) if members else None


def _ranges(members: list[int]) -> Iterator[str]:
    start = previous = members[0]
    for code in [*members[1:], -1]:
        if code != previous + 1:
            yield f"\\U{start:08x}-\\U{previous:08x}"
            start = code
        previous = code


class _Translator:
    """Reads Go's syntax from left to right and writes Python's."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags = frozenset[str]()

    def whole(self) -> str:
        translated = self._alternatives()
        if self.at < len(self.text):
            raise PatternError("unexpected )", self.text)
        return translated

    def _alternatives(self) -> str:
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        return "|".join(branches)

    def _sequence(self) -> str:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            atom = self._atom()
            parts.append(self._repeated(atom, start))
        return "".join(parts)

    def _next(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _atom(self) -> str:
        letter = self.text[self.at]
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._cased(self._class())
        if letter == "\\":
            return self._cased(self._escape())
        if letter in "*+?":
            raise PatternError("missing argument to repetition operator", letter)
        if letter == "{" and _REPEAT.match(self.text, self.at):
            found = _REPEAT.match(self.text, self.at)
            assert found is not None
            raise PatternError("missing argument to repetition operator", found[0])
        self.at += 1
        lines = "m" in self.flags
        if letter == ".":
            return r"[\s\S]" if "s" in self.flags else r"[^\n]"
        if letter == "^":
            return "(?m:^)" if lines else r"\A"
        if letter == "$":
            return "(?m:$)" if lines else r"\Z"
        return self._cased(re.escape(letter))

    def _cased(self, atom: str) -> str:
        return f"(?i:{atom})" if "i" in self.flags and atom else atom

    def _repeated(self, atom: str, start: int) -> str:
        first = self.at
        translated = self._repeat()
        if not translated:
            return atom
        again = self.at
        if self._repeat():
            shown = self.text[first : self.at]
            raise PatternError("invalid nested repetition operator", shown)
        self.at = again
        return f"(?:{atom}){translated}"

    def _repeat(self) -> str:
        """The repetition that stands here, if any."""
        counted = _REPEAT.match(self.text, self.at)
        if counted:
            self.at = counted.end()
            self._check_counts(counted)
            operator = counted[0]
        elif self.at < len(self.text) and self.text[self.at] in "*+?":
            operator = self.text[self.at]
            self.at += 1
        else:
            return ""
        lazy = self._next("?") != ("U" in self.flags)
        return f"{operator}?" if lazy else operator

    def _check_counts(self, found: re.Match[str]) -> None:
        least = int(found[1])
        most = int(found[3]) if found[3] else least
        if max(least, most) > _LARGEST_REPEAT or most < least:
            raise PatternError("invalid repeat count", found[0])

    def _group(self) -> str:
        outer = self.flags
        named = _NAMED_GROUP.match(self.text, self.at)
        if named:
            self.at = named.end()
            opening = f"(?P<{named[1]}>"
        elif self.text.startswith("(?", self.at):
            opening = self._flags()
            if not opening:
                return ""
        else:
            self.at += 1
            opening = "("
        inner = self._alternatives()
        if not self._next(")"):
            raise PatternError("missing closing )", self.text)
        self.flags = outer
        return f"{opening}{inner})"

    def _flags(self) -> str:
        """``(?i:`` opens a group; ``(?i)`` holds until the end of the one around."""
        found = _FLAGS_GROUP.match(self.text, self.at)
        if not found or found[0] == "(?)":
            self._refuse_group()
        assert found is not None
        self.at = found.end()
        self.flags = (self.flags | set(found[1])) - set(found[2] or "")
        return "(?:" if found[3] == ":" else ""

    def _refuse_group(self) -> None:
        rest = self.text[self.at :]
        if rest.startswith(("(?P<", "(?<")) and not rest.startswith(("(?<=", "(?<!")):
            end = rest.find(">")
            raise PatternError("invalid named capture", rest[: end + 1] or rest)
        length = 2
        while length < len(rest) and rest[length] in "imsU-":
            length += 1
        shown = rest[: length + 1]
        if length >= len(rest):
            raise PatternError("missing closing )", self.text)
        if shown in ("(?<",):
            shown = rest[: length + 2]
        raise PatternError("invalid or unsupported Perl syntax", shown)

    def _escape(self) -> str:
        """What a backslash outside of a class stands for."""
        letter = self.text[self.at + 1 : self.at + 2]
        simple = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:\B)"}
        if letter in simple and letter:
            self.at += 2
            return simple[letter]
        if letter == "C":
            self.at += 2
            return r"[\s\S]"
        if letter == "Q":
            end = self.text.find("\\E", self.at)
            end = len(self.text) if end < 0 else end
            literal = self.text[self.at + 2 : end]
            self.at = min(end + 2, len(self.text))
            return "".join(f"{re.escape(each)}" for each in literal)
        ranges = self._escaped_class()
        if ranges is not None:
            negated, members = ranges
            return f"[{'^' if negated else ''}{members}]"
        return re.escape(self._escaped_letter())

    def _escaped_class(self) -> tuple[bool, str] | None:
        letter = self.text[self.at + 1 : self.at + 2]
        if letter.lower() in _PERL and letter:
            self.at += 2
            return letter.isupper(), _PERL[letter.lower()]
        if letter in ("p", "P"):
            return self._unicode(negated=letter == "P")
        return None

    def _unicode(self, *, negated: bool) -> tuple[bool, str]:
        start = self.at
        self.at += 2
        if self._next("{"):
            end = self.text.find("}", self.at)
            if end < 0:
                raise PatternError("invalid character class range", self.text[start:])
            name = self.text[self.at : end]
            self.at = end + 1
        else:
            name = self.text[self.at : self.at + 1]
            self.at += 1
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        members = _unicode_class(name) if name else None
        if members is None:
            shown = self.text[start : self.at]
            raise PatternError("invalid character class range", shown)
        return negated, members

    def _escaped_letter(self) -> str:
        """A backslash and what follows it, as one character."""
        start = self.at
        letter = self.text[start + 1 : start + 2]
        if not letter:
            raise PatternError("trailing backslash at end of expression", "")
        self.at += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "01234567":
            digits = re.compile("[0-7]{0,2}").match(self.text, self.at)
            assert digits is not None
            if letter == "0" or digits[0]:
                self.at = digits.end()
                return chr(int(letter + digits[0], 8))
        if letter == "x":
            code = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(
                self.text, self.at
            )
            if code and int(code[1] or code[2], 16) <= sys.maxunicode:
                self.at = code.end()
                return chr(int(code[1] or code[2], 16))
        elif letter.isascii() and not letter.isalnum():
            return letter
        raise PatternError("invalid escape sequence", self.text[start : self.at])

    def _class(self) -> str:
        """A class in brackets."""
        start = self.at
        self.at += 1
        negated = self._next("^")
        parts: list[str] = []
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise PatternError("missing closing ]", self.text[start:])
            parts.append(self._class_part())
            first = False
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _class_part(self) -> str:
        posix = _POSIX_CLASS.match(self.text, self.at)
        if posix:
            if posix[2] not in _POSIX:
                raise PatternError("invalid character class range", posix[0])
            self.at = posix.end()
            members = _POSIX[posix[2]]
            return _complement(members) if posix[1] else members
        if self.text.startswith("\\", self.at):
            found = self._escaped_class()
            if found is not None:
                return _complement(found[1]) if found[0] else found[1]
        return self._class_range()

    def _class_range(self) -> str:
        start = self.at
        low = self._class_letter()
        high = low
        rest = self.text[self.at : self.at + 2]
        if rest.startswith("-") and len(rest) == 2 and rest[1] != "]":
            self.at += 1
            high = self._class_letter()
            if high < low:
                shown = self.text[start : self.at]
                raise PatternError("invalid character class range", shown)
        return f"\\U{ord(low):08x}-\\U{ord(high):08x}"

    def _class_letter(self) -> str:
        if self.text.startswith("\\", self.at):
            return self._escaped_letter()
        letter = self.text[self.at]
        self.at += 1
        return letter


@lru_cache(maxsize=64)
def _complement(members: str) -> str:
    """The ranges of everything that the ranges do not contain."""
    inside = re.compile(f"[{members}]")
    outside = [
        code for code in range(sys.maxunicode + 1) if not inside.match(chr(code))
    ]
    return "".join(_ranges(outside))
