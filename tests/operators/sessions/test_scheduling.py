"""Schedules: when a turn is due, and what becomes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.sessions.samples import client_in
from trimtab.api import Metadata
from trimtab.client import Client
from trimtab.operators.sessions import names, scheduling, triggering
from trimtab.operators.sessions.kinds import AgenticSession, Schedule
from trimtab.operators.sessions.scheduling import BadSchedule, Turn, parse, turn
from trimtab.operators.sessions.triggering import Taken, Turned, Untold, Wish
from trimtab.testing import Cluster

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def schedule(cron: str = "0 12 * * *", **more: Any) -> Schedule:
    return Schedule(name="daily", cron=cron, **more)


def test_a_turn_is_due_at_its_very_second_and_not_before() -> None:
    last = NOON - 2 * MINUTE
    second = timedelta(seconds=1)
    assert turn(schedule(), last=last, now=NOON - second).run is None
    assert turn(schedule(), last=last, now=NOON - second).following == NOON
    assert turn(schedule(), last=last, now=NOON).run == NOON
    assert turn(schedule(), last=last, now=NOON + second).run == NOON


def test_a_turn_that_is_settled_is_not_due_again() -> None:
    tomorrow = NOON + timedelta(days=1)
    assert turn(schedule(), last=NOON, now=NOON) == Turn(following=tomorrow)


def test_a_missed_turn_is_run_late_but_not_too_late() -> None:
    last = NOON - timedelta(days=3)
    late = NOON + timedelta(seconds=300)
    assert turn(schedule(), last=last, now=late).run == NOON
    too_late = turn(schedule(), last=last, now=late + timedelta(seconds=1))
    assert (too_late.run, too_late.missed) == (None, NOON)


def test_of_many_missed_turns_only_the_last_is_run() -> None:
    last = NOON - timedelta(days=30)
    assert turn(schedule("* * * * *"), last=last, now=NOON).run == NOON


def test_a_new_schedule_has_no_past() -> None:
    assert turn(schedule(), last=None, now=NOON).run is None


def test_a_suspended_schedule_has_no_turns() -> None:
    assert turn(schedule(suspend=True), last=NOON - MINUTE, now=NOON) == Turn()


def test_a_turn_is_at_its_time_in_its_zone_in_summer_and_in_winter() -> None:
    cron = parse("30 6 * * *", "Europe/Berlin")
    winter = cron.following(datetime(2026, 1, 10, tzinfo=UTC))
    summer = cron.following(datetime(2026, 7, 10, tzinfo=UTC))
    assert winter == datetime(2026, 1, 10, 5, 30, tzinfo=UTC)
    assert summer == datetime(2026, 7, 10, 4, 30, tzinfo=UTC)


def test_an_hour_that_is_left_out_or_comes_twice_has_one_turn() -> None:
    cron = parse("30 2 * * *", "Europe/Berlin")
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC)
    for since in (spring, autumn):
        first = cron.following(since)
        assert first is not None
        second = cron.following(first)
        assert second is not None
        assert timedelta(hours=22) < second - first < timedelta(hours=26)


def test_in_an_hour_that_comes_twice_the_next_turn_is_not_in_the_past() -> None:
    now = datetime(2026, 10, 25, 1, 11, tzinfo=UTC)
    following = parse("30 2 * * *", "Europe/Berlin").following(now)
    assert following == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@given(
    st.sampled_from(["*/7 * * * *", "0 3 * * MON", "15 */2 1,15 * *", "@hourly"]),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    st.integers(0, 6 * 365 * 24 * 3600),
)
def test_the_last_turn_is_up_to_now_and_the_next_one_after_it(
    cron: str, zone: str, seconds: int
) -> None:
    now = NOON + timedelta(seconds=seconds)
    found = parse(cron, zone)
    latest, following = found.latest(now), found.following(now)
    assert latest is not None
    assert following is not None
    assert latest <= now < following


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("", "UTC"),
        ("* * * *", "UTC"),
        ("0 0 0 * * *", "UTC"),
        ("61 * * * *", "UTC"),
        ("@reboot", "UTC"),
        ("* * * * *", "Mars/Base"),
        ("* * * * *", "../../etc/passwd"),
        ("* * * * *", ""),
    ],
)
def test_what_no_clock_could_follow_is_one_sentence(cron: str, zone: str) -> None:
    with pytest.raises(BadSchedule, match=r"\.$"):
        parse(cron, zone)


@given(st.text(min_size=1, max_size=40), st.integers(0, 2_000_000_000))
def test_names_of_scheduled_sessions_always_fit(name: str, when: int) -> None:
    made = scheduling.name_of(name, datetime.fromtimestamp(when, UTC))
    assert names.check(made) is None


def test_two_turns_or_two_schedules_never_have_one_name() -> None:
    made = {
        scheduling.name_of(name, NOON + timedelta(minutes=minutes))
        for name in ("a b", "a-b", "A B", "a_b", "x" * 40, "x" * 39 + "y")
        for minutes in range(10)
    }
    assert len(made) == 60


# Turns become sessions.


def wish(namespace: str, **more: Any) -> Wish:
    said = {
        "schedule": "daily",
        "name": scheduling.name_of("daily", NOON),
        "at": NOON,
        "template": {"initialPrompt": "Read.", "displayName": "Daily"},
    }
    return Wish(namespace=namespace, **{**said, **more})


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as made:
        yield made


async def last(
    client: Client, namespace: str, phase: str, name: str = "before"
) -> AgenticSession:
    labels = {"ambient-code.io/scheduled-session-name": "daily"}
    metadata = Metadata(name=name, namespace=namespace, labels=labels)
    await client.create(AgenticSession(metadata=metadata))
    body = {"status": {"phase": phase}}
    return await client.patch(
        AgenticSession, name, body, namespace=namespace, subresource="status"
    )


async def test_a_turn_that_is_run_twice_makes_one_session(
    client: Client, namespace: str
) -> None:
    asked = wish(namespace)
    first = await triggering.fulfil(client, asked, last=None, tell=None)
    again = await triggering.fulfil(client, asked, last=None, tell=None)
    assert (first.how, again.how) == ("created", "done")
    found = await client.get(AgenticSession, first.session)
    assert found.metadata.labels == {
        "ambient-code.io/scheduled-session-name": "daily",
        "ambient-code.io/scheduled-run": "true",
    }
    assert found.spec.initialPrompt == "Read."
    assert found.spec.displayName == "Daily (Mar 02, 2026 - 12:00:00)"


async def test_a_name_that_somebody_else_has_is_said_and_not_taken(
    client: Client, namespace: str
) -> None:
    asked = wish(namespace)
    metadata = Metadata(name=asked.name, namespace=namespace)
    await client.create(AgenticSession(metadata=metadata))
    with pytest.raises(Taken, match="rename"):
        await triggering.fulfil(client, asked, last=None, tell=None)


@pytest.mark.parametrize("phase", ["Stopped", "Completed"])
async def test_a_schedule_that_reuses_its_last_session_resumes_it_with_the_prompt(
    client: Client, namespace: str, phase: str
) -> None:
    before = await last(client, namespace, phase)
    asked = wish(namespace, reuse=True)
    assert await triggering.fulfil(client, asked, last=before, tell=None) == Turned(
        "resumed", "before"
    )
    found = await client.get(AgenticSession, "before")
    assert found.spec.initialPrompt == "Read."
    assert found.metadata.annotations == {
        "ambient-code.io/desired-phase": "Running",
        "ambient-code.io/start-requested-at": "2026-03-02T12:00:00Z",
        "ambient-code.io/force-execute-prompt": "true",
    }
    again = await triggering.fulfil(client, asked, last=found, tell=None)
    assert again == Turned("done", "before")


@pytest.mark.parametrize("phase", ["Pending", "Creating", "Stopping", "Failed"])
async def test_a_last_session_that_cannot_be_reused_is_followed_by_a_new_one(
    client: Client, namespace: str, phase: str
) -> None:
    before = await last(client, namespace, phase)
    made = await triggering.fulfil(
        client, wish(namespace, reuse=True), last=before, tell=None
    )
    assert made.how == "created"


async def test_a_last_session_that_runs_is_told_the_prompt(
    client: Client, namespace: str
) -> None:
    before = await last(client, namespace, "Running")
    heard: list[tuple[str, str]] = []

    async def tell(session: AgenticSession, prompt: str, at: datetime) -> None:
        heard.append((session.metadata.name, prompt))

    asked = wish(namespace, reuse=True)
    made = await triggering.fulfil(client, asked, last=before, tell=tell)
    assert (made, heard) == (Turned("told", "before"), [("before", "Read.")])
    with pytest.raises(Untold):
        await triggering.fulfil(client, asked, last=before, tell=None)


async def test_the_newest_session_of_a_schedule_is_found_by_its_label(
    client: Client, namespace: str
) -> None:
    assert (
        await triggering.newest(client, namespace=namespace, schedule="daily") is None
    )
    await last(client, namespace, "Stopped", "a")
    await last(client, namespace, "Stopped", "b")
    found = await triggering.newest(client, namespace=namespace, schedule="daily")
    assert found is not None
    assert found.metadata.name == "b"
