"""The authorizer: whether somebody may do something, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.gotext import quoted
from trimtab.embedded.rbac.attributes import Attributes, attributes_of
from trimtab.embedded.rbac.index import GROUP, Binding, Index
from trimtab.embedded.rbac.rules import Rule
from trimtab.embedded.requests import ApiRequest, User
from trimtab.embedded.status import ApiProblem, GroupResource
from trimtab.embedded.store import Store

MASTERS = "system:masters"
"""Members of this group may do everything, whatever roles there are."""
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class PathForbidden(ApiProblem):
    """A path that somebody may not use; it has details that say nothing."""

    @property
    def status(self) -> dict[str, Any]:
        told = super().status
        return {**told, "details": {}, "code": told.pop("code")}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something is allowed, and why as far as there is a reason."""

    allowed: bool
    reason: str = ""


class Authorizer:
    """Decides by the roles and bindings of a store; what none of them allows is not.

    Guarantees: a change in the store counts from the very next decision.
    """

    def __init__(self, store: Store) -> None:
        self.index = Index(store)

    def check(self, request: ApiRequest) -> None:
        """Refuse a request that its user may not make."""
        if MASTERS not in request.user.groups:
            self.demand(request.user, attributes_of(request))

    def demand(self, user: User, asked: Attributes) -> None:
        """Refuse an action that a user may not take."""
        if not self.may(user, asked):
            raise refusal(user, asked, self._lost(user, asked.namespace))

    def decide(self, user: User, asked: Attributes) -> Decision:
        """Whether a user may take an action."""
        if MASTERS in user.groups:
            return Decision(allowed=True)
        binding = self._allowing(user, asked)
        if binding is not None:
            return Decision(allowed=True, reason=binding.reason(user))
        return Decision(allowed=False, reason=self._lost(user, asked.namespace))

    def may(self, user: User, asked: Attributes) -> bool:
        """The same without a reason."""
        return MASTERS in user.groups or self._allowing(user, asked) is not None

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[Binding]]:
        """All rules that apply to a user, and the bindings whose role is not there."""
        found: list[Rule] = []
        lost = []
        for binding in self._once(user, namespace):
            rules = self.index.rules(binding)
            if rules is None:
                lost.append(binding)
            found += rules or ()
        return found, lost

    def _allowing(self, user: User, asked: Attributes) -> Binding | None:
        rules_of = self.index.rules
        for binding in self.index.bindings(user, asked.namespace):
            for rule in rules_of(binding) or ():
                if rule.allows(asked):
                    return binding
        return None

    def _once(self, user: User, namespace: str) -> Iterator[Binding]:
        found = dict.fromkeys(self.index.bindings(user, namespace))
        yield from sorted(found, key=lambda each: (each.namespace, each.name))

    def _lost(self, user: User, namespace: str) -> str:
        _, lost = self.rules(user, namespace)
        return f"RBAC: {absent(lost)}" if lost else ""


def absent(lost: list[Binding]) -> str:
    """That the roles of some bindings are not there."""
    texts = [
        f"{each.role_kind.lower()}.{GROUP} {quoted(each.role)} not found"
        for each in lost
    ]
    return joined(texts)


def joined(texts: list[str]) -> str:
    """Several errors as one, each once."""
    once = list(dict.fromkeys(texts))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def refusal(user: User, asked: Attributes, reason: str = "") -> ApiProblem:
    """That a user may not do something, in the real server's words."""
    what = f"User {quoted(user.name)} cannot {asked.verb} "
    if not asked.is_resource:
        what += f"path {quoted(asked.path)}"
    else:
        what += f"resource {quoted(asked.full_resource)} in API group "
        what += quoted(asked.group)
        where = f"in the namespace {quoted(asked.namespace)}"
        what += f" {where if asked.namespace else 'at the cluster scope'}"
    detail = what.translate(HTML) + (f": {reason}" if reason else "")
    if not asked.is_resource:
        return PathForbidden(403, "Forbidden", f"forbidden: {detail}")
    about = GroupResource(asked.group, asked.resource)
    return status.forbidden(about, asked.name, detail)
