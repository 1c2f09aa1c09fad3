"""Laws of errands: each is done once, in its turn, and again if it was refused."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from trimtab.embedded import status
from trimtab.embedded.calls import Answered, Call, CallAnswer, Calls
from trimtab.embedded.errands import LONGEST, MOST, Errands
from trimtab.embedded.status import ApiProblem

CALL = Call(url="https://nobody.example", timeout=1.0, head=b"", tail=b"")


class Desk:
    """Errands, a clock, and what was done."""

    def __init__(self) -> None:
        self.time = 0.0
        self.calls = Calls(Random(1))
        self.errands = Errands(self.calls, now=lambda: self.time)
        self.done: list[str] = []
        self.problem: ApiProblem | None = None

    def work(self, key: str) -> None:
        self.done.append(key)
        if self.problem is not None:
            raise self.problem

    def asking(self, key: str) -> None:
        self.done.append(f"{key}?")
        self.calls.ask(CALL)
        self.done.append(f"{key}!")

    def settle(self) -> None:
        while self.errands.step(5):
            pass

    def answer(self) -> None:
        """Answer all that is asked, and go on."""
        for pending in self.errands.take_pending():
            for call, uid in pending.calls.items():
                pending.exchange.answers[call] = Answered(uid, CallAnswer(status=200))
            pending.again()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def add(desk: Desk, work: Callable[[str], None], *keys: str) -> None:
    for key in keys:
        desk.errands.add(work, key)


def test_each_is_done_once_and_in_the_order_in_which_it_came(desk: Desk) -> None:
    add(desk, desk.work, "a", "b", "a", "c")
    desk.settle()
    assert desk.done == ["a", "b", "c"]
    assert desk.errands.due_in() is None


def test_what_is_refused_is_tried_again_after_longer_and_longer(desk: Desk) -> None:
    desk.problem = status.internal("no")
    add(desk, desk.work, "a")
    waits = []
    for _ in range(16):
        desk.settle()
        wait = desk.errands.due_in()
        assert wait is not None
        waits.append(round(wait, 6))
        desk.time += wait
    assert waits == sorted(waits)
    assert waits[0] < 0.1
    assert waits[-1] == LONGEST
    desk.problem = None
    desk.settle()
    assert desk.errands.due_in() is None
    desk.problem = status.internal("no")
    add(desk, desk.work, "a")
    desk.settle()
    assert round(desk.errands.due_in() or 0, 6) == waits[0]  # it is forgiven


def test_what_is_gone_is_not_tried_again(desk: Desk) -> None:
    about = status.GroupResource("", "pods")
    for problem in (status.not_found(about, "a"), status.conflict(about, "a", "x")):
        desk.problem = problem
        add(desk, desk.work, "a")
        desk.settle()
    assert desk.done == ["a", "a"]
    assert desk.errands.due_in() is None


def test_nothing_is_done_twice_while_an_answer_is_waited_for(desk: Desk) -> None:
    add(desk, desk.asking, "a")
    desk.settle()
    add(desk, desk.asking, "a", "a")
    desk.settle()
    assert desk.done == ["a?"]
    desk.answer()
    assert desk.done == ["a?", "a?", "a!"]
    desk.settle()
    assert desk.done == ["a?", "a?", "a!", "a?"]  # once more, as something has changed


def test_no_more_wait_for_answers_than_may(desk: Desk) -> None:
    add(desk, desk.asking, *(str(number) for number in range(MOST + 5)))
    desk.settle()
    assert len(desk.done) == MOST
    desk.answer()
    desk.settle()
    assert len([each for each in desk.done if each.endswith("!")]) == MOST
    desk.answer()
    assert len([each for each in desk.done if each.endswith("!")]) == MOST + 5
