"""Laws of ``trimtab sessions``: what people see of sessions, and tell them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.commands import printed, refused
from trimtab import Client, load
from trimtab.api import Conditions, Metadata, wire
from trimtab.cli.sessions.trigger import turn_of, wish_of
from trimtab.client import ConfigError
from trimtab.operators.sessions import explaining
from trimtab.operators.sessions.kinds import (
    DESIRED,
    KINDS,
    START_REQUESTED,
    AgenticSession,
    AgenticSessionSpec,
    AgenticSessionStatus,
    Evidence,
    Phase,
    ProjectSettings,
    ProjectSettingsSpec,
    ReconciledRepository,
    Repository,
    Retention,
    Stopped,
)
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import install

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def furnish(cluster: Cluster, namespace: str) -> None:
    """One session that failed, and one that runs."""
    ended = Evidence(reason="OOMKilled", exitCode=137, log="working\n\x1b[2Jno more")
    statuses = {
        "bad": AgenticSessionStatus(phase="Failed", completionTime=NOW, evidence=ended),
        "good": AgenticSessionStatus(phase="Running", readyAt=NOW),
    }
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await install(client, *KINDS)
        for name, status in statuses.items():
            made = Metadata(name=name, namespace=namespace)
            await client.create(AgenticSession(metadata=made))
            await client.patch(
                AgenticSession,
                name,
                {"status": wire(status)},
                namespace=namespace,
                subresource="status",
            )


async def seen(cluster: Cluster, namespace: str, name: str) -> AgenticSession:
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        return await client.get(AgenticSession, name, namespace=namespace)


@pytest.mark.cluster
def test_people_see_sessions_and_start_and_stop_them(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(furnish(cluster, namespace))
    where = ("--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace)

    def said(verb: str, *arguments: str, code: int = 0) -> str:
        return printed(capsys, "sessions", verb, *arguments, *where, code=code)

    lines = said("ls").splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["NAME", "PHASE"],
        ["bad", "Failed"],
        ["good", "Running"],
    ]
    assert "bad" not in said("ls", "--active")
    assert namespace in said("ls", "-A")
    assert "ended with 137" in said("explain", "bad")
    assert said("logs", "bad") == "working\n\ufffd[2Jno more\n"

    said("start", "bad")
    wishes = run(seen(cluster, namespace, "bad")).metadata.annotations
    assert wishes[DESIRED] == "Running"
    assert START_REQUESTED in wishes
    said("stop", "good")
    wishes = run(seen(cluster, namespace, "good")).metadata.annotations
    assert wishes[DESIRED] == "Stopped"

    said("start", "new", "--prompt", "hello", "--repo", "/srv/a#next", "--repo", "/b")
    spec = run(seen(cluster, namespace, "new")).spec
    assert spec.initialPrompt == "hello"
    assert spec.repos == [
        Repository(url="/srv/a", branch="next"),
        Repository(url="/b", branch="main"),
    ]
    assert "already" in refused(
        capsys, "sessions", "start", "new", "--prompt", "x", *where
    )
    assert "not found" in refused(capsys, "sessions", "stop", "nobody", *where)
    assert "at most 55" in refused(capsys, "sessions", "start", "x" * 56, *where)


async def obey(cluster: Cluster, namespace: str, name: str, phase: Phase) -> None:
    """Do what an operator would, as soon as somebody wishes for something."""
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:

        async def wished() -> bool:
            found = await client.get(AgenticSession, name, namespace=namespace)
            return DESIRED in found.metadata.annotations

        await eventually(wished)
        for body, part in (
            ({"status": {"phase": phase}}, "status"),
            ({"metadata": {"annotations": {DESIRED: None}}}, None),
        ):
            await client.patch(
                AgenticSession, name, body, namespace=namespace, subresource=part
            )


@pytest.mark.cluster
def test_who_waits_is_told_when_a_wish_came_true_or_did_not(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(furnish(cluster, namespace))
    where = ("--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace)
    phases: tuple[tuple[str, str, Phase, int], ...] = (
        ("stop", "good", "Stopped", 0),
        ("start", "bad", "Failed", 1),
    )
    for verb, name, phase, code in phases:
        with ThreadPoolExecutor(1) as others:
            obeyed = others.submit(run, obey(cluster, namespace, name, phase))
            said = printed(capsys, "sessions", verb, name, "--wait", *where, code=code)
            obeyed.result()
        assert said.endswith(f"agenticsession/{name} is {phase}\n")


@pytest.mark.cluster
def test_a_turn_that_is_triggered_twice_makes_one_session(
    cluster: Cluster,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(furnish(cluster, namespace))
    where = ("--kubeconfig", str(cluster.kubeconfig))
    for name, value in {
        "SESSION_TEMPLATE": '{"initialPrompt": "report", "project": "unknown"}',
        "SCHEDULED_SESSION_NAME": "nightly",
        "PROJECT_NAMESPACE": namespace,
        "HOSTNAME": "nightly-29000000-abcde",
    }.items():
        monkeypatch.setenv(name, value)
    first = printed(capsys, "sessions", "trigger", *where)
    assert first == "agenticsession/nightly-1740000000 created\n"
    assert printed(capsys, "sessions", "trigger", *where).endswith(" done\n")
    made = run(seen(cluster, namespace, "nightly-1740000000"))
    assert made.spec.initialPrompt == "report"


def test_a_turn_is_told_by_the_name_of_its_pod() -> None:
    planned = datetime.fromtimestamp(29000000 * 60, UTC)
    assert turn_of("my-report-29000000-x7k2p", now=NOW) == planned
    for host in ("", "laptop", "report-29000000-x7k2p-1", "a-1-abcde"):
        assert turn_of(host, now=NOW) == NOW


def test_what_a_trigger_lacks_is_a_sentence() -> None:
    for environment, word in (
        ({}, "SCHEDULED_SESSION_NAME"),
        ({"SCHEDULED_SESSION_NAME": "a"}, "SESSION_TEMPLATE"),
        ({"SCHEDULED_SESSION_NAME": "a", "SESSION_TEMPLATE": "[1]"}, "no spec"),
    ):
        with pytest.raises(ConfigError, match=word):
            wish_of(environment, namespace="team", now=NOW)


PHASES: tuple[Phase, ...] = (
    "Pending",
    "Creating",
    "Running",
    "Stopping",
    "Stopped",
    "Completed",
    "Failed",
)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("age", [None, 5, 10**9])
def test_every_phase_is_explained_in_sentences(phase: Phase, age: int | None) -> None:
    reasons: tuple[Stopped, ...] = ("user", "inactivity", "timeout", "start-deadline")
    project = ProjectSettings(
        metadata=Metadata(name="projectsettings", namespace="team"),
        spec=ProjectSettingsSpec(
            groupAccess=[], retention=Retention(maxAgeSeconds=age)
        ),
    )
    for reason in reasons:
        conditions = Conditions().set(
            "Ready", False, reason="Unschedulable", message="no node", now=NOW
        )
        session = AgenticSession(
            metadata=Metadata(
                name="mine",
                namespace="team",
                creationTimestamp=NOW,
                annotations={DESIRED: "Stopped"},
            ),
            spec=AgenticSessionSpec(repos=[Repository(url="/a")]),
            status=AgenticSessionStatus(
                phase=phase,
                readyAt=NOW,
                completionTime=NOW,
                stoppedReason=reason,
                conditions=conditions,
                restarts=2,
                reconciledRepos=[
                    ReconciledRepository(url="/a", name="a", status="Failed")
                ],
                evidence=Evidence(reason="Error", exitCode=1, at=NOW, log="x"),
            ),
        )
        later = NOW + timedelta(hours=2)
        lines = explaining.session(session, project=project, now=later)
        assert lines[0] == f"mine is {phase}, 2h old."
        assert all(line.endswith(".") for line in lines), lines
        is_stopped = [line for line in lines if line.startswith("It is stopped in ")]
        assert len(is_stopped) == (phase == "Running"), "nobody chose a timeout"
        assert len(explaining.row(session, now=later)) == len(explaining.TITLES)


def test_a_wish_is_fulfilled_when_nothing_of_it_is_left_to_do() -> None:
    def session(phase: Phase, wish: str = "") -> AgenticSession:
        wishes = {DESIRED: wish} if wish else {}
        return AgenticSession(
            metadata=Metadata(name="mine", annotations=wishes),
            status=AgenticSessionStatus(phase=phase),
        )

    told = explaining.is_fulfilled
    assert told(session("Running"), starts=True) is True
    assert told(session("Stopped", "Running"), starts=True) is None
    assert told(session("Failed"), starts=True) is False
    assert told(session("Running", "Stopped"), starts=False) is None
    assert told(session("Stopping"), starts=False) is None
    assert told(session("Stopped"), starts=False) is True
