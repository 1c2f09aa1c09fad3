"""Typing: the type that expressions see in a kind, from what its schema says.

A field whose schema names no type, such as a quantity's, is not there for expressions.
"""

from __future__ import annotations

from typing import Final

from trimtab.embedded.declarations import escaped
from trimtab.embedded.expressions import kinds
from trimtab.embedded.expressions.kinds import Type, list_of, map_of, struct
from trimtab.embedded.types import Type as Node

Structs = dict[str, dict[str, Type]]

_SCALARS: Final = {
    "boolean": kinds.BOOL,
    "integer": kinds.INT,
    "number": kinds.DOUBLE,
    "string": kinds.STRING,
}
_FORMATS: Final = {
    "byte": kinds.BYTES,
    "duration": kinds.DURATION,
    "date": kinds.TIMESTAMP,
    "date-time": kinds.TIMESTAMP,
}
_OPEN: Final = ("RawExtension", "FieldsV1")
"""Objects of which nothing is known but that they are."""


def typed(node: Node, name: str) -> tuple[Type, Structs]:
    """The type of a kind, which is called ``name``, and the fields of all in it."""
    reader = _Reader()
    found = reader.read(node, name)
    assert found is not None, "a kind is an object"
    return found, reader.structs


class _Reader:
    def __init__(self) -> None:
        self.structs: Structs = {}
        self._within: list[int] = []

    def read(self, node: Node, name: str) -> Type | None:
        """The type of a node; None if expressions do not see it."""
        if node.shape == "scalar":
            return _scalar(node)
        if node.shape == "object":
            return self._object(node, name)
        if node.shape == "any":
            known = node.preserve_unknown or node.name.rpartition(".")[2] in _OPEN
            return self._open(name) if known else None
        if node.element is None:
            return None
        step = "@idx" if node.shape == "list" else "@elem"
        inner = self.read(node.element, f"{name}.{step}")
        if inner is None:
            return None
        return list_of(inner) if node.shape == "list" else map_of(kinds.STRING, inner)

    def _open(self, name: str) -> Type:
        self.structs[name] = {}
        return struct(name)

    def _object(self, node: Node, name: str) -> Type:
        if id(node) in self._within:  # one that contains itself
            return self._open(name)
        self._within.append(id(node))
        fields: dict[str, Type] = {}
        for each, child in node.fields.items():
            called = escaped(each)
            found = self.read(child, f"{name}.{called}") if called else None
            if found is not None:
                fields[called] = found
        self._within.pop()
        self.structs[name] = fields
        return struct(name)


def _scalar(node: Node) -> Type | None:
    if node.scalar == "int-or-string":
        return None if node.format == "quantity" else kinds.DYN
    if node.scalar == "string":
        return _FORMATS.get(node.format, kinds.STRING)
    return _SCALARS.get(node.scalar)
