"""Tables of access: bindings, certificates, webhooks and admission policies."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from trimtab.embedded.builtin.printers.cells import (
    NONE,
    UNSET,
    Plain,
    Printer,
    Row,
    created,
    part,
    printer,
)
from trimtab.embedded.tables import age


def _binding(obj: Plain, now: datetime) -> Row:
    role, subjects = part(obj, "roleRef"), obj.get("subjects") or []
    return [
        obj["metadata"]["name"],
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        created(obj, now),
        _names(subjects, "User"),
        _names(subjects, "Group"),
        ", ".join(
            f"{each.get('namespace') or ''}/{each['name']}"
            for each in subjects
            if each["kind"] == "ServiceAccount"
        ),
    ]


def _names(subjects: list[Plain], kind: str) -> str:
    return ", ".join(each["name"] for each in subjects if each["kind"] == kind)


def _request(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        created(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username") or "",
        NONE if seconds is None else age(seconds),
        _request_state(part(obj, "status")),
    ]


def _request_state(status: Plain) -> str:
    found = {each["type"] for each in status.get("conditions") or ()}
    state = "Approved" if "Approved" in found else "Pending"
    parts = ["Denied" if "Denied" in found else state]
    parts += ["Failed"] if "Failed" in found else []
    parts += ["Issued"] if status.get("certificate") else []
    return ",".join(parts)


def _trust(obj: Plain, now: datetime) -> Row:
    return [obj["metadata"]["name"], part(obj, "spec").get("signerName") or NONE]


def _webhooks(obj: Plain, now: datetime) -> Row:
    hooks = obj.get("webhooks") or ()
    return [obj["metadata"]["name"], len(hooks), created(obj, now)]


def _validating_policy(obj: Plain, now: datetime) -> Row:
    return _policy(obj, now, rules="validations")


def _mutating_policy(obj: Plain, now: datetime) -> Row:
    return _policy(obj, now, rules="mutations")


def _policy(obj: Plain, now: datetime, *, rules: str) -> Row:
    spec = part(obj, "spec")
    kind = spec.get("paramKind")
    shown = UNSET
    if kind is not None:
        shown = f"{kind.get('apiVersion') or ''}/{kind.get('kind') or ''}"
    count = len(spec.get(rules) or ())
    return [obj["metadata"]["name"], count, shown, created(obj, now)]


def _policy_binding(obj: Plain, now: datetime) -> Row:
    spec = part(obj, "spec")
    parameters = _parameters(part(spec, "paramRef"))
    policy = spec.get("policyName") or ""
    return [obj["metadata"]["name"], policy, parameters, created(obj, now)]


def _parameters(reference: Plain) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else _go_selector(selector)


def _go_selector(given: Plain) -> str:
    """A label selector as Go prints the struct."""
    found = sorted((given.get("matchLabels") or {}).items())
    labels = "".join(f"{key}: {value}," for key, value in found)
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in given.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


_OF_BINDINGS: Final = "Name/name, Role, Age, Users*, Groups*, ServiceAccounts*"
_OF_WEBHOOKS: Final = "Name/name, Webhooks:integer, Age"
_OF_POLICY_BINDINGS: Final = "Name/name, PolicyName, ParamRef, Age"
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    (_RBAC, "RoleBinding"): printer(_OF_BINDINGS, _binding),
    (_RBAC, "ClusterRoleBinding"): printer(_OF_BINDINGS, _binding),
    ("certificates.k8s.io", "CertificateSigningRequest"): printer(
        "Name/name, Age, SignerName, Requestor, RequestedDuration, Condition", _request
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): printer(
        "Name/name, SignerName", _trust
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): printer(_OF_WEBHOOKS, _webhooks),
    (_ADMISSION, "ValidatingWebhookConfiguration"): printer(_OF_WEBHOOKS, _webhooks),
    (_ADMISSION, "ValidatingAdmissionPolicy"): printer(
        "Name/name, Validations:integer, ParamKind, Age", _validating_policy
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): printer(
        "Name/name, Mutations:integer, ParamKind, Age", _mutating_policy
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): printer(
        _OF_POLICY_BINDINGS, _policy_binding
    ),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): printer(
        _OF_POLICY_BINDINGS, _policy_binding
    ),
}
