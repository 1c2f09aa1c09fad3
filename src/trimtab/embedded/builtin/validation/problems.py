"""Problems: a list that complaints about an object are added to as it is looked at.

It is a list of :class:`~trimtab.embedded.status.FieldProblem` with a method for each
kind of complaint, so that checks read as what they check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.builtin.validation.texts import (
    IMMUTABLE,
    NEGATIVE,
    NOT_POSITIVE,
    Problems,
)
from trimtab.embedded.status import FieldProblem

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def go_json(value: Any) -> str:
    """Compact JSON as Go writes it, which escapes what HTML would read."""
    text = msgspec.json.encode(value).decode()
    for letter, escape in _ESCAPES.items():
        text = text.replace(letter, escape)
    return text


def sorted_map(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A map as Go prints it: by its keys, and null if there is none."""
    return {key: value[key] for key in sorted(value)} if value else None


def shown(value: Any) -> str:
    """A bad value as it stands in a message."""
    if isinstance(value, str):
        return status.quoted(value)
    if value is True or value is False:
        return "true" if value else "false"
    return go_json(value)


class Found(list[FieldProblem]):
    """The problems that have been found, in order."""

    __slots__ = ("settled",)

    def __init__(self) -> None:
        super().__init__()
        self.settled = False
        """Whether the metadata is known to be good, but for the kind's own rules.

        The real server looks at it two or three times; the problems are told as often,
        but what is good need not be looked at again."""

    def required(self, field: str, detail: str = "") -> None:
        self.append(status.required(field, detail))

    def invalid(self, field: str, value: Any, detail: str) -> None:
        body = f"Invalid value: {shown(value)}"
        if detail:
            body = f"{body}: {detail}"
        self.append(FieldProblem(field, "FieldValueInvalid", body))

    def wrong(self, field: str, detail: str) -> None:
        """An invalid value that is not shown."""
        body = f"Invalid value: {detail}"
        self.append(FieldProblem(field, "FieldValueInvalid", body))

    def internal(self, field: str, detail: str) -> None:
        """Something that the server itself fell over."""
        body = f"Internal error: {detail}"
        self.append(FieldProblem(field, "InternalError", body))

    def each(self, field: str, value: Any, details: Problems) -> None:
        """One problem for each detail; most values have none."""
        for detail in details:
            self.invalid(field, value, detail)

    def unsupported(self, field: str, value: Any, allowed: Iterable[str]) -> None:
        listed = ", ".join(status.quoted(each) for each in allowed)
        body = f"Unsupported value: {shown(value)}: supported values: {listed}"
        self.append(FieldProblem(field, "FieldValueNotSupported", body))

    def one_of(self, field: str, value: Any, allowed: Sequence[str]) -> None:
        """Nothing if the value is among those allowed."""
        if value not in allowed:
            self.unsupported(field, value, allowed)

    def choice(self, field: str, value: Any, allowed: Sequence[str]) -> None:
        """A value that has to be there, and among those allowed."""
        if not value:
            self.required(field)
        elif value not in allowed:
            self.unsupported(field, value, allowed)

    def not_found(self, field: str, value: Any, detail: str = "") -> None:
        body = f"Not found: {shown(value)}" + (f": {detail}" if detail else "")
        self.append(FieldProblem(field, "FieldValueNotFound", body))

    def duplicate(self, field: str, value: Any, detail: str = "") -> None:
        body = f"Duplicate value: {shown(value)}" + (f": {detail}" if detail else "")
        self.append(FieldProblem(field, "FieldValueDuplicate", body))

    def forbidden(self, field: str, detail: str) -> None:
        self.append(status.forbidden_value(field, detail))

    def too_long(self, field: str, limit: int) -> None:
        self.append(status.too_long(field, limit))

    def too_many(self, field: str, count: int, limit: int) -> None:
        self.append(status.too_many(field, count, limit))

    def not_negative(self, field: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(field, value, NEGATIVE)

    def positive(self, field: str, value: int) -> None:
        if value <= 0:
            self.invalid(field, value, NOT_POSITIVE)

    def immutable(self, field: str, new: Any, old: Any, shown_as: Any = None) -> None:
        """The field may not change; ``shown_as`` is how its new value is printed."""
        if new != old:
            self.invalid(field, new if shown_as is None else shown_as, IMMUTABLE)
