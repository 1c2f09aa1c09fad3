"""Matching: which requests a policy, a binding or a webhook is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from trimtab.api.codec import convert
from trimtab.api.selectors import LabelSelector, Selector
from trimtab.embedded import status
from trimtab.embedded.chain import CREATE, UPDATE, Attributes
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.status import ApiProblem, GroupResource
from trimtab.embedded.store import Store

NAMESPACES: Final = "core/namespaces/"
_OWN: Final = "admissionregistration.k8s.io"
_EXEMPT: Final = frozenset(
    {
        (_OWN, "validatingadmissionpolicies"),
        (_OWN, "validatingadmissionpolicybindings"),
        (_OWN, "mutatingadmissionpolicies"),
        (_OWN, "mutatingadmissionpolicybindings"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)


def is_exempt(attributes: Attributes) -> bool:
    """Whether policies have no say: else they could lock everybody out."""
    return (attributes.kind.group, attributes.kind.plural) in _EXEMPT


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Some requests, by what they do to what."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Each with its subresource, which is empty for none and ``*`` for all."""
    scope: str
    names: frozenset[str]

    def fits(self, attributes: Attributes, kind: Kind) -> bool:
        """Whether a request is one of these, as one of a kind."""
        return (
            _names(self.operations, attributes.operation)
            and _names(self.groups, kind.group)
            and _names(self.versions, kind.version)
            and any(
                resource in ("*", kind.plural) and part in ("*", attributes.subresource)
                for resource, part in self.resources
            )
            and self._in_scope(attributes, kind)
            and (not self.names or attributes.name in self.names)
        )

    def _in_scope(self, attributes: Attributes, kind: Kind) -> bool:
        if self.scope == "*":
            return True
        inside = bool(attributes.namespace) and kind.prefix != NAMESPACES
        return inside == (self.scope == "Namespaced")


def _names(allowed: frozenset[str], value: str) -> bool:
    return value in allowed or "*" in allowed


def rule_of(raw: Plain) -> Rule:
    """A ``resourceRules`` entry, whose defaults have been filled in."""
    return Rule(
        operations=frozenset(raw.get("operations") or ()),
        groups=frozenset(raw.get("apiGroups") or ()),
        versions=frozenset(raw.get("apiVersions") or ()),
        resources=tuple(
            (each.partition("/")[0], each.partition("/")[2])
            for each in raw.get("resources") or ()
        ),
        scope=raw.get("scope", "*"),
        names=frozenset(raw.get("resourceNames") or ()),
    )


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """What ``matchConstraints``, ``matchResources`` or a webhook say."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    equivalent: bool
    namespaces: Selector
    objects: Selector


def match_of(raw: Plain) -> Match:
    """The same, read once."""
    return Match(
        rules=tuple(map(rule_of, raw.get("resourceRules") or ())),
        excluded=tuple(map(rule_of, raw.get("excludeResourceRules") or ())),
        equivalent=raw.get("matchPolicy") == "Equivalent",
        namespaces=selector_of(raw.get("namespaceSelector")),
        objects=selector_of(raw.get("objectSelector")),
    )


def selector_of(raw: Plain | None) -> Selector:
    return Selector.from_wire(convert(LabelSelector, raw or {}))


class Matcher:
    """Matches policies with requests; ``versions`` gives all versions of a kind."""

    def __init__(
        self, store: Store, *, versions: Callable[[Kind], Iterable[Kind]]
    ) -> None:
        self._store = store
        self._versions = versions

    def kind(self, match: Match, attributes: Attributes) -> Kind | None:
        """The kind in whose version a policy looks at a request; None if it does not.

        Errors: ``ApiProblem`` if that cannot be told: its namespace is not there.
        """
        problem = None
        try:
            if not self._fits_namespace(match, attributes):
                return None
        except ApiProblem as error:
            problem = error  # it counts only where the policy is concerned
        if not _fits_object(match, attributes):
            return None
        if self._among(match.excluded, match, attributes) is not None:
            return None
        kind: Kind | None = attributes.kind
        if match.rules:
            kind = self._among(match.rules, match, attributes)
        if kind is not None and problem is not None:
            raise problem
        return kind

    def _among(
        self, rules: Iterable[Rule], match: Match, attributes: Attributes
    ) -> Kind | None:
        own = attributes.kind
        if any(rule.fits(attributes, own) for rule in rules):
            return own
        if not match.equivalent:
            return None
        for rule in rules:
            for other in self._versions(own):
                if other is not own and rule.fits(attributes, other):
                    return other
        return None

    def namespace(self, name: str) -> Plain:
        """A namespace. Errors: ``ApiProblem`` if there is none."""
        row = self._store.get(NAMESPACES + name)
        if row is None:
            raise status.not_found(GroupResource("", "namespaces"), name)
        found: Plain = msgspec.json.decode(row.value)
        return found

    def _fits_namespace(self, match: Match, attributes: Attributes) -> bool:
        own = attributes.kind.prefix == NAMESPACES
        if not match.namespaces.requirements or not (attributes.namespace or own):
            return True
        written = attributes.operation in (CREATE, UPDATE)
        if own and written and not attributes.subresource:
            return match.namespaces.matches(_labels(attributes.obj))
        return match.namespaces.matches(_labels(self.namespace(attributes.namespace)))


def _labels(obj: Plain | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _fits_object(match: Match, attributes: Attributes) -> bool:
    """Whether the object, as it is or as it was, has the labels that are wanted."""
    if not match.objects.requirements:
        return True
    return any(
        each is not None and match.objects.matches(_labels(each))
        for each in (attributes.obj, attributes.old)
    )
