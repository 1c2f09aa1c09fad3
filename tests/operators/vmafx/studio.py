"""Scoring in the simulation: gateways and nodes of unchanged code, jobs, all faults.

Gateways are programs that answer messages with the methods of the real service over the
real desk. Nodes are the real node, whose calls are messages and whose scorer only takes
time. Producers submit jobs by key, and want some of them no more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import grpc
import msgspec
from google.protobuf.message import Message

from tests.operators.vmafx import studio_laws as laws
from trimtab.cache import Cache, Scope
from trimtab.client import Client
from trimtab.client.errors import DeadlineExceeded, TrimtabError
from trimtab.operators.vmafx import guarding
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.claims import FINAL
from trimtab.operators.vmafx.desk import BY_UID, Desk
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.joining import Joining
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.node import Node, NodeOptions
from trimtab.operators.vmafx.nodes import BY_SESSION, Nodes
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.roles import Judge
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.segments import Part, Segment
from trimtab.operators.vmafx.serving import Controller
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.sim import Here, Program, Scenario

ROOT = "http://clips"
LEASE = 20.0
HANG_UPS = 0.1
"""How many of the callers hang up while they are being answered."""
HERE = Scope(namespaces=("default",))
_DONE, _FAILED = b"+", b"-"


class Studio(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are of each."""

    gateways: int = 2
    nodes: int = 3
    jobs: int = 8
    slots: int = 2
    # How often a node leaves in order and comes back.
    leaves: float = 0.3


FULL = Studio()
TINY = Studio(nodes=2, jobs=3, slots=1, leaves=0.0)


# Gateways


async def gateway(client: Client, here: Here) -> None:
    """One replica: the desk, and the service over it, by messages."""
    chance = random.Random(random.getrandbits(64))
    cache = Cache(client, random=chance)
    nodes = Nodes(
        client,
        cache.informer(VmafxNode, HERE, indexes=(BY_SESSION,)),
        namespace="default",
        random=chance,
    )
    jobs = cache.informer(VmafxJob, HERE, indexes=(BY_UID,))
    desk = Desk(client, jobs=jobs, nodes=nodes, now=now, lease=LEASE)
    joining = Joining(client, desk, now=now)
    service = Controller(
        client,
        desk,
        guard=Guard(cast(Judge, None), namespace="default"),  # nobody asks who calls
        namespace="default",
        registry=Registry(home="default", roots=Roots((ROOT,))),
        now=now,
        learning=lambda node, job: [],
    )

    async def answer(message: bytes) -> bytes:
        name, _, body = message.partition(b"\n")
        call, request = service._calls()[name.decode()]
        patience = random.uniform(0, 0.2) if random.random() < HANG_UPS else 120.0
        try:
            async with asyncio.timeout(patience):
                found = await call(request.FromString(body))
            return _DONE + bytes(found.SerializeToString())
        except TimeoutError:
            return _FAILED + b"UNAVAILABLE\nThe caller hung up."
        except TrimtabError as error:
            return _FAILED + f"{guarding.code_of(error).name}\n{error}".encode()

    async with asyncio.TaskGroup() as group:
        group.create_task(cache.run())
        await cache.wait_synced()
        group.create_task(desk.run())
        group.create_task(joining.run())
        here.serve(answer)


def now() -> datetime:
    return datetime.now(UTC)


class Line:
    """What a channel is: calls to any of the gateways, as messages."""

    def __init__(self, here: Here, studio: Studio) -> None:
        self._here = here
        self._studio = studio

    def unary_unary(
        self,
        path: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
    ) -> Any:
        async def call(request: Message, *, timeout: float, metadata: Any) -> Any:
            name = path.rpartition("/")[2].encode()
            body = name + b"\n" + request.SerializeToString()
            answer = await self._answered(body, timeout)
            return response_deserializer(answer)

        return call

    async def _answered(self, body: bytes, timeout: float) -> bytes:
        place = f"gateway-{random.randrange(self._studio.gateways)}"
        try:
            answer = await self._here.call(place, body, deadline=timeout)
        except DeadlineExceeded as error:
            raise _refused("DEADLINE_EXCEEDED", str(error)) from error
        except TrimtabError as error:
            raise _refused("UNAVAILABLE", str(error)) from error
        if answer[:1] == _DONE:
            return answer[1:]
        code, _, said = answer[1:].decode().partition("\n")
        raise _refused(code, said)


