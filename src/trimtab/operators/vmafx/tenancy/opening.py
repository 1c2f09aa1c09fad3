"""Opening: from a gateway's settings of tenants to the parts that serve them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import msgspec

from trimtab.cache import Cache, Scope
from trimtab.client import Client, ConfigError
from trimtab.client.calling import Caller
from trimtab.operators.vmafx.tenancy import reading
from trimtab.operators.vmafx.tenancy.identities import Doorkeeper
from trimtab.operators.vmafx.tenancy.judging import endpoint_problem
from trimtab.operators.vmafx.tenancy.keys import Keys
from trimtab.operators.vmafx.tenancy.kinds import Oidc, Rbac, Role, VmafxTenant
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenantSpec as Spec
from trimtab.operators.vmafx.tenancy.reading import Read, Reader
from trimtab.operators.vmafx.tenancy.registry import REFRESH, Registry


class Tenancy(msgspec.Struct, frozen=True, kw_only=True):
    """Where tenants are from: objects, unless a file or one provider is named."""

    file: Path | None = None
    provider: Spec | None = None
    # PEM of who vouches for the servers of issuers; None is whom the system trusts.
    authority: bytes | None = None
    refresh: float = REFRESH

    def __post_init__(self) -> None:
        if self.file is not None and self.provider is not None:
            raise ConfigError(
                "Tenants are from a file or of one provider: name one of both."
            )


def provider(
    *, issuer: str, keys: str, audience: str = "", tenant: str = "", roles: str = ""
) -> Spec:
    """One issuer that vouches for the users of all tenants.

    Errors: :class:`ConfigError` for keys that are not read by https.
    """
    if not issuer or not keys:
        raise ConfigError("A provider has an issuer and an address of its keys.")
    if problem := endpoint_problem(keys):
        raise ConfigError(f"The provider has no keys: {problem}")
    oidc = Oidc(
        issuer=issuer,
        jwksEndpoint=keys,
        audience=audience,
        tenantClaim=tenant or "tid",
        rolesClaim=roles or "vmafx_roles",
    )
    return Spec(tenantId="", oidc=oidc, rbac=Rbac(allowedRoles=get_args(Role)))


class Open:
    """The tenants of one gateway, while it serves.

    Flow: ``start`` once, before anybody is let in; the coroutines of ``work`` in a
    task group from then on.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        tenancy: Tenancy,
        client: Client,
        cache: Cache,
        namespace: str,
        now: Callable[[], datetime],
        changed: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._calls = Caller(idle=64)
        self._keys = Keys(self._calls, ca=tenancy.authority)
        self.doorkeeper = Doorkeeper(registry, self._keys, now=now)
        self._changed = changed
        self._reader: Reader | None = None
        self._first: Read | None = None
        if tenancy.provider is not None:
            return
        read = reading.from_file(tenancy.file) if tenancy.file else None
        informer = None
        if read is None:
            informer = cache.informer(VmafxTenant, Scope(namespaces=(namespace,)))
            self._first = reading.from_server(client, namespace)
            read = reading.from_objects(informer)
        self._reader = Reader(
            registry, read, refresh=tenancy.refresh, changed=self._others
        )
        if informer is not None:
            informer.subscribe(self._reader.stir)

    def _others(self) -> None:
        self._keys.keep(self._registry.endpoints())
        self._changed()

    async def start(self) -> None:
        """Read the tenants. Errors: :class:`ConfigError` for any that is wrong."""
        if self._reader is not None:
            await self._reader.start(self._first)

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What has to run."""
        reader = self._reader
        return [self._keys.run(), *([reader.run()] if reader else [])]

    async def close(self) -> None:
        """End the connections to issuers."""
        await self._calls.close()
