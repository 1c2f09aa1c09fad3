"""Identities: whom a token stands for, by the tenants' own issuers and keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from trimtab.client import TrimtabError
from trimtab.operators.vmafx import roles
from trimtab.operators.vmafx.tenancy import tokens
from trimtab.operators.vmafx.tenancy.judging import is_id
from trimtab.operators.vmafx.tenancy.keys import Keys, NoKeys
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenantSpec
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.tenancy.tokens import Claimed, Refused
from trimtab.runtime.access import Unauthenticated

UNKNOWN: Final = (
    "The token is not accepted: get a new one. Who runs this service can say why."
)
SUSPENDED: Final = "The caller is not served at present: ask who runs this service."
UNSURE: Final = "Whose token this is cannot be told at present: try again later."

log = logging.getLogger(__name__)


class Unavailable(TrimtabError):
    """It cannot be told at present; later it may."""


class Identity(msgspec.Struct, frozen=True):
    """What a token stands for."""

    tenant: str
    roles: frozenset[str] = frozenset()
    namespace: str = ""
    """Where its jobs are put; empty if nothing is left of its namespaces."""


class _Suspended(Refused):
    """The token is good, and its tenant is not served."""


class Doorkeeper:
    """Says whose token it is.

    Flow: the issuer that a token names selects tenants; of those, each whose id the
    token claims verifies it with its own keys, audience and claims.

    Guarantees: exactly one tenant matches, or nobody is let in. What the caller is told
    names no tenant and no reason; the log does.

    Errors: ``Unauthenticated``; ``Denied`` for a tenant that is suspended;
    :class:`Unavailable` when the tenants or their keys are not known for certain.
    """

    def __init__(
        self, registry: Registry, keys: Keys, *, now: Callable[[], datetime]
    ) -> None:
        self.registry = registry
        self._keys = keys
        self._now = now

    async def identity(self, token: str) -> Identity:
        """Whom a token stands for, for a caller."""
        try:
            return await self.resolved(token)
        except _Suspended as refused:
            log.info("A call was refused: %s", refused)
            raise roles.Denied(SUSPENDED) from None
        except Refused as refused:
            log.info("A token was refused: %s", refused)
            raise Unauthenticated(UNKNOWN) from None
        except NoKeys as error:
            log.warning("A token cannot be judged: %s", error)
            raise Unavailable(UNSURE) from None

    async def resolved(self, token: str) -> Identity:
        """The same, for who runs the platform.

        Errors: ``Refused`` and ``NoKeys``, which say why.
        """
        if self.registry.is_stale(asyncio.get_running_loop().time()):
            raise NoKeys("The tenants could not be read for too long.")
        said = tokens.claimed(token)
        matches: list[tuple[VmafxTenantSpec, str, Any]] = []
        why = ""
        for spec, tenant in self._claimed_by(said):
            try:
                claims = await self._verified(token, said, spec)
            except Refused as refused:
                why = f"{refused} (tenant {tenant})"
            else:
                matches.append((spec, tenant, claims))
        if not matches:
            raise Refused(why)
        if len(matches) > 1:
            names = ", ".join(sorted(tenant for _, tenant, _ in matches))
            raise Refused(f"The token matches {names}: it must match one tenant.")
        return self._entering(*matches[0])

    def _claimed_by(self, said: Claimed) -> list[tuple[VmafxTenantSpec, str]]:
        """The tenants that a token may be of, by what it says itself."""
        candidates = self.registry.candidates(said.issuer)
        if not candidates:
            raise Refused(f"No tenant has the issuer {tokens.shown(said.issuer)}.")
        found = []
        for spec in candidates:
            tenant = said.claims.get(spec.oidc.tenantClaim)
            if isinstance(tenant, str) and _is_of(tenant, spec):
                found.append((spec, tenant))
        if not found:
            raise Refused(
                f"The token claims to be of no tenant of {tokens.shown(said.issuer)}."
            )
        return found

    async def _verified(self, token: str, said: Claimed, spec: VmafxTenantSpec) -> Any:
        keys = await self._keys.get(spec.oidc.jwksEndpoint, id=said.key)
        claims = tokens.verified(token, said, keys)
        tokens.check(claims, spec.oidc, now=self._now())
        return claims

    def _entering(self, spec: VmafxTenantSpec, tenant: str, claims: Any) -> Identity:
        if not spec.enabled:
            raise _Suspended(f"Tenant {tenant} is suspended.")
        place = self.registry.place(tenant)
        return Identity(tenant, tokens.roles_of(claims, spec), place)


def _is_of(tenant: str, spec: VmafxTenantSpec) -> bool:
    """Whether a tenant is this one; a provider has every one that can be."""
    return tenant == spec.tenantId if spec.tenantId else is_id(tenant)
