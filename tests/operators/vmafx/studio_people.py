"""The studio with people: jobs that they apply, edit and delete, and the operator."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any

from tests.operators.vmafx import studio_laws as laws
from tests.operators.vmafx.studio import ROOT, Studio, caller, gateway, scored
from trimtab.client import Client, NotFound
from trimtab.client.errors import TrimtabError
from trimtab.operators.vmafx.claims import FINAL
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.node import Node, NodeOptions
from trimtab.operators.vmafx.operator import make
from trimtab.runtime.webhooks.declarations import Declarations
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.server import Plain, Server

CLOSES = 100.0
"""Virtual seconds after which nodes go home, once all jobs are over."""
SPLIT = 0.3
"""How many jobs are in segments."""
PHASES = {"completed": "Succeeded", "failed": "Failed", "cancelled": "Cancelled"}


def job(chance: Random) -> Plain:
    clip = f"{chance.choice(('good', 'bad', 'flaky'))}-{chance.randrange(1000)}"
    spec: Plain = {"reference": f"{ROOT}/reference", "distorted": f"{ROOT}/{clip}"}
    if chance.random() < SPLIT:
        spec["segments"] = chance.choice((2, 3))
    return {"apiVersion": "vmafx.dev/v1", "kind": "VmafxJob", "spec": spec}


def split_job(chance: Random) -> Plain:
    """A job in segments, of a clip that can be scored."""
    made = job(chance)
    made["spec"] |= {"segments": 2, "distorted": f"{ROOT}/good-{chance.random()}"}
    return made


async def node(client: Client, here: Here, *, studio: Studio) -> None:
    """Works till the studio closes, leaves in between, and takes its object along."""
    work, clock = laws.Work(here), asyncio.get_running_loop().time
    while clock() < CLOSES or not await _is_all_over(client):
        made = Node(
            caller(here, studio),
            partial(scored, work),
            options=NodeOptions(name=here.name, slots=studio.slots, patience=2.0),
            random=Random(random.getrandbits(64)),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(made.run())
            await asyncio.sleep(5)
            while clock() < CLOSES and random.random() > studio.leaves:
                await asyncio.sleep(5)
            made.drain()
    await _gone(client, here.name)


async def _is_all_over(client: Client) -> bool:
    try:
        listed = [job async for job in client.list(VmafxJob, namespace="default")]
    except TrimtabError:
        return False
    return all(each.status.run.outcome in FINAL for each in listed)


async def _gone(client: Client, name: str) -> None:
    """Delete the object of a node, however often it takes."""
    while True:
        try:
            await client.delete(VmafxNode, name, namespace="default")
            return
        except NotFound:
            return
        except TrimtabError:
            await asyncio.sleep(1)


def what_people_see_is_so(server: Server) -> Iterable[str]:
    """At rest every job is over, and its phase says how."""
    for each in server.of(laws.JOBS):
        status = each.get("status") or {}
        outcome = (status.get("run") or {}).get("outcome", "")
        if status.get("phase") != PHASES.get(outcome, "an end"):
            name = each["metadata"]["name"]
            yield f"{name} is shown as {status.get('phase')}, and is {outcome or 'on'}."


def people_scenario(studio: Studio, **changes: Any) -> Scenario:
    app = make(random=Random(1), environment={})
    app.webhooks = Declarations()  # nobody reviews in a simulation
    given: dict[str, Any] = {
        "operator": app,
        "replicas": 2,
        "programs": (
            Program("gateway", gateway, replicas=studio.gateways),
            Program(
                "node", partial(node, studio=studio), replicas=studio.nodes, ends=True
            ),
        ),
        "kinds": (VmafxJob,),
        "samples": {VmafxJob: job},
        "objects": studio.jobs,
        "always": laws.ALWAYS,
        "at_rest": (what_people_see_is_so,),
        "same": False,
        "skew": 5.0,
        "seconds": 60.0,
    }
    return Scenario(**{**given, **changes})
