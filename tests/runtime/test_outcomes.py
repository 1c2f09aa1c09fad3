"""Laws of outcomes: every error puts its object where it belongs, and none is lost."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runtime.operating import shop
from trimtab import Context, Retry, Terminal
from trimtab.client.errors import Conflict, Details, NotFound, TransportError
from trimtab.runtime.fence import NotLeader
from trimtab.runtime.lanes import Entry
from trimtab.runtime.outcomes import settle, told
from trimtab.runtime.queue import Queue
from trimtab.runtime.reconcile import Cause
from trimtab.runtime.workqueue import WorkQueue
from trimtab.testing import virtual_time

KEY = ("town", "corner")


def queue() -> WorkQueue:
    made = WorkQueue(Queue(random=Random(1)))
    made.add(KEY, cause=Cause("change"))
    return made


def context(entry: Entry) -> Context:
    # Of a writer, only the name of its controller is asked for, by the log.
    writer: Any = SimpleNamespace(definition=SimpleNamespace(name="test"))
    return Context(writer, shop("corner"), causes=entry.causes, failures=entry.failures)


async def settled(waiting: WorkQueue, error: Exception) -> tuple[str, float | None]:
    """What becomes of the next entry if it ends like this, and when it comes again."""
    entry = await waiting.get()
    outcome = settle(waiting, KEY, error, context(entry))
    if not len(waiting):
        return outcome, None
    began = asyncio.get_running_loop().time()
    due = waiting._queue.next_due()
    return outcome, 0.0 if due is None else due - began


@pytest.mark.parametrize(
    ("error", "outcome", "soonest", "latest"),
    [
        (Retry("closed", after=7.0), "retry", 6.5, 7.0),
        (Retry("closed"), "retry", 0.0, 0.2),
        (NotLeader("The lease runs out."), "retry", 0.5, 1.0),
        (Conflict("Changed.", status=409), "retry", 0.0, 0.05),
        (TimeoutError(), "timeout", 0.0, 0.2),
        (TransportError("No route."), "error", 0.0, 0.2),
        (RuntimeError("no roof"), "error", 0.0, 0.2),
    ],
)
@virtual_time
async def test_what_may_go_well_next_time_is_tried_again(
    error: Exception, outcome: str, soonest: float, latest: float
) -> None:
    found, pause = await settled(queue(), error)
    assert found == outcome
    assert pause is not None
    assert soonest <= pause <= latest


@pytest.mark.parametrize(("name", "levels"), [("corner", []), ("other", ["WARNING"])])
async def test_an_object_that_was_deleted_meanwhile_is_no_cause_for_alarm(
    caplog: pytest.LogCaptureFixture, name: str, levels: list[str]
) -> None:
    details = Details(name=name, group="runtime.example.com", kind="shops")
    error = NotFound("There is none.", status=404, details=details)
    outcome, pause = await settled(queue(), error)
    assert pause is not None
    assert outcome == ("error" if levels else "retry")
    said = [each.levelname for each in caplog.records if each.levelname != "DEBUG"]
    assert said == levels


async def test_what_is_of_no_use_waits_for_a_change() -> None:
    waiting = queue()
    assert await settled(waiting, Terminal("we sell no tea")) == ("terminal", None)


@virtual_time
async def test_who_never_wins_against_others_waits_for_longer_and_longer() -> None:
    waiting = queue()
    pauses = []
    for _ in range(4):
        outcome, pause = await settled(waiting, Conflict("Changed.", status=409))
        assert outcome == "retry"
        assert pause is not None
        pauses.append(pause)
    assert pauses[0] <= 0.05
    assert pauses[-1] > 3 * pauses[0]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("size"), "KeyError: 'size'"),
        (AssertionError(), "AssertionError"),
        (TransportError("No route."), "No route"),
        (Retry("closed."), "closed"),
    ],
)
def test_an_error_is_told_as_part_of_a_sentence_and_never_as_nothing(
    error: Exception, sentence: str
) -> None:
    assert told(error) == sentence
