"""Laws of preparing: together what can be, once for each start, and then at work."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.operators.sessions.pods import NOW, container, pod, ready, running
from trimtab.api import Metadata
from trimtab.operators.sessions.access import Access
from trimtab.operators.sessions.decisions import Seen
from trimtab.operators.sessions.environment import Facts
from trimtab.operators.sessions.kinds import (
    DESIRED,
    FORCE_PROMPT,
    AgenticSession,
    AgenticSessionStatus,
    ProjectSettings,
    ProjectSettingsSpec,
)
from trimtab.operators.sessions.lifecycle import started_warm
from trimtab.operators.sessions.preparing import (
    KEPT,
    Ground,
    Prepared,
    Preparer,
    start_of,
)
from trimtab.operators.sessions.profiles import Registry
from trimtab.operators.sessions.settings import Limits, Settings
from trimtab.operators.sessions.together import both, together


def seen(**status: Any) -> Seen:
    """A session that is to start."""
    metadata = Metadata(
        name="a",
        namespace="team",
        uid="session-1",
        generation=1,
        annotations={DESIRED: "Running", FORCE_PROMPT: "true"},
    )
    session = AgenticSession(metadata=metadata, status=AgenticSessionStatus(**status))
    return Seen(
        session=session, pod=None, project=project("1"), now=NOW, limits=Limits()
    )


def project(version: str) -> ProjectSettings:
    metadata = Metadata(name="projectsettings", resourceVersion=version)
    return ProjectSettings(metadata=metadata, spec=ProjectSettingsSpec(groupAccess=[]))


def edited(look: Seen, **metadata: Any) -> Seen:
    changed = replace(look.session.metadata, **metadata)
    return replace(look, session=replace(look.session, metadata=changed))


# A runner that waited


def test_a_session_with_a_runner_that_waited_and_answers_runs_at_once() -> None:
    decided = started_warm(replace(seen(), pod=ready()))
    assert decided is not None
    status = decided.status
    assert status.phase == "Running"
    assert status.startTime == status.readyAt == status.firstStartedAt == NOW
    stated = {each.type: each.status for each in decided.conditions}
    assert all(stated[each] for each in ("Ready", "PodCreated", "RunnerStarted"))


def test_a_runner_that_waited_and_is_not_ready_is_waited_for_like_any_other() -> None:
    assert started_warm(replace(seen(), pod=pod(container(running())))) is None


def test_the_prompt_is_forced_until_the_session_is_seen_to_run() -> None:
    decided = started_warm(replace(seen(), pod=ready()))
    assert decided is not None
    assert decided.clear == (DESIRED,)


# What was prepared


def preparer() -> Preparer:
    settings = Settings()
    access = Access(settings, random=Random(1))
    return Preparer(settings, access=access, registry=Registry(settings))


def prepared(look: Seen) -> Prepared:
    ground = Ground(facts=Facts(), reads=None)  # type: ignore[arg-type]
    return Prepared(of=start_of(look), ground=ground, body={}, token="secret")


def test_what_was_prepared_is_used_for_that_very_start_only() -> None:
    desk, look = preparer(), seen(restarts=1)
    made = prepared(look)
    desk.keep(look.session, made)
    assert desk.kept(look) is made
    for other in (
        seen(restarts=2),
        seen(restarts=1, startTime=NOW),
        edited(look, generation=2),
        edited(look, uid="session-2"),
        edited(look, annotations={}),
        replace(look, project=project("2")),
        replace(look, project=None),
    ):
        assert desk.kept(other) is None
    desk.forget(look.session)
    assert desk.kept(look) is None


def test_what_is_kept_is_bounded_and_the_oldest_goes_first() -> None:
    desk, looks = preparer(), [edited(seen(), name=str(n)) for n in range(KEPT + 1)]
    for look in looks:
        desk.keep(look.session, prepared(look))
    assert desk.kept(looks[0]) is None
    assert all(desk.kept(look) for look in looks[1:])


def test_nothing_that_is_prepared_shows_a_token() -> None:
    assert "secret" not in repr(prepared(seen()))


# Together


async def test_things_done_together_are_under_way_at_once() -> None:
    here, there = asyncio.Event(), asyncio.Event()

    async def meet(mine: asyncio.Event, other: asyncio.Event) -> int:
        mine.set()
        await other.wait()
        return 1

    assert await both(meet(here, there), meet(there, here)) == (1, 1)
    here.clear()
    there.clear()
    await together(meet(here, there), meet(there, here))


async def test_the_first_error_ends_the_others_and_is_raised_as_it_is() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("broken off")

    async def fail() -> None:
        raise LookupError("nothing")

    with pytest.raises(LookupError):
        await together(work(), fail())
    with pytest.raises(LookupError):
        await both(work(), fail())
    assert len(ended) == 2
