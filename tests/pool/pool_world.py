"""The pool in the simulation: three replicas, two pools, five tenants, all faults.

Replicas are programs that answer messages, as gateways do. Who calls them, and whom
they call, is in ``pool_people``; what must hold, in ``pool_laws``.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec

from tests.pool.pool_laws import (
    ALIVE,
    AWAKE,
    BUDGETS,
    LIMITED,
    MAX_WORKERS,
    OPTIONS,
    PER_TENANT,
    NobodyDeadHandsOut,
    TakenInTwoSwaps,
    all_is_tidy,
    epochs_rise,
    no_limit_is_exceeded,
    nobodys_pod_is_deleted,
    nothing_leaks,
    rows_move_as_they_may,
)
from tests.pool.pool_people import (
    FULL,
    LEADERLESS,
    LONE,
    UNLED,
    Town,
    customer,
    worker,
)
from trimtab import Metadata
from trimtab.api import Quantity
from trimtab.client import AlreadyExists, Client, TrimtabError
from trimtab.kinds import Lease, Secret
from trimtab.pool import secrets
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import (
    KINDS,
    LABEL_WORKER,
    Activation,
    Headroom,
    Limits,
    Shape,
    Tenant,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
)
from trimtab.pool.replica import LEADER, Observed, Replica
from trimtab.pool.requests import AcquireRequest
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.hosts import HOST
from trimtab.sim.server import Plain

HANG_UPS = 0.3
"""How many of the callers give up while they are being served."""
STAMPED = "a pass that failed is not stamped"


def pool(name: str, town: Town) -> WorkerPool:
    """One pool without activation, one with it; half of the tenants have limits."""
    bound = name == "bound"
    shape = Shape(name="small", cpu=Quantity("1"), memory=Quantity("1Gi"))
    spec = WorkerPoolSpec(
        template={"spec": {"containers": [{"name": "main", "image": "worker"}]}},
        shapes=[shape],
        minIdle=town.warm,
        maxWorkers=MAX_WORKERS,
        idleTTL=5,
        budgets=BUDGETS,
        tenants=[
            Tenant(name=each, limits=Limits(workers=PER_TENANT)) for each in LIMITED
        ],
        activation=Activation(timeout=5) if bound else None,
        headroom=None if bound or not town.room else Headroom(count=town.room),
    )
    return WorkerPool(metadata=Metadata(name=name, namespace="default"), spec=spec)


# Replicas


class Ring:
    """A keyring whose keys follow from the worker's uid: no file, no certificate."""

    async def secret(self, worker: Worker, *, pool: WorkerPool) -> Secret:
        from trimtab.api import owner_of

        return Secret(
            metadata=Metadata(
                name=worker.metadata.name,
                namespace="default",
                labels={LABEL_WORKER: worker.metadata.name},
                ownerReferences=[owner_of(worker)],
            )
        )

    async def target(self, worker: Worker) -> Target:
        uid, status = worker.metadata.uid, worker.status
        return Target(
            name=worker.metadata.name,
            uid=uid,
            address=status.address,
            port=status.port or 0,
            key=uid.encode(),
        )

    async def renew(self, worker: Worker, *, pool: WorkerPool) -> datetime:
        raise AssertionError("there is nothing to renew")

    def token(self, target: Target, *, checkout: str, epoch: int) -> str:
        return secrets.token(target.key, target.uid, checkout, epoch)


class Calls:
    """Calls to workers as messages of the simulation."""

    def __init__(self, here: Here) -> None:
        self._here = here

    async def begin(
        self, target: Target, *, epoch: int, checkout: str, tenant: str
    ) -> None:
        await self._ask(target, "begin", epoch=epoch, checkout=checkout, tenant=tenant)

    async def clean(self, target: Target, *, epoch: int, checkout: str) -> None:
        await self._ask(target, "clean", epoch=epoch, checkout=checkout)

    async def healthy(self, target: Target) -> None:
        await self._ask(target, "healthy")

    async def activate(
        self, target: Target, *, epoch: int, tenant: str, activation: Activation
    ) -> None:
        await self._ask(target, "activate", epoch=epoch, tenant=tenant)

    async def _ask(self, target: Target, what: str, **more: Any) -> None:
        body = msgspec.json.encode({"do": what, "uid": target.uid, **more})
        try:
            answer = await self._here.call(target.address, body, deadline=5.0)
        except TrimtabError as error:
            raise CallFailed(f"{target.name} did not answer.") from error
        if answer != b"ok":
            raise CallFailed(f"{target.name} refused: {answer.decode()}")


