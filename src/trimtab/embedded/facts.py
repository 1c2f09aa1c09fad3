"""Facts: the kinds and resources that a real kube-apiserver has built in.

The files under ``data/`` were read off a server by ``hack/record_embedded_facts.py``.
They are kept as bytes; a type is made when somebody asks for it, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from trimtab.embedded.types import Type, fill

DATA = Path(__file__).with_name("data")


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """What stands below an object, such as ``scale``, and the kind that it speaks."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in one version, built in or custom, as discovery tells of it."""

    group: str
    version: str
    kind: str
    list_kind: str = ""
    """Empty for what cannot be listed, such as a review."""
    plural: str
    singular: str
    short: tuple[str, ...] = ()
    namespaced: bool
    verbs: tuple[str, ...]
    """In the order in which the server names them."""
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    storage_hash: str = ""
    """Empty for what is not stored."""
    definition: str
    """The name of its schema, ``io.k8s.api.apps.v1.Deployment``."""
    custom: bool = False
    """Whether a CRD defines it."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name."""
        return next((each for each in self.subresources if each.name == name), None)


class _Line(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A line of ``definitions.jsonl``; the schema stays as it stands in the file."""

    name: str
    kinds: tuple[str, ...]
    schema: msgspec.Raw


@lru_cache(maxsize=1)
def resources() -> tuple[ServedResource, ...]:
    """Every built-in resource, in the order in which the real server lists them."""
    decoder = msgspec.json.Decoder(ServedResource)
    return tuple(decoder.decode_lines((DATA / "resources.jsonl").read_bytes()))


class Definitions:
    """The types of built-in kinds by the names of their definitions.

    Guarantees: a definition is one and the same ``Type`` wherever it occurs, unless
    the field that refers to it says how to merge it; then the copy shares its fields.
    """

    def __init__(self, data: bytes) -> None:
        lines: list[_Line] = msgspec.json.Decoder(_Line).decode_lines(data)
        self._schemas = {line.name: line.schema for line in lines}
        self._kinds = {line.name: line.kinds for line in lines if line.kinds}
        self._names = {kind: line.name for line in lines for kind in line.kinds}
        self._types: dict[str, Type] = {}

    @property
    def names(self) -> Sequence[str]:
        """All there are, sorted."""
        return tuple(self._schemas)

    def name(self, group: str, version: str, kind: str) -> str:
        """The definition of a kind; empty if there is none."""
        place = f"{group}/{version}" if group else version
        return self._names.get(f"{place}/{kind}", "")

    def kinds(self, name: str) -> Sequence[tuple[str, str, str]]:
        """The group, version and kind of each kind that has this definition."""
        found = []
        for told in self._kinds.get(name, ()):
            place, _, kind = told.rpartition("/")
            group, _, version = place.rpartition("/")
            found.append((group, version, kind))
        return found

    def schema(self, name: str) -> dict[str, Any]:
        """The schema as it was recorded, whose references are bare names.

        Errors: ``KeyError`` for a name that is not known.
        """
        found: dict[str, Any] = msgspec.json.decode(self._schemas[name])
        return found

    def type(self, name: str) -> Type:
        """The type with that name, and with it all that it is made of.

        Errors: ``KeyError`` for a name that is not known.
        """
        found = self._types.get(name)
        if found is None:
            schema = self.schema(name)
            found = self._types[name] = Type(name=name)
            fill(found, schema, resolve=self.type)
        return found

    def of(self, group: str, version: str, kind: str) -> Type:
        """The type of a built-in kind.

        Errors: ``KeyError`` for a kind that is not known.
        """
        name = self.name(group, version, kind)
        if not name:
            raise KeyError(f"{group}/{version}/{kind}".removeprefix("/"))
        return self.type(name)


@lru_cache(maxsize=1)
def definitions() -> Definitions:
    """The definitions of the recorded server."""
    return Definitions((DATA / "definitions.jsonl").read_bytes())
