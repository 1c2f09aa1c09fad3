"""Field paths: ``.spec.size`` and ``.labels['a.b']``, checked against a schema.

Rules say with such a path which field they are about, and selectable fields are named
by one. Unlike the JSON paths of columns they lead to one field, which has to exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Plain = Mapping[str, Any]

_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}
_END: Final = "unexpected end of JSON path"
_NO_FIELD: Final = "does not refer to a valid field"


class FieldPathError(ValueError):
    """A path that leads to no field, in the real server's words."""


def resolve(path: str, schema: Plain, *, brackets: bool = True) -> tuple[str, Plain]:
    """The path in its plain form, and the schema of what it leads to.

    Errors: ``FieldPathError`` when it cannot be read or leads nowhere.
    """
    plain = ""
    tokens = _tokens(path)
    for token in tokens:
        if token == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _unquoted(next(tokens, None))
            plain, schema = _step(plain, schema, name)
            closing = next(tokens, None)
            if closing is None:
                raise FieldPathError(_END)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":
            name = next(tokens, "")
            if not name:
                raise FieldPathError(_END)
            plain, schema = _step(plain, schema, name)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return plain, schema


def _tokens(path: str) -> Iterator[str]:
    """Dots and brackets; texts between them; texts in single quotes whole."""
    yield from re.findall(r"'(?:.*?[^\\])?'|[.\[\]]|[^.\[\]]+", path, re.DOTALL)


def _unquoted(token: str | None) -> str:
    if token is None:
        raise FieldPathError(_END)
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def resolved(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            detail = f"invalid escape char {found[0]}"
            raise FieldPathError(f"invalid string literal: {detail}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", resolved, token[1:-1])


def _step(plain: str, schema: Plain, name: str) -> tuple[str, Plain]:
    properties = schema.get("properties")
    additional = schema.get("additionalProperties")
    if properties:
        if name not in properties:
            raise FieldPathError(_NO_FIELD)
        return (f"{plain}.{name}" if plain else name), properties[name]
    if additional is not None:
        inner = additional if isinstance(additional, Mapping) else {}
        return f"{plain}[{name}]", inner
    raise FieldPathError(_NO_FIELD)
