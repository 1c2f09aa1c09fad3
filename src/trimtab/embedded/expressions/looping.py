"""Looping: how loops and the logic of errors run, apart from what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.embedded.expressions.nodes import Call, Fold, Ident, Items, Node
from trimtab.embedded.expressions.values import (
    EvaluationError,
    NoSuchOverload,
    Optional,
    OverBudget,
    Record,
    entries,
    names,
)

Frame = list[Any]
"""The budget that is left, then one place for each variable."""
Run = Callable[[Frame], Any]


def held_list(value: Any) -> list[Any]:
    if isinstance(value, EvaluationError):
        raise value
    held: list[Any] = value
    return held


def appended(node: Fold) -> tuple[Node | None, Node | None]:
    """The item that a round adds to the list, and the test for whether it does."""
    step, test = node.step, None
    if isinstance(step, Call) and step.function == "_?_:_":
        other = step.args[2]
        if not isinstance(other, Ident) or other.name != node.accu:
            return None, None
        test, step = step.args[0], step.args[1]
    if (
        isinstance(node.init, Items)
        and isinstance(step, Call)
        and step.function == "_+_"
        and isinstance(step.args[0], Ident)
        and step.args[0].name == node.accu
        and isinstance(step.args[1], Items)
    ):
        return step.args[1].items[0], test
    return None, None


def loop(
    over: Run,
    init: Run,
    condition: Run,
    step: Run,
    result: Run,
    accu: int,
    places: list[int],
    price: int,
) -> Run:
    first = places[0]
    second = places[1] if len(places) > 1 else 0

    def run(frame: Frame) -> Any:
        values = over(frame)
        frame[accu] = init(frame)
        for one, other in _rounds(values, pairs=bool(second)):
            spend(frame, price)
            if not condition(frame):
                break
            frame[first] = one
            if second:
                frame[second] = other
            try:
                frame[accu] = step(frame)
            except EvaluationError as error:
                frame[accu] = error
        return result(frame)

    return run


def _rounds(values: Any, *, pairs: bool) -> Iterator[tuple[Any, Any]]:
    if isinstance(values, list):
        if pairs:
            yield from enumerate(values)
        else:
            for item in values:
                yield item, None
    elif isinstance(values, (dict, Record)):
        if pairs:
            yield from entries(values)
        else:
            for key in names(values):
                yield key, None
    else:
        raise NoSuchOverload


def spend(frame: Frame, price: int) -> None:
    frame[0] -= price
    if frame[0] < 0:
        raise OverBudget


def optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise NoSuchOverload
    return value


def logic(one: Run, other: Run, *, absorbing: bool) -> Run:
    """``&&`` or ``||``: one side may decide although the other has no value."""

    def run(frame: Frame) -> bool:
        failed: EvaluationError | None = None
        try:
            left: object = one(frame)
            if left is absorbing:
                return absorbing
            if left is not (not absorbing):
                failed = NoSuchOverload()
        except EvaluationError as error:
            failed = error
        try:
            right: object = other(frame)
        except EvaluationError as error:
            raise failed or error from None
        if right is absorbing:
            return absorbing
        if failed is not None:
            raise failed
        if right is not (not absorbing):
            raise NoSuchOverload
        return not absorbing

    return run
