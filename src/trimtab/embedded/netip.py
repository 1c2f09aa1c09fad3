"""Net IP: why a text is no address or prefix, in the words of Go's ``net/netip``."""

from __future__ import annotations

from string import hexdigits

from trimtab.embedded.gotext import quoted


class _No(Exception):
    """What is wrong, and from where on."""

    def __init__(self, text: str, at: str = "") -> None:
        super().__init__(f"{text} (at {quoted(at)})" if at else text)


def why_not_address(text: str) -> str:
    """Why ``netip.ParseAddr`` refuses a text; empty if it does not."""
    try:
        _address(text)
    except _No as reason:
        return f"ParseAddr({quoted(text)}): {reason}"
    return ""


def why_not_prefix(text: str) -> str:
    """Why ``netip.ParsePrefix`` refuses a text; empty if it does not."""
    try:
        _prefix(text)
    except _No as reason:
        return f"netip.ParsePrefix({quoted(text)}): {reason}"
    return ""


def _prefix(text: str) -> None:
    address, slash, bits = text.rpartition("/")
    if not slash:
        raise _No("no '/'")
    reason = why_not_address(address)
    if reason:
        raise _No(reason)
    if "%" in address:
        raise _No("IPv6 zones cannot be present in a prefix")
    digits = bits.isascii() and bits.isdecimal()
    if not digits or (len(bits) > 1 and bits[0] == "0"):
        raise _No(f"bad bits after slash: {quoted(bits)}")
    if int(bits) > (128 if ":" in address else 32):
        raise _No("prefix length out of range")


def _address(text: str) -> None:
    for letter in text:
        if letter == ".":
            return _four(text)
        if letter == ":":
            return _six(text)
        if letter == "%":
            raise _No("missing IPv6 address")
    raise _No("unable to parse IP")


def _four(text: str) -> None:
    """Four decimal numbers."""
    value, digits, fields = 0, 0, 0
    for at, letter in enumerate(text):
        if letter in "0123456789":
            if digits == 1 and value == 0:
                raise _No("IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(letter), digits + 1
            if value > 255:
                raise _No("IPv4 field has value >255")
        elif letter == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise _No("IPv4 field must have at least one digit", text[at:])
            if fields == 3:
                raise _No("IPv4 address too long")
            value, digits, fields = 0, 0, fields + 1
        else:
            raise _No("unexpected character", text[at:])
    if fields < 3:
        raise _No("IPv4 address too short")


def _six(text: str) -> None:
    """Groups of hexadecimal digits; what is left out counts as zeros."""
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _No("zone must be a non-empty string")
    gap = rest.startswith("::")
    rest = rest[2:] if gap else rest
    count = 0
    while count < 16 and rest:
        width = _group(rest)
        if rest[width : width + 1] == ".":
            _embedded(rest, count, gap=gap)
            rest, count = "", count + 4
            break
        rest, count = rest[width:], count + 2
        if not rest:
            break
        rest = _after_colon(rest)
        if rest.startswith(":"):
            if gap:
                raise _No("multiple :: in address", rest)
            gap, rest = True, rest[1:]
    if rest:
        raise _No("trailing garbage after address", rest)
    if count < 16 and not gap:
        raise _No("address string too short")
    if count == 16 and gap:
        raise _No("the :: must expand to at least one field of zeros")


def _group(rest: str) -> int:
    """How many digits the next group has."""
    width = len(rest) - len(rest.lstrip(hexdigits))
    if width > 4:
        raise _No("each group must have 4 or less digits", rest)
    if width == 0:
        raise _No("each colon-separated field must have at least one digit", rest)
    return width


def _after_colon(rest: str) -> str:
    if rest[0] != ":":
        raise _No("unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _No("colon must be followed by more characters", rest)
    return rest[1:]


def _embedded(rest: str, count: int, *, gap: bool) -> None:
    """An IPv4 address at the end of an IPv6 one."""
    if not gap and count != 12:
        text = "embedded IPv4 address must replace the final 2 fields of the address"
        raise _No(text, rest)
    if count + 4 > 16:
        text = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise _No(text, rest)
    _four(rest)
