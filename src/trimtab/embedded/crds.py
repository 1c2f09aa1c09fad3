"""Custom kinds: what one served version of a CustomResourceDefinition does to objects.

Everything that depends on the schema alone is put together once, when the kind is made:
the quick check, the defaults, the rules, the columns. An object then passes through
functions that know only what this kind needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from trimtab.embedded import (
    cel,
    listtypes,
    objectmeta,
    quickcheck,
    shaping,
    status,
    types,
    validation,
)
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.definitions import CLEANUP_FINALIZER as CLEANUP_FINALIZER
from trimtab.embedded.definitions import establish as establish
from trimtab.embedded.discovery import custom_resources, version_order
from trimtab.embedded.facts import definitions
from trimtab.embedded.gotext import plain
from trimtab.embedded.jsonpath import path as json_path
from trimtab.embedded.patches import json_kind
from trimtab.embedded.ratcheting import Pair
from trimtab.embedded.scaling import Scaling
from trimtab.embedded.schemas import schema_of
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.tables import Column, Printer

Plain = dict[str, Any]

# Mistakes after which rules would judge an object that is not what they expect.
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_BLOCKED: Final = status.invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct "
    "the existing errors to complete validation",
)


class CustomKind:
    """One served version of a CustomResourceDefinition.

    Assumptions: the definition was accepted, so its schema is structural and its rules
    compile, and it serves the version.
    """

    def __init__(self, crd: Plain, version: str) -> None:
        self.crd = crd
        spec = crd["spec"]
        said = next(each for each in spec["versions"] if each["name"] == version)
        raw = (said.get("schema") or {}).get("openAPIV3Schema") or {}
        self.resource = next(
            each for each in custom_resources(crd) if each.version == version
        )
        self.type = types.of_structural(raw)
        self.schema = schema_of(raw)
        self._accepts = quickcheck.check_of(self.schema)
        self._status = self.schema.properties.get("status")
        self._shape = shaping.shaper_of(self.schema, whole=True)
        self._default = shaping.defaulter_of(self.schema)
        self._duplicates = listtypes.finder_of(self.schema)
        self._embeds = any(each.embedded for each in self.schema.walk())
        self._rules = cel.rules_of(self.schema)
        self._printer = Printer(said.get("additionalPrinterColumns") or [])
        self._fields = [
            (each["jsonPath"].removeprefix("."), json_path(each["jsonPath"]))
            for each in said.get("selectableFields") or ()
        ]
        scale = (said.get("subresources") or {}).get("scale")
        self._scaling = Scaling(scale) if scale else None
        self._metadata = definitions().type(types.OBJECT_META)

    @property
    def warning(self) -> str:
        """What clients of a deprecated version are told; empty for any other."""
        return _warning(self.crd["spec"], self.resource.version)

    def unknown_fields(self, obj: Plain) -> list[str]:
        """The paths of the fields that ``prune`` will drop because nobody knows them.

        Errors: ``conform.Mistyped`` when metadata cannot be read.
        """
        return self.conform(shaping.copied(obj))

    def prune(self, obj: Plain) -> None:
        """Drop, in place, what the schema does not know, and nulls that may not be.

        Errors: ``conform.Mistyped`` when metadata cannot be read.
        """
        self.conform(obj)

    def conform(self, obj: Plain) -> list[str]:
        """Prune an object in place; the paths of what nobody knew, in one go.

        Errors: ``conform.Mistyped`` when metadata cannot be read.
        """
        unknown = []
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            dropped = shaping.tidy_metadata(self._metadata, metadata)
            unknown += [f"metadata.{each}" for each in dropped]
        elif metadata is not None:
            raise Mistyped(
                f"json: cannot unmarshal {json_kind(metadata)} into Go value of type "
                "v1.ObjectMeta"
            )
        unknown += sorted(self._shape(obj) or ())
        if self._embeds:
            unknown += sorted(shaping.tidy_embedded(self.schema, obj, self._metadata))
        return unknown

    def default(self, obj: Plain) -> None:
        """Set, in place, what the schema has defaults for."""
        if self._default is not None:
            self._default(obj)

    def read(self, obj: Plain) -> None:
        """Make a stored object one of this version, in place."""
        obj["apiVersion"] = self.resource.api_version
        self.prune(obj)
        self.default(obj)

    def validate(
        self,
        obj: Plain,
        old: Plain | None = None,
        *,
        subresource: str = "",
        warnings: list[str] | None = None,
    ) -> list[FieldProblem]:
        """What is wrong with a new object, or with a changed one.

        Flow: type and metadata, the schema, the scale paths, embedded objects,
        duplicates in lists, and at last the rules, unless the object is so wrong that
        they could not be judged.

        Guarantees: what was wrong before, in a part that is unchanged, is forgiven;
        where a rule says it, it is added to ``warnings``.
        """
        found = self._type_problems(obj)
        if found:
            return found
        found += self._metadata_problems(obj, old)
        pair = None if old is None else Pair(obj, old, self.schema)
        if subresource == "status":
            found += self._status_problems(obj, old, pair)
        else:
            found += self._object_problems(obj, pair)
        found += self._list_problems(obj, old)
        if self._rules is not None:
            if any(problem.type in _BLOCKING for problem in found):
                found.append(_BLOCKED)
            else:
                found += self._rules.problems(obj, old, pair, warnings=warnings)
        return found

    def warnings(self, obj: Plain, old: Plain | None = None) -> list[str]:
        """What whoever writes an object is warned of: finalizers with poor names."""
        return objectmeta.finalizer_warnings(
            obj["metadata"], (old or {}).get("metadata")
        )

    def _type_problems(self, obj: Plain) -> list[FieldProblem]:
        resource = self.resource
        wanted = {"kind": resource.kind, "apiVersion": resource.api_version}
        return [
            status.invalid(field, obj.get(field, ""), f"must be {value}")
            for field, value in wanted.items()
            if obj.get(field) != value
        ]

    def _metadata_problems(self, obj: Plain, old: Plain | None) -> list[FieldProblem]:
        metadata, namespaced = obj["metadata"], self.resource.namespaced
        if old is None:
            return objectmeta.created_problems(metadata, namespaced=namespaced)
        return objectmeta.updated_problems(
            metadata, old["metadata"], namespaced=namespaced
        )

    def _object_problems(self, obj: Plain, pair: Pair | None) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        if not self._accepts(obj):
            found += validation.problems(self.schema, obj, pair=pair)
        if self._scaling is not None:
            found += self._scaling.spec_problems(obj)
            found += self._scaling.status_problems(obj)
        if self._embeds:
            found += objectmeta.embedded_problems(self.schema, obj)
        return found

    def _status_problems(
        self, obj: Plain, old: Plain | None, pair: Pair | None
    ) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        schema = self._status
        if (
            schema is not None
            and "status" in obj
            and not quickcheck.check_of(schema)(obj["status"])
        ):
            before = pair.key("status") if pair is not None else None
            found += validation.problems(
                schema, obj["status"], path="status", pair=before
            )
        if self._scaling is not None:
            found += self._scaling.status_problems(obj)
        return found

    def _list_problems(self, obj: Plain, old: Plain | None) -> list[FieldProblem]:
        """Duplicates; none if the old object had some already."""
        found: list[FieldProblem] = []
        if self._duplicates is not None:
            self._duplicates(obj, "", found)
            if found and old is not None:
                before: list[FieldProblem] = []
                self._duplicates(old, "", before)
                return [] if before else found
        return found

    def columns(self) -> Sequence[Column]:
        """The columns of the kind's table."""
        return self._printer.columns

    def row(self, obj: Plain, *, now: datetime) -> list[Any]:
        """The cells of one object."""
        return self._printer.row(obj, now=now)

    def supported_fields(self) -> frozenset[str]:
        """What field selectors may name."""
        meta = {"metadata.name"}
        if self.resource.namespaced:
            meta.add("metadata.namespace")
        return frozenset(meta | {name for name, _ in self._fields})

    def fields(self, obj: Plain) -> dict[str, str]:
        """What field selectors match on."""
        metadata = obj.get("metadata") or {}
        found = {"metadata.name": metadata.get("name", "")}
        if self.resource.namespaced:
            found["metadata.namespace"] = metadata.get("namespace", "")
        for name, each in self._fields:
            values = each.find(obj)
            known = values and values[0] is not None
            found[name] = plain(values[0]) if known else ""
        return found

    def scale(self, obj: Plain) -> tuple[int, int, str]:
        """How many are wished for, how many there are, and which labels they have.

        Errors: ``ApiProblem`` (500) when the object does not say how many.
        """
        assert self._scaling is not None, "only asked of kinds with the subresource"
        return self._scaling.read(obj)

    def set_scale(self, obj: Plain, replicas: int) -> None:
        """Wish for another number, in place."""
        assert self._scaling is not None, "only asked of kinds with the subresource"
        self._scaling.write(obj, replicas)


def _warning(spec: Mapping[str, Any], version: str) -> str:
    said = {each["name"]: each for each in spec["versions"]}
    if not said[version].get("deprecated"):
        return ""
    if said[version].get("deprecationWarning") is not None:
        return str(said[version]["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    text = f"{group}/{version} {kind} is deprecated"
    newer = [
        name
        for name, each in said.items()
        if each.get("served") and not each.get("deprecated")
        if version_order(name) < version_order(version)
    ]
    if not newer:
        return text
    best = min(newer, key=version_order)
    return f"{text}; use {group}/{best} {kind}"
