"""Scaling: the scale of a custom object, read from its paths, checked and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import status
from trimtab.embedded.gotext import plain
from trimtab.embedded.status import FieldProblem

Plain = dict[str, Any]

_MOST: Final = 2**31 - 1
_GO_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class _Unreadable(Exception):
    """A value of another type than the path should lead to, in the server's words."""


class Scaling:
    """The scale subresource of one version of a custom kind."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._wished = said["specReplicasPath"]
        self._present = said["statusReplicasPath"]
        self._selector = said.get("labelSelectorPath") or ""

    def spec_problems(self, obj: Plain) -> Iterator[FieldProblem]:
        """What is wrong with the number that is wished for."""
        yield from _count_problems(obj, self._wished)

    def status_problems(self, obj: Plain) -> Iterator[FieldProblem]:
        """What is wrong with the number and the selector that a controller wrote."""
        yield from _count_problems(obj, self._present)
        if self._selector:
            try:
                _look_up(obj, self._selector, str)
            except _Unreadable as error:
                yield status.invalid(self._selector, "", str(error))

    def read(self, obj: Plain) -> tuple[int, int, str]:
        """How many are wished for, how many there are, and the selector's text.

        Errors: ``ApiProblem`` (500) when it does not say how many are wished for.
        """
        try:
            wished = _look_up(obj, self._wished, int)
            present = _look_up(obj, self._present, int) or 0
            selector = _look_up(obj, self._selector, str) if self._selector else ""
        except _Unreadable as error:
            raise status.internal(str(error)) from None
        if wished is None:
            shown = status.quoted(self._wished)
            raise status.internal(f"the spec replicas field {shown} does not exist")
        return wished, present, selector or ""

    def write(self, obj: Plain, replicas: int) -> None:
        """Wish for another number, in place."""
        *parents, last = self._wished.removeprefix(".").split(".")
        place = obj
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = replicas


def _count_problems(obj: Plain, path: str) -> Iterator[FieldProblem]:
    try:
        count = _look_up(obj, path, int) or 0
    except _Unreadable as error:
        yield status.invalid(path, 0, str(error))
        return
    if count < 0:
        yield status.invalid(path, count, "should be a non-negative integer")
    elif count > _MOST:
        yield status.invalid(path, count, f"should be less than or equal to {_MOST}")


def _look_up(obj: Plain, path: str, wanted: type) -> Any:
    """The value at a path; None if there is none."""
    value: Any = obj
    names = path.removeprefix(".").split(".")
    for depth, name in enumerate(names, 1):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _unreadable(names[:depth], value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    if type(value) is not wanted:
        raise _unreadable(names, value, _GO_TYPES[wanted])
    return value


def _unreadable(names: list[str], value: Any, wanted: str) -> _Unreadable:
    found = _GO_TYPES.get(type(value), "<nil>")
    return _Unreadable(
        f".{'.'.join(names)} accessor error: {plain(value)} is of the type {found}, "
        f"expected {wanted}"
    )
