"""Owners: who may write which field of a status, and partials that hold to it.

Two writers of one field overwrite each other, so each field of a status has one owner
(``field(owner="node")``, or ``owner=`` on the class); a field that names none belongs
to the kind's controller, the owner ``""``. A write takes a partial: a struct with one
owner's fields only, of which it sends those that were given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from trimtab.api.annotations import Member, Unresolved, members, mismatch, peel
from trimtab.api.objects import Object, ObjectMeta, Status, field
from trimtab.api.resource import Resource

CONTROLLER = ""
"""The owner of the fields that name none: the controller of the kind."""


class PartialMeta(ObjectMeta):
    """Checks what a partial is made of; other structs leave that to the decoder."""

    def __call__(cls, **values: Any) -> Any:
        for attribute, value in values.items():
            _check_value(cls, attribute, value)
        return super().__call__(**values)


class Partial(Object, metaclass=PartialMeta):
    """Some fields of a status: absent unless given, and then written, even if empty.

    A zero, False or empty text that was given is written. None is null where the field
    is nullable; elsewhere it is left out, which under server-side apply gives the
    field up.
    """

    __status__: ClassVar[type[Object]]
    __owner__: ClassVar[str]


def owners(kind: type[Object]) -> dict[str, tuple[str, ...]]:
    """The owners of a kind's status, and the fields of each.

    Takes a resource, or the class of its status. The controller (``""``) comes first;
    it is there only if it has fields.

    Errors: ``TypeError`` when the kind has no status to own.
    """
    found: dict[str, tuple[str, ...]] = {}
    for member in _members(_status(kind)):
        owner = member.facts.owner or CONTROLLER
        found[owner] = (*found.get(owner, ()), member.attribute)
    return {owner: found[owner] for owner in sorted(found, key=bool)}


@lru_cache(maxsize=512)
def status_of(kind: type[Object], owner: str = CONTROLLER) -> type[Any]:
    """The partial of a kind's status that an owner may write.

    Flow: ``status_of(Website, "node")(ready=3)`` is a value that :func:`wire` encodes
    as ``{"ready": 3}``, whatever other fields the status has.

    Guarantees: the class knows this owner's fields only. Making a value checks its
    types, deeply, so that what is wrong fails here and not at the server.

    Errors: ``ValueError`` for an owner that the kind does not have; ``TypeError`` for a
    kind without a status. The class raises ``TypeError`` naming the field that is of
    another owner, unknown, or of the wrong type.
    """
    status = _status(kind)
    owned = owners(kind)
    if owner not in owned:
        known = ", ".join(repr(each) for each in owned) or "none"
        raise ValueError(
            f"{status.__name__} has no field of the owner {owner!r}; its owners are "
            f"{known}."
        )
    mine = [each for each in _members(status) if each.attribute in owned[owner]]
    namespace: dict[str, Any] = {
        "__doc__": f"What {owner or 'the controller'} writes of {status.__name__}.",
        "__module__": status.__module__,
        "__annotations__": {
            "__status__": ClassVar[type[Object]],
            "__owner__": ClassVar[str],
            **{each.attribute: each.hint | UnsetType for each in mine},
        },
        "__status__": status,
        "__owner__": owner,
        **{each.attribute: _declared(each) for each in mine},
    }
    name = f"{status.__name__}_{owner or 'controller'}"
    made: type[Any] = PartialMeta(name, (Partial,), namespace, repr_omit_defaults=True)
    return made


def _declared(member: Member) -> Any:
    peeled = peel(member.hint, refuse=TypeError)
    nullable = any(note.nullable for note in (*peeled.notes, member.facts.schema))
    return field(default=UNSET, name=member.name, nullable=nullable)


def _members(kind: type[Object]) -> tuple[Member, ...]:
    try:
        return members(kind)
    except Unresolved as error:
        raise TypeError(f"{error}, so its owners cannot be told.") from None


def _status(kind: type[Object]) -> type[Object]:
    """The class of a kind's status."""
    if issubclass(kind, Status):
        return kind
    found = {each.attribute: each.hint for each in _members(kind)}
    bare = peel(found.get("status"), refuse=TypeError).bare
    if not (issubclass(kind, Resource) and isinstance(bare, type)):
        raise TypeError(f"{kind.__name__} has no status; give it one.")
    if not issubclass(bare, Object):
        raise TypeError(f"The status of {kind.__name__} is not a Status; make it one.")
    return bare


def _check_value(cls: Any, attribute: str, value: Any) -> None:
    status = cls.__status__
    known = {each.attribute: each for each in members(status)}
    if attribute not in known:
        raise TypeError(
            f"{status.__name__} has no field {attribute!r}; it has {', '.join(known)}."
        )
    owner = known[attribute].facts.owner or CONTROLLER
    if owner != cls.__owner__:
        raise TypeError(
            f"{status.__name__}.{attribute} is written by "
            f"{owner or 'the controller'}, not by {cls.__owner__ or 'the controller'}."
        )
    problem = (
        None
        if value is UNSET
        else mismatch(known[attribute].hint, value, at=f"{status.__name__}.{attribute}")
    )
    if problem:
        raise TypeError(f"{problem}.")
