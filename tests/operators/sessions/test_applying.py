"""Laws of applying: a runner is asked for what it lacks, and told of in the status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

import trimtab
from tests.operators.sessions.misbehaving import misbehaving
from tests.operators.sessions.runner_process import Process, repository
from tests.operators.sessions.runner_process import running as running_runner
from trimtab.api import Metadata
from trimtab.cache import Scope
from trimtab.client.calling import Caller
from trimtab.operators.sessions import applying
from trimtab.operators.sessions.applying import Outcome, Step, incarnation, steps
from trimtab.operators.sessions.calling import CallLimits, Runner, Runners
from trimtab.operators.sessions.kinds import (
    AgenticSession,
    AgenticSessionSpec,
    AgenticSessionStatus,
    Repository,
    Workflow,
)
from trimtab.operators.sessions.repositories import names_of
from trimtab.runtime import Context
from trimtab.testing import Cluster, running

NOW = datetime(2026, 1, 2, tzinfo=UTC)
URLS = some.sampled_from(["https://a/x.git", "https://b/x", "/srv/y", "git@c:x.git"])
REPOS = some.lists(
    some.builds(Repository, url=URLS, branch=some.sampled_from(["main", "next"])),
    max_size=6,
)
FLOWS = some.none() | some.builds(
    Workflow, gitUrl=some.sampled_from(["", "/f"]), path=some.sampled_from(["", "p"])
)


def session(
    repos: list[Repository] | None = None,
    workflow: Workflow | None = None,
    **status: Any,
) -> AgenticSession:
    facts = {"phase": "Running", "readyAt": NOW, **status}
    return AgenticSession(
        metadata=Metadata(name="mine", namespace="team"),
        spec=AgenticSessionSpec(repos=repos or [], activeWorkflow=workflow),
        status=AgenticSessionStatus(**facts),
    )


def after(seen: AgenticSession, outcomes: dict[Step, Outcome]) -> AgenticSession:
    """The session with what some steps came to."""
    status = msgspec.structs.replace(
        seen.status,
        reconciledRepos=applying.repositories(seen, outcomes, now=NOW),
        reconciledWorkflow=applying.workflow(seen, outcomes, now=NOW),
        appliedTo=incarnation(seen.status),
    )
    return msgspec.structs.replace(seen, status=status)


def edited(seen: AgenticSession, **spec: Any) -> AgenticSession:
    return msgspec.structs.replace(
        seen, spec=msgspec.structs.replace(seen.spec, **spec)
    )


def truths(seen: AgenticSession) -> dict[str, tuple[bool, str]]:
    said = applying.conditions(seen)
    return {each.type: (each.status, each.reason) for each in said}


@given(first=REPOS, flow=FLOWS, second=REPOS, other=FLOWS)
def test_what_went_well_is_not_done_again_and_a_change_is_done_once(
    first: list[Repository],
    flow: Workflow | None,
    second: list[Repository],
    other: Workflow | None,
) -> None:
    seen = session(first, flow)
    seen = after(seen, {each: Outcome() for each in steps(seen)})
    assert steps(seen) == []
    seen = edited(seen, repos=second, activeWorkflow=other)
    seen = after(seen, {each: Outcome() for each in steps(seen)})
    assert steps(seen) == []
    there = {each.url for each in seen.status.reconciledRepos}
    assert there == {each.url for each in second}
    assert truths(seen)["Reconciled"] == (True, "SpecApplied")


@given(repos=REPOS, flow=FLOWS)
def test_what_failed_is_done_again_and_says_why(
    repos: list[Repository], flow: Workflow | None
) -> None:
    seen = session(repos, flow)
    todo = steps(seen)
    seen = after(seen, {each: Outcome(message="no disk") for each in todo})
    assert steps(seen) == todo
    assert {each.status for each in seen.status.reconciledRepos} <= {"Failed"}
    assert all(each.message == "no disk" for each in seen.status.reconciledRepos)
    assert truths(seen)["Reconciled"][0] == (not todo)


@given(repos=REPOS)
def test_another_runner_is_asked_everything_again(repos: list[Repository]) -> None:
    seen = session(repos)
    todo = steps(seen)
    seen = after(seen, {each: Outcome() for each in todo})
    status = msgspec.structs.replace(seen.status, restarts=1)
    assert steps(msgspec.structs.replace(seen, status=status)) == todo


@given(urls=some.lists(URLS | some.text(max_size=20), max_size=8))
def test_no_two_repositories_share_a_name_and_each_is_a_folder(
    urls: list[str],
) -> None:
    names = names_of(urls)
    assert len(set(names.values())) == len(set(urls))
    assert not any(set(each) & set("/\\\0\n ") for each in names.values())
    assert not any(each.startswith((".", "-")) or not each for each in names.values())


def test_of_one_address_the_last_counts() -> None:
    repos = [Repository(url="/a"), Repository(url="/a", branch="next")]
    assert [each.branch for each in steps(session(repos))] == ["next"]


def test_a_runner_that_is_still_at_it_is_no_failure() -> None:
    seen = session([Repository(url="/a")])
    outcome = Outcome(message="late", working=True)
    seen = after(seen, dict.fromkeys(steps(seen), outcome))
    assert seen.status.reconciledRepos[0].status == "Cloning"
    assert truths(seen)["ReposReconciled"] == (False, "Updating")
    assert len(steps(seen)) == 1


def test_a_removal_that_failed_is_tried_again() -> None:
    seen = session([Repository(url="/a")])
    seen = after(seen, {each: Outcome() for each in steps(seen)})
    seen = edited(seen, repos=[])
    (step,) = steps(seen)
    seen = after(seen, {step: Outcome(message="busy")})
    assert steps(seen) == [step]
    seen = after(seen, {step: Outcome()})
    assert seen.status.reconciledRepos == []


# On a cluster, with the real runner


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with running_runner(tmp_path_factory.mktemp("workspace")) as made:
        yield made


@asynccontextmanager
async def operating(
    cluster: Cluster, namespace: str, *found: Runner
) -> AsyncIterator[Any]:
    """An operator that only applies, to runners by the names of their sessions."""
    caller, by_name = Caller(), {each.key[1]: each for each in found}

    async def locate(seen: AgenticSession, ctx: Context) -> Runner:
        return by_name[seen.metadata.name]

    app = trimtab.Operator("sessions", leader=False)
    limits = CallLimits(total=1.0)
    applying.register(
        app,
        Runners(caller, random=Random(1), limits=limits),
        locate=locate,
        random=Random(1),
        scope=Scope(everything=True),
    )
    async with running(app, cluster, namespace) as run:
        yield run
    await caller.close()


async def create(run: Any, name: str, namespace: str, **spec: Any) -> None:
    await run.client.create(
        AgenticSession(
            metadata=Metadata(name=name, namespace=namespace),
            spec=AgenticSessionSpec(**spec),
        )
    )


async def is_running(run: Any, name: str, namespace: str) -> None:
    body = {"status": {"phase": "Running", "readyAt": "2026-01-02T03:04:05Z"}}
    await run.client.patch(
        AgenticSession, name, body, namespace=namespace, subresource="status"
    )


@pytest.mark.cluster
async def test_a_spec_reaches_a_real_runner_and_its_failures_reach_the_status(
    cluster: Cluster, namespace: str, runner: Process, tmp_path: Path
) -> None:
    good, late = repository(tmp_path / "good", "main", "next"), tmp_path / "late"
    repos = [Repository(url=good), Repository(url=str(late))]
    flow = Workflow(gitUrl=good)
    async with operating(cluster, namespace, runner.runner()) as run:
        await create(run, "mine", namespace, repos=repos, activeWorkflow=flow)
        await is_running(run, "mine", namespace)

        def tried(seen: AgenticSession) -> bool:
            return len(seen.status.reconciledRepos) == 2

        seen = await run.until(AgenticSession, "mine", tried)
        states = {each.name: each.status for each in seen.status.reconciledRepos}
        assert states == {"good": "Ready", "late": "Failed"}
        assert "git clone" in seen.status.reconciledRepos[1].message
        assert seen.status.reconciledWorkflow.status == "Active"
        repository(late)
        changed = [{"url": good, "branch": "next"}, {"url": str(late)}]
        await run.client.patch(
            AgenticSession, "mine", {"spec": {"repos": changed}}, namespace=namespace
        )
        await run.until(AgenticSession, "mine", lambda seen: not steps(seen))
        text = (runner.folder / "repos/good/README.md").read_text()
        assert text == "This is next.\n"


@pytest.mark.cluster
async def test_no_runner_is_called_before_it_is_ready_and_a_bad_one_delays_nobody(
    cluster: Cluster, namespace: str, runner: Process, tmp_path: Path
) -> None:
    repos = [Repository(url=repository(tmp_path / "one"))]
    async with misbehaving("silent") as silent, misbehaving("giant") as giant:
        found = (
            silent.runner("silent"),
            giant.runner("giant"),
            runner.runner(key=("team", "fine")),
        )
        async with operating(cluster, namespace, *found) as run:
            for name in ("silent", "giant", "fine"):
                await create(run, name, namespace, repos=repos)
            assert silent.requests == giant.requests == 0
            for name in ("silent", "giant", "fine"):
                await is_running(run, name, namespace)
            await run.until(AgenticSession, "fine", lambda seen: not steps(seen))

            def tried(seen: AgenticSession) -> bool:
                return bool(seen.status.reconciledRepos)

            bad = await run.until(AgenticSession, "giant", tried)
            assert bad.status.reconciledRepos[0].status == "Failed"
            assert "longer than 65536 bytes" in bad.status.reconciledRepos[0].message
            slow = await run.until(AgenticSession, "silent", tried)
            assert slow.status.reconciledRepos[0].status == "Cloning"
