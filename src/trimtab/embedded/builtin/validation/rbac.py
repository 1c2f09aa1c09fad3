"""Roles and bindings: who may do what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.internal import internal
from trimtab.embedded.builtin.validation import meta, selection, texts
from trimtab.embedded.builtin.validation.problems import Found

JSON = Mapping[str, Any]

GROUP: Final = "rbac.authorization.k8s.io"


def _metadata(found: Found, obj: JSON, *, namespaced: bool) -> None:
    name = texts.path_segment
    meta.created(found, obj["metadata"], namespaced=namespaced, name=name)


def _rules(found: Found, obj: JSON, *, namespaced: bool) -> None:
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule["verbs"]:
            detail = "verbs must contain at least one value"
            found.required(f"{path}.verbs", detail)
        paths = rule.get("nonResourceURLs")
        if paths:
            _paths(found, rule, paths, f"{path}.nonResourceURLs", namespaced=namespaced)
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            found.required(f"{path}.apiGroups", detail)
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            found.required(f"{path}.resources", detail)


def _paths(
    found: Found, rule: JSON, paths: list[str], path: str, *, namespaced: bool
) -> None:
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        found.invalid(path, paths, detail)
    if any(rule.get(each) for each in ("apiGroups", "resources", "resourceNames")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        found.invalid(path, paths, detail)


def create_role(found: Found, obj: JSON) -> None:
    _metadata(found, obj, namespaced=True)
    _rules(found, obj, namespaced=True)


def update_role(found: Found, obj: JSON, old: JSON) -> None:
    create_role(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])


def create_cluster_role(found: Found, obj: JSON) -> None:
    _metadata(found, obj, namespaced=False)
    _rules(found, obj, namespaced=False)
    if "aggregationRule" not in obj:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = obj["aggregationRule"].get("clusterRoleSelectors") or ()
    if not selectors:
        detail = (
            "at least one clusterRoleSelector required if aggregationRule is non-nil"
        )
        found.required(path, detail)
    for index, selector in enumerate(selectors):
        meta.selector(found, selector, f"{path}[{index}]")
        if not selection.is_sound(selector):
            found.invalid(f"{path}[{index}]", None, "invalid label selector.")


def update_cluster_role(found: Found, obj: JSON, old: JSON) -> None:
    create_cluster_role(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])


def _binding(found: Found, obj: JSON, *, namespaced: bool) -> None:
    _metadata(found, obj, namespaced=namespaced)
    role = obj["roleRef"]
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    found.one_of("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,))
    found.one_of("roleRef.kind", role["kind"], kinds)
    if not role["name"]:
        found.required("roleRef.name")
    else:
        found.each("roleRef.name", role["name"], texts.path_segment(role["name"]))
    for index, subject in enumerate(obj.get("subjects") or ()):
        _subject(found, subject, f"subjects[{index}]", namespaced=namespaced)


def _subject(found: Found, subject: JSON, path: str, *, namespaced: bool) -> None:
    name, kind, group = subject["name"], subject["kind"], subject.get("apiGroup", "")
    if not name:
        found.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            found.each(f"{path}.name", name, texts.subdomain(name))
        if group:
            found.unsupported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            found.required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        found.one_of(f"{path}.apiGroup", group, (GROUP,))
    else:
        found.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def create_role_binding(found: Found, obj: JSON) -> None:
    _binding(found, obj, namespaced=True)


def create_cluster_role_binding(found: Found, obj: JSON) -> None:
    _binding(found, obj, namespaced=False)


def _same_role(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    if obj["roleRef"] != old["roleRef"]:
        shown = internal("rbac.RoleRef", obj["roleRef"])
        found.invalid("roleRef", shown, "cannot change roleRef")


def update_role_binding(found: Found, obj: JSON, old: JSON) -> None:
    create_role_binding(found, obj)
    _same_role(found, obj, old)


def update_cluster_role_binding(found: Found, obj: JSON, old: JSON) -> None:
    create_cluster_role_binding(found, obj)
    _same_role(found, obj, old)
