"""Signers: requests for certificates that were approved get them.

The controllers of a real cluster do it; here it is done soon after the approval, by the
server's own authority, so that a certificate for a client really lets it in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trimtab.api.times import rfc3339
from trimtab.embedded import pem
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.certificate_requests import CLIENT, GROUP, REQUESTS
from trimtab.embedded.following import ObjectFollower
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.rbac.attributes import Attributes
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import User
from trimtab.embedded.store import Store
from trimtab.embedded.writes import Write

if TYPE_CHECKING:
    from cryptography import x509

MANAGER = "kube-controller-manager"
LONGEST = timedelta(days=365)
SHORTEST = timedelta(minutes=10)
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)
APPROVALS = {
    "selfnodeclient": "self kubelet client",
    "nodeclient": "kubelet client",
}

Issue = Callable[..., bytes]
"""Signs a request: ``issue(request, usages=…, lifetime=…, now=…)``, PEM."""


class Signers(ObjectFollower):
    """Which requests have to be decided or signed."""

    prefix = REQUESTS

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        authorizer: Authorizer,
        issue: Issue | None,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(store, catalog=catalog, registry=registry, now=now)
        self._authorizer = authorizer
        self._issue = issue

    def start(self) -> None:
        if self._issue is not None:  # a server without an authority signs nothing
            super().start()

    def _judge(self, kind: Kind, asked: Plain) -> None:
        state = asked.get("status") or {}
        said = {each["type"] for each in state.get("conditions") or ()}
        signer = asked["spec"]["signerName"]
        if state.get("certificate") or signer not in SIGNERS:
            return
        if not said & {"Approved", "Denied"}:
            self._approve(kind, asked)
        elif "Approved" in said and not said & {"Denied", "Failed"}:
            self._sign(kind, asked)

    def _approve(self, kind: Kind, asked: Plain) -> None:
        """Kubelets get theirs without a person, if they are allowed to."""
        spec = asked["spec"]
        if spec["signerName"] != KUBELET_CLIENT:
            return
        request = pem.signing_request(pem.decoded(spec["request"]))
        if _kubelet_problem(request, {*spec["usages"]}, serving=False):
            return
        own = spec.get("username") == _common_name(request)
        user = User(spec.get("username", ""), tuple(spec.get("groups") or ()))
        for part in ("selfnodeclient", "nodeclient") if own else ("nodeclient",):
            asks = Attributes(
                verb="create",
                group=GROUP,
                resource="certificatesigningrequests",
                subresource=part,
            )
            if self._authorizer.may(user, asks):
                what = f"Auto approving {APPROVALS[part]} certificate"
                said = f"{what} after SubjectAccessReview."
                self._say(kind, asked, "Approved", "AutoApproved", said)
                return

    def _sign(self, kind: Kind, asked: Plain) -> None:
        assert self._issue is not None, "it would not have been started"
        spec = asked["spec"]
        request = pem.signing_request(pem.decoded(spec["request"]))
        problem = _problem(request, spec)
        if problem:
            self._say(kind, asked, "Failed", "SignerValidationFailure", problem)
            return
        wanted = spec.get("expirationSeconds")
        lifetime = LONGEST if wanted is None else timedelta(seconds=wanted)
        lifetime = max(SHORTEST, min(LONGEST, lifetime))
        now = self._now()
        made = self._issue(request, usages=spec["usages"], lifetime=lifetime, now=now)
        encoded = base64.b64encode(made).decode()
        state = {**(asked.get("status") or {}), "certificate": encoded}
        self._put(kind, {**asked, "status": state}, "status")

    def _say(
        self, kind: Kind, asked: Plain, type: str, reason: str, message: str
    ) -> None:
        now = rfc3339(self._now())
        condition = {
            "type": type,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        state = asked.get("status") or {}
        told = [*(state.get("conditions") or ()), condition]
        part = "approval" if type == "Approved" else "status"
        self._put(kind, {**asked, "status": {**state, "conditions": told}}, part)

    def _put(self, kind: Kind, obj: Plain, subresource: str) -> None:
        name = metadata_of(obj)["name"]
        write = Write(kind=kind, name=name, subresource=subresource, manager=MANAGER)
        self._registry.update(write, obj)


def _problem(request: x509.CertificateSigningRequest, spec: Plain) -> str:
    """Why a signer does not sign what was approved; empty if it does."""
    usages: list[str] = spec["usages"]
    if spec["signerName"] != CLIENT:
        serving = spec["signerName"] == KUBELET_SERVING
        return _kubelet_problem(request, {*usages}, serving=serving)
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return ""


def _kubelet_problem(
    request: x509.CertificateSigningRequest, usages: Collection[str], *, serving: bool
) -> str:
    from cryptography.x509.oid import NameOID

    groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if [each.value for each in groups] != ["system:nodes"]:
        return "subject organization is not system:nodes"
    if problem := _names_problem(request, serving=serving):
        return problem
    auth = "server auth" if serving else "client auth"
    few = {"digital signature", auth}
    wanted = {*few, "key encipherment"}
    matching = usages in (few, wanted)
    named = _common_name(request).startswith("system:node:")
    # A server's usages are looked at before its name, a client's after it.
    checks = [
        (matching, f"usages did not match [{' '.join(sorted(wanted))}]"),
        (named, "subject common name does not begin with system:node:"),
    ]
    for good, text in checks if serving else reversed(checks):
        if not good:
            return text
    return ""


def _names_problem(request: x509.CertificateSigningRequest, *, serving: bool) -> str:
    from cryptography import x509

    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        kinds = {type(each) for each in found.value}
    except x509.ExtensionNotFound:
        kinds = set()
    if serving and not kinds & {x509.DNSName, x509.IPAddress}:
        return "DNS or IP subjectAltName is required"
    refused: list[tuple[Any, str]] = [
        (x509.RFC822Name, "Email"),
        (x509.UniformResourceIdentifier, "URI"),
    ]
    if not serving:
        refused[:0] = [(x509.DNSName, "DNS")]
        refused[2:2] = [(x509.IPAddress, "IP")]
    for kind, name in refused:
        if kind in kinds:
            return f"{name} subjectAltNames are not allowed"
    return ""


def _common_name(request: x509.CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""
