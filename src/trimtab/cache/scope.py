"""Scopes: which objects of a kind are watched, said before any watch starts.

A watch of everything is how a controller comes to hold a whole cluster, so it has to be
asked for by name: ``Scope(everything=True)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.api.names import check_label
from trimtab.api.resource import Resource
from trimtab.api.selectors import FieldSelector, LabelSelector, Selector

Labels = str | Mapping[str, str] | Selector | LabelSelector
Fields = str | Mapping[str, str] | FieldSelector


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched: all that is said must hold. Hashable, so informers are shared.

    Selectors may be given as text, as a mapping or as a selector; here they are the
    canonical text, so that two ways to say the same thing are the same scope.

    Errors: ``ValueError`` when nothing narrows the scope and ``everything`` is not
    True, when ``everything`` meets something that narrows it, when both ways to name
    namespaces are used, and when a name or a selector is not valid.
    """

    namespaces: tuple[str, ...] = ()
    """These namespaces, one watch for each; empty means any."""
    namespaces_where: str = ""
    """The namespaces with these labels; they come and go while the watch runs."""
    labels: str = ""
    """Objects with these labels."""
    fields: str = ""
    """Objects with these fields, as far as the server can select by them."""
    everything: bool = False
    """All objects of the kind in the cluster: the one scope that narrows nothing."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            namespaces: str | Iterable[str] = (),
            namespaces_where: Labels = "",
            labels: Labels = "",
            fields: Fields = "",
            everything: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field = msgspec.structs.force_setattr
        set_field(self, "namespaces", _namespaces(self.namespaces))
        set_field(self, "namespaces_where", _labels(self.namespaces_where))
        set_field(self, "labels", _labels(self.labels))
        set_field(self, "fields", _fields(self.fields))
        self._check()

    def _check(self) -> None:
        narrow = self.namespaces or self.namespaces_where or self.labels or self.fields
        if self.everything and narrow:
            raise ValueError(
                f"A scope of everything cannot also be narrowed ({self}); drop "
                "everything=True or the rest."
            )
        if not self.everything and not narrow:
            raise ValueError(
                "A scope must name namespaces, labels or fields; to watch all objects "
                "of a kind, say everything=True."
            )
        if self.namespaces and self.namespaces_where:
            raise ValueError(
                "A scope takes namespaces or namespaces_where; with both it would not "
                "be clear which of them decides."
            )

    def check(self, kind: type[Resource]) -> None:
        """Refuse what cannot be asked of a kind.

        Errors: ``ValueError`` when namespaces are named for a kind that has none.
        """
        info = kind.__resource__
        if not info.namespaced and (self.namespaces or self.namespaces_where):
            raise ValueError(
                f"{info.kind} objects are in no namespace, so a scope cannot choose "
                "them by one; use labels, fields or everything=True."
            )

    def __str__(self) -> str:
        said = [
            f"namespaces {','.join(self.namespaces)}" if self.namespaces else "",
            f"namespaces where {self.namespaces_where}"
            if self.namespaces_where
            else "",
            f"labels {self.labels}" if self.labels else "",
            f"fields {self.fields}" if self.fields else "",
        ]
        return "; ".join(each for each in said if each) or "everything"


def _namespaces(given: str | Iterable[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        check_label(name, what="The namespace")
    return tuple(sorted(set(names)))


def _labels(given: Labels) -> str:
    if isinstance(given, str):
        return str(Selector.from_string(given))
    if isinstance(given, LabelSelector):
        return str(Selector.from_wire(given))
    if isinstance(given, Selector):
        return str(given)
    return str(Selector.from_mapping(given))


def _fields(given: Fields) -> str:
    if isinstance(given, str):
        return str(FieldSelector.from_string(given))
    if isinstance(given, FieldSelector):
        return str(given)
    return str(FieldSelector.from_mapping(given))
