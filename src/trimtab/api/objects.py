"""Wire structs: typed, frozen views of what a Kubernetes object holds.

A subclass of :class:`Object` names the fields that somebody reads or writes. The
attribute is the JSON name (``readyReplicas``); a trailing underscore, needed where
Python has the word already, is dropped on the wire (``from_`` is ``from``).

What a schema says of a field (bounds, patterns, list types, rules) stands in
:func:`field` or in ``Annotated[..., Schema(...)]``. It goes into the CRD, where the
server enforces it, and is *not* enforced while decoding: rules tighten over time, and
an object that a server once accepted must stay readable.
"""

from __future__ import annotations

import enum
import math
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec
from msgspec import NODEFAULT, UNSET, StructMeta

from trimtab.api.times import rfc3339

ListType = Literal["atomic", "set", "map"]
MapType = Literal["atomic", "granular"]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One CEL rule (``x-kubernetes-validations``) and what to say when it fails."""

    rule: str
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None
    field_path: str | None = None
    optional_old_self: bool | None = None


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """What the generated schema says of a value beyond its Python type."""

    doc: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool | None = None
    exclusive_maximum: bool | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    nullable: bool = False
    list_type: ListType | None = None
    list_keys: tuple[str, ...] = ()
    map_type: MapType | None = None
    preserve_unknown: bool = False
    embedded_resource: bool = False
    rules: tuple[Rule, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a class says of one of its fields: its schema and who may write it."""

    schema: Schema = Schema()
    owner: str | None = None
    server_set: bool = False


class _Declaration(msgspec.Struct, frozen=True):
    """What ``field(...)`` leaves in a class body until the metaclass takes it."""

    default: Any
    default_factory: Any
    name: str | None
    facts: Facts

    def for_msgspec(self) -> Any:
        if self.default_factory is not NODEFAULT:
            return msgspec.field(default_factory=self.default_factory, name=self.name)
        return msgspec.field(default=self.default, name=self.name)


def field(
    *,
    default: Any = NODEFAULT,
    default_factory: Any = NODEFAULT,
    name: str | None = None,
    owner: str | None = None,
    server_set: bool = False,
    **schema: Any,
) -> Any:
    """Declare a field with more than a type and a default.

    ``owner`` names who may write a status field; a field that is ``server_set`` is
    read and never written. ``name`` is the JSON name where no attribute could spell
    it. The other keywords are those of :class:`Schema`.
    """
    facts = Facts(schema=Schema(**schema), owner=owner, server_set=server_set)
    return _Declaration(default, default_factory, name, facts)


class _Slot(msgspec.Struct, frozen=True, gc=False):
    """How one field is written: its names, and when it is left out."""

    attribute: str
    name: str
    nullable: bool
    drops_empty: bool


def _wire_name(attribute: str) -> str:
    return attribute.rstrip("_")


def annotations_of(namespace: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a class body annotates; from Python 3.14 on it is a function until asked."""
    found: Mapping[str, Any] | None = namespace.get("__annotations__")
    if found is None and sys.version_info >= (3, 14):
        import annotationlib

        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        if annotate is not None:
            form = annotationlib.Format.FORWARDREF
            found = annotationlib.call_annotate_function(annotate, form)
    return found or {}


class ObjectMeta(StructMeta):
    """Takes ``field(...)`` declarations and class-level schema facts off the body."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        rules: Sequence[Rule] = (),
        preserve_unknown: bool = False,
        map_type: MapType | None = None,
        owner: str | None = None,
        **options: Any,
    ) -> Any:
        facts: dict[str, Facts] = {}
        for base in reversed(bases):
            facts.update(getattr(base, "__facts__", {}))
        for attribute in annotations_of(namespace):
            facts.pop(attribute, None)
            value = namespace.get(attribute)
            if owner is not None:
                facts[attribute] = Facts(owner=owner)
            if isinstance(value, _Declaration):
                named = value.facts.owner is not None
                facts[attribute] = msgspec.structs.replace(
                    value.facts, owner=value.facts.owner if named else owner
                )
                namespace[attribute] = value.for_msgspec()
        namespace["__facts__"] = facts
        namespace["__schema_facts__"] = _class_facts(
            bases,
            Schema(
                rules=tuple(rules), preserve_unknown=preserve_unknown, map_type=map_type
            ),
        )
        namespace["__slots_on_wire__"] = None
        options.setdefault("kw_only", True)
        made: Any = super().__new__(mcls, name, bases, namespace, **options)
        if getattr(made, "__checked__", False) and made.__module__ != __name__:
            from trimtab.api.schema import check

            check(made)
        return made


