"""Laws of programs: replicas of anything, which call each other, die and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.sim import tokens
from tests.sim.tokens import Token, token_scenario
from trimtab import Metadata
from trimtab.client import Client, Conflict
from trimtab.client.errors import (
    DeadlineExceeded,
    Disconnected,
    TrimtabError,
    Unreachable,
)
from trimtab.kinds import ConfigMap
from trimtab.sim import Fault, Here, Plan, Program, Report, Scenario, run
from trimtab.sim.plan import FaultKind
from trimtab.sim.programs import Main
from trimtab.sim.provided import provided
from trimtab.sim.search import Search, told

QUICK: dict[str, Any] = {"seconds": 20.0, "quiet": 10.0, "rest": 30.0}
CALLER = 1
"""The number of the replica that calls; 0 is the one that answers."""


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


class Heard(list[str]):
    """What two programs have to say, in the order in which they said it."""

    async def echo(self, client: Client, here: Here) -> None:
        async def answer(message: bytes) -> bytes:
            self.append(f"asked {message.decode()}")
            await asyncio.sleep(0.1)
            return message.upper()

        here.serve(answer)
        await asyncio.Event().wait()

    async def caller(self, client: Client, here: Here) -> None:
        await asyncio.sleep(1)
        try:
            answer = await here.call("echo-0", b"hello", deadline=5.0)
            self.append(answer.decode())
        except TrimtabError as error:
            self.append(type(error).__name__)

    def scenario(self, **changes: Any) -> Scenario:
        programs = (
            Program("echo", self.echo),
            Program("caller", self.caller, ends=True),
        )
        return Scenario(**{"programs": programs, **QUICK, **changes})


def played(*faults: Fault, **changes: Any) -> tuple[Heard, Report]:
    heard = Heard()
    report = run(heard.scenario(**changes), Plan(seed=1, acts=(), faults=faults))
    return heard, report


def of_message(kind: FaultKind, seconds: float = 0.0) -> Fault:
    return Fault(CALLER, 1, kind, seconds, messages=True)


def test_a_message_is_answered_by_the_program_at_its_address() -> None:
    heard, report = played()
    assert heard == ["asked hello", "HELLO"]
    assert report.violations == []
    assert report.messages_of == (0, 1)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("refuse", [Unreachable.__name__]),
        ("lose", [Disconnected.__name__]),
        ("hang", [DeadlineExceeded.__name__]),
        ("lose-answer", ["asked hello", Disconnected.__name__]),
        ("hang-after", ["asked hello", DeadlineExceeded.__name__]),
        ("slow", ["asked hello", "HELLO"]),
        ("apart", [Unreachable.__name__]),
    ],
)
def test_a_message_fails_before_or_after_it_is_answered(
    kind: FaultKind, told: list[str]
) -> None:
    heard, report = played(of_message(kind, 3.0))
    assert heard == told
    assert report.faults[kind] == 1


def test_a_message_can_arrive_twice() -> None:
    heard, _ = played(of_message("duplicate", 2.0))
    assert heard == ["asked hello", "HELLO", "asked hello"]


def test_what_a_dead_program_sent_arrives_and_it_starts_anew() -> None:
    heard, report = played(of_message("die-after", 1.0))
    assert heard == ["asked hello", "asked hello", "HELLO"]
    assert report.violations == []


def test_nobody_answers_for_a_program_that_is_gone() -> None:
    async def absent(client: Client, here: Here) -> None:
        await asyncio.Event().wait()

    heard = Heard()
    programs = (
        Program("echo", absent),
        Program("caller", heard.caller, ends=True),
    )
    run(heard.scenario(programs=programs), Plan(seed=1, acts=()))
    assert heard == [Unreachable.__name__]


async def returns(client: Client, here: Here) -> None:
    await asyncio.sleep(1)


async def raises(client: Client, here: Here) -> None:
    raise KeyError("a bug")


async def deaf(client: Client, here: Here) -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def complains(client: Client, here: Here) -> None:
    here.broken("never two tasks at once", "it was given two.")
    await asyncio.Event().wait()


async def leaves_a_task(client: Client, here: Here) -> None:
    left = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.shield(left)


@pytest.mark.parametrize(
    ("main", "law"),
    [
        (returns, "a replica does not end by itself"),
        (raises, "a replica does not end by itself"),
        (deaf, "a replica that is told to stop does so within five seconds"),
        (complains, "never two tasks at once"),
        (leaves_a_task, "nothing of a replica runs on after its end"),
    ],
)
def test_a_program_that_does_not_behave_is_found(main: Main, law: str) -> None:
    scenario = Scenario(programs=(Program("it", main),), **QUICK)
    assert law in run(scenario, Plan(seed=1, acts=())).laws


def test_tokens_have_one_holder_whatever_goes_wrong() -> None:
    search = Search(token_scenario())
    for seed in range(4):
        report = search.run(search.plan(seed))
        assert not report.violations, told(report)


def test_a_run_with_programs_replays() -> None:
    search = Search(token_scenario())
    plan = search.plan(3)
    assert len(plan.faults) > 1
    assert run(search.scenario, plan).digest == run(search.scenario, plan).digest


def test_tokens_that_are_taken_without_a_swap_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def careless(client: Client, token: Token, holder: str) -> None:
        patch = {"spec": {"holder": holder}}
        name = token.metadata.name
        await client.patch(Token, name, patch, namespace="default", deadline=5)

    monkeypatch.setattr(tokens, "take", careless)
    search = Search(token_scenario(quiet=10.0))
    reports = (search.run(search.plan(seed)) for seed in range(20))
    laws = next(each.laws for each in reports if each.violations)
    assert laws == {"no_token_changes_hands"}


# Model pods


def pod_of(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.local/worker:1.2"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, "restartPolicy": "Always"},
    }


class Pods:
    """A program that makes pods, talks to what runs in them, and deletes them."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.addresses: list[str] = []

    async def worker(self, client: Client, here: Here) -> None:
        assert here.pod is not None
        name = str(here.pod["metadata"]["name"])

        async def answer(message: bytes) -> bytes:
            return name.encode()

        await asyncio.sleep(3)  # what it takes to become ready
        here.serve(answer)
        await asyncio.Event().wait()

    async def main(self, client: Client, here: Here) -> None:
        info = await client.discover("v1", "Pod")
        for name in ("one", "two"):
            with suppress(Conflict):
                await client.create(pod_of(name))
            address = await self._ready(client, info, name)
            self.addresses.append(address)
            self.answers.append((await here.call(address, b"who?")).decode())
            await client.delete(info, name, namespace="default")
            await self._gone(client, info, name)
            with suppress(TrimtabError):
                await here.call(address, b"who?")
                self.answers.append("a ghost")

    async def _ready(self, client: Client, info: Any, name: str) -> str:
        while True:
            pod = await client.get(info, name, namespace="default")
            status = pod.get("status", {})
            for each in status.get("conditions", ()):
                if each["type"] == "Ready" and each["status"] == "True":
                    return str(status["podIP"])
            await asyncio.sleep(0.5)

    async def _gone(self, client: Client, info: Any, name: str) -> None:
        while True:
            try:
                await client.get(info, name, namespace="default")
            except TrimtabError:
                return
            await asyncio.sleep(0.5)


def test_a_model_pod_answers_while_it_is_there_and_its_address_is_used_again() -> None:
    pods = Pods()
    scenario = Scenario(
        programs=(Program("pool", pods.main, ends=True),),
        images={"worker": pods.worker},
        **QUICK,
    )
    report = run(scenario, Plan(seed=1, acts=()))
    assert report.violations == []
    assert pods.answers == ["one", "two"]
    assert pods.addresses[0] == pods.addresses[1]


async def keeper(client: Client, here: Here) -> None:
    """Writes once in a while, and never two seconds in a row."""
    metadata = Metadata(name="kept", namespace="default")
    while True:
        with suppress(TrimtabError):
            await client.apply(ConfigMap(metadata=metadata), manager="keeper")
        await asyncio.sleep(2)


@pytest.mark.parametrize("kind", ["die", "die-after", "pause", "cut", "stop", "jump"])
def test_a_fault_strikes_a_program_at_its_call(kind: FaultKind) -> None:
    faults = (Fault(0, 1, kind, 5.0, writes=True),)
    scenario = Scenario(programs=(Program("keeper", keeper, replicas=2),), **QUICK)
    report = run(scenario, Plan(seed=1, acts=(), faults=faults))
    assert report.violations == []
    assert report.faults[kind] == 1
