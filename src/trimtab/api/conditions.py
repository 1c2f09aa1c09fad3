"""Conditions: what is true of an object, at most one statement of each type.

On the wire they are a list; here they are a map by type, so that they cannot grow: a
type is stated once, its message has a cap, and duplicates that somebody else left in a
list collapse when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, final

import msgspec

from trimtab.api.objects import Object
from trimtab.api.times import rfc3339

MESSAGE_LIMIT: Final = 1024
"""Bytes, and so characters too, that a message may have."""

StatusWord = Literal["True", "False", "Unknown"]

_REASON: Final = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON_LIMIT: Final = 1024
_TYPE_LIMIT: Final = 316
_WORDS: Final[dict[object, str]] = {True: "True", False: "False", None: "Unknown"} | {
    word: word for word in ("True", "False", "Unknown")
}
_ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"


class Condition(Object):
    """One statement about an object: its type, whether it holds, since when and why.

    Everything has a default because what others wrote may lack anything.
    """

    type: str = ""
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    lastTransitionTime: datetime | None = None
    observedGeneration: int | None = None


@final
class Conditions(Mapping[str, Condition]):
    """The conditions of an object by type, in the order they were first seen.

    An immutable value: :meth:`set` and :meth:`remove` give a new one, or the same one
    when nothing changes, so that a caller skips the write with ``is``.

    Guarantees: each type is there once. Of duplicates in what was read, the one with
    the latest ``lastTransitionTime`` stays, the last of them in a tie;
    ``had_duplicates`` then says that the server still has the others, and that only
    writing the whole list removes them. Equality and hash do not depend on the order.
    """

    __slots__ = ("_items", "had_duplicates")

    _items: tuple[Condition, ...]
    had_duplicates: bool

    def __init__(self, items: Iterable[Condition] = ()) -> None:
        given = tuple(items)
        kept = _collapsed(given)
        object.__setattr__(self, "_items", kept)
        object.__setattr__(self, "had_duplicates", len(kept) < len(given))

    def set(
        self,
        type: str,
        status: bool | StatusWord | None,
        *,
        reason: str,
        message: str = "",
        now: datetime,
        observed_generation: int | None = None,
    ) -> Conditions:
        """State something: True, False, or None for unknown.

        Guarantees: ``lastTransitionTime`` becomes ``now`` only where the status
        changes. A message past 1 KiB is cut and ends in an ellipsis.

        Errors: ``ValueError`` for a status, type or reason that a server would refuse.
        """
        word = _word(status)
        known = self.get(type)
        same = known is not None and known.status == word
        since = known.lastTransitionTime if known is not None and same else None
        stated = Condition(
            type=_checked("type", type, _TYPE, _TYPE_LIMIT),
            status=word,
            reason=_checked("reason", reason, _REASON, _REASON_LIMIT),
            message=_capped(message),
            lastTransitionTime=since or _whole_second(now),
            observedGeneration=observed_generation,
        )
        return self if stated == known else self._with(stated)

    def remove(self, type: str) -> Conditions:
        """The conditions without this type."""
        kept = tuple(item for item in self._items if item.type != type)
        return self if len(kept) == len(self._items) else _make(kept, self)

    def is_true(self, type: str) -> bool:
        """Whether this type is stated and holds."""
        return any(item.type == type and item.status == "True" for item in self._items)

    def _with(self, stated: Condition) -> Conditions:
        kept = [stated if item.type == stated.type else item for item in self._items]
        if stated.type not in self:
            kept.append(stated)
        return _make(tuple(kept), self)

    def __getitem__(self, type: str) -> Condition:
        for item in self._items:
            if item.type == type:
                return item
        raise KeyError(type)

    def __iter__(self) -> Iterator[str]:
        return (item.type for item in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conditions):
            return NotImplemented
        return self._items == other._items or set(self._items) == set(other._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def __repr__(self) -> str:
        stated = ", ".join(f"{item.type}={item.status}" for item in self._items)
        return f"Conditions({stated})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Conditions do not change; use set() or remove().")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Conditions do not change; use set() or remove().")

    def __copy__(self) -> Conditions:
        return self

    def __deepcopy__(self, memo: object) -> Conditions:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_remake, (self._items, self.had_duplicates))

    @classmethod
    def __decode__(cls, builtin: list[Any] | None) -> Conditions:
        if not builtin:
            return _NONE
        if not isinstance(builtin, list):
            raise ValueError(f"Conditions are a list, not {type(builtin).__name__}.")
        return cls(_read(builtin))

    def __encode__(self) -> list[dict[str, Any]]:
        return [_written(item) for item in self._items]

    @classmethod
    def __schema__(cls) -> dict[str, Any]:
        return {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": [
                    "type",
                    "status",
                    "lastTransitionTime",
                    "reason",
                    "message",
                ],
                "properties": _properties(),
            },
        }


def _properties() -> dict[str, Any]:
    return {
        "type": {"type": "string", "pattern": _TYPE, "maxLength": _TYPE_LIMIT},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {
            "type": "string",
            "pattern": _REASON,
            "minLength": 1,
            "maxLength": _REASON_LIMIT,
        },
        "message": {"type": "string", "maxLength": MESSAGE_LIMIT},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    }


def _make(items: tuple[Condition, ...], before: Conditions) -> Conditions:
    return _remake(items, before.had_duplicates)


def _remake(items: tuple[Condition, ...], had_duplicates: bool) -> Conditions:
    made = object.__new__(Conditions)
    object.__setattr__(made, "_items", items)
    object.__setattr__(made, "had_duplicates", had_duplicates)
    return made


def _collapsed(items: tuple[Condition, ...]) -> tuple[Condition, ...]:
    by_type = {item.type: item for item in items}
    if len(by_type) == len(items):
        return items
    by_type.clear()
    for item in items:
        known = by_type.get(item.type)
        if known is None or _since(known) <= _since(item):
            by_type[item.type] = item
    return tuple(by_type.values())


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def _since(item: Condition) -> datetime:
    return _aware(item.lastTransitionTime or _LONG_AGO)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_LIST: Final = tuple[Condition, ...]


def _read(items: list[Any]) -> tuple[Condition, ...]:
    try:
        for item in items:
            text = item["type"]
            item["type"] = _shared(text) if len(text) <= 64 else text
            item["status"] = _WORDS[item["status"]]
        return msgspec.convert(items, _LIST)
    except (TypeError, KeyError, msgspec.ValidationError):
        return tuple(_salvaged(item) for item in items if isinstance(item, dict))


# The same few types stand in every pod of a cluster: each text is kept once.
@lru_cache(maxsize=4096)
def _shared(text: str) -> str:
    return text


def _salvaged(item: dict[str, Any]) -> Condition:
    """What can be read of a condition: one odd field must not hide the whole object."""
    fields: dict[str, Any] = {}
    for info in msgspec.structs.fields(Condition):
        try:
            value = msgspec.convert(item.get(info.encode_name), info.type)
        except msgspec.ValidationError:
            continue
        fields[info.name] = value
    return Condition(**fields)


def _written(item: Condition) -> dict[str, Any]:
    """Every field that schemas require is written, also where it is empty."""
    out: dict[str, Any] = {"type": item.type, "status": item.status}
    if item.observedGeneration is not None:
        out["observedGeneration"] = item.observedGeneration
    if item.lastTransitionTime is not None:
        out["lastTransitionTime"] = rfc3339(_aware(item.lastTransitionTime))
    return out | {"reason": item.reason, "message": item.message}


def _word(status: object) -> str:
    word = _WORDS.get(status) if isinstance(status, bool | str | None) else None
    if word is None:
        raise ValueError(
            f"{status!r} is not the status of a condition; use True, False or None "
            "for unknown."
        )
    return word


def _checked(what: str, text: str, pattern: str, limit: int) -> str:
    if len(text) > limit or not re.fullmatch(pattern, text):
        raise ValueError(
            f"{text[:80]!r} is not the {what} of a condition; use a CamelCase word."
        )
    return text


def _capped(message: str) -> str:
    """At most 1 KiB of UTF-8; the schema counts characters, which are never more."""
    # Half a surrogate pair has no UTF-8 form, and no message is worth a failed write.
    data = message.encode("utf-8", "replace")
    if len(data) <= MESSAGE_LIMIT:
        return data.decode("utf-8")
    kept = data[: MESSAGE_LIMIT - len(_ELLIPSIS.encode("utf-8"))]
    return kept.decode("utf-8", "ignore") + _ELLIPSIS


def _whole_second(moment: datetime) -> datetime:
    """What the wire keeps of a moment, so that what was set equals what is read."""
    if moment.utcoffset() is None:
        raise ValueError(
            f"{moment.isoformat()} has no time zone; give it one, for example "
            "tzinfo=datetime.UTC."
        )
    return moment.astimezone(UTC).replace(microsecond=0)


_NONE: Final = Conditions()
