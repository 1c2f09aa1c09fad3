"""What the model of the original does: each claim about it, as the server saw it.

The bench shows its figures beside ours; without these tests they would show nothing.
"""

from __future__ import annotations

import asyncio
import shutil

import msgspec
import pytest

from bench.sessions.auditing import WRITES, Audit, Call
from bench.sessions.measuring import Key, about, lost, site, stopped
from bench.sessions.operating import PEERS, operating
from bench.sessions.platform import Scale

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.cluster("real"),
]
SMALL = Scale("small", 12, 10, 60, 20, 4, 6, 80.0)
START, REST = 15.0, 62.0
"""Seconds that are looked at: after a start, and of two rounds of its gauges."""


class Record(msgspec.Struct, kw_only=True):
    """What it asked for, and what came of it."""

    over: set[Key]
    running: set[Key]
    waiting: list[Key]
    first: list[Call]
    rest: list[Call]
    second: list[Call]
    stopped: float
    lost: float


async def heard(audit: Audit, seconds: float) -> list[Call]:
    audit.since()
    await asyncio.sleep(seconds)
    return audit.since()


async def recorded() -> Record:
    original = PEERS["original"]
    async with site(SMALL) as here:
        async with operating(here.cluster, here.folder, peer=original):
            await asyncio.sleep(START)
            first = here.audit.since()
            rest = await heard(here.audit, REST)
            ignored = await stopped(here.client, here.waiting[0], within=8.0)
            unseen = await lost(here.client, min(here.running), within=8.0)
        here.audit.since()
        async with operating(here.cluster, here.folder, peer=original):
            await asyncio.sleep(START)
            second = here.audit.since()
        return Record(
            over=here.over,
            running=here.running,
            waiting=here.waiting,
            first=first,
            rest=rest,
            second=second,
            stopped=ignored,
            lost=unseen,
        )


@pytest.fixture(scope="module")
def record() -> Record:
    if shutil.which("go") is None:
        pytest.fail("The model is a Go program; install Go to test it.")
    return asyncio.run(recorded())


def watches(calls: list[Call], resource: str) -> list[str]:
    found = [each for each in calls if each.verb in ("list", "watch")]
    return [each.request_uri for each in found if each.resource == resource]


@pytest.mark.parametrize("resource", ["agenticsessions", "pods"])
def test_audit_1_it_caches_all_of_what_it_watches(
    record: Record, resource: str
) -> None:
    asked = watches(record.first, resource)
    assert asked
    assert not [each for each in asked if "Selector" in each]


def test_fault_a_two_gauges_list_every_session_every_half_minute(
    record: Record,
) -> None:
    lists = [
        each
        for each in record.rest
        if each.verb == "list" and each.resource == "agenticsessions"
    ]
    assert len(lists) == 4
    assert all(not each.what[0] and "limit" not in each.request_uri for each in lists)


def test_fault_b_a_start_costs_more_than_twenty_calls(record: Record) -> None:
    names = {name for _, name in record.waiting}
    started = sum(
        any(each.what[1].endswith(part) for part in (f"{name}-runner", name))
        for each in record.first
        for name in names
        if name in each.what[1]
    )
    assert started / len(names) > 10


def test_fault_b_a_session_that_waits_is_polled_every_two_seconds(
    record: Record,
) -> None:
    calls = about(record.rest, set(record.waiting[1:]))
    assert calls / len(record.waiting[1:]) > 4 * REST / 2 * 0.8


def test_fault_b_a_running_session_is_read_twice_a_minute(record: Record) -> None:
    reads = [each for each in record.rest if each.verb == "get"]
    assert about(reads, record.running) / len(record.running) >= 2


def test_fault_c_a_start_reads_every_session_that_is_over(record: Record) -> None:
    for calls in (record.first, record.second):
        read = {
            each.what
            for each in calls
            if each.verb == "get" and each.resource == "agenticsessions"
        }
        assert record.over <= read


def test_fault_d_a_start_writes_for_every_project(record: Record) -> None:
    roles = {
        each.what[0]
        for each in record.second
        if each.verb == "update" and each.resource == "roles"
    }
    assert len(roles) == SMALL.namespaces
    written = [each for each in record.second if each.verb in WRITES]
    assert len(written) > 4 * SMALL.namespaces


def test_hole_1_a_stop_while_a_pod_is_created_is_ignored(record: Record) -> None:
    assert record.stopped == float("inf")


def test_hole_2_a_dead_runner_is_not_seen_in_running(record: Record) -> None:
    assert record.lost == float("inf")
