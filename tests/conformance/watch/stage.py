"""The stage: one scenario with one world, one server and one informer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tests.conformance.watch.laws import broken
from tests.conformance.watch.server import ScriptedServer, scripted
from tests.conformance.watch.subjects import Ended, Report, Subject, Way
from tests.conformance.watch.world import World
from trimtab.testing import eventually

IDLE = 1.5
"""Seconds of silence after which a watch shall count as dead."""


class Failed(Exception):
    """A law was broken; the words say which."""


class NotAsked(Exception):
    """The informer never asks for what the scenario would do wrong."""


class Stage:
    """What a scenario plays on."""

    def __init__(
        self,
        world: World,
        server: ScriptedServer,
        subject: Subject,
        *,
        kubeconfig: Path,
        way: Way,
        patience: float,
    ) -> None:
        self.world = world
        self.server = server
        self.subject = subject
        self._kubeconfig = kubeconfig
        self._way = way
        self.patience = patience
        """Seconds that an informer has to come right again."""
        self.notes: list[str] = []

    async def start(self) -> None:
        await self.subject.start(self._kubeconfig, way=self._way, idle=IDLE)

    async def settled(self) -> Report:
        """Wait until the informer agrees with the world; :class:`Failed` if never."""
        laws = ["it never watched"]
        latest: list[Report] = []

        async def agrees() -> bool:
            report = await self.subject.report()
            latest[:], laws[:] = [report], broken(report, self.world)
            return not laws

        try:
            await eventually(agrees, within=self.patience, every=0.03)
        except AssertionError as error:
            raise Failed("; ".join(laws)) from error
        return latest[0]

    async def watched(self) -> None:
        """Wait until there is a watch that events can be sent to."""
        try:
            await eventually(lambda: self.server.watchers > 0, within=self.patience)
        except AssertionError as error:
            raise Failed("it does not watch") from error

    async def begun(self) -> None:
        """Wait until the informer has everything and watches."""
        await self.settled()
        await self.watched()

    async def asked(self, *verbs: str, times: int = 1) -> None:
        """Wait until there were so many requests of these verbs."""
        try:
            await eventually(
                lambda: self.server.asked(*verbs) >= times, within=self.patience
            )
        except AssertionError as error:
            raise NotAsked from error

    async def ends(self) -> None:
        """The faults have all happened, the informer is right, and it stays so."""
        try:
            await eventually(lambda: not self.server.planted, within=self.patience)
        except AssertionError as error:
            raise NotAsked from error
        await self.begun()
        self.world.create("last")
        self.server.announce()
        await self.settled()
        await asyncio.sleep(0.1)
        await self.settled()


Play: TypeAlias = Callable[[Stage], Awaitable[None]]


class Scenario(NamedTuple):
    """What happens, and in which world."""

    name: str
    play: Play
    way: Way = "pages"
    objects: int = 20
    padding: int = 0
    long: bool = False
    memory: bool = False
    """Whether it measures memory, for which the informer needs its own process."""


class Verdict(NamedTuple):
    """How an informer did."""

    scenario: str
    outcome: str
    """``ok``, ``n/a``, or which laws were broken."""
    notes: str = ""


async def perform(
    scenario: Scenario, subject: Subject, *, folder: Path, patience: float = 10.0
) -> Verdict:
    """Play a scenario to its end."""
    world = World(padding=scenario.padding)
    world.create(*(f"w{number:06}" for number in range(scenario.objects)))
    async with scripted(world) as server:
        stage = Stage(
            world,
            server,
            subject,
            kubeconfig=_kubeconfig(folder, server.url),
            way=scenario.way,
            patience=patience,
        )
        try:
            await scenario.play(stage)
            outcome = "ok"
        except NotAsked:
            outcome = "n/a"
        except Failed as failure:
            outcome = str(failure)
        except (Ended, ConnectionError):
            outcome = "its process ended"
        finally:
            await subject.stop()
    return Verdict(scenario.name, outcome, "; ".join(stage.notes))


def _kubeconfig(folder: Path, url: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "conformance"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return path
