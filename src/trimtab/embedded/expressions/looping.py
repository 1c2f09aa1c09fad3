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
    kind_name,
    names,
)

Frame = list[Any]
"""The budget that is left, then one place for each variable."""
Run = Callable[[Frame], Any]


def always(value: Any) -> Run:
    """What comes to the same value whatever is given."""
    return lambda frame: value


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


Measured = tuple[Run, int]
"""What runs, and what that costs in any case."""


def loop(
    over: Run,
    init: Run,
    condition: Measured,
    step: Measured,
    result: Run,
    accu: int,
    places: list[int],
) -> Run:
    first = places[0]
    second = places[1] if len(places) > 1 else 0
    goes_on, asking = condition
    do, doing = step

    def run(frame: Frame) -> Any:
        values = over(frame)
        frame[accu] = init(frame)
        for one, other in _rounds(values, pairs=bool(second)):
            # Here and below without a call, because there are so many rounds.
            frame[0] -= asking
            if not goes_on(frame):
                break
            frame[0] -= doing
            if frame[0] < 0:
                raise OverBudget
            frame[first] = one
            if second:
                frame[second] = other
            try:
                frame[accu] = do(frame)
            except EvaluationError as error:
                frame[accu] = error
        if frame[0] < 0:
            raise OverBudget
        return result(frame)

    return run


def texts_compared(one: Run, other: Run, apply: Callable[[Any, Any], Any]) -> Run:
    """A comparison of texts, which costs by the shorter of the two."""

    def run(frame: Frame) -> Any:
        left, right = one(frame), other(frame)
        size = min(len(left), len(right))
        frame[0] -= (size + 9) // 10
        if frame[0] < 0:
            raise OverBudget
        return apply(left, right)

    return run


def paid_if_there(found: Run) -> Run:
    """Something optional, which costs one if it is there."""

    def run(frame: Frame) -> Any:
        value = found(frame)
        if not isinstance(value, Optional) or value.items:
            spend(frame, 1)
        return value

    return run


def charged(run: Run, cost: int) -> Run:
    """The same, paying for itself."""
    if not cost:
        return run

    def paying(frame: Frame) -> Any:
        frame[0] -= cost
        if frame[0] < 0:
            raise OverBudget
        return run(frame)

    return paying


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
    elif pairs:
        said = f"unsupported comprehension range type: {_go_name(values)}"
        raise EvaluationError(said)
    else:
        raise EvaluationError(f"got '{_go_name(values)}', expected iterable type")


def _go_name(value: Any) -> str:
    kind = kind_name(value).rpartition(".")[2].removesuffix("_type")
    return f"types.{kind[:1].upper()}{kind[1:]}"


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
