"""Escalation: that nobody gives away, or takes, more than they have.

Whoever writes a role must have all that it allows, or may ``escalate`` it; whoever
binds one must have it all too, or may ``bind`` that role.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from trimtab.embedded import status
from trimtab.embedded.gotext import quoted
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.rbac.attributes import Attributes, attributes_of
from trimtab.embedded.rbac.authorizer import MASTERS, Authorizer, joined
from trimtab.embedded.rbac.index import GROUP
from trimtab.embedded.rbac.rules import (
    FULL_AUTHORITY,
    Rule,
    described,
    listed,
    rules_of,
    uncovered,
)
from trimtab.embedded.requests import ApiRequest, User
from trimtab.embedded.status import ApiProblem

Guard = Callable[[Plain, Plain | None], None]
"""Refuses an object that somebody may not write; the second is what it replaces."""

ROLES = frozenset({"Role", "ClusterRole"})
PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}
# What the garbage collector changes in an object, and what is written down beside.
COLLECTED = frozenset({"ownerReferences", "finalizers", "managedFields"})


class Escalation:
    """Guards the writes of roles and of bindings."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def guard(self, request: ApiRequest, kind: Kind, namespace: str) -> Guard | None:
        """What has to be asked before a request's object is stored; None if nothing."""
        if MASTERS in request.user.groups:
            return None
        checks = []
        if kind.group == GROUP:
            checks.append(partial(self._check, request, kind, namespace))
        if request.method in ("PUT", "PATCH"):
            checks.append(partial(self._check_create, request))
        return partial(_all, checks) if checks else None

    def _check(
        self,
        request: ApiRequest,
        kind: Kind,
        namespace: str,
        obj: Plain,
        old: Plain | None,
    ) -> None:
        """That a role or a binding gives nobody more than its writer has."""
        if old is not None and _only_collected(obj, old):
            return
        if kind.kind not in ROLES:
            self._check_binding(request.user, kind, namespace, obj)
        elif not self._may_escalate(request):
            self._check_role(request.user, kind, namespace, obj, old)

    def _check_create(self, request: ApiRequest, obj: Plain, old: Plain | None) -> None:
        """That whoever changes what is not there may create it."""
        if old is None:
            asked = msgspec.structs.replace(attributes_of(request), verb="create")
            self._authorizer.demand(request.user, asked)

    def _may_escalate(self, request: ApiRequest) -> bool:
        asked = attributes_of(request)
        asked = msgspec.structs.replace(asked, verb="escalate", subresource="")
        return self._authorizer.may(request.user, asked)

    def _check_role(
        self, user: User, kind: Kind, namespace: str, obj: Plain, old: Plain | None
    ) -> None:
        wanted = rules_of(obj.get("rules"))
        self._confirm(user, kind, namespace, _name(obj), wanted)
        if not _aggregates(obj) and not _aggregates(old or {}):
            return
        held, _ = self._authorizer.rules(user, namespace)
        if uncovered(held, FULL_AUTHORITY):
            detail = "must have cluster-admin privileges to use the aggregationRule"
            raise status.forbidden(kind.about, _name(obj), detail)

    def _check_binding(
        self, user: User, kind: Kind, namespace: str, obj: Plain
    ) -> None:
        reference = obj.get("roleRef") or {}
        role, name = reference.get("kind", ""), reference.get("name", "")
        if role not in ROLES:
            message = f"unsupported role reference kind: {quoted(role)}"
            raise ApiProblem(500, "", message)
        bound = Attributes(
            verb="bind",
            group=reference.get("apiGroup", ""),
            resource=PLURALS[role],
            namespace=namespace,
            name=name,
        )
        if self._authorizer.may(user, bound):
            return
        rules = self._authorizer.index.role(role, namespace, name)
        if rules is None:
            # The real server looks it up as the resource that the request is about.
            raise status.not_found(kind.about, name)
        self._confirm(user, kind, namespace, _name(obj), rules)

    def _confirm(
        self,
        user: User,
        kind: Kind,
        namespace: str,
        name: str,
        wanted: Sequence[Rule],
    ) -> None:
        """That somebody has all that some rules allow."""
        held, lost = self._authorizer.rules(user, namespace)
        missing = uncovered(held, wanted)
        if not missing:
            return
        detail = (
            f"user {quoted(user.name)} (groups={listed(user.groups)}) is attempting to "
            f"grant RBAC permissions not currently held:\n{described(missing)}"
        )
        if lost:
            texts = [f"{kind.about} {quoted(each.role)} not found" for each in lost]
            detail += f"; resolution errors: [{joined(texts)}]"
        raise status.forbidden(kind.about, name, detail)


def _all(checks: Sequence[Guard], obj: Plain, old: Plain | None) -> None:
    for check in checks:
        check(obj, old)


def _name(obj: Plain) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def _aggregates(role: Plain) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(obj: Plain, old: Plain) -> bool:
    """Whether a write changes nothing but what garbage collection does."""
    return _kept(obj) == _kept(old)


def _kept(obj: Plain) -> Plain:
    meta = {key: obj["metadata"][key] for key in obj["metadata"].keys() - COLLECTED}
    return {key: value for key, value in {**obj, "metadata": meta}.items() if value}
