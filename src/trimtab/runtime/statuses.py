"""Status intents: what one owner says of an object, put together from what was given.

A reconcile may state its status in pieces: some fields here, a condition there. They go
to the server as one apply under the owner's field manager. What an owner does not
mention stays as it is, because an apply that left it out would give it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import NODEFAULT, UNSET, json
from msgspec.structs import FieldInfo, fields

from trimtab.api.conditions import Conditions
from trimtab.api.objects import Object, builtins_of, wire
from trimtab.api.owners import CONTROLLER, Partial, owners
from trimtab.api.resource import Resource

CONDITIONS = "conditions"


def owner_of_status(status: Object) -> str:
    """Whose fields a status states: those of a partial, else the controller's."""
    return status.__owner__ if isinstance(status, Partial) else CONTROLLER


def stated(status: Object, current: Resource) -> dict[str, Any]:
    """The fields that a status states, by their names on the wire.

    A partial states what it was given; a whole status every field of the controller.

    Errors: ``TypeError`` when a status is of another kind, or says something new of a
    field that another owner writes.
    """
    is_now = _status_of(current)
    expected = status.__status__ if isinstance(status, Partial) else type(status)
    if not isinstance(is_now, expected):
        raise TypeError(
            f"{current} has a status of the type {type(is_now).__name__}, not "
            f"{expected.__name__}; state that."
        )
    plain = wire(status)
    if isinstance(status, Partial):
        return {**_emptied(status, _fields(type(status))), **plain}
    mine = set(owners(type(current)).get(CONTROLLER, ()))
    plain = {**_emptied(status, _fields(type(status))), **plain}
    for info in _fields(type(status)):
        if info.name in mine:
            continue
        plain.pop(info.encode_name, None)
        value = getattr(status, info.name)
        if value not in (getattr(is_now, info.name), _default(info)):
            owner = owners_by_field(type(current))[info.name]
            raise TypeError(
                f"{type(status).__name__}.{info.name} is written by {owner!r}, not by "
                f"the controller; state it with {current.kind}.status_of({owner!r})."
            )
    return plain


def _emptied(status: Object, infos: Iterable[FieldInfo]) -> dict[str, Any]:
    """What a write leaves out because it is empty, and yet says: that it is empty."""
    values = {info.encode_name: getattr(status, info.name) for info in infos}
    return {
        name: UNSET if value is None else builtins_of(value)
        for name, value in values.items()
        if value is not UNSET and name != CONDITIONS
    }


# Each call of msgspec's own resolves all annotations: a tenth of a millisecond.
@lru_cache(maxsize=512)
def _fields(kind: type[Object]) -> tuple[FieldInfo, ...]:
    return fields(kind)


def owners_by_field(kind: type[Resource]) -> dict[str, str]:
    """Who may write each field of a kind's status."""
    return {name: owner for owner, names in owners(kind).items() for name in names}


def intent(
    given: Mapping[str, Any],
    *,
    owner: str,
    current: Resource,
    conditions: Conditions | None = None,
    types: Iterable[str] = (),
) -> dict[str, Any]:
    """All that an owner says: what was given now, and what it had said before.

    ``types`` are the conditions that it states; the others belong to somebody else. A
    field that became empty is mentioned only while the object still shows a value.
    """
    is_now = _status_of(current)
    mine = set(owners(type(current)).get(owner, ()))
    whole: dict[str, Any] = {}
    for info in _fields(type(is_now)):
        if info.name not in mine or info.name == CONDITIONS:
            continue
        value = getattr(is_now, info.name)
        if info.encode_name in given:
            stated = given[info.encode_name]
            if stated is not UNSET and (value or not is_empty(stated)):
                whole[info.encode_name] = stated
        elif value not in (None, UNSET) and value != _default(info):
            whole[info.encode_name] = builtins_of(value)
    if conditions is not None and CONDITIONS in mine:
        wanted = set(types)
        listed = [each for each in conditions.__encode__() if each["type"] in wanted]
        if listed:
            whole[CONDITIONS] = listed
    return whole


def is_empty(value: Any) -> bool:
    return value in ("", [], {})


def meaning(whole: Mapping[str, Any]) -> dict[str, Any]:
    """An intent without what is empty: the same whether or not that is mentioned."""
    return {name: value for name, value in whole.items() if not is_empty(value)}


def restated(status: Object, current: Conditions) -> Conditions:
    """The conditions of a status that say something other than the object does."""
    given = getattr(status, CONDITIONS, UNSET)
    if not isinstance(given, Conditions):
        return Conditions()
    return Conditions(each for name, each in given.items() if current.get(name) != each)


def managed_types(entries: Iterable[Mapping[str, Any]], manager: str) -> set[str]:
    """Which conditions of an object a field manager has applied (``managedFields``)."""
    found: set[str] = set()
    for entry in entries:
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply"):
            status = entry.get("fieldsV1", {}).get("f:status", {})
            for key in status.get(f"f:{CONDITIONS}", {}):
                if key.startswith("k:"):
                    found.add(json.decode(key[2:])["type"])
    return found


def shows(current: Resource, whole: Mapping[str, Any]) -> bool:
    """Whether an object's status already says all of an intent."""
    is_now = builtins_of(_status_of(current))
    for name, value in whole.items():
        if name == CONDITIONS:
            present = {each["type"]: each for each in is_now.get(CONDITIONS, ())}
            if any(present.get(each["type"]) != each for each in value):
                return False
        elif is_now.get(name, UNSET) != value and (value or is_now.get(name)):
            return False
    return True


def conditions_of(current: Resource) -> Conditions:
    """The conditions of an object's status.

    Errors: ``TypeError`` when its class has none.
    """
    found = getattr(_status_of(current), CONDITIONS, None)
    if not isinstance(found, Conditions):
        raise TypeError(
            f"The status of {current.kind} has no conditions; add the field "
            "`conditions: Conditions = Conditions()`."
        )
    return found


def owner_of_conditions(current: Resource) -> str:
    """Whose the conditions of an object are; most often the controller's."""
    return owners_by_field(type(current)).get(CONDITIONS, CONTROLLER)


def conditions_or_none(current: Resource) -> Conditions | None:
    """The same, for kinds that need not have any."""
    found = getattr(_status_of(current), CONDITIONS, None)
    return found if isinstance(found, Conditions) else None


def _status_of(current: Resource) -> Object:
    found = getattr(current, "status", None)
    if not isinstance(found, Object):
        raise TypeError(f"{current.kind} has no status; give its class one.")
    return found


def _default(info: FieldInfo) -> Any:
    if info.default_factory is not NODEFAULT:
        return info.default_factory()
    return info.default
