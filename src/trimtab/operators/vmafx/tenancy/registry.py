"""The registry: the tenants that a gateway knows, and what belongs to whom.

A synchronous view that is read anew as a whole. It answers from what it read last for
as long as that is young enough; :meth:`Registry.is_stale` says when it is not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from trimtab.api.names import LABEL_LIMIT
from trimtab.client import ConfigError
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.shares import Share
from trimtab.operators.vmafx.tenancy.judging import (
    Entry,
    Verdict,
    is_id,
    judged,
    places_of,
)
from trimtab.operators.vmafx.tenancy.kinds import PREFIX, VmafxTenantSpec

REFRESH: Final = 30.0
"""Seconds after which the tenants are read again, changed or not."""
STALE: Final = 4
"""So many refreshes may fail before nobody is let in."""
PLACEHOLDER: Final = "{tenant}"

log = logging.getLogger(__name__)


class Registry:
    """Tenants by their ids, issuers and namespaces.

    ``home`` is the namespace of the gateway. With ``provider`` there is one issuer for
    all tenants, and every id that it names is one.

    Guarantees: a namespace has one tenant at most; a tenant that is wrong lets nobody
    in, and what is in its namespaces is nobody's.
    """

    def __init__(
        self,
        *,
        home: str,
        roots: Roots,
        refresh: float = REFRESH,
        provider: VmafxTenantSpec | None = None,
    ) -> None:
        self._home = home
        self._roots = roots
        self._limit = STALE * refresh
        self._provider = provider
        self._read: float | None = None
        self._verdicts: tuple[Verdict, ...] = ()
        self._tenants: dict[str, VmafxTenantSpec] = {}
        self._by_issuer: dict[str, list[VmafxTenantSpec]] = {}
        self._places: dict[str, str] = {}
        self._contested: frozenset[str] = frozenset()

    def load(
        self, entries: Iterable[Entry], *, now: float, strict: bool = False
    ) -> None:
        """Take all tenants as they are now; ``now`` is when they were read.

        Errors: with ``strict``, :class:`ConfigError` for any that is wrong; otherwise
        those are dropped, and told in the log.
        """
        verdicts = tuple(judged(entries))
        wrong = [each for each in verdicts if each.is_dropped or each.contested]
        if strict and wrong:
            first = wrong[0]
            raise ConfigError(
                f"{len(wrong)} of {len(verdicts)} tenants cannot be served, the first "
                f"is {first.name}: {first.message}"
            )
        for each in wrong:
            if each not in self._verdicts:
                log.warning("Tenant %s: %s", each.name, each.message)
        self._verdicts, self._read = verdicts, now
        self._index([each for each in verdicts if not each.is_dropped])
        claimed = {place for each in verdicts for place in places_of(each.spec)}
        self._contested = frozenset(claimed - self._places.keys())

    def _index(self, served: list[Verdict]) -> None:
        self._tenants = {each.spec.tenantId: each.spec for each in served}
        self._by_issuer = {}
        self._places = {}
        for each in served:
            spec = each.spec
            self._by_issuer.setdefault(spec.oidc.issuer, []).append(spec)
            for place in places_of(spec):
                if place not in each.contested:
                    self._places[place] = spec.tenantId

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What became of each tenant when they were last read."""
        return self._verdicts

    def is_stale(self, now: float) -> bool:
        """Whether what it knows is too old to let anybody in."""
        if self._provider is not None:
            return False
        return self._read is None or now - self._read > self._limit

    def candidates(self, issuer: str) -> list[VmafxTenantSpec]:
        """Those whom an issuer may vouch for; one without an id stands for any."""
        if self._provider is not None:
            same = issuer == self._provider.oidc.issuer
            return [self._provider] if same else []
        return self._by_issuer.get(issuer, [])

    def endpoints(self) -> set[str]:
        """Where keys are read from."""
        specs = [self._provider] if self._provider else self._tenants.values()
        return {spec.oidc.jwksEndpoint for spec in specs}

    def tenant_of(self, namespace: str) -> str:
        """The tenant that a namespace is bound to; empty if there is none."""
        if self._provider is None:
            return self._places.get(namespace, "")
        tenant = namespace.removeprefix(PREFIX)
        fits = len(namespace) <= LABEL_LIMIT and is_id(tenant)
        return tenant if tenant != namespace != self._home and fits else ""

    def place(self, tenant: str) -> str:
        """Where jobs of a tenant are put; empty if nothing is left of its places."""
        spec = self._tenants.get(tenant)
        wished = places_of(spec) if spec else (f"{PREFIX}{tenant}",)
        return next((each for each in wished if self.tenant_of(each) == tenant), "")

    def most_pending(self, tenant: str) -> int | None:
        """How many jobs of a tenant may wait; None is any number."""
        spec = self._tenants.get(tenant)
        return spec.quota.maxPending if spec else None

    def share_of(self, tenant: str) -> Share:
        """What a tenant is due of the nodes."""
        spec = self._tenants.get(tenant)
        if spec is None:
            return Share()
        return Share(weight=spec.quota.weight, running=spec.quota.maxRunning)

    def shares_nodes(self, tenant: str) -> bool:
        """Whether the nodes of a tenant work for all."""
        spec = self._tenants.get(tenant)
        return spec is not None and spec.sharesNodes

    def roots(self, tenant: str) -> Roots:
        """What a tenant may have scored: its own roots, else the gateway's."""
        spec = self._tenants.get(tenant)
        given = spec.scoring.roots if spec and spec.scoring else []
        return named_roots(Roots(tuple(given)) if given else self._roots, tenant)

    def roots_in(self, namespace: str) -> Roots:
        """What may be scored for jobs of a namespace.

        What is in a namespace that was taken from everybody has none: a tenant that
        is written down wrongly must not get more than it had.
        """
        if namespace in self._contested:
            return Roots()
        return self.roots(self.tenant_of(namespace))


def named_roots(roots: Roots, tenant: str) -> Roots:
    """Roots with the placeholder filled in; for nobody, those that need none."""
    kept = [each for each in roots.allowed if tenant or PLACEHOLDER not in each]
    return Roots(tuple(each.replace(PLACEHOLDER, tenant) for each in kept))
