"""Declarations: what a schema's values are to the rules that speak of them.

Each schema node has a type in expressions, something that makes a value of what stands
in the object, and bounds on how large it may be, from which the cost of a rule is
estimated before anybody uses it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from trimtab.embedded import formats
from trimtab.embedded.expressions import kinds
from trimtab.embedded.expressions.conversions import parse_instant
from trimtab.embedded.expressions.kinds import Type, list_of, map_of, struct
from trimtab.embedded.expressions.reading import RESERVED
from trimtab.embedded.expressions.values import (
    Duration,
    EvaluationError,
    MapList,
    Record,
    SetList,
    Shape,
    Timestamp,
    Wrap,
)
from trimtab.embedded.schemas import Schema

LARGEST_REQUEST: Final = 3 * 1024 * 1024
_GO_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_RESERVED: Final = RESERVED - {"true", "false", "null", "in"} | {
    *("true", "false", "null", "in"),
}
_ESCAPES: Final = {"__": "underscores", ".": "dot", "-": "dash", "/": "slash"}
_TO_ESCAPE = re.compile(r"__|[-./]")
_ESCAPABLE = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*", re.ASCII)


class Declaration(msgspec.Struct, eq=False, kw_only=True):
    """What is known of a schema's values."""

    type: Type
    wrap: Wrap | None = None
    """Makes a value of what stands in an object; None if that is the value already."""
    largest: int = 0
    """The most characters, items or entries that it may have."""
    smallest: int = 0
    """The least bytes that it takes in JSON."""
    fields: Mapping[str, Declaration] = {}
    element: Declaration | None = None


