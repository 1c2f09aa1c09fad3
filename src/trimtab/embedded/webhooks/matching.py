"""Matching: whether a webhook is asked about a request, and in which version."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from trimtab.embedded import status
from trimtab.embedded.chain import CREATE, UPDATE, Attributes
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.status import GroupResource
from trimtab.embedded.store import Store
from trimtab.embedded.webhooks.hooks import Hook, Rule

NAMESPACES = "core/namespaces/"
EXEMPT = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)


def is_exempt(attributes: Attributes) -> bool:
    """Whether nobody outside is asked: else a webhook could lock everybody out."""
    kind = attributes.kind
    return kind.group == "admissionregistration.k8s.io" and kind.kind in EXEMPT


class Matcher:
    """Matches webhooks with requests; ``versions`` gives all versions of a kind."""

    def __init__(
        self, store: Store, *, versions: Callable[[Kind], Iterable[Kind]]
    ) -> None:
        self._store = store
        self._versions = versions

    def kind(self, hook: Hook, attributes: Attributes) -> Kind | None:
        """The kind in whose version a webhook is asked; None if it is not asked.

        Errors: ``ApiProblem`` if that cannot be told: its namespace is not there.
        """
        problem = None
        try:
            if not self._fits_namespace(hook, attributes):
                return None
        except status.ApiProblem as error:
            problem = error  # it counts only for a webhook that is concerned
        if not _fits_object(hook, attributes):
            return None
        kind = self._by_rules(hook, attributes)
        if kind is not None and problem is not None:
            raise problem
        return kind

    def _by_rules(self, hook: Hook, attributes: Attributes) -> Kind | None:
        own = attributes.kind
        if any(fits(rule, own, attributes) for rule in hook.rules):
            return own
        if not hook.equivalent:
            return None
        others = [each for each in self._versions(own) if each is not own]
        for rule in hook.rules:
            for other in others:
                if fits(rule, other, attributes):
                    return other
        return None

    def _fits_namespace(self, hook: Hook, attributes: Attributes) -> bool:
        own = attributes.kind.prefix == NAMESPACES
        if not attributes.namespace and not own:
            return True
        if not hook.namespaces.requirements:
            return True
        return hook.namespaces.matches(self._labels(attributes, own=own))

    def _labels(self, attributes: Attributes, *, own: bool) -> dict[str, str]:
        written = attributes.operation in (CREATE, UPDATE)
        if own and written and not attributes.subresource:
            return _labels_of(attributes.obj)
        row = self._store.get(NAMESPACES + attributes.namespace)
        if row is None:
            about = GroupResource("", "namespaces")
            raise status.not_found(about, attributes.namespace)
        return _labels_of(msgspec.json.decode(row.value))


def _labels_of(obj: Plain | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _fits_object(hook: Hook, attributes: Attributes) -> bool:
    """Whether the object, as it is or as it was, has the labels that are wanted."""
    if not hook.objects.requirements:
        return True
    return any(
        each is not None and hook.objects.matches(_labels_of(each))
        for each in (attributes.obj, attributes.old)
    )


def fits(rule: Rule, kind: Kind, attributes: Attributes) -> bool:
    """Whether a rule names a request, as one of a kind."""
    return (
        _names(rule.operations, attributes.operation)
        and _names(rule.groups, kind.group)
        and _names(rule.versions, kind.version)
        and any(
            resource in ("*", kind.plural) and part in ("*", attributes.subresource)
            for resource, part in rule.resources
        )
        and _in_scope(rule.scope, kind, attributes)
    )


def _names(allowed: frozenset[str], value: str) -> bool:
    return value in allowed or "*" in allowed


def _in_scope(scope: str, kind: Kind, attributes: Attributes) -> bool:
    if scope == "*":
        return True
    inside = bool(attributes.namespace) and kind.prefix != NAMESPACES
    return inside == (scope == "Namespaced")
