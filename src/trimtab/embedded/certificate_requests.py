"""Certificate requests: who asks is written down, and who decides must be allowed to.

What three admission plugins and the registry of a real server do to a request for a
certificate, before its rules are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from trimtab.api.times import rfc3339
from trimtab.embedded import pem, status
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.rbac.attributes import Attributes
from trimtab.embedded.rbac.authorizer import MASTERS, Authorizer
from trimtab.embedded.rbac.escalation import Guard
from trimtab.embedded.requests import User

GROUP = "certificates.k8s.io"
REQUESTS = f"{GROUP}/certificatesigningrequests/"
CLIENT = "kubernetes.io/kube-apiserver-client"
VERBS = {"approval": "approve", "status": "sign"}


class CertificateRequests:
    """Guards the writes of requests for certificates."""

    def __init__(self, authorizer: Authorizer, *, now: Callable[[], datetime]) -> None:
        self._authorizer = authorizer
        self._now = now

    def guard(self, kind: Kind, user: User, subresource: str) -> Guard | None:
        """What is done before a request is stored; None for every other kind."""
        if kind.prefix != REQUESTS:
            return None
        return partial(self._check, kind, user, subresource)

    def _check(
        self,
        kind: Kind,
        user: User,
        subresource: str,
        obj: Plain,
        old: Plain | None,
    ) -> None:
        if old is None:
            _sign(obj, user)
            _check_subject(kind, obj)
        elif subresource:
            self._date(obj, old)
            if subresource == "approval" or _differs(obj, old):
                self._check_signer(kind, user, VERBS[subresource], old)

    def _check_signer(self, kind: Kind, user: User, verb: str, old: Plain) -> None:
        """That somebody may decide for this signer, or for all of its domain."""
        name = old["spec"]["signerName"]
        domain = name.partition("/")[0]
        for signer in (name, f"{domain}/*"):
            asked = Attributes(verb=verb, group=GROUP, resource="signers", name=signer)
            if self._authorizer.may(user, asked):
                return
        raise status.forbidden(
            kind.about,
            metadata_of(old)["name"],
            f"user not permitted to {verb} requests with signerName "
            f"{status.quoted(name)}",
        )

    def _date(self, obj: Plain, old: Plain) -> None:
        """Conditions say since when they are what they are."""
        now = rfc3339(self._now())
        since = {
            (each["type"], each["status"]): each.get("lastTransitionTime")
            for each in reversed(_conditions(old))
        }
        for each in _conditions(obj):
            if not each.get("lastUpdateTime"):
                each["lastUpdateTime"] = now
            if not each.get("lastTransitionTime"):
                known = since.get((each.get("type", ""), each.get("status", "")))
                each["lastTransitionTime"] = known or now


def _conditions(obj: Plain) -> list[Plain]:
    return (obj.get("status") or {}).get("conditions") or []


def _differs(obj: Plain, old: Plain) -> bool:
    new, before = obj.get("status") or {}, old.get("status") or {}
    return any(
        new.get(field) != before.get(field) for field in ("certificate", "conditions")
    )


def _sign(obj: Plain, user: User) -> None:
    """Who asks is not a matter of what they say."""
    told = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    spec = obj["spec"]
    for field, value in told.items():
        spec.pop(field, None)
        if value:
            spec[field] = value


def _check_subject(kind: Kind, obj: Plain) -> None:
    """Nobody becomes one of those who may do everything by a certificate from here."""
    from cryptography.x509.oid import NameOID

    spec = obj["spec"]
    if spec.get("signerName") != CLIENT:
        return
    try:
        request = pem.signing_request(pem.decoded(spec.get("request") or ""))
    except ValueError:
        return  # its rules will say so
    groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(each.value == MASTERS for each in groups):
        raise status.forbidden(
            kind.about,
            metadata_of(obj).get("name") or "",
            f"use of {CLIENT} signer with {MASTERS} group is not allowed",
        )
