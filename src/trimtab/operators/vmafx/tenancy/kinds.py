"""The kind of tenants: who vouches for their users, and what those may do.

Whoever may write these objects decides who is let in. A gateway therefore reads those
of its own namespace only; the operator says of each whether it is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from trimtab.api import Column, Conditions, Object, Resource, Spec, Status, field
from trimtab.operators.vmafx.kinds import AGE, GROUP, VERSION

Role = Literal["vmafx:reader", "vmafx:writer", "vmafx:admin", "vmafx:node"]

PREFIX: Final = "vmafx-"
"""What the namespace of a tenant begins with that names none: ``vmafx-acme``."""
ID: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_MOST: Final = 10**6


class Oidc(Object):
    """Who vouches for the users of a tenant."""

    issuer: str = field(format="uri", doc="The iss of its tokens, to the letter.")
    jwksEndpoint: str = field(format="uri", doc="Where its keys are; https only.")
    audience: str = field(default="", doc="The aud of its tokens; empty means any.")
    tenantClaim: str = field(default="tid", doc="The claim that has the tenantId.")
    rolesClaim: str = "vmafx_roles"


class Rbac(Object):
    """What the users of a tenant may be."""

    defaultRole: Literal["vmafx:reader", "vmafx:writer", "vmafx:admin"] = field(
        default="vmafx:reader", doc="Of a token that names no roles."
    )
    allowedRoles: Sequence[Role] = field(
        default=("vmafx:reader", "vmafx:writer"),
        doc="Other roles that a token names do not count.",
    )


class TenantScoring(Object):
    """What a tenant may have scored."""

    roots: list[str] = field(
        default=[], doc="Instead of the gateway's; {tenant} stands for the tenantId."
    )


class Quota(Object):
    """How much of the nodes a tenant may have, beside the others."""

    maxRunning: int | None = field(default=None, minimum=0, maximum=_MOST)
    maxPending: int | None = field(
        default=None,
        minimum=0,
        maximum=_MOST,
        doc="Beyond which SubmitJob is refused; jobs of kubectl are not counted out.",
    )
    weight: int = field(
        default=1, minimum=1, maximum=1000, doc="Its share, relative to the others'."
    )


class VmafxTenantSpec(Spec):
    """Who a tenant is."""

    tenantId: str = field(pattern=ID, min_length=2, max_length=64)
    enabled: bool = field(default=True, doc="False refuses every call of its users.")
    oidc: Oidc
    rbac: Rbac = Rbac()
    scoring: TenantScoring | None = None
    namespaces: list[str] = field(
        default=[],
        max_items=64,
        doc="Whose jobs are this tenant's; the first is where SubmitJob puts them. "
        "Absent means the one that is called vmafx- and its id.",
    )
    quota: Quota = Quota()
    sharesNodes: bool = field(
        default=False, doc="Its nodes work for every tenant, not for this one only."
    )


class VmafxTenantStatus(Status):
    """Whether it is served."""

    observedGeneration: int = 0
    conditions: Conditions = Conditions()


class VmafxTenant(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmtenant",
    columns=[
        Column(name="Tenant", path=".spec.tenantId"),
        Column(name="Issuer", path=".spec.oidc.issuer"),
        Column(name="Enabled", path=".spec.enabled", type="boolean"),
        Column(name="Ready", path='.status.conditions[?(@.type=="Ready")].status'),
        Column(name="Reason", path='.status.conditions[?(@.type=="Ready")].reason'),
        AGE,
    ],
):
    """Somebody whose jobs are nobody else's business."""

    spec: VmafxTenantSpec
    status: VmafxTenantStatus = VmafxTenantStatus()
