"""Kinds: one served version of one resource, with all that is particular to it.

The registry treats built-in and custom kinds alike; what differs between them (types,
defaults, rules, columns) is behind :class:`Kind`.

Objects are stored as the JSON that is served: a built-in object begins with its kind
and apiVersion, so that an item of a list, which has neither there, is the same bytes
without their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

import msgspec

from trimtab.embedded import builtin, definition_checks, definitions
from trimtab.embedded.builtin import versions
from trimtab.embedded.builtin import warnings as advice
from trimtab.embedded.conform import conform
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.facts import ServedResource
from trimtab.embedded.managed import Others, Reset
from trimtab.embedded.particulars import CONDITIONAL, CREATED_BY_UPDATE, ETCD_PATHS
from trimtab.embedded.resets import resets_of
from trimtab.embedded.status import FieldProblem, GroupResource
from trimtab.embedded.types import Type

Plain = dict[str, Any]
DEFINITION = "CustomResourceDefinition"
Allocate = Callable[[str, Any], Any]


class Converter(Protocol):
    """Makes objects of one version objects of another."""

    def convert(self, objects: Sequence[Plain], to: str) -> list[Plain]: ...


class _Version(msgspec.Struct):
    resourceVersion: str = ""


class _Stored(msgspec.Struct):
    """Of a stored object, what tells when it was written."""

    metadata: _Version


_STORED = msgspec.json.Decoder(_Stored)


class Kind:
    """One served version of one resource."""

    unread: ClassVar[bool] = False
    """Whether its objects may be of another version than it is."""

    def __init__(
        self,
        resource: ServedResource,
        type: Type,
        *,
        custom: CustomKind | None = None,
        stored: str = "",
        conversion: Converter | None = None,
        since: int = 0,
    ) -> None:
        # Up to this revision, objects may have been written under another schema.
        self._since = since
        self.resource = resource
        self.type = type
        self.custom = custom
        self.conversion = conversion
        """What converts objects to and from this version; without it, all versions
        are the same but for their name."""
        self.family: Mapping[str, Kind] = {}
        """All served versions, by their names, where they are converted."""
        self.group = resource.group
        self.version = resource.version
        self.kind = resource.kind
        self.plural = resource.plural
        self.namespaced = resource.namespaced
        self.api_version = resource.api_version
        where = (resource.group, resource.plural)
        group, version = versions.STORED.get(where, (resource.group, ""))
        self.about = GroupResource(resource.group, resource.plural)
        # What is shared between groups is called by the one it is stored in.
        self.named = GroupResource(group, resource.kind)
        self.prefix = f"{group or 'core'}/{resource.plural}/"
        if version and custom is None:
            stored = f"{group}/{version}".removeprefix("/")
        self.stored_version = stored or resource.api_version
        self.has_status = resource.subresource("status") is not None
        name = (resource.group, resource.kind)
        self.created_by_update = name in CREATED_BY_UPDATE
        self.conditional = custom is not None or name in CONDITIONAL
        self.head = _head(self.kind, self.api_version, custom=custom is not None)
        self.stored_head = _head(
            self.kind, self.stored_version, custom=custom is not None
        )

    @property
    def plain(self) -> Kind:
        """The kind for those who look only at metadata, and convert nothing."""
        if self.conversion is None:
            return self
        return Unconverted(self.resource, self.type, custom=self.custom)

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored."""
        if self.namespaced:
            return f"{self.prefix}{namespace}/{name}"
        return f"{self.prefix}{name}"

    def within(self, namespace: str) -> str:
        """How the keys of a namespace's objects begin; of all, if it is empty."""
        if self.namespaced and namespace:
            return f"{self.prefix}{namespace}/"
        return self.prefix

    def etcd_key(self, namespace: str, name: str) -> str:
        """Where a real server keeps an object, as its refusals say."""
        path = ETCD_PATHS.get(self.plural, self.plural)
        if self.custom is not None or self.group.startswith("api"):
            path = f"{self.group}/{self.plural}"
        within = f"{namespace}/" if self.namespaced else ""
        return f"/registry/{path}/{within}{name}"

    def encode(self, obj: Plain) -> bytes:
        """The bytes to store: the head first, then everything else."""
        head = self.stored_head
        if self.conversion is not None:  # it may be stored in another one still
            custom = self.custom is not None
            head = _head(self.kind, obj["apiVersion"], custom=custom)
        body = {key: obj[key] for key in obj if key not in ("kind", "apiVersion")}
        return head + msgspec.json.encode(body)[1:]

    def to_storage(self, obj: Plain) -> Plain:
        """An object of this version in the one that it is stored in.

        Errors: ``calls.Pending`` if a webhook has to be asked.
        """
        if self.conversion is None:
            return obj
        [made] = self.conversion.convert([obj], self.stored_version)
        custom = self.family.get(self.stored_version, self).custom
        if custom is not None and self.stored_version in self.family:
            custom.prune(made)
        return made

    def both(self, obj: Plain) -> tuple[Plain, Plain]:
        """An object as it is stored, and as it is served then: converted both ways,
        because only what comes back is what others will read."""
        if self.conversion is None:
            return obj, obj
        stored = self.to_storage(obj)
        return stored, self.converted(stored)

    def current(self, values: Iterable[bytes]) -> Iterable[bytes]:
        """Stored bytes as those of this version, if somebody has to convert them.

        They are converted all at once, before anything is made of them.
        """
        if self.conversion is None:
            return values
        objects = [self._whole(msgspec.json.decode(value)) for value in values]
        made = self.conversion.convert(objects, self.api_version)
        return [self.written(self._read(each)) for each in made]

    def served(self, value: bytes) -> bytes:
        """Stored bytes as an object of this version and of its present schema."""
        if value.startswith(self.head) and not self._is_older(value):
            return value
        return self.written(self.decode(value))

    def _is_older(self, value: bytes) -> bool:
        """Whether bytes may lack what the schema has come to say since."""
        if not self._since:
            return False
        found = _STORED.decode(value).metadata.resourceVersion
        return int(found or 0) <= self._since

    def written(self, obj: Plain) -> bytes:
        """The bytes of an object of this version."""
        body = {key: obj[key] for key in obj if key not in ("kind", "apiVersion")}
        return self.head + msgspec.json.encode(body)[1:]

    def item(self, value: bytes) -> bytes:
        """Stored bytes as an item of a list."""
        if self.custom is not None:
            return self.served(value)
        head = self.stored_head if self.conversion is None else self.head
        return b"{" + value[len(head) :]

    def decode(self, value: bytes) -> Plain:
        """Stored bytes as a plain object of this version.

        The schema may have changed since they were written, or be another version's.
        """
        return self._read(self._converted(msgspec.json.decode(value)))

    def converted(self, obj: Plain) -> Plain:
        """An object of another version as one of this."""
        copy: Plain = msgspec.json.decode(msgspec.json.encode(obj))
        return self._read(self._converted(copy))

    def _converted(self, obj: Plain) -> Plain:
        if self.custom is None and self.family:
            return versions.CONVERTER.convert([obj], self.api_version)[0]
        if self.conversion is None:
            return obj
        [made] = self.conversion.convert([self._whole(obj)], self.api_version)
        return made

    def _whole(self, obj: Plain) -> Plain:
        """An object that is to be converted, with the defaults of its own version."""
        custom = self.family.get(obj["apiVersion"], self).custom
        if custom is not None:
            custom.default(obj)
        return obj

    def _read(self, obj: Plain) -> Plain:
        if self.custom is None:
            pass
        elif self.conversion is None:
            self.custom.read(obj)
        else:  # defaults are those of the version that it was converted from
            self.custom.prune(obj)
        obj["apiVersion"] = self.api_version
        return obj

    @property
    def others(self) -> Others | None:
        """What gives an object in other versions, if they differ in more than name."""
        return self._in_version if self.family else None

    def _in_version(self, version: str, obj: Plain) -> tuple[Plain, Type] | None:
        kind = self.family.get(version)
        return None if kind is None else (kind.converted(obj), kind.type)

    def internal(self, obj: Plain) -> Plain:
        """A built-in object as the server itself looks at it, whatever was asked."""
        shared = self.stored_version.startswith(f"{self.group}/")
        if self.custom is not None or self.conversion is None or not shared:
            return obj
        return versions.CONVERTER.convert([obj], self.stored_version)[0]

    def conform(self, obj: Plain, again: Callable[[], Plain]) -> list[str]:
        """Drop what the kind does not have, in place; the fields nobody knows.

        ``again`` makes the same object anew, for when something was dropped.

        Errors: ``conform.Mistyped`` for a value that its field cannot hold.
        """
        if self.custom is not None:
            return self.custom.conform(obj)
        if not builtin.has_shape(self.group, self.kind, self.version):
            return conform(self.type, obj)
        if not builtin.shape(self.group, self.kind, obj):
            return []
        return conform(self.type, again())

    def resets(self, subresource: str) -> Reset | None:
        """The fields that a write cannot touch, and so does not own."""
        custom = self.custom is not None
        if custom and not self.has_status:
            return None
        return resets_of(self.group, self.kind, subresource, custom=custom)

    def default(self, obj: Plain) -> None:
        if self.custom is not None:
            self.custom.default(obj)
        elif self.kind == DEFINITION:
            definitions.set_defaults(obj)
        else:
            builtin.set_defaults(self.group, self.kind, obj)
            if self.conversion is not None:  # only what comes back is there
                made = self.both(obj)[1]
                obj.clear()
                obj.update(made)

    def prepare(
        self, obj: Plain, old: Plain | None, *, subresource: str, allocate: Allocate
    ) -> None:
        if self.kind == DEFINITION:
            definitions.prepare(obj, old, subresource=subresource)
        elif self.custom is None:
            builtin.prepare(
                self.group,
                self.kind,
                obj,
                old,
                subresource=subresource,
                allocate=allocate,
            )

    def validate(
        self, obj: Plain, old: Plain | None, *, subresource: str, warnings: list[str]
    ) -> list[FieldProblem]:
        """What is wrong with an object; what is forgiven is added to the warnings."""
        if self.custom is not None:
            return self.custom.validate(
                obj, old, subresource=subresource, warnings=warnings
            )
        if self.kind == DEFINITION:
            if subresource and old is not None:
                return definition_checks.status_problems(obj, old)
            return definition_checks.problems(obj, old)
        return builtin.validate(
            self.group, self.kind, obj, old, subresource=subresource
        )

    def warnings(self, obj: Plain, old: Plain | None, *, subresource: str) -> list[str]:
        """What whoever writes a good object is warned of."""
        if subresource:
            return []
        if self.custom is not None:
            return self.custom.warnings(obj, old)
        if self.kind == DEFINITION:
            return definitions.warnings(obj, old)
        return advice.of_object(self.group, self.kind, obj, old)

    @property
    def warning(self) -> str:
        """What whoever uses the kind at all is warned of."""
        if self.custom is not None:
            return self.custom.warning
        return advice.of_kind(self.group, self.version, self.kind)

    def generation(self, obj: Plain, old: Plain | None, *, subresource: str) -> int:
        """The generation of an object once it is stored; 0 if the kind has none."""
        if self.custom is None and self.kind != DEFINITION:
            return builtin.generation(
                self.group, self.kind, obj, old, subresource=subresource
            )
        if old is None:
            return 1
        left_out = {"metadata", "apiVersion", "kind"}
        if self.has_status:
            left_out.add("status")
        changed = any(
            obj.get(key) != old.get(key) for key in (obj.keys() | old.keys()) - left_out
        )
        return int(old["metadata"].get("generation", 0)) + changed

    def stored_fields(self, obj: Plain) -> Mapping[str, str]:
        """The selectable fields of an object as it is stored."""
        if self.custom is None and self.conversion is not None:
            return self.fields(self.converted(obj))
        return self.fields(obj)

    def fields(self, obj: Plain) -> Mapping[str, str]:
        if self.custom is not None:
            return self.custom.fields(obj)
        return builtin.fields(self.group, self.kind, obj)

    def supported_fields(self) -> frozenset[str]:
        if self.custom is not None:
            return self.custom.supported_fields()
        return builtin.supported_fields(self.group, self.kind)

    def field_error(self, field: str) -> str:
        if self.custom is not None:
            return f"field label not supported: {field}"
        return builtin.field_error(self.group, self.kind, field)

    def columns(self) -> Sequence[Any]:
        if self.custom is not None:
            return self.custom.columns()
        return builtin.columns(self.group, self.kind)

    def arranged(self, objs: Iterable[Plain]) -> Iterable[Plain]:
        """Objects in the order of a table's rows."""
        if self.custom is not None:
            return objs
        return builtin.arranged(self.group, self.kind, objs)

    def row(self, obj: Plain, *, now: datetime) -> list[Any]:
        if self.custom is not None:
            return self.custom.row(obj, now=now)
        return builtin.row(self.group, self.kind, obj, now=now)


class Unconverted(Kind):
    """A kind for the server's own use: objects in whatever version they are stored.

    Garbage collection and the like look only at metadata, which is the same in all.
    """

    unread = True

    def decode(self, value: bytes) -> Plain:
        obj: Plain = msgspec.json.decode(value)
        return obj

    def encode(self, obj: Plain) -> bytes:
        return msgspec.json.encode(obj)

    def to_storage(self, obj: Plain) -> Plain:
        return obj


def _head(kind: str, api_version: str, *, custom: bool) -> bytes:
    """How the JSON of an object begins; the real server sorts those of custom kinds."""
    pairs = {"kind": kind, "apiVersion": api_version}
    if custom:
        pairs = {"apiVersion": api_version, "kind": kind}
    return msgspec.json.encode(pairs)[:-1] + b","
