"""Formats: which texts are a ``uuid``, a ``date-time`` or an ``email``.

The names are those that custom resources know; any other format says nothing. Names are
compared without their dashes, so ``datetime`` is ``date-time``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Final

from trimtab.api.times import Duration
from trimtab.embedded import addresses
from trimtab.embedded.addresses import AddressError
from trimtab.embedded.patterns import compiled

_HEX: Final = "[0-9a-fA-F]"
_BSON = re.compile(_HEX + "{24}")
_MAC = re.compile(
    "|".join(
        rf"{_HEX}{{2}}(?:{mark}{_HEX}{{2}}){{{count}}}"
        for mark in (":", "-")
        for count in (5, 7, 19)
    )
    + "|"
    + "|".join(rf"{_HEX}{{4}}(?:\.{_HEX}{{4}}){{{count}}}" for count in (2, 3, 9))
)
_CARD = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}"
    "|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    r"|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_SSN = re.compile("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}")
_HEX_COLOR = re.compile(f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})")
_SHADE: Final = "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_RGB_COLOR = re.compile(
    r"rgb\([\t\n\f\r ]*"
    + r"[\t\n\f\r ]*,[\t\n\f\r ]*".join([_SHADE] * 3)
    + r"[\t\n\f\r ]*\)"
)
_LETTERS: Final = "[A-Za-z0-9+/]"
_BYTE = re.compile(
    f"(?:{_LETTERS}{{4}})*(?:{_LETTERS}{{2}}==|{_LETTERS}{{3}}=|{_LETTERS}{{4}})"
)
_DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})"
)
_SHORT_NAME = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONG_NAME = re.compile(f"{_SHORT_NAME.pattern}(\\.{_SHORT_NAME.pattern})*")
_HOSTNAME: Final = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)"
    r"(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_ATOM: Final = r"[^\x00-\x20\x7f()<>\[\]:;@\\,.\"]+"
_QUOTED: Final = r'"(?:[^"\\\r\n]|\\.)*"'
_ADDRESS: Final = (
    rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\]*\])"
)
_EMAIL = re.compile(
    rf"\s*(?:{_ADDRESS}|(?:(?:{_ATOM}|{_QUOTED}|\.)\s*)*<\s*{_ADDRESS}\s*>)\s*"
)
_DURATION_PART = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
# Each unit with its spellings; of the last one any text that begins with it.
_UNITS: Final = (
    (1, ("ns", "nano")),
    (10**3, ("us", "µs", "micro")),
    (10**6, ("ms", "milli")),
    (10**9, ("s", "sec")),
    (60 * 10**9, ("m", "min")),
    (3600 * 10**9, ("h", "hr", "hour")),
    (86400 * 10**9, ("d", "day")),
    (7 * 86400 * 10**9, ("w", "wk", "week")),
)


def _reads(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Whether a parser takes a text."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _uuid(third: str, fourth: str = f"{_HEX}{{4}}") -> Callable[[str], bool]:
    form = re.compile(
        f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}"
    ).fullmatch
    return lambda text: form(text) is not None


def _matches(form: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: form.fullmatch(text) is not None


def _is_hostname(text: str) -> bool:
    labels = text.encode().split(b".")
    return (
        compiled(_HOSTNAME).search(text) is not None
        and len(text.encode()) <= 255
        and all(len(label) <= 63 for label in labels)
    )


def _is_ipv4(text: str) -> bool:
    addresses.loose_ip(text)
    if "." not in text:
        raise AddressError(text)
    return True


def _is_ipv6(text: str) -> bool:
    if ":" not in text or "%" in text:
        raise AddressError(text)
    addresses.ip(text)
    return True


def _is_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    total = sum(map(int, digits[::-2])) + sum(d // 10 + d % 10 for d in doubled)
    return total % 10 == 0


def _is_isbn10(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}X|[0-9]{10}", plain):
        return False
    values = [10 if letter == "X" else int(letter) for letter in plain]
    return sum(place * value for place, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    plain = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", plain):
        return False
    weighted = sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(plain))
    return weighted % 10 == 0


def parse_date(text: str) -> date:
    """A full date of RFC 3339. Errors: ``ValueError``."""
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a date; write it like 2026-01-02.")
    return date(int(found[1]), int(found[2]), int(found[3]))


def _is_date_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    found = _TIME.fullmatch(rest.partition("t")[0])
    if not found:
        return False
    parse_date(day)
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def parse_duration(text: str) -> int:
    """Nanoseconds: Go's notation, or words such as ``3 weeks``.

    Errors: ``ValueError`` when it is neither.
    """
    try:
        return Duration(text).nanoseconds
    except ValueError:
        pass
    total, found = 0, False
    for part in _DURATION_PART.finditer(text):
        unit = part[2].lower()
        for size, names in _UNITS:
            for name in names:
                if unit == name or (name == names[-1] and unit.startswith(name)):
                    total, found = total + int(part[1]) * size, True
    if not found:
        raise ValueError(f"unable to parse {text} as duration")
    return total


def timedelta_of(nanoseconds: int) -> timedelta:
    return timedelta(microseconds=nanoseconds / 1000)


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(_BSON),
    "uri": _reads(addresses.request_url),
    "email": _matches(_EMAIL),
    "hostname": _is_hostname,
    "ipv4": _reads(_is_ipv4),
    "ipv6": _reads(_is_ipv6),
    "cidr": _reads(lambda text: addresses.cidr(text, loose=True)),
    "mac": _matches(_MAC),
    "uuid": _uuid(f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": lambda text: len(text) == 11 and _SSN.fullmatch(text) is not None,
    "hexcolor": _matches(_HEX_COLOR),
    "rgbcolor": _matches(_RGB_COLOR),
    "byte": _matches(_BYTE),
    "password": lambda text: True,
    "date": _reads(parse_date),
    "duration": _reads(parse_duration),
    "datetime": lambda text: _reads(_is_date_time)(text) and _is_date_time(text),
    "k8sshortname": lambda text: len(text) <= 63 and _matches(_SHORT_NAME)(text),
    "k8slongname": lambda text: len(text) <= 253 and _matches(_LONG_NAME)(text),
}


def known(type: str, form: str) -> bool:
    """Whether a format means anything for values of a type (empty: of any type)."""
    if type in ("", "string"):
        return form.replace("-", "") in CHECKS
    if type == "integer":
        return form in ("int32", "int64")
    return type == "number" and form in ("float", "double")


def check_of(form: str) -> Callable[[str], bool] | None:
    """What tells whether a text has the format; None when it means nothing."""
    return CHECKS.get(form.replace("-", "")) if form else None
