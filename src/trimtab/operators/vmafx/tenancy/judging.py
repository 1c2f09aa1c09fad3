"""Which tenants can be served beside each other, and what is wrong with the others.

Pure: the gateway decides by it whom to let in, the operator what to say of each object,
and the command line what to print, so that the three never disagree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from trimtab.api import fit
from trimtab.operators.vmafx.sources import is_remote
from trimtab.operators.vmafx.tenancy.kinds import ID, PREFIX, VmafxTenantSpec

SHORTEST: Final = 2
LONGEST: Final = 64
_ID: Final = re.compile(ID)

Reason = Literal[
    "Served", "Suspended", "NotValid", "IdTakenTwice", "NamespaceTakenTwice"
]


class Entry(NamedTuple):
    """A tenant as it was written down: the name of its object, and its spec."""

    name: str
    spec: VmafxTenantSpec


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of a tenant, and one sentence for who runs the platform."""

    name: str
    spec: VmafxTenantSpec
    reason: Reason
    message: str
    contested: frozenset[str] = frozenset()
    """Those of its namespaces that another tenant claims as well: nobody has them."""

    @property
    def is_dropped(self) -> bool:
        """Whether nobody is let in for it."""
        return self.reason in ("NotValid", "IdTakenTwice")

    @property
    def is_ready(self) -> bool:
        """Whether all of it is as it was wished."""
        return self.reason == "Served"


def judged(entries: Iterable[Entry]) -> list[Verdict]:
    """What becomes of each tenant of one registry.

    Guarantees: of two with one id neither is served, and of two with one namespace
    neither has it: nobody can take over what is another's by naming it too.
    """
    found = list(entries)
    ids = Counter(spec.tenantId for _, spec in found)
    places = Counter(place for _, spec in found for place in set(places_of(spec)))
    return [_judged(entry, ids, places) for entry in found]


def _judged(entry: Entry, ids: Counter[str], places: Counter[str]) -> Verdict:
    name, spec = entry
    twice = frozenset(each for each in places_of(spec) if places[each] > 1)
    reason: Reason = "Served"
    message = "Its tokens are accepted."
    if problem := _problem(spec):
        reason, message = "NotValid", problem
    elif ids[spec.tenantId] > 1:
        reason = "IdTakenTwice"
        message = f"Another tenant has the id {spec.tenantId}, too: neither is served."
    elif twice:
        reason = "NamespaceTakenTwice"
        message = (
            f"Another tenant claims {', '.join(sorted(twice))}, too: what is there is "
            "neither's."
        )
    elif not spec.enabled:
        reason = "Suspended"
        message = "It is not enabled: every call of its users is refused."
    return Verdict(name, spec, reason, message, twice)


def _problem(spec: VmafxTenantSpec) -> str:
    """What no rule of the CRD says, or says only where there is a CRD."""
    id, oidc, quota = spec.tenantId, spec.oidc, spec.quota
    if not is_id(id):
        return (
            f"spec.tenantId: an id has {SHORTEST} to {LONGEST} small letters, digits "
            "and hyphens between them."
        )
    if not oidc.issuer or not oidc.tenantClaim or not oidc.rolesClaim:
        return "spec.oidc: an issuer and the names of its claims cannot be empty."
    if problem := endpoint_problem(oidc.jwksEndpoint):
        return f"spec.oidc.jwksEndpoint: {problem}"
    limits = (quota.maxRunning, quota.maxPending, quota.weight - 1)
    if any(limit is not None and limit < 0 for limit in limits):
        return "spec.quota: a limit is not below zero, and a weight at least one."
    for root in spec.scoring.roots if spec.scoring else ():
        if not is_remote(root) and not root.startswith("/"):
            return f"spec.scoring.roots: {root} is neither a whole path nor an address."
    return ""


def places_of(spec: VmafxTenantSpec) -> tuple[str, ...]:
    """The namespaces that a tenant claims."""
    return tuple(spec.namespaces) or (fit(f"{PREFIX}{spec.tenantId}"),)


def is_id(text: str) -> bool:
    """Whether a text can be the id of a tenant."""
    return SHORTEST <= len(text) <= LONGEST and _ID.fullmatch(text) is not None


def endpoint_problem(url: str) -> str:
    """Why no keys are read from an address; empty if they are."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"{url} is no address."
    if parts.scheme.lower() != "https":
        return f"keys are read by https only, not from {url}."
    if not host or parts.username or parts.password:
        return "an address of keys has a host, and no password."
    return ""
