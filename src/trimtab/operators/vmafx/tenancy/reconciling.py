"""What the operator says of tenants: whether each is served, and if not, why.

Those of one namespace are judged together, as the gateway there does: a tenant may be
wrong because of another, and is looked at again now and then.
"""

from __future__ import annotations

from typing import Final

import trimtab
from trimtab.cache import Index, Scope
from trimtab.operators.vmafx.tenancy.judging import Entry, judged, places_of
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant, VmafxTenantStatus
from trimtab.runtime import Context, Result


def _claims(tenant: VmafxTenant) -> tuple[str, ...]:
    """What a tenant claims that only one may have."""
    home, spec = tenant.metadata.namespace, tenant.spec
    places = (f"{home}/place/{each}" for each in places_of(spec))
    return (f"{home}/id/{spec.tenantId}", *places)


CLAIMS: Final = Index("claims", _claims)


AGAIN: Final = 10.0
"""Seconds after which one is judged again: another may have changed meanwhile."""


def declare(app: trimtab.Operator, *, scope: Scope) -> None:
    """Have an operator say of the tenants of a scope whether they are served."""

    @app.reconciles(VmafxTenant, scope=scope, on_change=("spec",), indexes=(CLAIMS,))
    async def tenant(seen: VmafxTenant, ctx: Context) -> Result:
        return _told(seen, ctx)


def _told(seen: VmafxTenant, ctx: Context) -> Result:
    others = {
        each.metadata.name: Entry(each.metadata.name, each.spec)
        for value in _claims(seen)
        for each in ctx.select(VmafxTenant, CLAIMS.name, value)
        if each.metadata.deletionTimestamp is None
    }
    others.pop(seen.metadata.name, None)
    verdict = judged([Entry(seen.metadata.name, seen.spec), *others.values()])[0]
    before = seen.status.conditions.get("Ready")
    if before is not None and before.reason != verdict.reason:
        ctx.event(
            verdict.reason,
            verdict.message,
            type="Normal" if verdict.is_ready else "Warning",
        )
    ctx.condition(
        "Ready", verdict.is_ready, reason=verdict.reason, message=verdict.message
    )
    status = VmafxTenantStatus(observedGeneration=seen.metadata.generation)
    return ctx.done(status=status, after=AGAIN)
