"""Mutating policies: expressions that change what is written, on its way in."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import DELETE, Attributes
from trimtab.embedded.kinds import Plain
from trimtab.embedded.policies.changing import (
    Changes,
    Unchanged,
    changed,
    changes_of,
)
from trimtab.embedded.policies.conditions import Undecided
from trimtab.embedded.policies.dispatching import (
    Call,
    Dispatcher,
    name_of,
)
from trimtab.embedded.policies.index import Binding, Index, Policy
from trimtab.embedded.policies.matching import is_exempt
from trimtab.embedded.policies.subject import shown
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Store

Key = tuple[str, str, str, str]
"""A policy, a binding, and the namespace and name of a parameter."""


class _Memory:
    """What is remembered of a first look, for the second."""

    def __init__(self) -> None:
        self.last: Plain | None = None
        """The object as the policies left it."""
        self.asked: set[Key] = set()
        """Policies that want to be asked again if another changes the object."""
        self.due: set[Key] = set()
        """Those that will be."""

    def changed(self) -> None:
        self.due |= self.asked
        self.asked = set()


class _Error(msgspec.Struct, frozen=True):
    policy: str
    binding: Binding | None
    message: str
    reason: str = ""

    def __str__(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy}" denied request: {self.message}'
        bound = f"policy '{self.policy}' with binding '{self.binding.name}'"
        return f"{bound} denied request: {self.message}"


class MutatingPolicies:
    """The plugin that asks the mutating policies of a store."""

    def __init__(
        self, store: Store, *, catalog: Catalog, authorizer: Authorizer
    ) -> None:
        self._index: Index[Changes] = Index(store, kind="mutating", compile=changes_of)
        self._dispatcher = Dispatcher(store, catalog=catalog, authorizer=authorizer)

    @property
    def active(self) -> bool:
        return self._index.active

    def validate(self, attributes: Attributes) -> None:
        """They refuse nothing that they were not asked to change."""

    def mutate(self, attributes: Attributes) -> None:
        """Change the object as the policies say, one after the other.

        A policy that fails is left out or refuses the request, as it says itself.
        """
        if attributes.operation == DELETE or is_exempt(attributes):
            return
        errors: list[_Error] = []
        calls: list[tuple[Policy[Changes], Call]] = []
        for policy in self._index.used():
            for call in self._dispatcher.calls(policy, attributes):
                if isinstance(call, Call):
                    calls.append((policy, call))
                elif policy.fails:
                    errors.append(_Error(policy.name, call.binding, call.message))
        if calls:
            self._ask(calls, attributes, errors)
        if errors:
            raise _refusal(attributes, errors)

    def _ask(
        self,
        calls: list[tuple[Policy[Changes], Call]],
        attributes: Attributes,
        errors: list[_Error],
    ) -> None:
        memory: _Memory = attributes.memory.setdefault("policies", _Memory())
        if attributes.again and memory.last != attributes.obj:
            memory.changed()
        before = attributes.obj
        namespace = self._dispatcher.namespace(attributes)
        seen = None if namespace is None else shown(namespace)
        for policy, call in calls:
            try:
                self._one(policy, call, attributes, seen, memory, errors)
            except Undecided as error:
                if policy.fails:
                    said = _Error(policy.name, call.binding, str(error), "Invalid")
                    errors.append(said)
        if attributes.obj is not before:
            memory.changed()
            attributes.reinvoke = True
        memory.last = attributes.obj

    def _one(
        self,
        policy: Policy[Changes],
        call: Call,
        attributes: Attributes,
        namespace: Plain | None,
        memory: _Memory,
        errors: list[_Error],
    ) -> None:
        rules = policy.rules
        values = self._dispatcher.values(call, attributes)
        if rules.conditions is not None and not rules.conditions.hold(values):
            return
        key = _key(policy, call)
        if attributes.again and key not in memory.due:
            return
        values["namespaceObject"] = namespace
        for change in rules.changes:
            if attributes.obj is None:
                break
            values["object"] = attributes.obj
            try:
                made = changed(change, rules.variables, values, call.kind)
                attributes.obj = made
            except Unchanged as error:
                if policy.fails:
                    said = _Error(policy.name, call.binding, str(error), "Invalid")
                    errors.append(said)
        if rules.again:
            memory.asked.add(key)


def _key(policy: Policy[Any], call: Call) -> Key:
    metadata = (call.param or {}).get("metadata") or {}
    place, name = metadata.get("namespace", ""), metadata.get("name", "")
    return policy.name, call.binding.name, place, name


def _refusal(attributes: Attributes, errors: list[_Error]) -> ApiProblem:
    about, name = attributes.kind.about, name_of(attributes)
    causes = [{"message": str(each)} for each in errors]
    reason = errors[0].reason or "Forbidden"
    return ApiProblem(
        403, reason, str(errors[0]), about=about, name=name, causes=causes
    )
