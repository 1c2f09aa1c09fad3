"""Access: that nobody reads through a policy what they may not read themselves.

Whoever writes a policy with parameters, or binds one, must be able to read them; what
a policy says of its parameters in a refusal would tell them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from trimtab.embedded import status
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.rbac.attributes import Attributes
from trimtab.embedded.rbac.authorizer import MASTERS, Authorizer
from trimtab.embedded.requests import User
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.store import Store
from trimtab.embedded.writes import Write

Guard = Callable[[Plain, Plain | None], None]
GROUP: Final = "admissionregistration.k8s.io"
_POLICIES: Final = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_BINDINGS: Final = {f"{each}Binding": each for each in _POLICIES}
_EVERYTHING: Final = "permission for all groups, versions and resources"


class ParamAccess:
    """Guards the writes of policies and of bindings."""

    def __init__(
        self, store: Store, *, catalog: Catalog, authorizer: Authorizer
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._authorizer = authorizer

    def guard(self, user: User, write: Write) -> Guard | None:
        """What has to be asked before an object is stored; None if nothing."""
        kind = write.kind
        if kind.group != GROUP or write.subresource or MASTERS in user.groups:
            return None
        if kind.kind in _POLICIES:
            return lambda obj, old: self._check(user, kind, "paramKind", obj, old)
        if kind.kind in _BINDINGS:
            return lambda obj, old: self._check(user, kind, "paramRef", obj, old)
        return None

    def _check(
        self, user: User, kind: Kind, field: str, obj: Plain, old: Plain | None
    ) -> None:
        spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
        given = spec.get(field)
        same = all(spec.get(each) == before.get(each) for each in (field, "policyName"))
        if not given or (old is not None and same):
            return
        if kind.validate(obj, old, subresource="", warnings=[]):
            return  # what is wrong with the object itself is told first
        if field == "paramKind":
            text = self._kind_problem(user, given)
        else:
            text = self._ref_problem(user, _BINDINGS[kind.kind], spec)
        if text:
            problem: FieldProblem = status.forbidden_value(f"spec.{field}", text)
            name = obj["metadata"].get("name", "")
            raise status.invalid_object(kind.named, name, [problem])

    def _resource(self, given: Plain) -> tuple[str, str] | None:
        """Group and resource of a ``paramKind``; None if there is no such kind."""
        found = self._catalog.by_kind(given["apiVersion"], given["kind"])
        return None if found is None else (found.group, found.plural)

    def _kind_problem(self, user: User, given: Plain) -> str:
        group = given["apiVersion"].rpartition("/")[0]
        group, resource = self._resource(given) or (group, "*")
        asked = Attributes(
            verb="get", group=group, resource=resource, namespace="*", name="*"
        )
        if self._authorizer.may(user, asked):
            return ""
        return (
            f'user {_shown(user)} must have "get" permission on all objects of the '
            f"referenced paramKind (kind={given['kind']}, "
            f"apiVersion={given['apiVersion']})"
        )

    def _ref_problem(self, user: User, policy_kind: str, spec: Plain) -> str:
        ref, name = spec["paramRef"], spec["policyName"]
        verb = "get" if ref.get("name") else "list"
        policy = self._policy(policy_kind, name)
        group, resource, why = "*", "*", ""
        given = ((policy or {}).get("spec") or {}).get("paramKind")
        if policy is None:
            why = f"unable to get policy {name}"
        elif given:
            group = given["apiVersion"].rpartition("/")[0]
            found = self._resource(given)
            resource = found[1] if found else "*"
            shown = f"{{{given['apiVersion']} {given['kind']}}}"
            why = "" if found else f"unable to resolve paramKind &{shown}"
        asked = Attributes(
            verb=verb,
            group=group,
            resource=resource,
            namespace=ref.get("namespace") or "",
            name=ref.get("name") or "",
        )
        if self._authorizer.may(user, asked):
            return ""
        if why:
            return (
                f"{why} to determine minimum required permissions and user "
                f'{_shown(user)} does not have "{verb}" {_EVERYTHING}'
            )
        return (
            f'user {_shown(user)} does not have "{verb}" permission on the object '
            "referenced by paramRef"
        )

    def _policy(self, kind: str, name: str) -> Plain | None:
        plural = f"{kind.lower()[:-1]}ies"
        row = self._store.get(f"{GROUP}/{plural}/{name}")
        if row is None:
            return None
        found: Plain = msgspec.json.decode(row.value)
        return found


def _shown(user: User) -> str:
    """A user as Go prints one."""
    extra = " ".join(
        f"{key}:[{' '.join(user.extra[key])}]" for key in sorted(user.extra)
    )
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
