"""The kinds of the pool: what is wished, each worker's row, ledgers, and claims.

Everything durable about a pool is in these objects. The status of a :class:`Worker` and
of a :class:`TenantLedger` is written by merge patches that name the revision they were
decided on (:mod:`trimtab.pool.swapping`), never by apply: of all writers one wins.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from trimtab.api import (
    Column,
    Conditions,
    Object,
    Quantity,
    Resource,
    Rule,
    Scale,
    Spec,
    Status,
    field,
    hashed,
)
from trimtab.pool.states import State

GROUP: Final = "trimtab.dev"
VERSION: Final = "v1alpha1"
LABEL_POOL: Final = "trimtab.dev/pool"
"""On workers, their pods and secrets, and on ledgers: the name of the pool."""
LABEL_WORKER: Final = "trimtab.dev/worker"
"""On pods and secrets: the name of the worker that owns them."""
LABEL_ROLE: Final = "trimtab.dev/pool-role"
"""On Leases: ``replica`` or ``holder``; on placeholder pods: ``headroom``."""

_IMMUTABLE: Final = Rule(rule="self == oldSelf", message="it cannot be changed")
_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


class Limits(Object):
    """How much one tenant may have; what is left out has no limit."""

    workers: int | None = field(default=None, minimum=0, doc="Checked out at once.")
    cpu: Quantity | None = None
    memory: Quantity | None = None
    idleWorkers: int | None = field(default=None, minimum=0, doc="Parked for it.")
    idleCpu: Quantity | None = None
    idleMemory: Quantity | None = None


class Shape(Object):
    """A size of worker: what its main container requests and is limited to."""

    name: str = field(pattern=_NAME, max_length=40)
    cpu: Quantity
    memory: Quantity


class Tenant(Object):
    """What differs for one tenant from what the pool says of all."""

    name: str = field(min_length=1, max_length=253)
    limits: Limits | None = field(
        default=None, doc="In place of the pool's limits, all of them."
    )
    ttl: int | None = field(
        default=None, minimum=0, doc="Seconds to park; 0 means retire at once."
    )
    keepIdle: int = field(
        default=0, minimum=0, doc="Parked workers that outlive their TTL. A cap wins."
    )


class Activation(Object):
    """The call that binds an idle worker to a tenant before its first use."""

    protocol: Literal["http", "grpc"] = "http"
    path: str = field(
        default="/activate",
        max_length=1024,
        doc="Over gRPC the full name of a method; default: that of "
        "trimtab.pool.v1.Activation.",
    )
    port: int | None = field(default=None, minimum=1, maximum=65535)
    timeout: int = field(default=60, minimum=1, doc="Seconds for one call.")


class Budgets(Object):
    """Seconds that each step may take; every cutoff of a reaper is derived of them."""

    spawn: int = field(default=300, minimum=1)
    activation: int = field(default=180, minimum=1)
    acquire: int = field(default=30, minimum=1)


class Headroom(Object):
    """Placeholder pods that give way to workers, so that nodes are there already."""

    count: int = field(default=0, minimum=0, maximum=1000)
    shape: str = field(default="", doc="The name of a shape; empty means the first.")
    priorityClassName: str = ""
    image: str = field(
        default="registry.k8s.io/pause:3.10", doc="What a placeholder runs: nothing."
    )


class Update(Object):
    """How workers of an older template are replaced; busy ones when released."""

    maxUnavailable: int = field(default=1, minimum=1)


class WorkerPoolSpec(
    Spec,
    rules=[
        Rule(
            rule="self.maxWorkers >= self.minIdle",
            message="maxWorkers must be at least minIdle",
        ),
        Rule(
            rule="!has(self.maxTTL) || self.maxTTL >= self.idleTTL",
            message="maxTTL must be at least idleTTL",
        ),
        Rule(
            rule="!has(self.headroom) || !has(self.headroom.shape) || "
            "self.headroom.shape == '' || "
            "self.shapes.exists(s, s.name == self.headroom.shape)",
            message="headroom.shape must be one of the shapes",
        ),
    ],
):
    """Which workers there should be, and who may have how many of them."""

    template: dict[str, Any] = field(
        doc="A PodTemplateSpec; its first container is the worker.",
    )
    shapes: list[Shape] = field(
        list_type="map", list_keys=("name",), min_items=1, max_items=32
    )
    """The first one is the default, and what minIdle counts."""
    minIdle: int = field(default=0, minimum=0, maximum=10000)
    maxWorkers: int = field(default=100, minimum=1, maximum=10000)
    limits: Limits = Limits()
    tenants: list[Tenant] = field(
        default=[], list_type="map", list_keys=("name",), max_items=1000
    )
    idleTTL: int = field(
        default=60, minimum=0, doc="Seconds to park; 0 means retire at once."
    )
    maxTTL: int | None = field(default=None, minimum=0)
    activation: Activation | None = None
    port: int = field(default=8443, minimum=1, maximum=65535)
    budgets: Budgets = Budgets()
    headroom: Headroom | None = None
    update: Update = Update()


class WorkerPoolStatus(Status):
    """What the leader last counted."""

    observedGeneration: int = 0
    replicas: int = 0
    """Living workers that are bound to no tenant: idle or spawning."""
    selector: str = ""
    spawning: int = 0
    idle: int = 0
    activating: int = 0
    hot: int = 0
    hotIdle: int = 0
    draining: int = 0
    conditions: Conditions = Conditions()


class WorkerPool(
    Resource,
    group=GROUP,
    version=VERSION,
    short="wp",
    columns=[
        Column(name="Idle", path=".status.idle", type="integer"),
        Column(name="Hot", path=".status.hot", type="integer"),
        Column(name="Hot-Idle", path=".status.hotIdle", type="integer"),
        Column(name="Min", path=".spec.minIdle", type="integer"),
        Column(name="Max", path=".spec.maxWorkers", type="integer"),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    ],
    scale=Scale(
        spec_replicas=".spec.minIdle",
        status_replicas=".status.replicas",
        label_selector=".status.selector",
    ),
):
    """Warm workers, handed out one by one."""

    spec: WorkerPoolSpec
    status: WorkerPoolStatus = WorkerPoolStatus()


class WorkerSpec(Spec, rules=[_IMMUTABLE]):
    """What a worker is made of; it never changes."""

    pool: str = field(max_length=63)
    shape: str = field(max_length=40)
    cpu: Quantity
    memory: Quantity
    revision: str = field(max_length=63, doc="A hash of the template.")
    spawner: str = field(
        default="", max_length=253, doc="The replica that made the row."
    )


class Checkout(Object):
    """One use of a worker."""

    id: str
    holder: str
    """The process that renews, by the name under which it renews."""
    since: datetime | None = None


class WorkerStatus(Status):
    """Where a worker is in its life. Every write is a compare-and-swap.

    A row without a status has just been made: it is spawning.
    """

    state: State = State.SPAWNING
    tenant: str = ""
    owner: str = ""
    """The replica that claimed it last, or spawned it: an incarnation."""
    epoch: int = 0
    """Grows with every claim and every mark; the worker refuses lower ones."""
    checkout: Checkout | None = None
    idleSince: datetime | None = None
    ttl: int | None = None
    """Seconds to park after this use; None means what the tenant or pool says."""
    reapAfter: datetime | None = None
    """For people: reapers measure the grace on their own clocks."""
    reaper: str = ""
    """Who marked it; while it is set, nobody may claim it."""
    retireReason: str = ""
    address: str = ""
    port: int | None = None
    pod: str = ""
    certificateExpires: datetime | None = None
    beat: int = 0
    """Grows while a slow step of this row (an activation) is being worked on."""
    message: str = ""


class Worker(
    Resource,
    group=GROUP,
    version=VERSION,
    short="wk",
    columns=[
        Column(name="State", path=".status.state"),
        Column(name="Tenant", path=".status.tenant"),
        Column(name="Shape", path=".spec.shape"),
        Column(name="Owner", path=".status.owner"),
        Column(name="Holder", path=".status.checkout.holder", priority=1),
        Column(name="Epoch", path=".status.epoch", type="integer", priority=1),
        Column(name="Reason", path=".status.retireReason", priority=1),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    ],
):
    """The row of one worker; it owns the worker's pod and secret of the same name."""

    spec: WorkerSpec
    status: WorkerStatus = WorkerStatus()


