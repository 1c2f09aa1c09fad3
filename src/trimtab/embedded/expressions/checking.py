"""Checking: the type of each part of an expression, and which functions it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from trimtab.embedded.expressions import kinds
from trimtab.embedded.expressions.complaints import Complaint, ExpressionError
from trimtab.embedded.expressions.kinds import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
    unwrapped,
)
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
from trimtab.embedded.expressions.objects import fields_of
from trimtab.embedded.expressions.signatures import Signature, signatures
from trimtab.embedded.expressions.unifying import (
    Bindings,
    assignable,
    most_general,
    resolved,
)

_TYPE_NAMES: dict[str, Type] = {
    **{
        name: kinds.SIMPLE[name]
        for name in ("bool", "bytes", "double", "int", "string", "type", "uint")
    },
    "null_type": kinds.NULL,
    "list": list_of(kinds.param("A")),
    "map": map_of(kinds.param("A"), kinds.param("B")),
    "google.protobuf.Duration": kinds.DURATION,
    "google.protobuf.Timestamp": kinds.TIMESTAMP,
    "optional_type": optional_of(kinds.param("V")),
    **{each.name: each for each in kinds.OPAQUE.values()},
}


class Scope(msgspec.Struct, frozen=True):
    """What an expression may speak of."""

    variables: Mapping[str, Type]
    structs: Mapping[str, Mapping[str, Type]] = {}
    """The fields of each kind of object."""
    patches: bool = False
    """Whether objects and patches can be made."""

    def fields(self, name: str) -> Mapping[str, Type] | None:
        """The fields of a kind of object; None if there is none of that name."""
        known = self.structs.get(name)
        return fields_of(name) if known is None and self.patches else known


def check(source: str, tree: Node, scope: Scope) -> None:
    """Find the type of every node, and the signatures of every call, in place.

    Errors: ``ExpressionError`` with each mistake in it.
    """
    checker = _Checker(scope)
    checker.visit(tree)
    if not checker.complaints:
        for node in tree.walk():
            node.type = resolved(checker.bindings, node.type, final=True)
        checker.complaints += _literal_complaints(tree)
    if checker.complaints:
        raise ExpressionError(source, checker.complaints)


class _Checker:
    def __init__(self, scope: Scope) -> None:
        self.complaints: list[Complaint] = []
        self.bindings: Bindings = {}
        self._scope = scope
        self._locals: list[dict[str, Type]] = []
        self._fresh = 0

    def _complain(self, at: int, text: str) -> None:
        self.complaints.append(Complaint(at, text))

    def _undeclared(self, node: Node, name: str) -> None:
        self._complain(node.at, f"undeclared reference to '{name}' (in container '')")
        node.type = ERROR

    def visit(self, node: Node) -> None:
        """Find the type of one node and of those below."""
        if isinstance(node, Ident):
            found = self._look_up(node.name)
            if found is None:
                self._undeclared(node, node.name)
            else:
                node.type = found
        elif isinstance(node, Select):
            self._select(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, Items):
            self._items(node)
        elif isinstance(node, Entries):
            self._entries(node)
        elif isinstance(node, Message):
            self._message(node)
        elif isinstance(node, Fold):
            self._fold(node)

    def _look_up(self, name: str) -> Type | None:
        for names in reversed(self._locals):
            if name in names:
                return names[name]
        if name in self._scope.variables:
            return self._scope.variables[name]
        known = _TYPE_NAMES.get(name)
        if known is None and self._scope.patches and fields_of(name) is not None:
            known = kinds.struct(name)
        return None if known is None else type_of(known)

    def _select(self, node: Select) -> None:
        name = "" if node.test else qualified(node)
        known = self._look_up(name) if name else None
        if known is not None:
            node.type = known
            return
        found = self._field(node, node.operand, node.field, optional=False)
        node.type = BOOL if node.test else resolved(self.bindings, found)

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        self.visit(operand)
        held = resolved(self.bindings, operand.type)
        target, was_optional = unwrapped(held)
        found = DYN
        if target.kind == "map":
            found = target.params[1]
        elif target.kind == "struct":
            fields = self._scope.fields(target.name) or {}
            if field not in fields:
                self._complain(node.at, f"undefined field '{field}'")
            found = fields.get(field, ERROR)
        elif target.kind == "param":
            self._assign([(DYN, target)])
        elif target.kind not in ("dyn", "error"):
            text = f"type '{target}' does not support field selection"
            if target.name.startswith("kubernetes."):
                text = f"unexpected failed resolution of '{target}'"
            self._complain(node.at, text)
        return optional_of(found) if was_optional or optional else found

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            field = name.value
            found = self._field(node, node.args[0], field, optional=True)
            node.type = resolved(self.bindings, found)
            return
        for arg in node.args:
            self.visit(arg)
        known = signatures()
        if node.target is not None:
            prefix = qualified(node.target)
            if prefix and self._is_known(f"{prefix}.{node.function}"):
                node.function, node.target = f"{prefix}.{node.function}", None
            else:
                self.visit(node.target)
        if not self._is_known(node.function):
            self._undeclared(node, node.function)
            return
        if node.function in ("_&&_", "_||_"):
            self._logic(node)
        else:
            self._resolve(node, known[node.function])

    def _is_known(self, function: str) -> bool:
        hidden = function == "jsonpatch.escapeKey" and not self._scope.patches
        return function in signatures() and not hidden

    def _logic(self, node: Call) -> None:
        node.type = BOOL
        for arg in node.args:
            if not self._assign([(arg.type, BOOL)]):
                self._mismatch(arg, BOOL, arg.type)
                node.type = ERROR

    def _resolve(self, node: Call, candidates: tuple[Signature, ...]) -> None:
        """Which signatures fit, and what comes out of them."""
        given = [each.type for each in node.operands]
        result: Type | None = None
        node.overloads = []
        for signature in candidates:
            if signature.method != (node.target is not None):
                continue
            if len(signature.args) != len(given):
                continue
            wanted, out = self._instance(signature)
            if self._assign(list(zip(given, wanted, strict=True))):
                node.overloads.append(signature)
                found = resolved(self.bindings, out)
                if result is None:
                    result = found
                elif result.kind != "dyn" and found != result:
                    result = DYN
        if result is None:
            shown = [resolved(self.bindings, each, final=True) for each in given]
            self._no_overload(node, shown)
            result = ERROR
        node.type = result

    def _instance(self, signature: Signature) -> tuple[list[Type], Type]:
        """A signature whose free types are new ones."""
        if not signature.params:
            return list(signature.args), signature.result
        fresh: Bindings = {name: self._new() for name in signature.params}
        wanted = [resolved(fresh, each) for each in signature.args]
        return wanted, resolved(fresh, signature.result)

    def _no_overload(self, node: Call, shown: list[Type]) -> None:
        texts = [str(each) for each in shown]
        applied = f"({', '.join(texts)})"
        if node.target is not None:
            applied = f"{texts[0]}.({', '.join(texts[1:])})"
        self._complain(
            node.at,
            f"found no matching overload for '{node.function}' applied to '{applied}'",
        )

    def _new(self) -> Type:
        self._fresh += 1
        return kinds.param(f"_var{self._fresh}")

    def _assign(self, pairs: list[tuple[Type, Type]]) -> bool:
        found = assignable(self.bindings, pairs)
        if found is None:
            return False
        self.bindings = found
        return True

    def _mismatch(self, node: Node, wanted: Type, found: Type) -> None:
        self._complain(node.at, f"expected type '{wanted}' but found '{found}'")

    def _joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self._assign([(previous, current)]):
            return most_general(previous, current)
        return DYN

    def _held(self, node: Node, *, optional: bool) -> Type:
        """The type of an item or a value; of what it holds, if it is optional."""
        found = node.type
        if not optional:
            return found
        inner, was_optional = unwrapped(found)
        if not was_optional and inner.kind != "dyn":
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _items(self, node: Items) -> None:
        joined: Type | None = None
        for index, item in enumerate(node.items):
            self.visit(item)
            held = self._held(item, optional=index in node.optional)
            joined = self._joined(joined, held)
        node.type = list_of(joined or self._new())

    def _message(self, node: Message) -> None:
        fields = fields_of(node.name) if self._scope.patches else None
        if fields is None:
            self._undeclared(node, node.name)
            return
        node.type = kinds.struct(node.name)
        for index, value in enumerate(node.values):
            name = node.fields[index]
            self.visit(value)
            held = self._held(value, optional=index in node.optional)
            wanted = fields.get(name)
            if wanted is None or not self._assign([(wanted, held)]):
                self._complain(
                    node.marks[index],
                    f"expected type of field '{name}' is '{wanted or ''}' but "
                    f"provided type is '{held}'",
                )

    def _entries(self, node: Entries) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            self.visit(entry.key)
            key = self._joined(key, entry.key.type)
            self.visit(entry.value)
            held = self._held(entry.value, optional=entry.optional)
            value = self._joined(value, held)
        node.type = map_of(key or self._new(), value or self._new())

    def _fold(self, node: Fold) -> None:
        self.visit(node.range)
        self.visit(node.init)
        over = resolved(self.bindings, node.range.type)
        first, second = self._loop_types(node, over)
        self._locals.append({node.accu: node.init.type})
        names = {node.var: first}
        if node.var2:
            names[node.var2] = second
        self._locals.append(names)
        for part, wanted in ((node.condition, BOOL), (node.step, node.init.type)):
            self.visit(part)
            if not self._assign([(wanted, part.type)]):
                self._mismatch(part, wanted, part.type)
        self._locals.pop()
        self.visit(node.result)
        self._locals.pop()
        node.type = resolved(self.bindings, node.result.type)

    def _loop_types(self, node: Fold, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            item = over.params[0]
            return (INT, item) if node.var2 else (item, item)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "error", "param"):
            self._assign([(DYN, over)])
            return DYN, DYN
        self._complain(
            node.range.at,
            f"expression of type '{over}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return ERROR, ERROR


def _literal_complaints(tree: Node) -> Iterator[Complaint]:
    """Constants that are sure to fail, and lists and maps of mixed types."""
    from trimtab.embedded.expressions.constants import literal_mistake
    from trimtab.embedded.expressions.formatting import complaints

    yield from _mixed(tree, exempt=False)
    for node in tree.walk():
        if isinstance(node, Call) and node.args:
            literal = node.args[0]
            if isinstance(literal, Literal) and literal_mistake(node, literal.value):
                name = re.sub("^.*[.]", "", node.function)
                yield Complaint(literal.at, f"invalid {name} argument")
            if node.function == "format" and node.target is not None:
                yield from complaints(node)


def _mixed(node: Node, *, exempt: bool) -> Iterator[Complaint]:
    if isinstance(node, Items) and not exempt:
        held = [
            unwrapped(item.type)[0] if index in node.optional else item.type
            for index, item in enumerate(node.items)
        ]
        yield from list(_unlike(list(zip(node.items, held, strict=True))))[:1]
    elif isinstance(node, Entries) and not exempt:
        keys = [(each.key, each.key.type) for each in node.entries]
        values = [
            (
                each.value,
                unwrapped(each.value.type)[0] if each.optional else each.value.type,
            )
            for each in node.entries
        ]
        yield from _unlike(keys)
        yield from _unlike(values)
    exempt = exempt or (isinstance(node, Call) and node.function == "format")
    for part in node.parts():
        yield from _mixed(part, exempt=exempt)


def _unlike(pairs: list[tuple[Node, Type]]) -> Iterator[Complaint]:
    """Those of another type than the first."""
    for node, found in pairs[1:]:
        wanted = pairs[0][1]
        if found != wanted:
            text = f"expected type '{wanted}' but found '{found}'"
            yield Complaint(node.at, text)
