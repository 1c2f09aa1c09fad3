"""Changes: what happened to an object, and which of its fields are not as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from types import UnionType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec

from trimtab.api.resource import Resource

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""

R = TypeVar("R", bound=Resource)

# The server moves these with every write; none of them is a reason to act.
NO_DIFFERENCE: Final = frozenset(
    {"metadata.resourceVersion", "metadata.generation", "metadata.managedFields"}
)


class Change(msgspec.Struct, Generic[R], gc=False):
    """One event as subscribers see it.

    ADDED has only ``new`` and DELETED only ``old`` (the last state that is known).
    MODIFIED has both, but for an object of which only the key was kept: then ``old`` is
    None and ``fields`` says what differs.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: Key
    old: R | None
    new: R | None
    initial: bool = False
    """From the first list, or replayed for a late subscriber."""
    replaced: Change[R] | None = None
    """The DELETED of another object that had this key: it comes before this ADDED."""
    fields: tuple[str, ...] | None = None
    """What differs, where the old object is not there to compare with."""

    def differences(self) -> tuple[str, ...]:
        """Which fields of a MODIFIED differ, as :func:`differences` names them."""
        if self.old is not None and self.new is not None:
            return differences(self.old, self.new)
        return self.fields or ()


def differences(old: R, new: R) -> tuple[str, ...]:
    """The dotted paths, two levels deep, of what differs: ``spec.image``.

    resourceVersion, generation and managedFields are not differences.
    """
    return tuple(_differences(old, new))


def _differences(old: Resource, new: Resource) -> Iterator[str]:
    for part in old.__struct_fields__:
        before, after = getattr(old, part), getattr(new, part, None)
        if before is after or before == after:
            continue
        name = part.rstrip("_")
        inside = _inside(before, after)
        if inside is None:
            yield name
            continue
        for each in inside:
            path = f"{name}.{each}"
            if path not in NO_DIFFERENCE:
                yield path


def _inside(before: Any, after: Any) -> list[str] | None:
    """What differs one level down; None where there is no level below."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = dict.fromkeys((*before, *after))
        return [n for n in names if before.get(n, names) != after.get(n, names)]
    if not isinstance(before, msgspec.Struct) or type(before) is not type(after):
        return None
    names_on_wire = before.__struct_encode_fields__
    return [
        name
        for name, attribute in zip(names_on_wire, before.__struct_fields__, strict=True)
        if getattr(before, attribute) != getattr(after, attribute)
    ]


def is_newer(version: str, *, than: str) -> bool:
    """Whether a resourceVersion comes after another.

    They are whole numbers on every server that there is. Where they are not, any other
    one counts as newer: what arrived last is the best guess.
    """
    if version == than:
        return False
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return True


class Predicate:
    """Which changes matter: those of the fields that ``on_change`` names.

    Guarantees: ADDED, DELETED and a newly set ``deletionTimestamp`` always match. Where
    only the key of the old object was kept, a path of more than two levels is judged by
    its first two.

    Errors: ``ValueError`` at definition for a path that the kind does not have.
    """

    __slots__ = ("_getters", "_prefixes", "paths")

    def __init__(self, kind: type[Resource], on_change: Iterable[str]) -> None:
        self.paths = tuple(on_change)
        for path in self.paths:
            check_path(kind, path)
        self._getters = tuple(path_getter(path) for path in self.paths)
        self._prefixes = tuple(tuple(path.split(".")[:2]) for path in self.paths)

    def matches(self, change: Change[Any]) -> bool:
        """Whether somebody who asked for these fields wants to know of a change."""
        old, new = change.old, change.new
        if change.type != "MODIFIED" or new is None:
            return True
        if old is None:
            return self._matches_fields(change.fields)
        gone = new.metadata.deletionTimestamp
        if gone is not None and old.metadata.deletionTimestamp is None:
            return True
        # any() over a generator would take twice as long.
        for get in self._getters:  # noqa: SIM110
            if get(old) != get(new):
                return True
        return False

    def _matches_fields(self, fields: tuple[str, ...] | None) -> bool:
        if fields is None or "metadata.deletionTimestamp" in fields:
            return True
        changed = [tuple(each.split(".", 1)) for each in fields]
        return any(
            each[: len(wanted)] == wanted[: len(each)]
            for each in changed
            for wanted in self._prefixes
        )


def path_getter(path: str) -> Callable[[Any], Any]:
    """A function that reads a dotted path; None where something on the way is absent.

    In a map the whole rest of the path is tried as one key first, so that
    ``metadata.labels.app.kubernetes.io/name`` is a path.
    """
    steps = tuple(path.split("."))
    direct = attrgetter(path)

    def get(obj: Any) -> Any:
        try:
            return direct(obj)
        except AttributeError:
            return _walk(obj, steps)

    # A step such as `items` would find the method of a map.
    return partial(_walk, steps=steps) if _METHODS.intersection(steps) else get


_METHODS: Final = frozenset(dir(dict))


def _walk(obj: Any, steps: tuple[str, ...]) -> Any:
    here = obj
    for position, step in enumerate(steps):
        if isinstance(here, dict):
            rest = ".".join(steps[position:])
            if rest in here:
                return here[rest]
        here = _step(here, step)
        if here is None:
            return None
    return here


def _step(here: Any, name: str) -> Any:
    if isinstance(here, Mapping):
        return here.get(name)
    value = getattr(here, name, None)
    return getattr(here, f"{name}_", None) if value is None else value


def check_path(kind: type[Resource], path: str) -> None:
    """Refuse a path that the objects of a kind cannot have.

    Errors: ``ValueError`` with the step that is unknown.
    """
    here: Any = kind
    for step in path.split("."):
        structs = _structs(here)
        if structs is None:
            return
        fields = {
            field.encode_name: field.type
            for struct in structs
            for field in msgspec.structs.fields(struct)
        }
        if step not in fields:
            raise ValueError(
                f"{kind.__resource__.kind} has no field {path!r} to watch for changes: "
                f"there is no {step!r} in what its class names; add it or correct it."
            )
        here = fields[step]


def _structs(annotation: Any) -> list[type[msgspec.Struct]] | None:
    """The structs that a value of this type may be; None where all may be below."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    if annotation is Any or _is_map(annotation):
        return None
    found: list[type[msgspec.Struct]] = []
    for part in _alternatives(annotation):
        below = _structs(part)
        if below is None:
            return None
        found += below
    return found


def _is_map(annotation: Any) -> bool:
    origin = getattr(annotation, "__origin__", annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, and what an ``Annotated`` is about; else nothing."""
    if hasattr(annotation, "__metadata__"):
        return (annotation.__origin__,)
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return ()
