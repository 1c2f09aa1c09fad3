"""Dispatching: which policies are asked about a request, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import Attributes
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.policies.index import Binding, Policy
from trimtab.embedded.policies.matching import NAMESPACES, Matcher
from trimtab.embedded.policies.params import Misconfigured, Params
from trimtab.embedded.policies.subject import Subject
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Store


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that is asked once, for one binding and one parameter."""

    binding: Binding
    kind: Kind
    param: Plain | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that cannot be asked; a binding is named if it is to blame."""

    binding: Binding | None = None
    message: str


class Dispatcher:
    """Finds out what to ask; knows what policies can be asked with."""

    def __init__(
        self, store: Store, *, catalog: Catalog, authorizer: Authorizer
    ) -> None:
        self._matcher = Matcher(store, versions=catalog.versions)
        self._params = Params(store, catalog)
        self._authorizer = authorizer

    def calls(
        self, policy: Policy[Any], attributes: Attributes
    ) -> Iterator[Call | Failure]:
        """Each way in which a policy is asked about a request, if it is at all."""
        try:
            kind = self._matcher.kind(policy.match, attributes)
            if kind is None:
                return
            param_kind = self._params.kind(policy.param)
        except (ApiProblem, Misconfigured) as error:
            yield Failure(message=f"failed to configure policy: {error}")
            return
        for binding in policy.bindings:
            try:
                if self._skips(binding, attributes):
                    continue
                params = self._params.collect(
                    param_kind, binding.param, namespace=attributes.namespace
                )
            except (ApiProblem, Misconfigured) as error:
                text = f"failed to configure binding: {error}"
                yield Failure(binding=binding, message=text)
                continue
            for param in params:
                yield Call(binding=binding, kind=kind, param=param)

    def _skips(self, binding: Binding, attributes: Attributes) -> bool:
        match = binding.match
        return match is not None and self._matcher.kind(match, attributes) is None

    def values(self, call: Call, attributes: Attributes) -> dict[str, Any]:
        """What a policy is asked with, but for the namespace."""
        subject = Subject(attributes, kind=call.kind, authorizer=self._authorizer)
        return subject.values(call.param)

    def namespace(self, attributes: Attributes) -> Plain | None:
        """The namespace of a request; a Namespace is in none."""
        if not attributes.namespace or attributes.kind.prefix == NAMESPACES:
            return None
        return self._matcher.namespace(attributes.namespace)


def name_of(attributes: Attributes) -> str:
    """How a refusal calls an object, which may have no name yet."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    name: str = attributes.name or metadata.get("name") or ""
    return name or metadata.get("generateName") or "Unknown!"
