"""Forms: a stored object, a list or a watch event, in the shape that was asked for.

In JSON the object itself is served as the bytes that are stored. Only protobuf, a table
or bare metadata is worked out, from the decoded object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from trimtab.embedded import bodies, protobuf_encoding
from trimtab.embedded.bodies import JSON, PROTOBUF, Form
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.messages import Messages
from trimtab.embedded.protobuf import message_name
from trimtab.embedded.status import ApiProblem, bad_request, invalid

META = "meta.k8s.io"
INCLUDED = ("Metadata", "Object", "None")
PARTIAL = "meta.v1.PartialObjectMetadata"
"""The message of bare metadata, whatever its version."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata).decode


class Renderer:
    """Renders objects of one kind in one form."""

    def __init__(
        self,
        kind: Kind,
        form: Form,
        *,
        include: str,
        now: Callable[[], datetime],
        messages: Messages,
    ) -> None:
        self.kind = kind
        self.form = form
        self._include = include or "Metadata"
        if form.shape == "Table" and self._include not in INCLUDED:
            raise _bad_include(include)
        self._now = now
        self._messages = messages
        self._name = PARTIAL
        if not form.shape:
            self._name = message_name(kind.api_version, kind.kind)
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
            if self.kind.custom is not None:
                raise ApiProblem(500, "", "content is not a list")
            what = f"is not a list ({_go_type(self.kind)})"
        else:
            return
        text = f"you requested {shape}, but the requested object {what}"
        raise ApiProblem(406, "NotAcceptable", text)

    @property
    def stream_media(self) -> str:
        """What the events of a watch are said to be."""
        return f"{PROTOBUF};stream=watch" if self._in_protobuf else JSON

    @property
    def _in_protobuf(self) -> bool:
        return self.form.media == PROTOBUF

    def one(self, value: bytes) -> bytes:
        """One object, as the answer to a get."""
        if self._in_protobuf:
            return self._envelope(value)
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
            return self.one(self.kind.written(obj))
        return bodies.encode(obj, self.form.media)

    def many(self, values: Iterable[bytes], meta: Plain) -> Iterator[bytes]:
        """A list, in pieces; some may be empty, where others may be let in."""
        if self._in_protobuf:
            head = self._list_head()
            items = self._messages.each(self._name, values)
            return protobuf_encoding.listed(
                head["apiVersion"], head["kind"], meta, items
            )
        if self.form.shape == "Table":
            pieces = self._table_of(values, meta)
        else:
            pieces = self._list(values, meta)
        if self.form.media == JSON:
            return pieces
        return iter((self._encoded(b"".join(pieces)),))

    def _table_of(self, values: Iterable[bytes], meta: Plain) -> Iterator[bytes]:
        version = meta.get("resourceVersion")
        table = msgspec.json.decode(self._table(values, resource_version=version))
        table["metadata"] = meta
        yield msgspec.json.encode(table)

    def _list(self, values: Iterable[bytes], meta: Plain) -> Iterator[bytes]:
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
        if self._in_protobuf:
            return protobuf_encoding.event(type, self._envelope(value))
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
        return self._event_of("BOOKMARK", {**self._head(), "metadata": meta})

    def failure(self, problem: ApiProblem) -> bytes:
        """The watch event that ends a watch with an error."""
        return self._event_of("ERROR", problem.status)

    def _event_of(self, type: str, obj: Plain) -> bytes:
        if self._in_protobuf:
            return protobuf_encoding.event(type, bodies.encode(obj, PROTOBUF))
        return msgspec.json.encode({"type": type, "object": obj}) + b"\n"

    def _head(self) -> Plain:
        """What an object says that it is."""
        if self.form.shape:
            return {
                "kind": self.form.shape,
                "apiVersion": f"{META}/{self.form.version}",
            }
        return {"kind": self.kind.kind, "apiVersion": self.kind.api_version}

    def _message(self, value: bytes) -> bytes:
        """Stored bytes in protobuf."""
        if self.kind.conversion is not None:
            value = self.kind.served(value)
        return self._messages.of(self._name, value)

    def _envelope(self, value: bytes) -> bytes:
        head = self._head()
        return protobuf_encoding.envelope(
            head["apiVersion"], head["kind"], self._message(value)
        )

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
        for obj in self.kind.arranged(map(self.kind.decode, values)):
            told = self.kind.internal(obj)
            row: Plain = {"cells": self.kind.row(told, now=now)}
            if self._include == "Object":
                row["object"] = obj
            elif self._include == "Metadata":
                row["object"] = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": f"{META}/{self.form.version}",
                    "metadata": told["metadata"],
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
    return kind.encode(obj) if kind.conversion is None else kind.written(obj)


def _column(column: Any) -> Plain:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