def _refused(code: str, said: str) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    status = grpc.StatusCode[code]
    return grpc.aio.AioRpcError(status, nothing, nothing, details=said)


def caller(here: Here, studio: Studio) -> Caller:
    return Caller(cast(grpc.aio.Channel, Line(here, studio)))


# Nodes


async def node(client: Client, here: Here, *, studio: Studio) -> None:
    """Works until all jobs are over, and leaves in between."""
    work = laws.Work(here)
    while not await _is_all_over(client, studio):
        options = NodeOptions(name=here.name, slots=studio.slots, patience=2.0)
        made = Node(
            caller(here, studio),
            partial(scored, work),
            options=options,
            random=random.Random(random.getrandbits(64)),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(made.run())
            while not await _is_all_over(client, studio):
                await asyncio.sleep(5)
                if random.random() < studio.leaves:
                    break
            made.drain()


async def _is_all_over(client: Client, studio: Studio) -> bool:
    try:
        listed = [job async for job in client.list(VmafxJob, namespace="default")]
    except TrimtabError:
        return False
    over = [job for job in listed if job.status.run.outcome in FINAL]
    return len(over) >= studio.jobs


async def scored(
    work: laws.Work,
    reference: str,
    distorted: str,
    *,
    model: str,
    progress: Callable[[int, int | None], None],
    segment: Segment | None = None,
) -> Score:
    """Takes its time, and fails as the name of the clip says."""
    name = distorted.rpartition("/")[2]
    with work.on(laws.part_of(name, segment.index if segment else None)):
        for step in range(random.randrange(2, 12)):
            await asyncio.sleep(1)
            progress(step, 12)
    if name.startswith("bad"):
        raise BadInput(f"{distorted} is not a video that can be read.")
    if name.startswith("flaky") and random.random() < 0.5:
        raise ToolFailed("ffmpeg was killed by signal 9.")
    value, part = laws.score_of(name), None
    if segment is not None:
        own = segment.frames(laws.LENGTH)
        part = Part(first=own.start, count=len(own), total=laws.LENGTH)
    return Score(
        vmaf=value, features={"psnr": 30.0}, frames=(value,), model="m", part=part
    )


# Producers


async def producer(client: Client, here: Here, *, studio: Studio) -> None:
    """Submits every job until it is taken, and cancels every third."""
    calls = caller(here, studio)
    for number in range(studio.jobs):
        await asyncio.sleep(random.uniform(0, 4))
        kind = ("good", "bad", "flaky", "good", "late", "good")[number % 6]
        pair = wire.ScoringParams(
            reference=f"{ROOT}/reference", distorted=f"{ROOT}/{kind}-{number}"
        )
        request = wire.SubmitJobRequest(
            scoring=pair, idempotency_key=f"{here.name}-{number}", priority=number % 2
        )
        made = await _until_done(calls.submit, request)
        if number % 3 == 2:
            await asyncio.sleep(random.uniform(0, 10))
            cancel = wire.CancelJobRequest(job_id=made.job_id)
            await _until_done(calls.cancel, cancel)


async def _until_done(call: Callable[[Any], Awaitable[Any]], request: Message) -> Any:
    while True:
        with suppress(grpc.aio.AioRpcError):
            return await call(request)
        await asyncio.sleep(1)


def studio_scenario(studio: Studio = FULL, **changes: Any) -> Scenario:
    given: dict[str, Any] = {
        "programs": (
            Program("gateway", gateway, replicas=studio.gateways),
            Program(
                "node", partial(node, studio=studio), replicas=studio.nodes, ends=True
            ),
            Program(
                "producer", partial(producer, studio=studio), ends=True, struck=False
            ),
        ),
        "installs": (VmafxJob, VmafxNode),
        "always": laws.ALWAYS,
        "at_rest": (partial(laws.every_job_is_over, jobs=studio.jobs),),
        "same": False,
        "skew": 20.0,
        "seconds": 60.0,
        "quiet": 45.0,
        "rest": 45.0,
    }
    return Scenario(**{**given, **changes})
