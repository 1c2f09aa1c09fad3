"""Laws of a world: it replays, its faults strike where the plan says, its laws bite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.shops import Shop
from tests.sim.worlds import shop_scenario, website_scenario
from trimtab import Context, Operator, Result, Scope
from trimtab.sim import Act, Fault, Plan, Scenario, run
from trimtab.sim.fields import owned
from trimtab.sim.plan import FAULTS, FaultKind, acts_of, faults_of
from trimtab.sim.provided import provided
from trimtab.sim.samples import sample
from trimtab.sim.search import least

ROOT = Path(__file__).parents[2]
SHORT = {"seconds": 20.0, "rest": 30.0, "replicas": 2, "objects": 2}
ACTS = (Act(1.0, "create", 0, 1), Act(5.0, "edit", 0, 2), Act(12.0, "delete", 0))


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


def test_a_plan_without_faults_breaks_no_law() -> None:
    report = run(shop_scenario(**SHORT), Plan(seed=1, acts=ACTS))
    assert report.violations == []
    assert report.writes > 4


@pytest.fixture(scope="module")
def undisturbed() -> Mapping[str, Any]:
    with provided():
        return run(shop_scenario(**SHORT), Plan(seed=1, acts=ACTS)).state


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_strikes_the_call_that_the_plan_names(
    kind: FaultKind, undisturbed: Mapping[str, Any]
) -> None:
    """And an operator that is right survives it."""
    # What is cancelled is what a handler waits for, and not every write is one's.
    numbers = range(1, 7) if kind == "cancel" else (2,)
    faults = tuple(Fault(0, number, kind, 2.0, writes=True) for number in numbers)
    plan = Plan(seed=1, acts=ACTS, faults=faults)
    report = run(shop_scenario(**SHORT), plan, undisturbed=undisturbed)
    assert report.violations == []
    assert report.faults[kind] >= 1


def test_a_whole_world_replays_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-m", "tests.sim.replay", *more],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, more in (("1", []), ("2", ["imports"]))
    }
    assert len(found) == 1
    assert len(found.pop().split()[0]) == 64


def test_an_end_that_differs_from_the_undisturbed_one_is_found() -> None:
    scenario = shop_scenario(**SHORT)
    first = run(scenario, Plan(seed=1, acts=ACTS[:1]))
    other = run(scenario, Plan(seed=1, acts=ACTS[:2]), undisturbed=first.state)
    assert "it ends as an undisturbed run does" in other.laws


def test_a_law_of_the_operators_own_is_checked_within_every_write() -> None:
    def no_shelves(server: object, change: object) -> Iterator[str]:
        if getattr(change, "key", "").startswith("core/configmaps/default/shop"):
            yield "There is a shelf."

    plan = Plan(seed=1, acts=ACTS)
    report = run(shop_scenario(**SHORT, always=(no_shelves,)), plan)
    assert report.laws == {"no_shelves"}


def test_what_never_comes_to_rest_is_told_with_what_it_wrote_last() -> None:
    app = Operator("chatty")

    @app.reconciles(Shop, scope=Scope(everything=True))
    async def chat(shop: Shop, ctx: Context) -> Result:
        ctx.event("Open", "It is open.")
        return ctx.done(after=20.0)

    scenario = Scenario(operator=app, patience=200.0, **SHORT)  # type: ignore[arg-type]
    report = run(scenario, Plan(seed=1, acts=ACTS[:1]))
    told = [each.sentence for each in report.violations]
    assert any("the last was core/events/" in each for each in told), told


def test_an_operator_that_leaves_the_process_is_told_by_name() -> None:
    app = Operator("callers", leader=False)

    @app.reconciles(Shop, scope=Scope(everything=True))
    async def call(shop: Shop, ctx: Context) -> None:
        import socket

        socket.create_connection(("example.com", 80))

    report = run(Scenario(operator=app, **SHORT), Plan(seed=1, acts=ACTS))  # type: ignore[arg-type]
    assert report.laws == {"an operator asks only for what a simulation has"}
    assert "socket.getaddrinfo" in report.violations[0].sentence


def test_pods_of_a_deployment_start_fail_and_become_ready() -> None:
    scenario = website_scenario(**SHORT)
    acts = acts_of(1, seconds=20.0, objects=2)
    undisturbed = run(scenario, Plan(seed=1, acts=acts))
    plan = Plan(seed=1, acts=acts, pods_fail=True)
    report = run(scenario, plan, undisturbed=undisturbed.state)
    assert report.violations == []
    assert report.faults["pod"] > 0


@given(
    st.lists(st.integers(0, 40), unique=True, max_size=25),
    st.sets(st.integers(0, 40), min_size=1, max_size=3),
)
def test_the_least_that_breaks_is_what_is_needed_and_nothing_else(
    items: list[int], needed: set[int]
) -> None:
    items = [*items, *(needed - set(items))]
    assert set(least(items, lambda some: needed <= set(some))) == needed


FAULT = st.builds(
    Fault,
    replica=st.integers(0, 2),
    number=st.integers(1, 300),
    kind=st.sampled_from(FAULTS),
    seconds=st.floats(0, 60),
    writes=st.booleans(),
)


@given(st.lists(FAULT, max_size=20))
def test_a_schedule_of_faults_is_data(faults: list[Fault]) -> None:
    """Hypothesis makes and shrinks it, and it survives being written down."""
    plan = Plan(seed=1, acts=ACTS, faults=tuple(faults))
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


@given(st.integers(0, 10_000))
@settings(max_examples=50)
def test_a_seed_stands_for_one_plan(seed: int) -> None:
    assert faults_of(seed, replicas=3) == faults_of(seed, replicas=3)
    acts = acts_of(seed, seconds=90.0, objects=5)
    made = [each.at for each in acts if each.kind == "create"]
    assert len(made) == 5
    for act in acts:
        if act.kind == "delete":
            later = [each for each in acts if each.target == act.target]
            assert later[0].kind == "create" or later[0].kind == "stranger"


@given(st.integers())
@settings(max_examples=50)
def test_a_sample_obeys_its_schema(seed: int) -> None:
    body = sample(Shop, Random(seed))
    assert 0 <= body["spec"].get("shelves", 1) <= 4
    assert body["spec"].get("goods", "x") != ""


def test_what_an_owner_wrote_is_told_from_the_rest() -> None:
    obj = {"spec": {"a": 1, "b": 2, "list": [{"name": "x", "y": 1, "z": 2}]}}
    fields: dict[str, Any] = {
        "f:spec": {"f:a": {}, "f:list": {'k:{"name":"x"}': {"f:y": {}}}}
    }
    assert owned(obj, fields) == {"spec": {"a": 1, "list": [{"y": 1}]}}
