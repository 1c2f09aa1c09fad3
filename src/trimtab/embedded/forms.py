"""Forms: a stored object, a list or a watch event, in the shape that was asked for.

The object itself is served as the bytes that are stored. Only a table or bare metadata
is worked out, from the decoded object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from trimtab.embedded import bodies
from trimtab.embedded.bodies import JSON, Form
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.status import ApiProblem, bad_request, invalid

META = "meta.k8s.io"
INCLUDED = ("Metadata", "Object", "None")
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata).decode


class Renderer:
    """Renders objects of one kind in one form."""

    def __init__(
        self, kind: Kind, form: Form, *, include: str, now: Callable[[], datetime]
    ) -> None:
        self.kind = kind
        self.form = form
        self._include = include or "Metadata"
        if form.shape == "Table" and self._include not in INCLUDED:
            raise _bad_include(include)
        self._now = now
        self._begun = False
        # Tables of a watch name their columns once, so each watch renders its own.
        self._own = object() if form.shape == "Table" else None

    @property
    def shared(self) -> Any:
        """Renderers that are equal here render alike."""
        return (self.kind.api_version, self.form, self._include, self._own)

    def fits(self, *, many: bool) -> None:
        """406 if metadata of one object was asked for of many, or of many of one."""
        shape = self.form.shape
        if shape == "PartialObjectMetadata" and many:
            what = f"is a list ({_go_type(self.kind)}List)"
        elif shape == "PartialObjectMetadataList" and not many:
            what = f"is not a list ({_go_type(self.kind)})"
        else:
            return
        text = f"you requested {shape}, but the requested object {what}"
        raise ApiProblem(406, "NotAcceptable", text)

    def one(self, value: bytes) -> bytes:
        """One object, as the answer to a get."""
        if self.form.shape == "Table":
            body = self._table([value], resource_version=None)
        elif self.form.shape:
            body = self._partial(value)
        else:
            body = self.kind.served(value)
        return self._encoded(body)

    def plain(self, obj: Plain) -> bytes:
        """One object that is not stored (the answer to a write)."""
        if self.form.shape:
            return self.one(self.kind.encode(obj))
        return bodies.encode(obj, self.form.media)

    def many(self, values: Iterable[bytes], meta: Plain) -> Iterator[bytes]:
        """A list, in pieces that join to its JSON."""
        if self.form.shape == "Table":
            version = meta.get("resourceVersion")
            table = msgspec.json.decode(self._table(values, resource_version=version))
            table["metadata"] = meta
            yield msgspec.json.encode(table)
            return
        head, item = self._list_head(), self.kind.item
        if self.form.shape:
            item = self._partial
        if self.kind.custom is not None and not self.form.shape:
            meta = {"continue": "", **meta}
        head["metadata"] = meta
        yield msgspec.json.encode(head)[:-1] + b',"items":'
        first = True
        for value in values:
            yield b"[" + item(value) if first else b"," + item(value)
            first = False
        if first:
            # Bare metadata has no list where the real server has none to convert.
            yield b"null}\n" if self.form.shape else b"[]}\n"
        else:
            yield b"]}\n"

    def _list_head(self) -> Plain:
        if self.form.shape:
            version = f"{META}/{self.form.version}"
            return {"kind": "PartialObjectMetadataList", "apiVersion": version}
        list_kind = self.kind.resource.list_kind or f"{self.kind.kind}List"
        if self.kind.custom is not None:
            return {"apiVersion": self.kind.api_version, "kind": list_kind}
        return {"kind": list_kind, "apiVersion": self.kind.api_version}

    def event(self, type: str, value: bytes, revision: int) -> bytes:
        """A watch event; an object that left a selection carries the new revision."""
        if type == "DELETED":
            value = with_revision(self.kind, value, revision)
        if self.form.shape == "Table":
            body = self._table(
                [value], resource_version=str(revision), columns=not self._begun
            )
            self._begun = True
        elif self.form.shape:
            body = self._partial(value)
        else:
            body = self.kind.served(value)
        return b'{"type":"' + type.encode() + b'","object":' + body + b"}\n"

    def bookmark(self, revision: int, initial_end: bool) -> bytes:
        """A watch event that carries a revision and nothing else."""
        meta: Plain = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: Plain = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        if self.form.shape:
            obj = {"kind": self.form.shape, "apiVersion": f"{META}/{self.form.version}"}
        obj["metadata"] = meta
        return event_line("BOOKMARK", obj)

    def _partial(self, value: bytes) -> bytes:
        meta = bytes(_metadata(value).metadata)
        head = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"{META}/{self.form.version}",
        }
        return msgspec.json.encode(head)[:-1] + b',"metadata":' + meta + b"}"

    def _table(
        self,
        values: Iterable[bytes],
        *,
        resource_version: str | None,
        columns: bool = True,
    ) -> bytes:
        now = self._now()
        rows = []
        version = resource_version
        for value in values:
            obj = self.kind.decode(value)
            row: Plain = {"cells": self.kind.row(obj, now=now)}
            if self._include == "Object":
                row["object"] = obj
            elif self._include == "Metadata":
                row["object"] = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": f"{META}/{self.form.version}",
                    "metadata": obj["metadata"],
                }
            else:
                row["object"] = None
            rows.append(row)
            version = version or obj["metadata"].get("resourceVersion")
        table = {
            "kind": "Table",
            "apiVersion": f"{META}/{self.form.version}",
            "metadata": {"resourceVersion": version or ""},
            "columnDefinitions": [_column(each) for each in self.kind.columns()]
            if columns
            else None,
            "rows": rows,
        }
        return msgspec.json.encode(table)

    def _encoded(self, body: bytes) -> bytes:
        if self.form.media == JSON:
            return body + b"\n"
        return bodies.encode(msgspec.json.decode(body), self.form.media)


def _bad_include(include: str) -> ApiProblem:
    detail = "must be 'Metadata', 'Object', 'None', or empty"
    problem = invalid("includeObject", include, detail)
    return bad_request(f"Unable to convert to Table as requested: {problem}")


def _go_type(kind: Kind) -> str:
    if kind.custom is not None:
        return "*unstructured.Unstructured"
    return f"*{kind.group.split('.')[0] or 'core'}.{kind.kind}"


def with_revision(kind: Kind, value: bytes, revision: int) -> bytes:
    """The same object as of another revision."""
    marker = b'"resourceVersion":"%d"' % revision
    if marker in value:
        return value
    obj: Plain = msgspec.json.decode(value)
    obj["metadata"]["resourceVersion"] = str(revision)
    return kind.encode(obj)


def _column(column: Any) -> Plain:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def event_line(type: str, obj: Plain) -> bytes:
    return msgspec.json.encode({"type": type, "object": obj}) + b"\n"


def failure_line(problem: ApiProblem) -> bytes:
    """The watch event that ends a watch with an error."""
    return event_line("ERROR", problem.status)
