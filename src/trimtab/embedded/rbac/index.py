"""The index: roles and bindings as they are in the store, by whom they are for.

It follows the store's changes, so that finding what applies to somebody costs nothing
for the roles and bindings of others.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.embedded.gotext import quoted
from trimtab.embedded.kinds import Plain
from trimtab.embedded.rbac.rules import Rule, rules_of
from trimtab.embedded.requests import User
from trimtab.embedded.store import Change, Store

GROUP = "rbac.authorization.k8s.io"
ROLES = f"{GROUP}/roles/"
CLUSTER_ROLES = f"{GROUP}/clusterroles/"
BINDINGS = f"{GROUP}/rolebindings/"
CLUSTER_BINDINGS = f"{GROUP}/clusterrolebindings/"
SERVICE_ACCOUNT = "system:serviceaccount:"

Subject = tuple[str, str]
"""A kind of subject, ``User`` or ``Group``, and its name."""


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a role, and where: in one namespace, or everywhere if it names none."""

    name: str
    namespace: str = ""
    role_kind: str
    role: str
    role_key: str
    """Where the role is stored."""
    subjects: tuple[tuple[Subject, str], ...]
    """Each with how people call it."""

    def reason(self, user: User) -> str:
        """How this binding is named as the one that allowed something."""
        groups = user.groups
        called = next(
            called
            for (kind, name), called in self.subjects
            if (name in groups if kind == "Group" else name == user.name)
        )
        of = f"of {self.role_kind} {quoted(self.role)} to {called}"
        if self.namespace:
            named = quoted(f"{self.name}/{self.namespace}")
            return f"RBAC: allowed by RoleBinding {named} {of}"
        return f"RBAC: allowed by ClusterRoleBinding {quoted(self.name)} {of}"


class Index:
    """All roles and bindings of a store."""

    def __init__(self, store: Store) -> None:
        self._rules: dict[str, tuple[Rule, ...]] = {}
        self._bindings: dict[str, Binding] = {}
        # By namespace and subject, then by key, in the order in which they came.
        self._held: dict[tuple[str, Subject], dict[str, Binding]] = {}
        for prefix in (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS):
            for row in store.scan(prefix):
                self._put(row.key, row.value)
        store.subscribe(self._seen)

    def rules(self, binding: Binding) -> tuple[Rule, ...] | None:
        """The rules of a binding's role; None if there is no such role."""
        return self._rules.get(binding.role_key)

    def role(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """The rules of a role; None if there is none."""
        return self._rules.get(_role_key(kind, namespace, name))

    def bindings(self, user: User, namespace: str) -> Iterator[Binding]:
        """Those that apply to a user: everywhere, then in a namespace if one is named.

        One that applies to the user in several ways comes several times.
        """
        subjects = [("User", user.name), *[("Group", each) for each in user.groups]]
        for place in ("", namespace) if namespace else ("",):
            for subject in subjects:
                found = self._held.get((place, subject))
                if found is not None:
                    yield from found.values()

    def _seen(self, change: Change) -> None:
        if not change.key.startswith(GROUP):
            return
        if change.value is not None:
            self._put(change.key, change.value)
        elif change.key in self._bindings:
            self._drop(change.key)
        else:
            self._rules.pop(change.key, None)

    def _put(self, key: str, value: bytes) -> None:
        obj = msgspec.json.decode(value)
        if key.startswith((ROLES, CLUSTER_ROLES)):
            self._rules[key] = rules_of(obj.get("rules"))
            return
        self._drop(key)
        binding = _binding(obj)
        self._bindings[key] = binding
        for subject, _ in binding.subjects:
            self._held.setdefault((binding.namespace, subject), {})[key] = binding

    def _drop(self, key: str) -> None:
        binding = self._bindings.pop(key, None)
        for subject, _ in binding.subjects if binding else ():
            assert binding is not None, "only a binding has subjects"
            held = self._held.get((binding.namespace, subject), {})
            held.pop(key, None)
            if not held:
                self._held.pop((binding.namespace, subject), None)


def _binding(obj: Plain) -> Binding:
    namespace = obj["metadata"].get("namespace", "")
    found = (_subject(each, namespace) for each in obj.get("subjects") or ())
    return Binding(
        name=obj["metadata"]["name"],
        namespace=namespace,
        role_kind=obj["roleRef"]["kind"],
        role=obj["roleRef"]["name"],
        role_key=_role_key(obj["roleRef"]["kind"], namespace, obj["roleRef"]["name"]),
        subjects=tuple(each for each in found if each is not None),
    )


def _role_key(kind: str, namespace: str, name: str) -> str:
    return f"{ROLES}{namespace}/{name}" if kind == "Role" else CLUSTER_ROLES + name


def _subject(subject: Plain, namespace: str) -> tuple[Subject, str] | None:
    """Whom a binding names; None if that can be nobody."""
    kind, name = subject["kind"], subject["name"]
    if kind != "ServiceAccount":
        return (kind, name), f"{kind} {quoted(name)}"
    within = subject.get("namespace") or namespace
    if not within:
        return None
    called = quoted(f"{name}/{within}")
    return ("User", f"{SERVICE_ACCOUNT}{within}:{name}"), f"{kind} {called}"
