"""Macros: ``has``, ``all``, ``map`` and the like, which become loops while reading.

A macro gets what stands in its call unevaluated. Every node that it makes stands at the
place of the call.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.embedded.expressions.kinds import BOOL, INT
from trimtab.embedded.expressions.nodes import (
    Call,
    Entries,
    Entry,
    Fold,
    Ident,
    Items,
    Literal,
    Node,
    Select,
)

ACCU = "@result"
_OVERWRITES = "iteration variable overwrites accumulator variable"


class MacroError(Exception):
    """A macro that is called wrongly; ``at`` is where."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


Expand = Callable[[int, Node | None, list[Node]], Node]


def _accu(at: int) -> Node:
    return Ident(at=at, name=ACCU)


def _true(at: int) -> Node:
    return Literal(at=at, value=True, type=BOOL)


def _call(at: int, function: str, *args: Node) -> Node:
    return Call(at=at, function=function, args=list(args))


def _variable(node: Node, text: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.at, text)
    if node.name in (ACCU, "__result__"):
        raise MacroError(node.at, _OVERWRITES)
    return node.name


def _has(at: int, target: Node | None, args: list[Node]) -> Node:
    operand = args[0]
    if not isinstance(operand, Select) or operand.test:
        raise MacroError(operand.at, "invalid argument to has() macro")
    return Select(at=at, operand=operand.operand, field=operand.field, test=True)


def _variables(args: list[Node], count: int) -> tuple[str, str]:
    simple = "argument must be a simple name"
    first = _variable(args[0], simple)
    if count == 1:
        return first, ""
    second = _variable(args[1], simple)
    if first == second:
        raise MacroError(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _quantifier(kind: str, variables: int) -> Expand:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        var, var2 = _variables(args, variables)
        test = args[-1]
        init: Node = Literal(at=at, value=kind == "all", type=BOOL)
        result = _accu(at)
        if kind == "all":
            condition = _call(at, "@not_strictly_false", _accu(at))
            step = _call(at, "_&&_", _accu(at), test)
        elif kind == "exists":
            done = _call(at, "!_", _accu(at))
            condition = _call(at, "@not_strictly_false", done)
            step = _call(at, "_||_", _accu(at), test)
        else:
            init = Literal(at=at, value=0, type=INT)
            condition = _true(at)
            one = Literal(at=at, value=1, type=INT)
            more = _call(at, "_+_", _accu(at), one)
            step = _call(at, "_?_:_", test, more, _accu(at))
            single = Literal(at=at, value=1, type=INT)
            result = _call(at, "_==_", _accu(at), single)
        return Fold(
            at=at,
            range=target,
            var=var,
            var2=var2,
            init=init,
            condition=condition,
            step=step,
            result=result,
        )

    return expand


def _list_fold(
    at: int, target: Node, names: tuple[str, str], item: Node, test: Node | None
) -> Node:
    step = _call(at, "_+_", _accu(at), Items(at=at, items=[item]))
    if test is not None:
        step = _call(at, "_?_:_", test, step, _accu(at))
    return Fold(
        at=at,
        range=target,
        var=names[0],
        var2=names[1],
        init=Items(at=at, items=[]),
        condition=_true(at),
        step=step,
        result=_accu(at),
    )


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    name = _variable(args[0], "argument is not an identifier")
    test = args[1] if len(args) == 3 else None
    return _list_fold(at, target, (name, ""), args[-1], test)


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    name = _variable(args[0], "argument is not an identifier")
    kept = Ident(at=args[0].at, name=name)
    return _list_fold(at, target, (name, ""), kept, args[1])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    test = args[2] if len(args) == 4 else None
    return _list_fold(at, target, _variables(args, 2), args[-1], test)


def _transform_map(*, entry: bool) -> Expand:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        var, var2 = _variables(args, 2)
        test = args[2] if len(args) == 4 else None
        if entry:
            step = _call(at, "cel.@mapInsert", _accu(at), args[-1])
        else:
            key = Ident(at=at, name=var)
            step = _call(at, "cel.@mapInsert", _accu(at), key, args[-1])
        if test is not None:
            step = _call(at, "_?_:_", test, step, _accu(at))
        return Fold(
            at=at,
            range=target,
            var=var,
            var2=var2,
            init=Entries(at=at, entries=list[Entry]()),
            condition=_true(at),
            step=step,
            result=_accu(at),
        )

    return expand


def _optional_map(*, flat: bool) -> Expand:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        name = "optFlatMap()" if flat else "optMap()"
        if not isinstance(args[0], Ident):
            raise MacroError(
                args[0].at, f"{name} variable name must be a simple identifier"
            )
        held = Call(at=at, function="value", target=target, args=[])
        inner = _bound(at, args[0].name, held, args[1])
        if not flat:
            inner = _call(at, "optional.of", inner)
        present = Call(at=at, function="hasValue", target=target, args=[])
        return _call(at, "_?_:_", present, inner, _call(at, "optional.none"))

    return expand


def _bound(at: int, name: str, value: Node, result: Node) -> Node:
    """A name for a value within an expression: a loop that goes round no time."""
    return Fold(
        at=at,
        range=Items(at=at, items=[]),
        var="#unused",
        accu=name,
        init=value,
        condition=Literal(at=at, value=False, type=BOOL),
        step=Ident(at=at, name=name),
        result=result,
    )


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    name = "@__sortBy_input__"
    var = _variable(args[0], "argument is not an identifier")
    items = Ident(at=at, name=name)
    keys = _list_fold(at, items, (var, ""), args[1], None)
    sorted_items = Call(
        at=at,
        function="@sortByAssociatedKeys",
        target=Ident(at=at, name=name),
        args=[keys],
    )
    return _bound(at, name, target, sorted_items)


MACROS: dict[tuple[str, int, bool], Expand] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all", 1),
    ("exists", 2, True): _quantifier("exists", 1),
    ("exists_one", 2, True): _quantifier("one", 1),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _quantifier("all", 2),
    ("exists", 3, True): _quantifier("exists", 2),
    ("existsOne", 3, True): _quantifier("one", 2),
    ("exists_one", 3, True): _quantifier("one", 2),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(entry=False),
    ("transformMap", 4, True): _transform_map(entry=False),
    ("transformMapEntry", 3, True): _transform_map(entry=True),
    ("transformMapEntry", 4, True): _transform_map(entry=True),
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
    ("sortBy", 2, True): _sort_by,
}
"""By name, number of arguments, and whether it is called on something."""
