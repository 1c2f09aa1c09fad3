"""Literals: the constants of an expression, from their words."""

from __future__ import annotations

from typing import Any, Final

from trimtab.embedded.expressions import reading
from trimtab.embedded.expressions.kinds import (
    BOOL,
    BYTES,
    DOUBLE,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
)
from trimtab.embedded.expressions.nodes import Literal
from trimtab.embedded.expressions.reading import Token

_CONSTANTS: Final[dict[str, tuple[Any, Type]]] = {
    "true": (True, BOOL),
    "false": (False, BOOL),
    "null": (None, NULL),
}
_RANGES: Final = {INT: range(-(2**63), 2**63), UINT: range(2**64)}


def read(token: Token, *, sign: str, at: int) -> Literal | None:
    """The constant that a word is; None if it is something else."""
    known = _CONSTANTS.get(token.text) if token.kind == "sign" else None
    value, type = known or _value(token, sign)
    return None if type is None else Literal(at=at, value=value, type=type)


def _value(token: Token, sign: str) -> tuple[Any, Type | None]:
    if token.kind == "int":
        return _integer(sign + token.text), INT
    if token.kind == "uint":
        return _integer(token.text[:-1]), UINT
    if token.kind == "float":
        return float(sign + token.text), DOUBLE
    if token.kind == "string":
        return reading.string_value(token.text), STRING
    if token.kind == "bytes":
        return reading.bytes_value(token.text), BYTES
    return None, None


def _integer(text: str) -> int:
    return int(text, 16 if "0x" in text else 10)


def fits(node: Literal) -> bool:
    """Whether an integer is one of 64 bits; any other constant fits."""
    return node.type not in _RANGES or node.value in _RANGES[node.type]
