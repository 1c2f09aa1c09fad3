"""From end to end, on both servers: whatever people and machines do to sessions.

Each server is started for these tests, with what collects garbage and ends namespaces.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from tests.kubelet.laptop import marked
from tests.operators.sessions import journeys
from tests.operators.sessions.house import House, house
from trimtab import Client, Metadata, load
from trimtab.api.kinds import Namespace, Secret
from trimtab.cache import Scope
from trimtab.client import NotFound
from trimtab.operators.sessions.operator import make
from trimtab.operators.sessions.settings import LANGFUSE_SECRET
from trimtab.testing import Options, eventually
from trimtab.testing.cluster import Cluster
from trimtab.testing.cluster import cluster as started
from trimtab.testing.operating import running
from trimtab.testing.options import Kind

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.cluster("real"),
    pytest.mark.parametrize("server", ["embedded", "real"]),
]
TEAM, OPS, OTHER = "team", "ops", "other"


@asynccontextmanager
async def project(cluster: Cluster, name: str, folder: Path) -> AsyncIterator[House]:
    folder.mkdir(exist_ok=True)
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await client.create(Namespace(metadata=Metadata(name=name)))
    async with house(cluster, name, folder) as made:
        yield made


@pytest.fixture
async def world(server: Kind) -> AsyncIterator[Cluster]:
    async with started(server, options=Options(controllers=True)) as cluster:
        yield cluster


@pytest.fixture
async def here(world: Cluster, tmp_path: Path) -> AsyncIterator[House]:
    async with project(world, TEAM, tmp_path) as made:
        yield made


async def test_a_session_starts_stops_is_resumed_and_replaced(here: House) -> None:
    await journeys.lives(here)


async def test_a_runner_out_of_memory_a_typo_a_timeout_and_idleness_end_a_session(
    here: House,
) -> None:
    await journeys.ends(here)


async def test_repositories_a_workflow_and_retention(here: House) -> None:
    await journeys.edits(here)


@pytest.mark.parametrize("phase", ["Pending", "Creating", "Running"])
async def test_an_operator_that_is_killed_is_followed_by_one_that_goes_on(
    here: House, phase: str
) -> None:
    await journeys.goes_on(here, phase)


async def test_a_secret_that_is_rotated_reaches_the_project_and_goes_with_its_session(
    here: House,
) -> None:
    client = here.client
    here.settings = replace(here.settings, namespace=OPS, langfuse=True)
    await client.create(Namespace(metadata=Metadata(name=OPS)))
    source = Metadata(name=LANGFUSE_SECRET, namespace=OPS)
    await client.create(Secret(metadata=source, data={"LANGFUSE_HOST": b"one"}))

    async def copy() -> bytes | None:
        try:
            found = await client.get(Secret, LANGFUSE_SECRET, namespace=TEAM)
        except NotFound:
            return None
        return found.data["LANGFUSE_HOST"]

    async def is_copied(value: bytes | None) -> bool:
        return await copy() == value

    async with here.node(), here.operated():
        await here.start("one")
        await here.until("one", "Running", within=60.0)
        assert await copy() == b"one"
        body = {"stringData": {"LANGFUSE_HOST": "two"}}
        await client.patch(Secret, LANGFUSE_SECRET, body, namespace=OPS)
        await eventually(lambda: is_copied(b"two"))
        await here.command("one", "Stopped")
        await here.until("one", "Stopped", within=30.0)
        await eventually(lambda: is_copied(None))


async def test_a_namespace_that_is_deleted_takes_its_sessions_and_no_others(
    world: Cluster, here: House, tmp_path: Path
) -> None:
    async with project(world, OTHER, tmp_path / OTHER) as there:
        there.settings = here.settings
        app = make(here.settings, random=Random(1), scope=Scope(everything=True))
        async with here.node(), running(app, world, TEAM):
            await here.start("one")
            await there.start("mine")
            for each, name in ((here, "one"), (there, "mine")):
                await each.until(name, "Running", within=60.0)
            pod = await here.pod("one")
            assert pod is not None
            await here.start("two")  # it is on its way when its project goes
            await here.client.delete(Namespace, TEAM)

            async def is_gone() -> bool:
                try:
                    await here.client.get(Namespace, TEAM)
                except NotFound:
                    return not marked(pod.metadata.uid)
                return False

            await eventually(is_gone, within=120.0)
            seen = await there.get("mine")
            assert (seen.status.phase, seen.status.restarts) == ("Running", 0)
            await there.command("mine", "Stopped")
            await there.until("mine", "Stopped", within=30.0)
