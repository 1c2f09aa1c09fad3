"""Building: closures for the nodes of a checked tree, which count what they cost.

A frame is a list: the budget that is left, then one place for each variable. What is
evaluated in any case is added up here and paid once, by whoever evaluates it; what may
or may not be evaluated, such as the right side of ``&&``, pays for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.expressions import functions, making, metering, operators
from trimtab.embedded.expressions.looping import (
    Frame,
    Run,
    always,
    appended,
    charged,
    held_list,
    logic,
    loop,
    paid_if_there,
    spend,
    texts_compared,
)
from trimtab.embedded.expressions.metering import LIST, MAP, STRUCT, Price
from trimtab.embedded.expressions.nodes import (
    Call,
    Entries,
    Fold,
    Ident,
    Items,
    Literal,
    Message,
    Node,
    Select,
    qualified,
)
from trimtab.embedded.expressions.values import (
    EvaluationError,
    NoSuchOverload,
    Optional,
    TypeName,
    Uint,
)

_CONSTANT_TYPES: Final = {
    "null_type": "null_type",
    "google.protobuf.Duration": "google.protobuf.Duration",
    "google.protobuf.Timestamp": "google.protobuf.Timestamp",
}
_INDEXES: Final = ("_[_]", "_[?_]", "_?._")
_PLENTY: Final = 2**62


class Builder:
    """Builds the closures of one expression."""

    def __init__(
        self, names: Mapping[str, int], constants: frozenset[int] = frozenset()
    ) -> None:
        self._names = dict(names)
        self._constants = constants
        self._accus: set[str] = set()
        self.size = len(names) + 1
        self.cost = 0
        """What evaluating all that was built costs in any case."""

    def built(self, node: Node, *, bare: bool = False) -> Run:
        """The closure of a node; ``bare`` where a variable costs nothing by itself."""
        if id(node) in self._constants:
            return self._constant(node)
        if isinstance(node, Ident):
            self.cost += 0 if bare else 1
            return self._name(node.name)
        if isinstance(node, Select):
            return self._select(node, bare=bare)
        if isinstance(node, Call):
            return self._call(node, bare=bare)
        if isinstance(node, Items):
            return self._items(node)
        if isinstance(node, Entries):
            return self._entries(node)
        if isinstance(node, Message):
            return self._message(node)
        return self._fold(node) if isinstance(node, Fold) else _literal(node)

    def measured(self, node: Node, *, bare: bool = False) -> tuple[Run, int]:
        """The closure of a node, and what it costs in any case."""
        before, self.cost = self.cost, 0
        run = self.built(node, bare=bare)
        cost, self.cost = self.cost, before
        return run, cost

    def _apart(self, node: Node, *, bare: bool = False) -> Run:
        """The closure of a node that is not always evaluated."""
        return charged(*self.measured(node, bare=bare))

    def _constant(self, node: Node) -> Run:
        if isinstance(node, Literal):
            return _literal(node)
        if isinstance(node, (Ident, Select)):
            return self._name(qualified(node))
        before = self.cost
        if isinstance(node, Items):
            run = self._items(node)
        elif isinstance(node, Entries):
            run = self._entries(node)
        else:
            assert isinstance(node, Call), node
            run = always(self._call(node)([_PLENTY]))
        self.cost = before
        return run

    def _name(self, name: str) -> Run:
        place = self._names.get(name)
        if place is None:
            named = TypeName(_CONSTANT_TYPES.get(name, name))
            return lambda frame: named
        slot = place
        if name in self._accus:
            # An error in one round of a loop is a value until somebody looks at it.
            def run(frame: Frame) -> Any:
                value = frame[slot]
                if isinstance(value, EvaluationError):
                    raise value
                return value

            return run
        return lambda frame: frame[slot]

    def _operand(self, node: Node, *, bare: bool) -> Run:
        """What a field or an item is taken of; more than a variable costs one more."""
        if not self._is_attribute(node) and not bare:
            self.cost += 1
        return self.built(node, bare=bare)

    def _is_attribute(self, node: Node) -> bool:
        if id(node) in self._constants:
            return False
        if isinstance(node, Call):
            return node.function in (*_INDEXES, "_?_:_")
        return isinstance(node, (Ident, Select)) and not getattr(node, "test", False)

    def _select(self, node: Select, *, bare: bool) -> Run:
        name = "" if node.test else qualified(node)
        if name in self._names:
            self.cost += 0 if bare else 1
            return self._name(name)
        operand, field = self._operand(node.operand, bare=bare), node.field
        if node.test:
            has_field = operators.has_field
            return lambda frame: has_field(operand(frame), field)
        get = operators.field
        if node.operand.type.kind == "opaque":
            return paid_if_there(lambda frame: get(operand(frame), field))
        self.cost += 1
        return lambda frame: get(operand(frame), field)

    def _index(self, node: Call, *, bare: bool) -> Run:
        container = self._operand(node.args[0], bare=bare)
        key = node.args[1]
        key_of = self.built(key)
        cost = 0 if self._is_attribute(key) else 1
        get: operators.Binary = operators.index
        if node.function == "_[?_]":
            get = operators.optional_index
        elif node.function == "_?._":
            get = operators.optional_field

        def found(frame: Frame) -> Any:
            return get(container(frame), key_of(frame))

        if node.function == "_[_]" and node.args[0].type.kind != "opaque":
            self.cost += cost
            return found
        return paid_if_there(found) if cost else found

    def _call(self, node: Call, *, bare: bool = False) -> Run:
        special = {
            "_&&_": self._both,
            "_||_": self._either,
            "_?_:_": self._choice,
            "!_": self._not,
            "@not_strictly_false": self._not_false,
        }
        if node.function in special:
            return special[node.function](node)
        if node.function in _INDEXES:
            return self._index(node, bare=bare)
        if node.function in ("or", "orValue") and node.target is not None:
            return self._alternative(node)
        if node.function == "-_":
            value = self.built(node.args[0])
            self.cost += 1
            return lambda frame: operators.negated(value(frame))
        binary = operators.chosen(node)
        if binary is not None:
            return self._binary(node, binary)
        return self._function(node)

    def _binary(self, node: Call, apply: operators.Binary) -> Run:
        one, other = map(self.built, node.args)
        if metering.is_membership(node):
            return lambda frame: apply(one(frame), other(frame))
        kinds = {each.type.kind for each in node.args}
        if kinds == {"string"} and node.function in operators.COMPARISONS:
            return texts_compared(one, other, apply)
        price = metering.operator_price(node)
        if price is None:
            self.cost += 1
            return lambda frame: apply(one(frame), other(frame))
        dear = price

        def metered(frame: Frame) -> Any:
            given = (one(frame), other(frame))
            spend(frame, dear(given, None))
            return apply(*given)

        return metered

    def _function(self, node: Call) -> Run:
        operands = node.operands
        parts = [self.built(each) for each in operands]
        run = functions.FUNCTIONS[node.function]
        if any(each.type.kind == "dyn" for each in operands):
            method = node.target is not None
            run = functions.guarded(node.function, method=method, count=len(operands))
        price = metering.price_of(node)
        if price is not None:
            return _metered(run, parts, price)
        self.cost += 1
        if len(parts) == 1:
            only = parts[0]
            return lambda frame: run(only(frame))
        return lambda frame: run(*[part(frame) for part in parts])

    def _alternative(self, node: Call) -> Run:
        """``a.or(b)`` and ``a.orValue(b)``: the second only if the first is nothing."""
        assert node.target is not None, node
        first, second = self.built(node.target), self._apart(node.args[0])
        whole = node.function == "or"

        def run(frame: Frame) -> Any:
            held = first(frame)
            if not isinstance(held, Optional):
                return held
            if held.items:
                return held if whole else held.items[0]
            return second(frame)

        return run

    def _both(self, node: Call) -> Run:
        first, second = node.args
        return logic(self.built(first), self._apart(second), absorbing=False)

    def _either(self, node: Call) -> Run:
        first, second = node.args
        return logic(self.built(first), self._apart(second), absorbing=True)

    def _not(self, node: Call) -> Run:
        value = self.built(node.args[0])
        self.cost += 1

        def run(frame: Frame) -> bool:
            found = value(frame)
            if found is True:
                return False
            if found is False:
                return True
            raise NoSuchOverload

        return run

    def _not_false(self, node: Call) -> Run:
        value = self.built(node.args[0])
        self.cost += 1

        def run(frame: Frame) -> bool:
            try:
                return value(frame) is not False
            except EvaluationError:
                return True

        return run

    def _choice(self, node: Call) -> Run:
        test = self.built(node.args[0])
        yes, no = (self._apart(each, bare=True) for each in node.args[1:])

        def run(frame: Frame) -> Any:
            found = test(frame)
            if found is True:
                return yes(frame)
            if found is False:
                return no(frame)
            raise NoSuchOverload

        return run

    def _items(self, node: Items) -> Run:
        parts = [self.built(each) for each in node.items]
        self.cost += LIST
        return making.items(parts, node.optional)

    def _entries(self, node: Entries) -> Run:
        pairs = [
            (self.built(each.key), self.built(each.value), each.optional)
            for each in node.entries
        ]
        self.cost += MAP
        return making.entries(pairs)

    def _message(self, node: Message) -> Run:
        runs = [self.built(each) for each in node.values]
        unsure = [index in node.optional for index in range(len(runs))]
        self.cost += STRUCT
        parts = list(zip(node.fields, runs, unsure, strict=True))
        return making.message(node.name, parts)

    def _fold(self, node: Fold) -> Run:
        if node.is_binding and not node.uses_accu:
            return self.built(node.result)
        over, init = self.built(node.range), self.built(node.init)
        saved, accus = dict(self._names), set(self._accus)
        accu = self._place(node.accu)
        self._accus.add(node.accu)
        places = [self._place(node.var)]
        if node.var2:
            places.append(self._place(node.var2))
        condition = self.measured(node.condition)
        step = self._step(node, accu)
        for name in (node.var, node.var2):
            self._names.pop(name, None)
            if name in saved:
                self._names[name] = saved[name]
        self._accus.add(node.accu)
        result = self.built(node.result)
        self._names, self._accus = saved, accus
        return loop(over, init, condition, step, result, accu, places)

    def _place(self, name: str) -> int:
        """A new place in the frame for a variable of a loop."""
        place = self.size
        self.size += 1
        self._names[name] = place
        self._accus.discard(name)
        return place

    def _step(self, node: Fold, accu: int) -> tuple[Run, int]:
        """What a round does; adding one item to the list does not copy the list."""
        item, test = appended(node)
        if item is None:
            return self.measured(node.step)
        made, cost = self.measured(item)
        # The list so far, the list of one item, and putting them together.
        cost += 2 if id(item) in self._constants else 2 + LIST
        if test is None:

            def append(frame: Frame) -> Any:
                held = held_list(frame[accu])
                held.append(made(frame))
                return held

            return append, cost
        wanted, asking = self.measured(test)
        made = charged(made, cost)

        def append_if(frame: Frame) -> Any:
            found = wanted(frame)
            held = held_list(frame[accu])
            if found is True:
                held.append(made(frame))
            elif found is not False:
                raise NoSuchOverload
            return held

        return append_if, asking


def _literal(node: Node) -> Run:
    assert isinstance(node, Literal), node
    return always(Uint(node.value) if node.type.kind == "uint" else node.value)


def _metered(run: functions.Function, parts: list[Run], price: Price) -> Run:
    def metered(frame: Frame) -> Any:
        args = tuple([part(frame) for part in parts])
        result = run(*args)
        spend(frame, price(args, result))
        return result

    return metered
