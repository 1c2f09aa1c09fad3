"""The pool in the simulation: three replicas, two pools, five tenants, all faults.

Replicas are programs that answer messages, as gateways do. Workers are model pods with
the real gate inside; each says so itself if it is ever used by two at once. Customers
acquire, use, renew and release, and go away without a word now and then.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import msgspec

from trimtab import Metadata
from trimtab.api import Quantity
from trimtab.client import AlreadyExists, Client, TrimtabError
from trimtab.kinds import Secret
from trimtab.pool import secrets
from trimtab.pool.calls import CallFailed, Target
from trimtab.pool.kinds import (
    KINDS,
    LABEL_ROLE,
    LABEL_WORKER,
    Activation,
    Budgets,
    Limits,
    Shape,
    Tenant,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
)
from trimtab.pool.parts import PoolOptions
from trimtab.pool.replica import Replica
from trimtab.pool.requests import AcquireRequest
from trimtab.pool.states import ALLOWED, TAKEN, TERMINAL, State
from trimtab.pool.worker.gate import Gate, Refused
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.server import ObjectChange, Plain, Server

WORKERS, PODS = "trimtab.dev/workers", "core/pods"
LEDGERS, WORKER_POOLS = "trimtab.dev/tenantledgers", "trimtab.dev/workerpools"
TENANTS = [f"tenant-{number}" for number in range(5)]
MAX_WORKERS, PER_TENANT, MIN_IDLE = 4, 1, 1
HANG_UPS = 0.3
"""How many of the callers give up while they are being served."""
OPTIONS = PoolOptions(
    lease_namespace="default",
    namespaces=("default",),
    lease_seconds=6.0,
    grace=4.0,
    period=2.0,
    keep_terminal=20.0,
)
BUDGETS = Budgets(spawn=20, activation=10, acquire=10)


class Town(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are of each."""

    pools: tuple[str, ...] = ("plain", "bound")
    replicas: int = 3
    customers: int = 5
    rounds: int = 4
    tidy: float = 0.8
    """How many of the checkouts are released, and not just left."""


FULL = Town()
SMALL = Town(pools=("bound",), replicas=2, customers=2, rounds=2, tidy=0.5)
TINY = Town(pools=("bound",), replicas=2, customers=1, rounds=2, tidy=0.5)