class LedgerEntry(Object):
    """A checkout (or, in the pool's own ledger, a worker) that counts."""

    checkout: str
    worker: str
    cpu: Quantity = Quantity("0")
    memory: Quantity = Quantity("0")


class TenantLedgerSpec(Spec, rules=[_IMMUTABLE]):
    """Whose ledger it is; an empty tenant means the pool itself."""

    pool: str = field(max_length=63)
    tenant: str = field(default="", max_length=253)


class TenantLedgerStatus(Status):
    """What counts against the limits. The list is swapped as a whole."""

    entries: list[LedgerEntry] = field(default=[], max_items=10000)


class TenantLedger(
    Resource,
    group=GROUP,
    version=VERSION,
    short="tl",
    columns=[
        Column(name="Pool", path=".spec.pool"),
        Column(name="Tenant", path=".spec.tenant"),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    ],
):
    """What one tenant has of a pool, written before it is given."""

    spec: TenantLedgerSpec
    status: TenantLedgerStatus = TenantLedgerStatus()


class WorkerClaimSpec(Spec, rules=[_IMMUTABLE]):
    """Which worker is wanted; it never changes."""

    pool: str = field(min_length=1, max_length=63)
    tenant: str = field(min_length=1, max_length=253)
    shape: str = field(default="", max_length=40)
    ttl: int | None = field(default=None, minimum=0)


class WorkerClaimStatus(Status):
    """What became of the claim."""

    state: Literal["Pending", "Bound", "Released", "Failed"] = "Pending"
    worker: str = ""
    address: str = ""
    tokenSecret: str = ""
    """A Secret in the same namespace, owned by the claim, with the token in it."""
    checkout: str = ""
    epoch: int = 0
    conditions: Conditions = Conditions()


class WorkerClaim(
    Resource,
    group=GROUP,
    version=VERSION,
    short="wc",
    columns=[
        Column(name="State", path=".status.state"),
        Column(name="Pool", path=".spec.pool"),
        Column(name="Tenant", path=".spec.tenant"),
        Column(name="Worker", path=".status.worker"),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    ],
):
    """For those who only have kubectl: create it, wait for Bound, delete it."""

    spec: WorkerClaimSpec
    status: WorkerClaimStatus = WorkerClaimStatus()


KINDS: Final = (WorkerPool, Worker, TenantLedger, WorkerClaim)


def ledger_name(pool: str, tenant: str) -> str:
    """The name of a tenant's ledger; the pool's own is the one of the tenant ""."""
    return hashed(pool, tenant)
