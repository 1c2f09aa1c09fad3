"""Permissions: roles, which list what may be done, and bindings, which say by whom.

``rules`` is None where the server says null: a role without rules grants nothing, and
one with an ``aggregationRule`` has its rules filled in by a controller.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.api.objects import Object
from trimtab.api.resource import Resource
from trimtab.api.selectors import LabelSelector

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Object):
    """Verbs on resources of groups (the core group is ""), or on bare URLs."""

    verbs: Sequence[str] = ()
    apiGroups: Sequence[str] = ()
    resources: Sequence[str] = ()
    resourceNames: Sequence[str] = ()
    nonResourceURLs: Sequence[str] = ()


class Role(Resource, group=GROUP, version="v1", builtin=True):
    """What may be done within one namespace."""

    rules: Sequence[PolicyRule] | None = None


class AggregationRule(Object):
    """Whose rules a cluster role takes over: those of the roles with these labels."""

    clusterRoleSelectors: Sequence[LabelSelector] = ()


class ClusterRole(Resource, group=GROUP, version="v1", builtin=True, namespaced=False):
    """What may be done in the whole cluster, or in each namespace that binds it."""

    rules: Sequence[PolicyRule] | None = None
    aggregationRule: AggregationRule | None = None


class Subject(Object):
    """Who: a ServiceAccount with its namespace, a User or a Group."""

    kind: str
    name: str
    namespace: str = ""
    apiGroup: str = ""


class RoleRef(Object):
    """Which role a binding grants; it cannot be changed later."""

    kind: str
    name: str
    apiGroup: str = GROUP


class RoleBinding(Resource, group=GROUP, version="v1", builtin=True):
    """Grants a role, or a cluster role, within one namespace."""

    roleRef: RoleRef
    subjects: Sequence[Subject] = ()


class ClusterRoleBinding(
    Resource, group=GROUP, version="v1", builtin=True, namespaced=False
):
    """Grants a cluster role everywhere."""

    roleRef: RoleRef
    subjects: Sequence[Subject] = ()
