"""Laws of retention: what is over goes when its project says so, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import trimtab
from trimtab import Client, load
from trimtab.api import Metadata
from trimtab.cache import Scope
from trimtab.operators.sessions import retention
from trimtab.operators.sessions.decisions import is_wanted
from trimtab.operators.sessions.kinds import (
    DESIRED,
    KEEP,
    KINDS,
    SETTINGS,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
    ProjectSettingsSpec,
    Retention,
)
from trimtab.operators.sessions.retention import Finished, chosen, finished
from trimtab.testing import Cluster, eventually, running
from trimtab.testing.operating import install

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ENDED = some.lists(
    some.tuples(some.integers(0, 100), some.booleans()), max_size=12
).map(
    lambda facts: [
        Finished(name=f"s{number}", ended=NOW - timedelta(seconds=age), keep=keep)
        for number, (age, keep) in enumerate(facts)
    ]
)
LIMIT = some.none() | some.integers(0, 100)


@given(sessions=ENDED, age=LIMIT, count=LIMIT)
def test_what_stays_is_young_and_few_and_what_is_kept_stays(
    sessions: list[Finished], age: int | None, count: int | None
) -> None:
    limits = Retention(maxAgeSeconds=age, maxCount=count)
    plan = chosen(sessions, retention=limits, now=NOW)
    gone = set(plan.gone)
    stay = [each for each in sessions if each.name not in gone and not each.keep]
    assert not any(each.keep for each in sessions if each.name in gone)
    assert count is None or len(stay) <= count
    assert age is None or all((NOW - each.ended).seconds < age for each in stay)
    younger = [each.ended for each in sessions if each.name in gone]
    assert all(each.ended >= max(younger) for each in stay if younger)
    if age is None and count is None:
        assert not gone


@given(sessions=ENDED, age=some.integers(0, 100), count=LIMIT)
def test_a_plan_holds_until_it_is_due(
    sessions: list[Finished], age: int, count: int | None
) -> None:
    limits = Retention(maxAgeSeconds=age, maxCount=count)
    plan = chosen(sessions, retention=limits, now=NOW)
    left = [each for each in sessions if each.name not in plan.gone]
    if plan.due is None:
        later = NOW + timedelta(days=365)
        assert chosen(left, retention=limits, now=later).gone == []
    else:
        before = NOW + timedelta(seconds=plan.due / 2)
        assert chosen(left, retention=limits, now=before).gone == []
        then = NOW + timedelta(seconds=plan.due)
        assert chosen(left, retention=limits, now=then).gone != []


def test_a_project_without_retention_keeps_everything() -> None:
    old = Finished(name="old", ended=NOW - timedelta(days=9999))
    assert chosen([old], retention=None, now=NOW).gone == []


def session(
    name: str, phase: str, annotations: dict[str, str] | None = None, *, age: int = 0
) -> AgenticSession:
    ended = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=age)
    facts: Any = {"phase": phase, "completionTime": ended}
    return AgenticSession(
        metadata=Metadata(name=name, annotations=annotations or {}),
        status=AgenticSessionStatus(**facts),
    )


@pytest.mark.parametrize("phase", ["Pending", "Creating", "Running", "Stopping"])
def test_what_is_not_over_never_counts(phase: str) -> None:
    assert finished(session("mine", phase)) is None
    assert finished(session("mine", "Stopped", {DESIRED: "Running"})) is None
    assert finished(session("mine", "Stopped")) is not None


def kept(each: AgenticSession) -> Any:
    return "slice" if is_wanted(each) else "key"


@pytest.mark.cluster
async def test_sessions_go_by_age_and_count_and_never_those_that_are_kept(
    cluster: Cluster, namespace: str
) -> None:
    app = trimtab.Operator("sessions", leader=False)
    where = Scope(everything=True)
    retention.register(app, scope=where, sessions=where, keep=kept)

    async def names() -> set[str]:
        found = client.list(AgenticSession, namespace=namespace)
        return {each.metadata.name async for each in found}

    async def are(*expected: str) -> None:
        async def check() -> bool:
            assert await names() == set(expected)
            return True

        await eventually(check)

    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:
        await install(client, *KINDS)
        for made in (
            session("ancient", "Failed", age=500),
            session("ancient-but-kept", "Stopped", {KEEP: "true"}, age=500),
            session("ancient-but-wanted", "Stopped", {DESIRED: "Running"}, age=500),
            session("older", "Completed", age=40),
            session("newer", "Stopped", age=20),
            session("runs", "Running", age=900),
        ):
            await _created(client, made, namespace)
        spec = ProjectSettingsSpec(
            groupAccess=[], retention=Retention(maxAgeSeconds=400)
        )
        metadata = Metadata(name=SETTINGS, namespace=namespace)
        await client.create(ProjectSettings(metadata=metadata, spec=spec))
        stay = ("ancient-but-kept", "ancient-but-wanted", "newer", "runs")
        async with running(app, cluster, namespace) as run:
            await are("older", *stay)
            body: Any = {"spec": {"retention": {"maxCount": 1}}}
            await run.client.patch(ProjectSettings, SETTINGS, body, namespace=namespace)
            await are(*stay)
            # One that ends now is the youngest: the other one has to go.
            body = {"status": {"phase": "Completed", "completionTime": _now()}}
            await run.client.patch(
                AgenticSession, "runs", body, namespace=namespace, subresource="status"
            )
            await are("ancient-but-kept", "ancient-but-wanted", "runs")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _created(client: Any, made: AgenticSession, namespace: str) -> None:
    facts = made.status
    await client.create(made)
    assert facts.completionTime is not None
    ended = facts.completionTime.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"status": {"phase": facts.phase, "completionTime": ended}}
    name = made.metadata.name
    await client.patch(
        AgenticSession, name, body, namespace=namespace, subresource="status"
    )
