"""Training and tenants: their objects are taken, and say what is to come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from trimtab.api import Column, Conditions, Object, Resource, Spec, Status, field
from trimtab.operators.vmafx.kinds import AGE, GROUP, VERSION

Role = Literal["vmafx:reader", "vmafx:writer", "vmafx:admin", "vmafx:node"]


class DataSource(Object):
    """Whose samples a model learns from; no labels mean everybody's."""

    nodeSelector: dict[str, str] = {}


class Checkpoint(Object):
    """When a model is kept."""

    interval: str = "10m"
    minSamples: int = field(default=1000, minimum=1)


class VmafxModelTrainingSpec(Spec):
    """Which model is to learn, from what."""

    baseModel: str = field(min_length=1)
    dataSource: DataSource = DataSource()
    algorithm: Literal["online-sgd-ema"]
    checkpoint: Checkpoint = Checkpoint()
    outputRegistry: str = field(min_length=1)


class VmafxModelTrainingStatus(Status):
    """How far it has learned."""

    phase: Literal["Initializing", "Running", "Paused", "Failed"] | None = None
    currentSamples: int = 0
    lastCheckpoint: datetime | None = None
    modelVersion: str = ""
    observedGeneration: int = 0
    conditions: Conditions = Conditions()


class VmafxModelTraining(
    Resource,
    group=GROUP,
    version=VERSION,
    short="vmtrain",
    columns=[
        Column(name="Phase", path=".status.phase"),
        Column(name="Samples", path=".status.currentSamples", type="integer"),
        Column(name="ModelVersion", path=".status.modelVersion"),
        AGE,
    ],
):
    """A model that learns from scores while they are made."""

    spec: VmafxModelTrainingSpec
    status: VmafxModelTrainingStatus = VmafxModelTrainingStatus()


class Oidc(Object):
    """Who vouches for the users of a tenant."""

    issuer: str = field(format="uri")
    jwksEndpoint: str = field(format="uri")
    audience: str = ""
    tenantClaim: str = "tid"
    rolesClaim: str = "vmafx_roles"


class Rbac(Object):
    """What the users of a tenant may be."""

    defaultRole: Literal["vmafx:reader", "vmafx:writer", "vmafx:admin"] = "vmafx:reader"
    allowedRoles: Sequence[Role] = ("vmafx:reader", "vmafx:writer")


class TenantScoring(Object):
    """What a tenant may have scored."""

    roots: list[str] = []


class VmafxTenantSpec(Spec):
    """Who a tenant is."""

    tenantId: str = field(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=2, max_length=64
    )
    enabled: bool = True
    oidc: Oidc
    rbac: Rbac = Rbac()
    scoring: TenantScoring | None = None


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
        Column(name="Issuer", path=".spec.oidc.issuer"),
        Column(name="Enabled", path=".spec.enabled", type="boolean"),
        AGE,
    ],
):
    """Somebody whose jobs are nobody else's business."""

    spec: VmafxTenantSpec
    status: VmafxTenantStatus = VmafxTenantStatus()
