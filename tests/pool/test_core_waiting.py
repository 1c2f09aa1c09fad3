"""Laws of the line: fair to tenants, in order within each."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.pool.waiting import Line, Waiter

arrivals = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([("s",), ("m", "l")])),
    max_size=30,
)


def lined(people: list[tuple[str, tuple[str, ...]]]) -> Line[int]:
    line: Line[int] = Line()
    for number, (tenant, shapes) in enumerate(people):
        line.add(Waiter(tenant, shapes, number))
    return line


@settings(max_examples=25)
@given(arrivals)
def test_everybody_is_served_once(people: list[tuple[str, tuple[str, ...]]]) -> None:
    line = lined(people)
    served = [waiter.value for waiter, _ in line.serve(lambda _: True)]
    assert sorted(served) == list(range(len(people)))
    assert len(line) == 0
    assert not line.demand()


@settings(max_examples=25)
@given(arrivals, st.integers(0, 30))
def test_no_tenant_gets_two_before_another_that_waits_gets_one(
    people: list[tuple[str, tuple[str, ...]]], workers: int
) -> None:
    line = lined(people)
    left = workers

    def offer(_: Waiter[int]) -> bool | None:
        nonlocal left
        left -= 1
        return True if left >= 0 else None

    got = Counter(waiter.tenant for waiter, _ in line.serve(offer))
    asked = Counter(tenant for tenant, _ in people)
    for tenant in asked:
        for other in asked:
            if got[tenant] < asked[tenant]:
                assert got[other] <= got[tenant] + 1


@settings(max_examples=25)
@given(arrivals)
def test_who_came_first_is_served_first_within_a_tenant_and_shape(
    people: list[tuple[str, tuple[str, ...]]],
) -> None:
    order: dict[object, list[int]] = {}
    for waiter, _ in lined(people).serve(lambda _: True):
        order.setdefault((waiter.tenant, waiter.shapes), []).append(waiter.value)
    assert all(each == sorted(each) for each in order.values())


@settings(max_examples=25)
@given(arrivals, st.sets(st.integers(0, 29)))
def test_who_leaves_is_not_served_and_takes_nobodys_turn(
    people: list[tuple[str, tuple[str, ...]]], leaving: set[int]
) -> None:
    line: Line[int] = Line()
    waiters = [Waiter(tenant, shapes, n) for n, (tenant, shapes) in enumerate(people)]
    for waiter in waiters:
        line.add(waiter)
    gone = [each for each in waiters if each.value in leaving]
    assert all(line.remove(each) for each in gone)
    assert not any(line.remove(each) for each in gone)
    served = {waiter.value for waiter, _ in line.serve(lambda _: True)}
    assert served == set(range(len(people))) - leaving


def test_a_blocked_tenant_is_passed_over_and_wants_nothing_spawned() -> None:
    line = lined([("a", ("s",)), ("b", ("s",)), ("a", ("s",))])
    line.block("a")
    assert line.demand() == {"s": 1}
    assert [waiter.tenant for waiter, _ in line.serve(lambda _: True)] == ["b"]
    line.unblock("a")
    assert line.demand() == {"s": 2}
    assert [waiter.value for waiter, _ in line.serve(lambda _: True)] == [0, 2]


def test_a_rare_shape_does_not_hold_up_another() -> None:
    line = lined([("a", ("huge",)), ("a", ("s",))])
    served = line.serve(lambda waiter: True if waiter.shapes == ("s",) else None)
    assert [waiter.value for waiter, _ in served] == [1]
    assert line.demand() == {"huge": 1}


def test_who_was_served_in_vain_is_first_again() -> None:
    line = lined([("a", ("s",)), ("b", ("s",)), ("a", ("s",))])
    waiter, _ = next(iter(line.serve(lambda _: True)))
    line.add(waiter, first=True)
    assert next(each.value for each, _ in line.serve(lambda _: True)) == 0
