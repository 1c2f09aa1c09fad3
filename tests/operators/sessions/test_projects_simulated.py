"""A law of projects in the simulation: who may do what is what the settings say."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import trimtab
from trimtab import Client
from trimtab.api.codec import convert
from trimtab.cache import Scope
from trimtab.client import NotFound, TrimtabError
from trimtab.kinds import LimitRange, Namespace, NetworkPolicy, RoleBinding
from trimtab.operators.sessions import projects
from trimtab.operators.sessions.bindings import binding_of, is_ours
from trimtab.operators.sessions.kinds import (
    GROUP,
    KINDS,
    MANAGED,
    SETTINGS,
    ProjectSettings,
)
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Settings
from trimtab.sim import Here, Program, Scenario
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told
from trimtab.sim.server import Plain, Server

SEEDS = 3
PLACE = "default"
GROUPS = ("writers", "readers", "https://sso.example.com/odd one")
BINDINGS = "rbac.authorization.k8s.io/rolebindings"


async def until_done(work: Callable[[], Awaitable[object]]) -> None:
    """Do something, however often it takes; what is gone needs nothing done."""
    while True:
        try:
            await work()
        except NotFound:
            return
        except TrimtabError:
            await asyncio.sleep(1)
        else:
            return


async def people(client: Client, here: Here) -> None:
    """Make a project, change their minds about it, bend it, and let it go."""
    await until_done(lambda: labelled(client, "true"))
    await until(lambda: settings(client))
    for _ in range(8):
        await asyncio.sleep(random.expovariate(1 / 4))
        access = [
            {"groupName": group, "role": random.choice(("admin", "edit", "view"))}
            for group in GROUPS
            if random.random() < 0.5
        ]
        body = {"spec": {"groupAccess": access}}
        await until_done(
            lambda body=body: client.patch(  # type: ignore[misc]
                ProjectSettings, SETTINGS, body, namespace=PLACE
            )
        )
        kind, name = random.choice(
            [(LimitRange, projects.LIMITS), (NetworkPolicy, projects.POLICY)]
        )
        await until_done(
            lambda kind=kind, name=name: client.delete(  # type: ignore[misc]
                kind, name, namespace=PLACE
            )
        )
    await until(lambda: as_it_should_be(client))
    await until_done(lambda: labelled(client, None))


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            if await holds():
                return
        except TrimtabError:
            pass
        await asyncio.sleep(1)


async def labelled(client: Client, said: str | None) -> None:
    body = {"metadata": {"labels": {MANAGED: said}}}
    await client.patch(Namespace, PLACE, body)


async def settings(client: Client) -> ProjectSettings:
    return await client.get(ProjectSettings, SETTINGS, namespace=PLACE)


async def as_it_should_be(client: Client) -> bool:
    await client.get(LimitRange, projects.LIMITS, namespace=PLACE)
    await client.get(NetworkPolicy, projects.POLICY, namespace=PLACE)
    held = {
        each.metadata.name
        async for each in client.list(RoleBinding, namespace=PLACE)
        if is_ours(each)
    }
    found = await settings(client)
    current = found.status.observedGeneration == found.metadata.generation
    return current and held == wanted(found)


def wanted(found: ProjectSettings) -> set[str]:
    return {binding_of(each).metadata.name for each in found.spec.groupAccess}


def groups_may_what_the_settings_say(server: Server) -> Iterator[str]:
    """At rest there is a binding for each entry, and no other."""
    said: Plain | None = server.objects.get(
        f"{GROUP}/projectsettings/{PLACE}/{SETTINGS}"
    )
    if said is None:
        return
    held = {
        each.metadata.name
        for each in (convert(RoleBinding, plain) for plain in server.of(BINDINGS))
        if is_ours(each)
    }
    if held != (should := wanted(convert(ProjectSettings, said))):
        yield f"There are the bindings {sorted(held)}, not {sorted(should)}."


def scenario(folder: Path) -> Scenario:
    told = Settings(
        namespace="ops",
        registry_path=str(folder / "none"),
        models_path=str(folder / "none"),
    )
    app = trimtab.Operator("projects")
    projects.register(
        app, told, registry=Registry(told), scope=Scope(namespaces=(PLACE,))
    )
    return Scenario(
        operator=app,
        programs=(Program("people", people, ends=True, struck=False),),
        kinds=(ProjectSettings,),
        samples={ProjectSettings: lambda _: {"spec": {"groupAccess": []}}},
        installs=KINDS,
        at_rest=(groups_may_what_the_settings_say,),
        same=False,
        keeps=(Namespace,),
        seconds=90.0,
        replicas=2,
    )


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


@pytest.mark.simulation
@pytest.mark.timeout(300)
def test_whoever_ends_groups_may_do_what_the_settings_say(tmp_path: Path) -> None:
    search = Search(scenario(tmp_path))
    for seed in range(SEEDS):
        plan = msgspec.structs.replace(search.plan(seed), acts=())
        report = search.run(plan)
        assert not report.violations, told(report)
