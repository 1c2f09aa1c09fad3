"""Compiling: from a checked tree to a function that is called with values.

Every node becomes a closure over those of its parts. A frame is a list: the budget
that is left, then one place for each variable. Only loops and functions that read long
values spend budget, because all else is bounded by the length of the expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded.expressions import checking, functions, operators, parsing
from trimtab.embedded.expressions.checking import Scope
from trimtab.embedded.expressions.complaints import Complaint, ExpressionError
from trimtab.embedded.expressions.kinds import Type
from trimtab.embedded.expressions.looping import (
    Frame,
    Run,
    appended,
    held_list,
    logic,
    loop,
    optional,
    spend,
)
from trimtab.embedded.expressions.nodes import (
    Call,
    Entries,
    Fold,
    Ident,
    Items,
    Literal,
    Node,
    Select,
    qualified,
)
from trimtab.embedded.expressions.values import (
    EvaluationError,
    NoSuchOverload,
    TypeName,
    Uint,
)

_CONSTANT_TYPES: Final = {
    "null_type": "null_type",
    "google.protobuf.Duration": "google.protobuf.Duration",
    "google.protobuf.Timestamp": "google.protobuf.Timestamp",
}


class Program:
    """An expression that was read and checked, ready to be evaluated.

    Errors: ``ExpressionError`` when it cannot be read or its types do not fit.
    """

    def __init__(self, source: str, scope: Scope) -> None:
        self.source = source
        try:
            self._prepare(scope)
        except RecursionError:
            # Python's own stack is shorter than what cel-go allows.
            deep = Complaint(-1, parsing.TOO_DEEP)
            raise ExpressionError(source, [deep]) from None

    def _prepare(self, scope: Scope) -> None:
        self.tree = parsing.parse(self.source)
        checking.check(self.source, self.tree, scope)
        names = {name: place for place, name in enumerate(scope.variables, 1)}
        compiler = _Compiler(names)
        self._run = compiler.compiled(self.tree)
        self._size = compiler.size
        self._base = weight(self.tree)

    @property
    def type(self) -> Type:
        return self.tree.type

    def uses(self, name: str) -> bool:
        """Whether the expression speaks of a variable."""
        return any(
            isinstance(each, Ident) and each.name == name for each in self.walk()
        )

    def walk(self) -> Iterator[Node]:
        return self.tree.walk()

    def evaluate(self, values: list[Any], *, budget: int) -> tuple[Any, int]:
        """The value, and what it cost; values are in the order of the scope's names.

        Errors: ``EvaluationError`` when there is none; ``OverBudget`` when it would
        cost more than the budget.
        """
        frame = [budget, *values, *[None] * (self._size - len(values) - 1)]
        try:
            value = self._run(frame)
        except RecursionError:
            raise EvaluationError(parsing.TOO_DEEP) from None
        return value, budget - frame[0] + self._base


def weight(node: Node) -> int:
    """About what evaluating a node once costs, without the loops in it."""
    own = 1 if isinstance(node, (Ident, Select, Call)) else 0
    if isinstance(node, (Items, Entries)):
        own = 10
    if isinstance(node, Fold):
        return weight(node.range) + weight(node.init)
    return own + sum(map(weight, node.parts()))


class _Compiler:
    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = dict(names)
        self._accus: set[str] = set()
        self.size = len(names) + 1

    def compiled(self, node: Node) -> Run:
        """The closure of a node."""
        if isinstance(node, Literal):
            value = node.value
            if node.type.kind == "uint":
                value = Uint(value)
            return lambda frame: value
        if isinstance(node, Ident):
            return self._name(node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Items):
            return self._items(node)
        if isinstance(node, Entries):
            return self._entries(node)
        assert isinstance(node, Fold), node
        return self._fold(node)

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

    def _select(self, node: Select) -> Run:
        if not node.test and node.type.kind == "type":
            name = qualified(node)
            if name and name.split(".")[0] not in self._names:
                return self._name(name)
        operand, field = self.compiled(node.operand), node.field
        if node.test:
            has_field = operators.has_field
            return lambda frame: has_field(operand(frame), field)
        if node.operand.type.kind == "struct":
            return lambda frame: operand(frame).get(field)
        get = operators.field
        return lambda frame: get(operand(frame), field)

    def _call(self, node: Call) -> Run:
        special = {
            "_&&_": self._both,
            "_||_": self._either,
            "_?_:_": self._choice,
            "!_": self._not,
            "@not_strictly_false": self._not_false,
        }
        if node.function in special:
            return special[node.function](node)
        if node.function == "_?._":
            operand = self.compiled(node.args[0])
            name = node.args[1]
            assert isinstance(name, Literal)
            field, get = name.value, operators.optional_field
            return lambda frame: get(operand(frame), field)
        if node.function == "-_":
            value = self.compiled(node.args[0])
            return lambda frame: operators.negated(value(frame))
        binary = self._binary(node)
        if binary is not None:
            one, other = map(self.compiled, node.args)
            apply = binary
            return lambda frame: apply(one(frame), other(frame))
        return self._function(node)

    def _binary(self, node: Call) -> operators.Binary | None:
        """The function of an operator with two sides; the quickest that fits."""
        name = node.function
        if name in operators.COMPARISONS:
            one, other = (each.type.kind for each in node.args)
            if one == other and one in operators.PLAIN_KINDS:
                return operators.PLAIN_COMPARISONS[name]
            return operators.COMPARISONS[name]
        if name in ("_+_", "_-_", "_*_", "_/_", "_%_"):
            kinds: dict[str, type] = {"int": int, "double": float, "string": str}
            one, other = (each.type.kind for each in node.args)
            if one == other and one in kinds:
                return operators.ARITHMETIC[name, kinds[one], kinds[one]]
            return operators.arithmetic(name)
        return {
            "_[_]": operators.index,
            "_[?_]": operators.optional_index,
            "@in": operators.is_in,
        }.get(name)

    def _function(self, node: Call) -> Run:
        operands = node.operands
        parts = [self.compiled(each) for each in operands]
        unsure = any(each.type.kind == "dyn" for each in operands)
        if unsure:
            method = node.target is not None
            run = functions.guarded(node.function, method=method, count=len(operands))
        else:
            run = functions.FUNCTIONS[node.function]
        cost = functions.cost_of(node.function)
        if cost is not None:
            price = cost

            def metered(frame: Frame) -> Any:
                args = [part(frame) for part in parts]
                spend(frame, price(*args))
                return run(*args)

            return metered
        if len(parts) == 1:
            only = parts[0]
            return lambda frame: run(only(frame))
        return lambda frame: run(*[part(frame) for part in parts])

    def _both(self, node: Call) -> Run:
        return logic(*map(self.compiled, node.args), absorbing=False)

    def _either(self, node: Call) -> Run:
        return logic(*map(self.compiled, node.args), absorbing=True)

    def _not(self, node: Call) -> Run:
        value = self.compiled(node.args[0])

        def run(frame: Frame) -> bool:
            found = value(frame)
            if found is True:
                return False
            if found is False:
                return True
            raise NoSuchOverload

        return run

    def _not_false(self, node: Call) -> Run:
        value = self.compiled(node.args[0])

        def run(frame: Frame) -> bool:
            try:
                return value(frame) is not False
            except EvaluationError:
                return True

        return run

    def _choice(self, node: Call) -> Run:
        test, yes, no = map(self.compiled, node.args)

        def run(frame: Frame) -> Any:
            found = test(frame)
            if found is True:
                return yes(frame)
            if found is False:
                return no(frame)
            raise NoSuchOverload

        return run

    def _items(self, node: Items) -> Run:
        parts = [self.compiled(each) for each in node.items]
        if not node.optional:
            return lambda frame: [part(frame) for part in parts]
        maybe = [index in node.optional for index in range(len(parts))]

        def run(frame: Frame) -> list[Any]:
            made: list[Any] = []
            for part, unsure in zip(parts, maybe, strict=True):
                value = part(frame)
                if unsure:
                    made += optional(value).items
                else:
                    made.append(value)
            return made

        return run

    def _entries(self, node: Entries) -> Run:
        pairs = [
            (self.compiled(each.key), self.compiled(each.value), each.optional)
            for each in node.entries
        ]

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

    def _fold(self, node: Fold) -> Run:
        over, init = self.compiled(node.range), self.compiled(node.init)
        saved, accus = dict(self._names), set(self._accus)
        accu = self._place(node.accu)
        self._accus.add(node.accu)
        places = [self._place(node.var)]
        if node.var2:
            places.append(self._place(node.var2))
        condition = self.compiled(node.condition)
        step = self._step(node, accu)
        for name in (node.var, node.var2):
            self._names.pop(name, None)
            if name in saved:
                self._names[name] = saved[name]
        self._accus.add(node.accu)
        result = self.compiled(node.result)
        self._names, self._accus = saved, accus
        price = max(1, weight(node.condition) + weight(node.step))
        return loop(over, init, condition, step, result, accu, places, price)

    def _place(self, name: str) -> int:
        """A new place in the frame for a variable of a loop."""
        place = self.size
        self.size += 1
        self._names[name] = place
        self._accus.discard(name)
        return place

    def _step(self, node: Fold, accu: int) -> Run:
        """What a round does; adding one item to the list does not copy the list."""
        item, test = appended(node)
        if item is None:
            return self.compiled(node.step)
        made = self.compiled(item)
        if test is None:

            def append(frame: Frame) -> Any:
                held = held_list(frame[accu])
                held.append(made(frame))
                return held

            return append
        wanted = self.compiled(test)

        def append_if(frame: Frame) -> Any:
            held = held_list(frame[accu])
            found = wanted(frame)
            if found is True:
                held.append(made(frame))
            elif found is not False:
                raise NoSuchOverload
            return held

        return append_if
