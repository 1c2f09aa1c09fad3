"""Bodies: policies, bindings and what they are asked about."""

from __future__ import annotations

from typing import Any, Final

JSON = dict[str, Any]

GROUP: Final = "admissionregistration.k8s.io/v1"
ROOT: Final = f"/apis/{GROUP}"
PLURALS: Final = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


def rule(*resources: str, **more: Any) -> JSON:
    """All writes of some resources, of the core group unless it says otherwise."""
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources or ("configmaps",)),
        **more,
    }


def _object(kind: str, name: str, spec: JSON) -> JSON:
    metadata = {"name": name}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def check(expression: str, **more: Any) -> JSON:
    return {"expression": expression, **more}


def validating(name: str, *checks: JSON, **spec: Any) -> JSON:
    """A validating policy."""
    given = {"matchConstraints": {"resourceRules": [rule()]}, **spec}
    if checks:
        given["validations"] = list(checks)
    return _object("ValidatingAdmissionPolicy", name, given)


def validating_binding(name: str, **spec: Any) -> JSON:
    given = {"policyName": name, "validationActions": ["Deny"], **spec}
    return _object("ValidatingAdmissionPolicyBinding", name, given)


def apply(expression: str) -> JSON:
    return {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": expression},
    }


def patch(expression: str) -> JSON:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def mutating(name: str, *changes: JSON, **spec: Any) -> JSON:
    """A mutating policy."""
    given = {
        "matchConstraints": {"resourceRules": [rule()]},
        "mutations": list(changes),
        "reinvocationPolicy": "Never",
        **spec,
    }
    return _object("MutatingAdmissionPolicy", name, given)


def mutating_binding(name: str, **spec: Any) -> JSON:
    return _object("MutatingAdmissionPolicyBinding", name, {"policyName": name, **spec})


def config(name: str, data: JSON | None = None, **metadata: Any) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def path_of(obj: JSON) -> str:
    """Where a policy or a binding is created."""
    return f"{ROOT}/{PLURALS[obj['kind']]}"
