"""Parameters: the objects that a binding hands to its policy."""

from __future__ import annotations

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.policies.matching import selector_of
from trimtab.embedded.store import Store


class ParamKind(msgspec.Struct, frozen=True):
    """The kind of a policy's parameters, as the policy names it."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        group, _, version = self.api_version.rpartition("/")
        return f"{group}/{version}, Kind={self.kind}"


class Misconfigured(Exception):
    """A policy or a binding that cannot be used as it is; the text says why."""


class Params:
    """Finds parameters in a store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def kind(self, named: ParamKind | None) -> Kind | None:
        """The kind that a policy names, if it names one.

        Errors: :class:`Misconfigured` if there is no such kind.
        """
        if named is None:
            return None
        found = self._catalog.by_kind(named.api_version, named.kind)
        if found is None:
            text = f"failed to find resource referenced by paramKind: '{named}'"
            raise Misconfigured(text)
        return found

    def collect(
        self, kind: Kind | None, ref: Plain | None, *, namespace: str
    ) -> list[Plain | None]:
        """What a policy is evaluated with, once for each; ``namespace`` is that of the
        request.

        Errors: :class:`Misconfigured`.
        """
        if kind is None or ref is None:
            return [None]
        place = self._place(kind, ref, namespace)
        found: list[Plain | None] = []
        if ref.get("name"):
            row = self._store.get(kind.key(place, ref["name"]))
            found += [] if row is None else [kind.decode(row.value)]
        else:
            found += self._selected(kind, place, ref.get("selector"))
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured(
                "no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return found

    def _selected(self, kind: Kind, place: str, raw: Plain | None) -> list[Plain]:
        selector = selector_of(raw)
        rows = self._store.range(kind.within(place))
        objects = (kind.decode(row.value) for row in rows)
        return [
            each
            for each in objects
            if selector.matches(each["metadata"].get("labels") or {})
        ]

    def _place(self, kind: Kind, ref: Plain, namespace: str) -> str:
        """The namespace to look in."""
        wanted: str = ref.get("namespace") or ""
        if not kind.namespaced:
            if wanted:
                raise Misconfigured(
                    "paramRef.namespace must not be provided for a cluster-scoped "
                    "`paramKind`"
                )
            return ""
        if not (wanted or namespace):
            raise Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches "
                "cluster-scoped resources"
            )
        return wanted or namespace
