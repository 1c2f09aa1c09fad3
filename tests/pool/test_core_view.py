"""Laws of the view: newest wins, and finding takes no longer among ten thousand."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from trimtab.api import Metadata, Quantity
from trimtab.cache import Change
from trimtab.pool.kinds import Checkout, Worker, WorkerSpec, WorkerStatus
from trimtab.pool.states import State
from trimtab.pool.view import View

POOL = ("n", "p")
ME = "me"


def worker(name: str, version: int = 1, *, shape: str = "s", **status: Any) -> Worker:
    settings: dict[str, Any] = {"state": State.IDLE, "owner": ME, **status}
    return Worker(
        metadata=Metadata(
            name=name, namespace="n", uid=f"uid {name}", resourceVersion=str(version)
        ),
        spec=WorkerSpec(
            pool="p", shape=shape, cpu=Quantity("1"), memory=Quantity("1"), revision="r"
        ),
        status=WorkerStatus(**settings),
    )


def view(*workers: Worker) -> View:
    made = View(ME)
    for now, each in enumerate(workers):
        made.saw(each, float(now))
    return made


def names(made: View, tenant: str = "t", shapes: tuple[str, ...] = ("s",)) -> list[str]:
    """Who is offered, one after the other."""
    found = []
    while (each := made.candidate(POOL, tenant, shapes)) is not None:
        found.append(each.metadata.name)
    return found


def test_the_own_tenants_come_first_then_ours_then_the_last_parked() -> None:
    hot = State.HOT_IDLE
    made = view(
        worker("idle of another", owner="other"),
        worker("old idle"),
        worker("young idle"),
        worker("old hot", state=hot, tenant="t"),
        worker("young hot", state=hot, tenant="t"),
        worker("hot of another", state=hot, tenant="t", owner="other"),
        worker("strangers", state=hot, tenant="x"),
    )
    assert names(made) == [
        "young hot",
        "old hot",
        "hot of another",
        "young idle",
        "old idle",
        "idle of another",
    ]


def test_the_better_shape_comes_first() -> None:
    made = view(worker("large", shape="l"), worker("small", shape="s"))
    assert names(made, shapes=("s", "l")) == ["small", "large"]


@pytest.mark.parametrize(
    "status",
    [
        {"state": State.SPAWNING},
        {"state": State.HOT, "checkout": Checkout(id="c", holder="h")},
        {"state": State.DRAINING},
        {"state": State.RETIRED},
        {"reaper": "somebody"},
    ],
)
def test_nobody_is_offered_what_is_not_free(status: dict[str, Any]) -> None:
    assert names(view(worker("w", **status))) == []


def test_of_two_versions_the_newer_one_stays_in_whatever_order_they_come() -> None:
    made = view(worker("w", 5, state=State.HOT_IDLE, tenant="t"))
    assert not made.saw(worker("w", 4), 1.0)
    assert made.count(POOL, State.HOT_IDLE) == 1
    assert made.saw(worker("w", 6, state=State.DRAINING), 2.0)
    assert names(made) == []


def test_what_was_offered_is_offered_again_when_it_is_seen_anew_or_trusted() -> None:
    made = view(worker("w", 1))
    assert names(made) == ["w"]
    made.trust(("n", "w"))
    assert names(made) == ["w"]
    made.saw(worker("w", 2), 1.0)
    assert names(made) == ["w"]


def test_a_checkout_and_its_holder_are_found_while_it_lasts() -> None:
    held = Checkout(id="c", holder="h")
    hot = worker("w", 2, state=State.HOT, checkout=held, tenant="t")
    made = view(worker("w", 1), hot)
    assert made.by_checkout("c") == hot
    assert [row.worker for row in made.by_holder("h")] == [hot]
    made.saw(worker("w", 3, state=State.HOT_IDLE, tenant="t"), 2.0)
    assert made.by_checkout("c") is None
    assert made.by_holder("h") == []


def test_a_deleted_row_leaves_nothing_behind() -> None:
    made = view(worker("w"))
    gone = worker("w", 2)
    made.follow(Change("DELETED", ("n", "w"), gone, None), 1.0)
    assert (len(made), names(made), made.pools()) == (0, [], ())
    assert made.count(POOL, State.IDLE) == made.neutral(POOL, "s") == 0


def test_the_clock_of_a_stage_does_not_start_again_at_every_write() -> None:
    made = view(worker("w", 1))
    made.saw(worker("w", 2, epoch=1), 5.0)
    row = made.get(("n", "w"))
    assert row is not None
    assert (row.entered, row.changed) == (0.0, 5.0)
    made.saw(worker("w", 3, state=State.DRAINING), 7.0)
    assert (row.entered, row.changed) == (7.0, 7.0)


def steps(work: Callable[[], object]) -> int:
    """How many calls it makes, of Python and of C functions.

    The garbage collector rests meanwhile: what it calls, it calls by chance.
    """
    count = 0

    def tick(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    collecting = gc.isenabled()
    gc.disable()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(None)
        if collecting:
            gc.enable()
    return count


def cost(many: int) -> tuple[int, int, int]:
    """Steps to find a free worker, to claim it, and to park it, among so many."""
    made = View(ME)
    for number in range(many):
        tenant = f"t{number % 1000}"
        state = State.HOT_IDLE
        made.saw(worker(f"w{number}", 1, state=state, tenant=tenant), 0.0)
    found: list[Worker] = []

    def find() -> None:
        one = made.candidate(POOL, "t7", ("s",))
        assert one is not None
        found.append(one)

    finding = steps(find)
    metadata = msgspec.structs.replace(found[0].metadata, resourceVersion="2")
    status = msgspec.structs.replace(
        found[0].status, state=State.HOT, checkout=Checkout(id="c", holder="h")
    )
    claimed = msgspec.structs.replace(found[0], metadata=metadata, status=status)
    claiming = steps(lambda: made.saw(claimed, 1.0))
    again = msgspec.structs.replace(
        found[0],
        metadata=msgspec.structs.replace(metadata, resourceVersion="3"),
    )
    return finding, claiming, steps(lambda: made.saw(again, 2.0))


def test_it_takes_as_many_steps_among_ten_thousand_as_among_a_hundred() -> None:
    assert cost(10_000) == cost(100)
