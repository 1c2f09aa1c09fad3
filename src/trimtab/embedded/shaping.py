"""Shaping: an object made to fit its schema, by pruning and by defaults.

As the real server does with a custom object that it reads: fields that the schema does
not know go, a null that may not be goes (unless a default takes its place), embedded
objects get their metadata tidied, and then defaults are set. Everything in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from trimtab.embedded import status
from trimtab.embedded.conform import Mistyped, conform
from trimtab.embedded.schemas import Schema, has_default
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.types import Type

Plain = dict[str, Any]

Paths = list[str] | None
"""The paths of what was dropped because nobody knows it, from here on."""
Shaper = Callable[[Any], Paths]

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


class Misshapen(Mistyped):
    """An embedded object whose metadata cannot be read; ``problem`` says why."""

    def __init__(self, problem: FieldProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def shaper_of(
    schema: Schema | None, *, whole: bool = False, keep: bool = False
) -> Shaper:
    """What prunes a value of a schema, in place, and says what it dropped as unknown.

    ``whole`` objects have a type and metadata, which are somebody else's concern.
    ``keep`` is true inside of a list whose schema keeps what it does not know.
    """
    if schema is None:
        return _drop_all
    keep = keep or schema.keep
    whole = whole or schema.embedded
    of_dict = _dict_shaper(schema, whole=whole, keep=keep)
    items = _items_shaper(schema, keep=keep)

    def shape(value: Any) -> Paths:
        if type(value) is dict:
            return of_dict(value)
        return _each(value, items) if type(value) is list else None

    return shape


def _items_shaper(schema: Schema, *, keep: bool) -> Shaper:
    if schema.items is None:
        return _leave if keep else _drop_all
    return shaper_of(schema.items, keep=keep)


def _leave(value: Any) -> Paths:
    return None


def _drop_all(value: Any) -> Paths:
    """Where nothing is known, what has a name goes."""
    if type(value) is dict:
        unknown = list(value)
        value.clear()
        return unknown
    return _each(value, _drop_all) if type(value) is list else None


def _each(items: list[Any], shape: Shaper) -> Paths:
    unknown: list[str] = []
    for index, item in enumerate(items):
        if type(item) is dict or type(item) is list:
            found = shape(item)
            if found:
                unknown += _under(f"[{index}]", found)
    return unknown


def _under(name: str, paths: list[str]) -> list[str]:
    return [name + each if each[0] == "[" else f"{name}.{each}" for each in paths]


def _loses_null(schema: Schema | None) -> bool:
    """Whether a null goes: it may not be there, and no default takes its place."""
    return schema is not None and not schema.nullable and schema.default is UNSET


def _dict_shaper(
    schema: Schema, *, whole: bool, keep: bool
) -> Callable[[Plain], Paths]:
    below = {name: shaper_of(each) for name, each in schema.properties.items()}
    losing = {name for name, each in schema.properties.items() if _loses_null(each)}
    opened = schema.open
    values = shaper_of(schema.additional)
    values_lose = _loses_null(schema.additional)
    apart = META_FIELDS if whole else frozenset[str]()

    def shape(value: Plain) -> Paths:
        unknown: list[str] = []
        gone: list[str] = []
        for key, item in value.items():
            known = below.get(key)
            kind = type(item)
            if kind is dict or kind is list:
                if key in apart:
                    continue
                if known is None:
                    if not opened:
                        if not keep:
                            gone.append(key)
                            unknown.append(key)
                        continue
                    known = values
                found = known(item)
                if found:
                    unknown += _under(key, found)
            elif known is not None:
                if item is None and key in losing:
                    gone.append(key)
            elif opened:
                if item is None and values_lose:
                    gone.append(key)
            elif not keep and key not in apart:
                gone.append(key)
                unknown.append(key)
        for key in gone:
            del value[key]
        return unknown

    return shape


def copied(value: Any) -> Any:
    """A copy of a plain value, much quicker than ``copy.deepcopy``."""
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if type(value) is list else value


def prune(schema: Schema, value: Any, *, root: bool = False) -> list[str]:
    """Drop, in place, what a schema does not know; the paths of that, sorted."""
    return sorted(shaper_of(schema, whole=root)(value) or ())


def tidy_embedded(
    schema: Schema | None, value: Any, metadata: Type, path: str = ""
) -> list[str]:
    """Read the metadata of embedded objects; the paths of what it dropped there.

    Errors: :class:`Misshapen` when it cannot be read.
    """
    dropped: list[str] = []
    if schema is None:
        return dropped
    if isinstance(value, dict):
        if schema.embedded:
            dropped += _tidy_object(value, metadata, path)
        for key, item in value.items():
            if type(item) is not dict and type(item) is not list:
                continue
            inner = f"{path}.{key}" if path else key
            if key not in schema.properties:
                inner = f"{path}[{key}]"
            dropped += tidy_embedded(schema.child(key), item, metadata, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inner = f"{path}[{index}]"
            dropped += tidy_embedded(schema.items, item, metadata, inner)
    return dropped


def tidy_metadata(metadata: Type, value: Plain) -> list[str]:
    """Read metadata as the real server's struct does; the paths of what it dropped.

    Errors: ``conform.Mistyped`` when it cannot be read.
    """
    try:
        dropped = conform(metadata, value)
    except Mistyped:  # the first one is told, in the order of their names
        conform(metadata, dict(sorted(value.items())))
        raise
    for key in ("annotations", "labels"):
        if None in (value.get(key) or {}).values():
            value[key] = {name: each or "" for name, each in value[key].items()}
    if None in (value.get("finalizers") or ()):
        value["finalizers"] = [each or "" for each in value["finalizers"]]
    if None in (value.get("ownerReferences") or ()):
        value["ownerReferences"] = [each or {} for each in value["ownerReferences"]]
    if value.get("generateName") == "":
        del value["generateName"]
    # These have no place for being absent in the struct.
    for owner in value.get("ownerReferences") or ():
        for key in ("apiVersion", "kind", "name", "uid"):
            owner.setdefault(key, "")
    return dropped


def _tidy_object(value: Plain, metadata: Type, path: str) -> list[str]:
    prefix = f"{path}." if path else ""
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            detail = "must be a string"
            raise Misshapen(status.invalid(f"{prefix}{key}", value[key], detail))
    if "metadata" not in value:
        return []
    where, given = f"{prefix}metadata", value["metadata"]
    if not isinstance(given, dict):
        shown = {str: "string", bool: "bool", list: "array"}.get(type(given), "number")
        text = f"json: cannot unmarshal {shown} into Go value of type v1.ObjectMeta"
        raise Misshapen(status.invalid(where, given, text))
    try:
        unknown = tidy_metadata(metadata, given)
    except Mistyped as error:
        raise Misshapen(status.invalid(where, given, str(error))) from None
    return [f"{where}.{each}" for each in unknown]


def defaulter_of(schema: Schema) -> Callable[[Any], None] | None:
    """What sets the defaults in a value of a schema; None if there are none to set.

    Functions are made only for the parts of a schema that have a default below them.
    """
    if not has_default(schema):
        return None
    return _defaulter(schema)


def _defaulter(schema: Schema) -> Callable[[Any], None] | None:
    own = [
        (name, child.nullable, _copier(child.default))
        for name, child in schema.properties.items()
        if child.default is not UNSET
    ]
    inner = {name: _defaulter(child) for name, child in schema.properties.items()}
    below = [(name, each) for name, each in inner.items() if each is not None]
    values = _slot(schema.additional)
    items = _slot(schema.items)
    if not own and not below and values is None and items is None:
        return None
    named = frozenset(schema.properties)

    def apply(value: Any) -> None:
        if type(value) is dict:
            for name, nullable, make in own:
                if name not in value or (value[name] is None and not nullable):
                    value[name] = make()
            for name, each in below:
                if name in value:
                    each(value[name])
            if values is not None:
                for key in value:
                    if key not in named:
                        values(value, key)
        elif type(value) is list and items is not None:
            for index in range(len(value)):
                items(value, index)

    return apply


def _slot(schema: Schema | None) -> Callable[[Any, Any], None] | None:
    """What sets the default at a place of a map or a list, and below it."""
    if schema is None:
        return None
    inner = _defaulter(schema)
    make = None if schema.default is UNSET else _copier(schema.default)
    replaces = make if not schema.nullable else None
    if inner is None and replaces is None:
        return None

    def apply(container: Any, place: Any) -> None:
        if container[place] is None and replaces is not None:
            container[place] = replaces()
        if inner is not None:
            inner(container[place])

    return apply


def _copier(value: Any) -> Callable[[], Any]:
    """What makes a fresh copy of a default."""
    if isinstance(value, dict):
        parts = {key: _copier(item) for key, item in value.items()}
        return lambda: {key: make() for key, make in parts.items()}
    if isinstance(value, list):
        makers = [_copier(item) for item in value]
        return lambda: [make() for make in makers]
    return lambda: value