def _class_facts(bases: tuple[type, ...], own: Schema) -> Schema:
    """What holds for a class: what it says itself, and what its bases said."""
    said = [getattr(base, "__schema_facts__", Schema()) for base in bases]
    rules = [rule for each in (*said, own) for rule in each.rules]
    return Schema(
        rules=tuple(dict.fromkeys(rules)),
        preserve_unknown=any(each.preserve_unknown for each in (*said, own)),
        map_type=next((each.map_type for each in (own, *said) if each.map_type), None),
    )


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(field, msgspec.field)
)
class Object(
    msgspec.Struct, metaclass=ObjectMeta, frozen=True, gc=False, rename=_wire_name
):
    """The base of every wire struct: frozen, keyword-only, unknown fields ignored.

    ``gc=False`` keeps the cyclic collector out of caches; it is safe because an object
    holds data only, never something that could refer back to it.
    """

    __checked__: ClassVar[bool] = False
    """Whether subclasses must be expressible as a schema when they are defined."""
    __head__: ClassVar[Mapping[str, str]] = {}
    """What every object of the class says on the wire: apiVersion and kind."""
    __facts__: ClassVar[Mapping[str, Facts]]
    __schema_facts__: ClassVar[Schema]
    __slots_on_wire__: ClassVar[tuple[_Slot, ...] | None]


class Spec(Object):
    """What the user wants. Subclass it, one annotated field for each wish."""

    __checked__: ClassVar[bool] = True


class Status(Object):
    """What is so. Each field has one owner, and only that owner writes it.

    ``field(owner=...)`` names it, or ``owner=`` on the class for all of its fields.
    """

    __checked__: ClassVar[bool] = True


def _is_empty(value: object) -> bool:
    return value == "" or value == [] or value == {}


def _default_of(field_info: msgspec.structs.FieldInfo) -> Any:
    if field_info.default_factory is not NODEFAULT:
        return field_info.default_factory()
    return field_info.default


def _slots(kind: type[Object]) -> tuple[_Slot, ...]:
    slots = kind.__dict__.get("__slots_on_wire__")
    if slots is None:
        slots = tuple(
            _Slot(
                info.name,
                info.encode_name,
                _is_nullable(kind, info),
                (default := _default_of(info)) is not NODEFAULT
                and default is not UNSET
                and _is_empty(builtins_of(default)),
            )
            for info in msgspec.structs.fields(kind)
            if not _facts(kind, info.name).server_set
        )
        kind.__slots_on_wire__ = slots
    return slots


def _is_nullable(kind: type[Object], info: msgspec.structs.FieldInfo) -> bool:
    union = get_origin(info.type) in (Union, UnionType)
    parts = get_args(info.type) if union else (info.type,)
    notes = (note for part in parts for note in getattr(part, "__metadata__", ()))
    said = any(note.nullable for note in notes if isinstance(note, Schema))
    return said or _facts(kind, info.name).schema.nullable


def _facts(kind: type[Object], attribute: str) -> Facts:
    return kind.__facts__.get(attribute, _NO_FACTS)


_NO_FACTS = Facts()


def wire(obj: Object) -> dict[str, Any]:
    """The JSON-able form of an object: what a write of it sends.

    None is left out (written as null where the field is nullable); an empty string,
    list, map or struct is left out where the field's default is empty too. Numbers and
    booleans are always written: a score of 0.0 is a score.
    """
    out: dict[str, Any] = dict(obj.__head__)
    for slot in _slots(type(obj)):
        value = getattr(obj, slot.attribute)
        if value is None:
            if slot.nullable:
                out[slot.name] = None
            continue
        if value is UNSET:
            continue
        plain = builtins_of(value)
        if not (slot.drops_empty and _is_empty(plain)):
            out[slot.name] = plain
    return out


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form; use a finite number or None")
    return value


_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: lambda value: value,
    int: lambda value: value,
    bool: lambda value: value,
    type(None): lambda value: value,
    float: _number,
    datetime: rfc3339,
    bytes: lambda value: b64encode(value).decode("ascii"),
    list: lambda value: [builtins_of(item) for item in value],
    tuple: lambda value: [builtins_of(item) for item in value],
    set: lambda value: sorted(builtins_of(item) for item in value),
    frozenset: lambda value: sorted(builtins_of(item) for item in value),
    dict: lambda value: {str(key): builtins_of(item) for key, item in value.items()},
}


def builtins_of(value: Any) -> Any:
    """One value as JSON-able builtins; sets are sorted so that output is stable."""
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain(value)
    if isinstance(value, Object):
        return wire(value)
    if hasattr(value, "__encode__"):
        return value.__encode__()
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(
        f"{type(value).__name__} has no wire form; use a type of trimtab.api"
    )