class Borrowed:
    """The replica's own client, for the one who would close it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __aenter__(self) -> Client:
        return self._client

    async def __aexit__(self, *error: object) -> None:
        return None


async def replica(client: Client, here: Here, *, town: Town) -> None:
    """A gateway in small: a replica, and messages for it."""
    for name in town.pools:
        await _persist(client, pool(name, town))
    made = Replica(
        client,
        calls=Calls(here),
        keyring=Ring(),
        options=msgspec.structs.replace(OPTIONS, name=here.name),
        random=random.Random(random.getrandbits(64)),
        now=lambda: datetime.now(UTC),
        connect=lambda: cast(Client, Borrowed(client)),
        observed=Stamps(here),
        thread=False,
    )

    async def answer(message: bytes) -> bytes:
        asked = msgspec.json.decode(message)
        try:
            return msgspec.json.encode(await _answer(made, asked))
        except TrimtabError as error:
            return msgspec.json.encode({"error": str(error)})

    here.serve(answer)
    async with asyncio.TaskGroup() as group:
        alive = group.create_task(_alive(made.incarnation, town))
        await made.run()
        alive.cancel()


async def _alive(incarnation: str, town: Town) -> None:
    """Show that the replica takes steps."""
    while town.watched:
        ALIVE[incarnation] = asyncio.get_running_loop().time()
        await asyncio.sleep(AWAKE / 3)


class Ear(logging.Handler):
    """Hears which pass of which replica has just failed."""

    last: tuple[object, str, float] = (None, "", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("The reaper's pass") and record.args:
            now = asyncio.get_running_loop().time()
            self.last = HOST.get(), str(cast(Any, record.args)[0]), now


EAR = Ear(logging.WARNING)
logging.getLogger("trimtab.pool").addHandler(EAR)


class Stamps(Observed):
    """Sees to it that a pass which says that it failed is not stamped."""

    def __init__(self, here: Here) -> None:
        self._here = here

    def passed(self, name: str) -> None:
        if EAR.last == (HOST.get(), name, asyncio.get_running_loop().time()):
            self._here.broken(STAMPED, f"The pass over {name} was.")


async def _answer(made: Replica, asked: Plain) -> Plain:
    if not made.ready.is_set():
        return {"error": "not ready"}
    allocator, holder = made.allocator, asked["holder"]
    if asked["do"] == "renew":
        await allocator.renew(holder, asked["checkouts"])
        return {}
    if asked["do"] == "release":
        worker = ("default", asked["worker"])
        await allocator.release(asked["checkout"], holder=holder, worker=worker)
        return {}
    wish = AcquireRequest(
        pool=("default", asked["pool"]),
        tenant=asked["tenant"],
        holder=holder,
        wait=20.0,
    )
    patience = random.uniform(0, 0.1) if random.random() < HANG_UPS else 60.0
    try:
        async with asyncio.timeout(patience):
            grant = await allocator.acquire(wish)
    except TimeoutError:
        return {"error": "the caller hung up"}
    return {
        "checkout": grant.checkout,
        "worker": grant.worker,
        "uid": grant.uid,
        "address": grant.address,
        "token": grant.token,
        "epoch": grant.epoch,
    }


async def _persist(client: Client, wish: WorkerPool) -> None:
    while True:
        try:
            await client.create(wish)
            return
        except AlreadyExists:
            return
        except TrimtabError:
            await asyncio.sleep(1)


# Scenarios


def pool_scenario(town: Town = FULL, **changes: Any) -> Scenario:
    replicas = Program("replica", partial(replica, town=town), replicas=town.replicas)
    customers = Program(
        "customer",
        partial(customer, town=town),
        replicas=town.customers,
        ends=True,
        struck=False,
    )
    given: dict[str, Any] = {
        "programs": (replicas, customers),
        "images": {"worker": worker},
        "installs": KINDS,
        "always": (
            rows_move_as_they_may,
            epochs_rise,
            TakenInTwoSwaps,
            no_limit_is_exceeded,
            nobodys_pod_is_deleted,
        ),
        "at_rest": (nothing_leaks, all_is_tidy),
        "same": False,
        "skew": 20.0,
        "seconds": 60.0,
        "quiet": 45.0,
        "rest": 45.0,
    }
    return Scenario(**{**given, **changes})


async def usurper(client: Client, here: Here) -> None:
    """Holds the leader's Lease, and does nothing with it: nobody leads."""
    spec = {"holderIdentity": here.name, "leaseDurationSeconds": 3600}
    metadata = {"name": LEADER, "namespace": "default"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    with suppress(TrimtabError):
        await client.create({**lease, "metadata": metadata, "spec": spec})
    while True:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        renewed = spec | {"renewTime": now.replace("+00:00", "Z")}
        with suppress(TrimtabError):
            await client.patch(Lease, LEADER, {"spec": renewed}, namespace="default")
        await asyncio.sleep(1)


def leaderless_scenario(**changes: Any) -> Scenario:
    """A town in which nobody ever leads: nothing leaks all the same."""
    made = pool_scenario(LEADERLESS, **{"at_rest": (nothing_leaks,), **changes})
    idle = Program("usurper", usurper, struck=False)
    return msgspec.structs.replace(made, programs=(*made.programs, idle))


def unled_scenario(**changes: Any) -> Scenario:
    """A town in which replicas cannot renew now and then, and nothing else is slow."""
    made = pool_scenario(UNLED, **{"faults": ("unled",), **changes})
    return msgspec.structs.replace(made, always=(*made.always, NobodyDeadHandsOut))


def lone_scenario(**changes: Any) -> Scenario:
    """A town with one replica: what it has lost, nobody else takes up for it."""
    return pool_scenario(LONE, **{"seconds": 30.0, **changes})
