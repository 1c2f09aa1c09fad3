"""Selection: which objects a list or a watch means, by labels and by fields.

Stored objects are bytes. To select among them only their metadata is decoded, unless a
field selector asks for more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.api.selectors import FieldSelector, Selector
from trimtab.embedded import selectorwords, status
from trimtab.embedded.kinds import Kind

NOTHING = ("", "=", "==", "!=")
"""Terms of a field selector without a field and a value, which every object fits."""
BY_NAME = ("metadata.name", "=")
METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_head = msgspec.json.Decoder(_Head).decode


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A label selector and a field selector, either of which may be empty."""

    labels: Selector | None = None
    fields: FieldSelector | None = None
    extract: Callable[[dict[str, Any]], Mapping[str, str]] | None = None
    """The selectable fields of an object of the kind."""

    @property
    def is_one(self) -> bool:
        """Whether it names an object, and so is never more than a page."""
        terms = self.fields.terms if self.fields else ()
        return any((each.field, each.operator) == BY_NAME for each in terms)

    def is_of_version(self, kind: Kind) -> bool:
        """Whether it looks at what a webhook may make other than it is stored."""
        if kind.conversion is None or kind.custom is None:
            return False
        asked = {term.field for term in (self.fields.terms if self.fields else ())}
        return self.labels is not None or not asked <= METADATA_FIELDS

    def matcher(self) -> Callable[[bytes], bool] | None:
        """A predicate over stored bytes; None if everything is meant."""
        if self.labels is None and self.fields is None:
            return None
        return self._matches

    def _matches(self, value: bytes) -> bool:
        meta = _decode_head(value).metadata
        if self.labels is not None and not self.labels.matches(meta.labels or {}):
            return False
        if self.fields is None:
            return True
        return self.fields.matches(self._fields_of(value, meta).get)

    def _fields_of(self, value: bytes, meta: _Meta) -> Mapping[str, str]:
        known = {"metadata.name": meta.name, "metadata.namespace": meta.namespace}
        asked = {term.field for term in (self.fields.terms if self.fields else ())}
        if asked <= METADATA_FIELDS or self.extract is None:
            return known
        return {**known, **self.extract(msgspec.json.decode(value))}


def selection_of(query: Mapping[str, str], *, kind: Kind, name: str = "") -> Selection:
    """The selection in a query; 400 in the real server's words if it makes no sense.

    A watch of one object by its path is a selection by its name.
    """
    labels, given = query.get("labelSelector", ""), query.get("fieldSelector", "")
    labels = labels if labels.strip() else ""
    terms = re.split(r"(?<!\\),", given)
    fields = ",".join(each for each in terms if each not in NOTHING)
    try:
        wanted = Selector.from_string(labels) if labels else None
    except ValueError as error:
        raise status.bad_request(
            selectorwords.of_labels(labels) or str(error)
        ) from None
    try:
        selected = FieldSelector.from_string(fields) if fields else None
    except ValueError as error:
        raise status.bad_request(
            selectorwords.of_fields(given) or kind.field_error("") or str(error)
        ) from None
    for term in selected.terms if selected else ():
        if term.field not in kind.supported_fields():
            raise status.bad_request(kind.field_error(term.field))
    if name:
        by_name = FieldSelector.from_mapping({"metadata.name": name})
        selected = FieldSelector(
            (*by_name.terms, *(selected.terms if selected else ()))
        )
    return Selection(labels=wanted, fields=selected, extract=kind.stored_fields)
