"""Schemas: the structural OpenAPI schema that the annotations of a class spell out.

Whatever has no such schema is an error when the class is defined, naming the field and
what to use instead: a class that exists is a CRD that a server takes.
"""

from __future__ import annotations

import collections.abc
import copy
import datetime
import decimal
import enum
import inspect
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import NODEFAULT, UNSET

from trimtab.api.annotations import (
    INT_OR_STRING,
    LISTS,
    MAPS,
    SETS,
    Member,
    Peeled,
    Unresolved,
    members,
    mismatch,
    peel,
    shown,
)
from trimtab.api.bounds import SCALARS, add_bounds, json_type, merged, stuck, violation
from trimtab.api.objects import Facts, Object, Schema, Status, builtins_of
from trimtab.api.resource import Resource

_TYPES: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    # A server writes 1.0 as 1 and takes both; any finite double comes back the same.
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    # The server takes no empty string here: let b"" be the default, which is left out.
    bytes: {"type": "string", "format": "byte"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    INT_OR_STRING: {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    Any: {"x-kubernetes-preserve-unknown-fields": True},
}

_INSTEAD: Final[Mapping[Any, str]] = {
    list: "list[...] with the type of its items",
    set: "set[...] with the type of its items",
    frozenset: "frozenset[...] with the type of its items",
    dict: "dict[str, ...], or dict[str, Any] for anything",
    tuple: "list[...]",
    complex: "two floats",
    object: "Any",
    None: "T | None",
    types.NoneType: "T | None",
    datetime.timedelta: "trimtab.api.Duration",
    datetime.date: "str with field(format='date')",
    datetime.time: "str with a pattern",
    decimal.Decimal: "trimtab.api.Quantity, or str",
    uuid.UUID: "str with field(format='uuid')",
    bytearray: "bytes",
    memoryview: "bytes",
    collections.abc.Callable: "data: an object holds no code",
}


class _Place(msgspec.Struct, frozen=True):
    """Where the generator is: what errors name, and what holds there."""

    name: str
    status: bool = False
    above: tuple[type, ...] = ()

    def refuse(self, problem: str) -> TypeError:
        return TypeError(f"{self.name}: {problem}.")

    def into(self, kind: type) -> _Place:
        return _Place(kind.__name__, self.status, (*self.above, kind))

    def at(self, attribute: str, *, status: bool = False) -> _Place:
        return _Place(f"{self.name}.{attribute}", self.status or status, self.above)


def structural(kind: type[Object]) -> dict[str, Any]:
    """The OpenAPI v3 structural schema of a class, as plain data.

    Guarantees: nothing in it is shared, so the caller may change it.

    Errors: ``TypeError`` naming the class and field that has no schema, or a name in
    an annotation that does not exist.
    """
    try:
        return _of_root(kind)
    except Unresolved as error:
        raise TypeError(
            f"{error}; define it at the top level of the module, before the schema is "
            "asked for."
        ) from None


def check(kind: type[Object]) -> None:
    """Refuse a class that has no schema; called when the class is defined.

    An annotation may name a class that comes later in the module. Then the check waits
    until somebody asks for the schema.

    Errors: ``TypeError`` naming the class and the field.
    """
    try:
        schema = _of_root(kind)
    except Unresolved:
        return
    if issubclass(kind, Resource) and kind.__definition__ is not None:
        from trimtab.api.crd import check_definition

        check_definition(kind, schema)


def _of_root(kind: type[Object]) -> dict[str, Any]:
    place = _Place(kind.__name__, status=issubclass(kind, Status))
    if not issubclass(kind, Resource):
        return _of_object(kind, place)
    schema = _of_resource(kind, place)
    if "x-kubernetes-map-type" in schema:
        raise place.refuse("a whole resource has no map_type; put it on the spec")
    return schema


def _of_resource(kind: type[Resource], place: _Place) -> dict[str, Any]:
    if not hasattr(kind, "__resource__"):
        raise place.refuse("it has no group and version, so it names no kind")
    if kind.__facts__.get("metadata", Facts()).schema != Schema():
        raise place.at("metadata").refuse(
            "metadata has its own schema; to restrict the name, use a rule such as "
            "self.metadata.name.size() <= 50"
        )
    schema = _of_object(kind, place)
    # Any text, not just our own: the server fills these in and checks them itself.
    head = {name: {"type": "string"} for name in ("apiVersion", "kind")}
    schema["properties"] = head | schema["properties"]
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def _of_object(kind: type[Object], place: _Place) -> dict[str, Any]:
    if kind in place.above:
        through = " → ".join(each.__name__ for each in (*place.above, kind))
        raise place.refuse(
            f"{kind.__name__} holds itself ({through}), and schemas do not recurse; "
            "end it with dict[str, Any]"
        )
    config = kind.__struct_config__
    if config.tag is not None or config.array_like:
        raise place.refuse(f"{kind.__name__} has a tag or is array_like; drop that")
    inside = place.into(kind)
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for member in members(kind):
        at = inside.at(member.attribute, status=_is_status(kind, member.attribute))
        schema["properties"][member.name] = _of_member(kind, member, at)
        if member.default is NODEFAULT:
            schema.setdefault("required", []).append(member.name)
    add_bounds(schema, kind.__schema_facts__, refuse=inside.refuse)
    return _described(schema, _first_paragraph(kind))


def _is_status(kind: type[Object], attribute: str) -> bool:
    return issubclass(kind, Resource) and attribute == "status"


def _of_member(kind: type[Object], member: Member, place: _Place) -> dict[str, Any]:
    _check_presence(kind, member, place)
    peeled = peel(member.hint, refuse=place.refuse)
    note = merged((*peeled.notes, member.facts.schema))
    schema = _noted(_of_bare(peeled.bare, place), note, peeled, place)
    _check_none(member, peeled, note, place)
    problem = stuck(schema)
    if problem:
        raise place.refuse(problem)
    default = _default(member, schema, place)
    # A default in a status would be a field that the server writes, that no owner has
    # claimed and that every owner's apply would then find there.
    if default is not None and not place.status:
        schema["default"] = default
    return _described(schema, note.doc)


def _check_presence(kind: type[Object], member: Member, place: _Place) -> None:
    if member.facts.owner is not None and not issubclass(kind, Status):
        raise place.refuse("only the fields of a Status have owners; drop owner")
    if member.default is not NODEFAULT:
        return
    if issubclass(kind, Status):
        raise place.refuse(
            "a status starts empty and each owner writes only its own fields, so none "
            "is required; give it a default"
        )
    if _is_status(kind, member.attribute):
        raise place.refuse(
            "an object is without a status at first; define the class of the status "
            "before this one, with a default for each of its fields"
        )


def _check_none(member: Member, peeled: Peeled, note: Schema, place: _Place) -> None:
    if peeled.bare is Any:
        return
    if peeled.optional and not note.nullable and member.default is not None:
        raise place.refuse(
            "None is left out when it is written, so it would not come back; let None "
            "be the default, or write it as null with field(nullable=True)"
        )
    if member.default is None and not peeled.optional:
        raise place.refuse(f"its default is None; use {shown(member.hint)} | None")


def _default(member: Member, schema: dict[str, Any], place: _Place) -> Any:
    """The default to write; None for none, which is also right for an empty one."""
    value = member.default
    if value is NODEFAULT or value is UNSET or value is None:
        return None
    problem = mismatch(member.hint, value)
    if problem:
        raise place.refuse(f"its default does not fit: {problem}")
    if isinstance(value, Object) and _is_plain(value):
        held = schema.get("properties", {}).values()
        if not any("default" in each for each in held):
            return None
        # Empty, so that the defaults of its own fields apply. But a server checks a
        # default as it stands, before those are filled in.
        if "x-kubernetes-validations" not in schema and not violation(schema, {}):
            return {}
    plain = builtins_of(value)
    if plain in ("", [], {}):
        return None
    problem = violation(schema, plain)
    if problem:
        raise place.refuse(f"its default {plain!r} {problem}")
    return plain


def _is_plain(value: Object) -> bool:
    """Whether an object is what its class makes of no arguments."""
    required = any(member.default is NODEFAULT for member in members(type(value)))
    return not required and value == type(value)()


def _described(schema: dict[str, Any], text: str | None) -> dict[str, Any]:
    return {"description": text} | schema | {"description": text} if text else schema


def _first_paragraph(kind: type) -> str | None:
    """What the class says of itself, not what it inherited."""
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    return " ".join(text.split("\n\n")[0].split()) or None


def _of_hint(hint: Any, place: _Place) -> dict[str, Any]:
    """The schema of an item or of a map's value, where None is written as null."""
    peeled = peel(hint, refuse=place.refuse)
    note = merged(peeled.notes)
    if peeled.optional and peeled.bare is not Any:
        note = merged((note, Schema(nullable=True)))
    schema = _noted(_of_bare(peeled.bare, place), note, peeled, place)
    return _described(schema, note.doc)


def _noted(
    schema: dict[str, Any], note: Schema, peeled: Peeled, place: _Place
) -> dict[str, Any]:
    """A type's schema with what its annotations add."""
    add_bounds(schema, note, refuse=place.refuse)
    if note.format is not None and peeled.bare not in (str, int, float):
        raise place.refuse(f"a format goes with str, int or float, not {note.format!r}")
    if note.nullable:
        if not peeled.optional and peeled.bare is not Any:
            raise place.refuse("nullable needs a type that admits None; add | None")
        if "enum" in schema:
            raise place.refuse(
                "a server refuses null for an enum, nullable or not; leave None out by "
                "dropping nullable, or add a member that stands for it"
            )
        schema["nullable"] = True
    return schema


def _of_bare(bare: Any, place: _Place) -> dict[str, Any]:
    if isinstance(bare, collections.abc.Hashable) and bare in _TYPES:
        return copy.deepcopy(_TYPES[bare])
    origin, arguments = typing.get_origin(bare), typing.get_args(bare)
    if origin is Literal:
        return _of_values(arguments, place)
    if origin in LISTS:
        return {"type": "array", "items": _of_hint(arguments[0], place)}
    if origin in SETS:
        return _of_set(bare, arguments[0], place)
    if origin in MAPS:
        return _of_map(arguments, place)
    if isinstance(bare, type) and origin is None:
        return _of_class(bare, place)
    raise _inexpressible(bare, place)


def _of_class(kind: type, place: _Place) -> dict[str, Any]:
    own = getattr(kind, "__schema__", None)
    if own is not None:
        return dict(copy.deepcopy(own()))
    if issubclass(kind, enum.Enum) and not issubclass(kind, enum.Flag):
        return _of_values(tuple(member.value for member in kind), place)
    if issubclass(kind, Resource):
        schema = _of_resource(kind, place)
        schema["required"] = ["apiVersion", "kind", *schema.get("required", ())]
        return schema | {"x-kubernetes-embedded-resource": True}
    if issubclass(kind, Object):
        return _of_object(kind, place)
    raise _inexpressible(kind, place)


def _of_values(values: tuple[Any, ...], place: _Place) -> dict[str, Any]:
    for kind in (str, int):
        if values and all(type(value) is kind for value in values):
            return copy.deepcopy(_TYPES[kind]) | {"enum": list(dict.fromkeys(values))}
    raise place.refuse(
        f"the choices {', '.join(map(repr, values))} must be all str or all int"
    )


def _of_set(bare: Any, argument: Any, place: _Place) -> dict[str, Any]:
    items = _of_hint(argument, place)
    mixed = peel(argument, refuse=place.refuse).bare is INT_OR_STRING
    if mixed or json_type(items) not in SCALARS:
        raise place.refuse(
            f"{shown(bare)} is not a set of scalars; use list[{shown(argument)}] with "
            "field(list_type='map', list_keys=...) or list_type='atomic'"
        )
    return {"type": "array", "x-kubernetes-list-type": "set", "items": items}


def _of_map(arguments: tuple[Any, ...], place: _Place) -> dict[str, Any]:
    if arguments[0] is not str:
        raise place.refuse(
            f"the keys of a JSON object are str, not {shown(arguments[0])}; use "
            f"dict[str, {shown(arguments[1])}], and a rule to restrict its keys"
        )
    peeled = peel(arguments[1], refuse=place.refuse)
    if peeled.bare is Any:
        # Not as additionalProperties, where the server would drop values of null.
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _of_hint(arguments[1], place)}


def _inexpressible(bare: Any, place: _Place) -> TypeError:
    origin = typing.get_origin(bare)
    instead = _INSTEAD.get(bare if origin is None else origin)
    if instead is None and isinstance(bare, type) and origin is None:
        instead = "a subclass of trimtab.api.Object"
    return place.refuse(
        f"{shown(bare)} has no schema; use {instead or 'a type of trimtab.api'}"
    )
