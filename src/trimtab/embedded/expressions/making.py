"""Making: lists, maps and objects that an expression writes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.embedded.expressions.looping import Frame, Run, optional
from trimtab.embedded.expressions.objects import Made


def items(parts: Sequence[Run], unsure: frozenset[int]) -> Run:
    """A list; those that are ``unsure`` are in it only if they are something."""
    if not unsure:
        return lambda frame: [part(frame) for part in parts]

    def run(frame: Frame) -> list[Any]:
        made: list[Any] = []
        for index, part in enumerate(parts):
            value = part(frame)
            if index in unsure:
                made += optional(value).items
            else:
                made.append(value)
        return made

    return run


def entries(pairs: Sequence[tuple[Run, Run, bool]]) -> Run:
    """A map, of keys and values and whether they are there only if they are
    something."""

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key_of, value_of, unsure in pairs:
            key, value = key_of(frame), value_of(frame)
            if unsure:
                if not optional(value).items:
                    continue
                value = value.items[0]
            made[key] = value
        return made

    return run


def message(name: str, parts: Sequence[tuple[str, Run, bool]]) -> Run:
    """An object of a type, of fields as those of a map."""

    def run(frame: Frame) -> Made:
        made: dict[str, Any] = {}
        for field, value_of, unsure in parts:
            value = value_of(frame)
            if not unsure:
                made[field] = value
            elif optional(value).items:
                made[field] = value.items[0]
        return Made(name, made)

    return run