def escaped(name: str) -> str:
    """How rules call a field; empty if they cannot."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return ""
    return _TO_ESCAPE.sub(lambda found: f"__{_ESCAPES[found[0]]}__", name)


def declared(
    schema: Schema, *, root: bool, name: str = "selfType"
) -> Declaration | None:
    """What a schema's values are to rules; None if rules cannot speak of them.

    ``root`` objects have a type and metadata, whether the schema says so or not.
    """
    if schema.either:
        bound = schema.max_length
        largest = LARGEST_REQUEST - 2 if bound is None else max(0, bound) * 4
        return Declaration(type=kinds.DYN, wrap=_either, largest=largest, smallest=1)
    makers = {
        "array": _list,
        "object": _object,
        "string": _string,
        "boolean": _boolean,
        "number": _number,
        "integer": _integer,
    }
    maker = makers.get(schema.type)
    return None if maker is None else maker(schema, root, name)


def scope_of(declaration: Declaration) -> dict[str, dict[str, Type]]:
    """The fields of each kind of object that a declaration contains."""
    found: dict[str, dict[str, Type]] = {}
    _collect(declaration, found)
    return found


def _collect(declaration: Declaration, found: dict[str, dict[str, Type]]) -> None:
    if declaration.type.kind == "struct":
        found[declaration.type.name] = {
            name: each.type for name, each in declaration.fields.items()
        }
    for each in (*declaration.fields.values(), declaration.element):
        if each is not None:
            _collect(each, found)


def _wrong(value: Any, wanted: str) -> EvaluationError:
    found = _GO_TYPES.get(type(value), "<nil>")
    return EvaluationError(f"invalid data, expected {wanted}, got {found}")


def _either(value: Any) -> Any:
    if type(value) in (str, int):
        return value
    raise EvaluationError(
        "invalid data, expected XIntOrString value to be either a string or integer"
    )


def _boolean(schema: Schema, root: bool, name: str) -> Declaration:
    return Declaration(type=kinds.BOOL, smallest=4)


def _number(schema: Schema, root: bool, name: str) -> Declaration:
    return Declaration(type=kinds.DOUBLE, wrap=float, smallest=1)


def _integer(schema: Schema, root: bool, name: str) -> Declaration:
    return Declaration(type=kinds.INT, wrap=_whole, smallest=1)


def _whole(value: Any) -> int:
    if type(value) is int:
        return value
    raise _wrong(value, "int")


def _string(schema: Schema, root: bool, name: str) -> Declaration:
    special: dict[str, tuple[Type, Wrap, int, int]] = {
        "byte": (kinds.BYTES, _bytes, 2, LARGEST_REQUEST - 2),
        "duration": (kinds.DURATION, _duration, 3, 32),
        "date": (kinds.TIMESTAMP, _date, 12, 12),
        "date-time": (kinds.TIMESTAMP, _instant, 21, 32),
    }
    form = schema.raw.get("format") or ""
    if form in special:
        type, wrap, smallest, largest = special[form]
        if form == "byte" and schema.max_length is not None:
            largest = max(0, schema.max_length)
        return Declaration(type=type, wrap=wrap, smallest=smallest, largest=largest)
    if schema.max_length is not None:
        largest = max(0, schema.max_length) * 4
    elif schema.enum:
        texts = [each for each in schema.enum if isinstance(each, str)]
        largest = max((len(each.encode()) for each in texts), default=0)
    else:
        largest = LARGEST_REQUEST - 2
    return Declaration(type=kinds.STRING, smallest=2, largest=largest)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(value, "string")


def _bytes(value: Any) -> bytes:
    text = _text(value)
    try:
        # As the real server: the alphabet of URLs, although schemas want the other.
        illegal = re.search("[^A-Za-z0-9_=-]", text)
        if illegal:
            raise _BadByte(illegal.start())
        return base64.urlsafe_b64decode(text)
    except (_BadByte, binascii.Error) as error:
        place = error.place if isinstance(error, _BadByte) else len(text)
        said = f"Invalid byte formatted string {text}"
        detail = f"illegal base64 data at input byte {place}"
        raise EvaluationError(f"{said}: {detail}") from None


class _BadByte(Exception):
    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


def _duration(value: Any) -> Duration:
    text = _text(value)
    try:
        return Duration(formats.parse_duration(text))
    except ValueError as error:
        raise EvaluationError(f"Invalid duration {text}: {error}") from None


def _date(value: Any) -> Timestamp:
    text = _text(value)
    try:
        day = formats.parse_date(text)
    except ValueError as error:
        said = f"Invalid date formatted string {text}: {error}"
        raise EvaluationError(said) from None
    seconds = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    return Timestamp(int(seconds) * 10**9)


def _instant(value: Any) -> Timestamp:
    text = _text(value)
    try:
        return parse_instant(text)
    except ValueError as error:
        said = f"Invalid date-time formatted string {text}: {error}"
        raise EvaluationError(said) from None


def _list(schema: Schema, root: bool, name: str) -> Declaration | None:
    if schema.items is None:
        return None
    inner = declared(schema.items, root=schema.items.embedded, name=f"{name}.@idx")
    if inner is None:
        return None
    if schema.max_items is not None:
        largest = max(0, schema.max_items)
    else:
        largest = (LARGEST_REQUEST - 2) // (inner.smallest + 1)
    return Declaration(
        type=list_of(inner.type),
        wrap=_list_wrap(schema, inner),
        largest=largest,
        smallest=2,
        element=inner,
    )


def _list_wrap(schema: Schema, inner: Declaration) -> Wrap | None:
    assert schema.items is not None
    item = _held(inner.wrap, nullable=schema.items.nullable)
    if schema.list_type == "set":
        if item is None:
            return SetList
        each = item
        return lambda raw: SetList([each(value) for value in raw])
    if schema.list_type == "map":
        keys, made = schema.keys, item or (lambda value: value)
        return lambda raw: MapList.of([made(value) for value in raw], keys)
    if item is None:
        return None
    plain = item
    return lambda raw: [plain(value) for value in raw]


def _held(wrap: Wrap | None, *, nullable: bool) -> Wrap | None:
    """What makes the values in a list or a map, where null may stand too."""
    if wrap is None:
        return None
    made = wrap

    def held(value: Any) -> Any:
        if value is None:
            if nullable:
                return None
            text = "invalid data, got null for schema with nullable=false"
            raise EvaluationError(text)
        return made(value)

    return held


def _map(schema: Schema, values: Schema, name: str) -> Declaration | None:
    inner = declared(values, root=values.embedded, name=f"{name}.@elem")
    if inner is None:
        return None
    if schema.max_properties is not None:
        largest = max(0, schema.max_properties)
    else:
        largest = (LARGEST_REQUEST - 2) // (inner.smallest + 6)
    wrap: Wrap | None = None
    held = _held(inner.wrap, nullable=values.nullable)
    if held is not None:
        made = held

        def convert(raw: dict[str, Any]) -> dict[str, Any]:
            return {key: made(value) for key, value in raw.items()}

        wrap = convert
    return Declaration(
        type=map_of(kinds.STRING, inner.type),
        wrap=wrap,
        largest=largest,
        smallest=2,
        element=inner,
    )


_PLAIN_TEXT: Final = Declaration(
    type=kinds.STRING, smallest=2, largest=LARGEST_REQUEST - 2
)


def _object(schema: Schema, root: bool, name: str) -> Declaration | None:
    if schema.additional is not None:
        return _map(schema, schema.additional, name)
    fields: dict[str, Declaration] = {}
    places: dict[str, tuple[str, Wrap | None]] = {}
    smallest = 2
    for each, child in schema.properties.items():
        inner = declared(child, root=child.embedded, name=f"{name}.{escaped(each)}")
        if inner is None:
            continue
        called = escaped(each)
        if called:
            fields[called] = inner
            places[called] = (each, inner.wrap)
        if each in schema.required and child.default is msgspec.UNSET:
            smallest += len(each.encode()) + inner.smallest + 4
    if root:
        _add_metadata(fields, places, name)
    names = {raw: called for called, (raw, _) in places.items()}
    shape = Shape(fields=places, names=names)
    return Declaration(
        type=struct(name),
        wrap=lambda raw: Record(raw, shape),
        smallest=smallest,
        fields=fields,
    )


def _add_metadata(
    fields: dict[str, Declaration],
    places: dict[str, tuple[str, Wrap | None]],
    name: str,
) -> None:
    """What every object has: rules may speak of its type and its name."""
    inner: dict[str, tuple[str, Wrap | None]] = {
        each: (each, None) for each in ("name", "generateName")
    }
    shape = Shape(fields=inner, names={each: each for each in inner})
    metadata = Declaration(
        type=struct(f"{name}.metadata"),
        wrap=lambda raw: Record(raw, shape),
        smallest=2,
        fields=dict.fromkeys(inner, _PLAIN_TEXT),
    )
    for each in ("kind", "apiVersion"):
        fields[each] = _PLAIN_TEXT
        places[each] = (each, None)
    fields["metadata"] = metadata
    places["metadata"] = ("metadata", metadata.wrap)
