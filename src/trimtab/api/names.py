"""Names: what Kubernetes accepts as one, and how to make one that always fits.

Each ``check_*`` returns when a text is valid and raises :class:`InvalidName` when it is
not, with every problem in the words of the API server.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import wraps
from typing import Final, Protocol

LABEL_LIMIT: Final = 63
SUBDOMAIN_LIMIT: Final = 253

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY_NAME})?"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_key_name = re.compile(_KEY_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch

_KEY_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_KEY_NAME}')"
)


class InvalidName(ValueError):
    """A text that cannot be what it was meant to be; ``problems`` says why."""

    def __init__(self, value: str, problems: list[str], *, what: str) -> None:
        shown = value if len(value) <= 80 else f"{value[:77]}..."
        super().__init__(f"{what} {shown!r} is not valid: {'; '.join(problems)}.")
        self.problems = tuple(problems)


class Check(Protocol):
    """Refuses a text that is not valid; ``what`` names it in the message."""

    def __call__(self, value: str, *, what: str = ...) -> None: ...


def _raising(problems_of: Callable[[str], list[str]]) -> Check:
    """Make a check out of a function that lists problems.

    A list can be forgotten by who calls; an error cannot.
    """

    @wraps(problems_of)
    def check(value: str, *, what: str = "The name") -> None:
        problems = problems_of(value)
        if problems:
            raise InvalidName(value, problems, what=what)

    return check


@_raising
def check_label(value: str) -> list[str]:
    """A DNS-1123 label: what namespaces and most generated names must be."""
    problems = _too_long(value, LABEL_LIMIT)
    if not _is_label(value):
        if _is_subdomain(value):
            problems.append("must not contain dots")
        else:
            problems.append(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                "characters or '-', and must start and end with an alphanumeric "
                "character (e.g. 'my-name',  or '123-abc', regex used for validation "
                f"is '{_LABEL}')"
            )
    return problems


@_raising
def check_subdomain(value: str) -> list[str]:
    """A DNS-1123 subdomain: what the names of most objects must be."""
    return _subdomain_problems(value)


def _subdomain_problems(value: str) -> list[str]:
    problems = _too_long(value, SUBDOMAIN_LIMIT)
    if not _is_subdomain(value):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '-' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN}')"
        )
    return problems


@_raising
def check_label_1035(value: str) -> list[str]:
    """A DNS-1035 label: what plurals, versions and the names of Services must be."""
    return _label_1035_problems(value)


def _label_1035_problems(value: str) -> list[str]:
    problems = _too_long(value, LABEL_LIMIT)
    if not _is_label_1035(value):
        problems.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or "
            "'-', start with an alphabetic character, and end with an alphanumeric "
            "character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            f"'{_LABEL_1035}')"
        )
    return problems


@_raising
def check_label_key(value: str) -> list[str]:
    """A qualified name: what the keys of labels and annotations must be."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        suffix = "with an optional DNS subdomain prefix and '/'"
        return [
            f"a valid label key {_KEY_NAME_RULE} {suffix} (e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(prefix) if slash else []
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {each}" for each in _too_many_bytes(name, LABEL_LIMIT)]
    if not _is_key_name(name):
        problems.append(f"name part {_KEY_NAME_RULE}")
    return problems


@_raising
def check_label_value(value: str) -> list[str]:
    """The value of a label; it may be empty."""
    problems = _too_many_bytes(value, LABEL_LIMIT)
    if not _is_value(value):
        problems.append(
            "a valid label must be an empty string or consist of alphanumeric "
            "characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '{_VALUE}')"
        )
    return problems


@_raising
def check_kind(value: str) -> list[str]:
    """The kind of a custom resource: a DNS-1035 label but for its capitals."""
    return [
        f"may have mixed case, but should otherwise match: {problem}"
        for problem in _label_1035_problems(value.lower())
    ]


@_raising
def check_group(value: str) -> list[str]:
    """An API group; the empty name of the core group is not one."""
    return _subdomain_problems(value)


@_raising
def check_custom_group(value: str) -> list[str]:
    """The API group of a custom resource: it has a dot; built-in ones need none."""
    problems = _subdomain_problems(value)
    if not problems and "." not in value:
        problems.append("should be a domain with at least one dot")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = _too_many_bytes(prefix, SUBDOMAIN_LIMIT)
    if not _is_subdomain(prefix):
        problems += _subdomain_problems(prefix)[-1:]
    return [f"prefix part {problem}" for problem in problems]


# The server counts bytes in both, and says "characters" of the older rules.
def _too_long(value: str, limit: int) -> list[str]:
    if _bytes(value) <= limit:
        return []
    return [f"must be no more than {limit} characters"]


def _too_many_bytes(value: str, limit: int) -> list[str]:
    if _bytes(value) <= limit:
        return []
    return [f"must be no more than {limit} bytes"]


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(_utf8(value))


def _utf8(value: str) -> bytes:
    # JSON can smuggle in half a surrogate pair; it must be refused, not crash.
    return value.encode("utf-8", "surrogatepass")


# Digits and lower-case letters but i, l, o and u: none reads as another, and no word
# that one would not want in a name comes out.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
# 80 bits: a million million names before two are likely to meet.
_HASH_LENGTH: Final = 16
_SHORTEST: Final = _HASH_LENGTH + 2

_not_in_label = re.compile("[^a-z0-9]+")


def hashed(prefix: str, *parts: str, limit: int = LABEL_LIMIT) -> str:
    """A valid DNS label out of any texts: a readable beginning and a hash of all.

    Guarantees: the same arguments give the same name, in every process and every
    release. Other arguments give another name (80 bits of SHA-256 over the prefix and
    each part, so ``("a", "bc")`` and ``("ab", "c")`` differ). The name has at most
    ``limit`` characters, begins with a letter and never ends with ``-``, so that it
    also serves where a DNS-1035 label is asked for.

    Errors: ``ValueError`` when the limit is below 18 or above 63.
    """
    _check_limit(limit)
    return f"{_readable(prefix, limit - _HASH_LENGTH - 1)}-{_hash((prefix, *parts))}"


def fit(name: str, *, limit: int = LABEL_LIMIT) -> str:
    """The name itself where it is a DNS-1123 label of at most ``limit`` characters.

    Any other text becomes ``hashed(name, limit=limit)``. The hash is part of a name
    only where it has to be, so the common case stays readable.

    Errors: ``ValueError`` when the limit is below 18 or above 63.
    """
    _check_limit(limit)
    if len(name) <= limit and _is_label(name):
        return name
    return hashed(name, limit=limit)


def _check_limit(limit: int) -> None:
    if not _SHORTEST <= limit <= LABEL_LIMIT:
        raise ValueError(
            f"A hashed name cannot be held to {limit} characters; choose a limit from "
            f"{_SHORTEST} to {LABEL_LIMIT}."
        )


def _readable(text: str, length: int) -> str:
    """What a label can keep of a text, beginning with a letter and ending without -."""
    ascii_text = text.encode("ascii", "replace").decode("ascii").lower()
    kept = _not_in_label.sub("-", ascii_text).strip("-")
    if not kept[:1].isalpha():
        kept = f"x{kept}"
    return kept[:length].rstrip("-")


def _hash(parts: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = _utf8(part)
        # The length goes first, so no part can pretend to be the end of another.
        digest.update(b"%d:" % len(data))
        digest.update(data)
    number = int.from_bytes(digest.digest()[: _HASH_LENGTH * 5 // 8])
    return "".join(
        _ALPHABET[number >> shift & 31]
        for shift in range(5 * (_HASH_LENGTH - 1), -1, -5)
    )


# Endings, first match wins. A kind that ends in a plain "s" is a plural already
# (Endpoints, ProjectSettings), which is why "bus" and "atus" have to be said.
_PLURALS: Final = (
    ("person", "people"),
    ("child", "children"),
    ("index", "indices"),
    ("matrix", "matrices"),
    ("series", "series"),
    ("alias", "aliases"),
    ("atus", "atuses"),
    ("bus", "buses"),
    ("sis", "ses"),
    ("ss", "sses"),
    ("s", "s"),
    ("x", "xes"),
    ("ch", "ches"),
    ("sh", "shes"),
    *((f"{vowel}y", f"{vowel}ys") for vowel in "aeiou"),
    ("y", "ies"),
)


def plural(kind: str) -> str:
    """The plural of a kind as it stands in URLs: ``NetworkPolicy``, networkpolicies.

    English has more exceptions than this knows; a kind with one of those names its
    own plural.
    """
    word = kind.lower()
    for ending, replacement in _PLURALS:
        if word.endswith(ending):
            return word.removesuffix(ending) + replacement
    return f"{word}s"