def pool(name: str) -> WorkerPool:
    """One pool without activation, one with it; half of the tenants have limits."""
    shape = Shape(name="small", cpu=Quantity("1"), memory=Quantity("1Gi"))
    spec = WorkerPoolSpec(
        template={"spec": {"containers": [{"name": "main", "image": "worker"}]}},
        shapes=[shape],
        minIdle=MIN_IDLE,
        maxWorkers=MAX_WORKERS,
        idleTTL=5,
        budgets=BUDGETS,
        tenants=[
            Tenant(name=each, limits=Limits(workers=PER_TENANT))
            for each in TENANTS[::2]
        ],
        activation=Activation(timeout=5) if name == "bound" else None,
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
        await _persist(client, pool(name))
    made = Replica(
        client,
        calls=Calls(here),
        keyring=Ring(),
        options=msgspec.structs.replace(OPTIONS, name=here.name),
        random=random.Random(random.getrandbits(64)),
        now=lambda: datetime.now(UTC),
        connect=lambda: cast(Client, Borrowed(client)),
        thread=False,
    )

    async def answer(message: bytes) -> bytes:
        asked = msgspec.json.decode(message)
        try:
            return msgspec.json.encode(await _answer(made, asked))
        except TrimtabError as error:
            return msgspec.json.encode({"error": str(error)})

    here.serve(answer)
    await made.run()


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


# Workers


async def worker(client: Client, here: Here) -> None:
    """A model pod with the real gate: it says so if two use it at once."""
    assert here.pod is not None
    uid = here.pod["metadata"]["ownerReferences"][0]["uid"]
    gate = Gate(uid.encode(), uid)
    users: Counter[str] = Counter()

    async def answer(message: bytes) -> bytes:
        asked = msgspec.json.decode(message)
        try:
            if asked["uid"] != uid:
                return b"another worker"
            if asked["do"] == "use":
                await use(asked["token"], asked["holder"])
            elif asked["do"] == "begin":
                gate.begin(
                    asked["epoch"], checkout=asked["checkout"], tenant=asked["tenant"]
                )
                await gate.quiet()
            elif asked["do"] == "clean":
                gate.clean(asked["epoch"], checkout=asked["checkout"])
                await gate.quiet(altogether=True)
            elif asked["do"] == "activate":
                gate.fence(asked["epoch"])
        except Refused as error:
            return str(error).encode()
        return b"ok"

    async def use(token: str, holder: str) -> None:
        dropped = asyncio.Event()
        passage = gate.admit(token, drop=dropped.set)
        users[holder] += 1
        if len(+users) > 1:
            here.broken("a worker serves one at a time", f"{sorted(+users)} are here.")
        try:
            async with asyncio.timeout(0.5):
                await dropped.wait()
        except TimeoutError:
            pass
        finally:
            users[holder] -= 1
            passage.end()

    here.serve(answer)
    await asyncio.Event().wait()


# Customers


async def customer(client: Client, here: Here, *, town: Town) -> None:
    """Has a worker now and then, and is sometimes gone without releasing it."""
    mine = Customer(here, town)
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(mine.renew())
        for _ in range(town.rounds):
            await asyncio.sleep(random.uniform(0, 6))
            await mine.round()
        renewing.cancel()


class Customer:
    """One holder: its name, and what it has."""

    def __init__(self, here: Here, town: Town) -> None:
        self.here = here
        self.town = town
        self.holder = here.name
        self.tenant = TENANTS[int(here.name.rpartition("-")[2])]
        self.held: set[str] = set()

    async def ask(self, what: str, **more: Any) -> Plain:
        body = msgspec.json.encode({"do": what, "holder": self.holder, **more})
        for attempt in range(20):
            gateway = f"replica-{random.randrange(self.town.replicas)}"
            with suppress(TrimtabError):
                answer = await self.here.call(gateway, body, deadline=30.0)
                found = cast(Plain, msgspec.json.decode(answer))
                if "error" not in found or what == "release":
                    return found
            await asyncio.sleep(0.5 + attempt / 4)
        return {"error": "nobody answers"}

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(OPTIONS.lease_seconds / 3)
            await self.ask("renew", checkouts=sorted(self.held))

    async def round(self) -> None:
        grant = await self.ask(
            "acquire", pool=random.choice(self.town.pools), tenant=self.tenant
        )
        if "error" in grant:
            return
        self.held.add(grant["checkout"])
        for _ in range(random.randrange(4)):
            await self.use(grant)
            await asyncio.sleep(random.uniform(0, 2))
        self.held.discard(grant["checkout"])
        if random.random() < self.town.tidy:
            await self.ask(
                "release", checkout=grant["checkout"], worker=grant["worker"]
            )

    async def use(self, grant: Plain) -> None:
        body = {"do": "use", "token": grant["token"], "holder": self.holder}
        message = msgspec.json.encode({**body, "uid": grant["uid"]})
        with suppress(TrimtabError):
            await self.here.call(grant["address"], message, deadline=10.0)


# Laws


def _status(obj: Plain) -> Plain:
    return cast(Plain, obj.get("status") or {})


def _state(obj: Plain) -> State:
    return State(_status(obj).get("state", "spawning"))


def rows_move_as_they_may(server: Server, change: ObjectChange) -> Iterator[str]:
    """Epochs never decrease, what is over never changes, moves are allowed ones."""
    if change.resource != WORKERS or not change.before or not change.after:
        return
    old, new = _state(change.before), _state(change.after)
    if new is not old and new not in ALLOWED[old]:
        yield f"{change.key} went from {old.value} to {new.value}."
    before, after = _status(change.before), _status(change.after)
    if after.get("epoch", 0) < before.get("epoch", 0):
        yield f"The epoch of {change.key} went down."
    if old in TERMINAL and before != after:
        yield f"{change.key} was over and has changed."
    held, holds = before.get("checkout"), after.get("checkout")
    if held and holds and held["id"] != holds["id"]:
        yield f"{change.key} went from one checkout to another."


def no_limit_is_exceeded(server: Server, change: ObjectChange) -> Iterator[str]:
    """Of checked-out workers per tenant, and of living workers per pool."""
    if change.resource != WORKERS:
        return
    tenants: Counter[tuple[str, str]] = Counter()
    living: Counter[str] = Counter()
    for each in server.of(WORKERS):
        state, name = _state(each), each["spec"]["pool"]
        living[name] += state not in TERMINAL
        if state in TAKEN:
            tenants[name, _status(each)["tenant"]] += 1
    for name, count in living.items():
        if count > MAX_WORKERS:
            yield f"{name} has {count} workers."
    for (name, tenant), count in tenants.items():
        if tenant in TENANTS[::2] and count > PER_TENANT:
            yield f"{tenant} has {count} workers of {name}."


def nobodys_pod_is_deleted(server: Server, change: ObjectChange) -> Iterator[str]:
    """A pod goes only after its row says that nobody is to have it.

    Unless its node is lost, or it is evicted: that is no replica's doing.
    """
    ours = change.resource == PODS and change.writer.replica >= 0
    if not ours or not change.before:
        return
    if change.after and "deletionTimestamp" not in change.after["metadata"]:
        return
    name = change.before["metadata"]["name"]
    row = server.objects.get(f"{WORKERS}/default/{name}")
    if row is not None and _state(row) in TAKEN:
        yield f"The pod {name} is deleted while it is {_state(row).value}."


def nothing_leaks(server: Server) -> Iterable[str]:
    """At rest there is what minIdle wants, in every place, and nothing else."""
    pools = [each["metadata"]["name"] for each in server.of(WORKER_POOLS)]
    rows = {each["metadata"]["name"]: each for each in server.of(WORKERS)}
    living = {name for name, each in rows.items() if _state(each) not in TERMINAL}
    for name in sorted(living):
        if _state(rows[name]) is not State.IDLE:
            yield f"{name} is {_state(rows[name]).value} at rest."
    idle = Counter(rows[name]["spec"]["pool"] for name in living)
    if idle != dict.fromkeys(pools, MIN_IDLE):
        yield f"Idle at rest: {dict(idle)}."
    for resource in (PODS, "core/secrets"):
        found = {each["metadata"]["name"] for each in server.of(resource)}
        if found != living:
            yield f"{resource}: {sorted(found ^ living)} do not match the rows."
    if len(rows) > len(living):
        yield f"{len(rows) - len(living)} ended rows were not pruned."
    for lease in server.of("coordination.k8s.io/leases"):
        if (lease["metadata"].get("labels") or {}).get(LABEL_ROLE) == "holder":
            yield f"The lease {lease['metadata']['name']} of a dead holder stays."
    for ledger in server.of(LEDGERS):
        entries = _status(ledger).get("entries") or []
        counted = {each["worker"] for each in entries}
        of_pool = {n for n in living if rows[n]["spec"]["pool"] == _pool(ledger)}
        if counted != (set() if ledger["spec"].get("tenant") else of_pool):
            yield f"{ledger['metadata']['name']} counts {sorted(counted)}."


def _pool(ledger: Plain) -> str:
    return str(ledger["spec"]["pool"])


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
        "always": (rows_move_as_they_may, no_limit_is_exceeded, nobodys_pod_is_deleted),
        "at_rest": (nothing_leaks,),
        "same": False,
        "skew": 20.0,
        "seconds": 60.0,
        "quiet": 45.0,
        "rest": 45.0,
    }
    return Scenario(**{**given, **changes})
