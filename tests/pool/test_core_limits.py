"""Laws of limits: under any interleaving of entering, leaving and crashing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trimtab.api import Quantity
from trimtab.pool.kinds import LedgerEntry, Limits, Shape, Tenant, WorkerPoolSpec
from trimtab.pool.limits import (
    Cap,
    apply,
    cap_of,
    entry_size,
    idle_cap_of,
    ttl_of,
)
from trimtab.pool.requests import AcquireRequest, Never
from trimtab.pool.shapes import Size, best_fit, size_of

names = st.sampled_from([f"c{number}" for number in range(12)])
entries = st.builds(
    lambda name, cpu, memory: LedgerEntry(
        checkout=name,
        worker=f"of {name}",
        cpu=Quantity(f"{cpu}m"),
        memory=Quantity(f"{memory}Mi"),
    ),
    names,
    st.integers(0, 3000),
    st.integers(0, 300),
)
maybe = st.none() | st.integers(0, 5)
caps = st.builds(
    lambda count, cpu, memory: Cap(
        count=count,
        cpu=None if cpu is None else cpu * 1000,
        memory=None if memory is None else memory * 100 * 2**20,
    ),
    maybe,
    maybe,
    maybe,
)


def total(held: list[LedgerEntry]) -> Size:
    return sum(map(entry_size, held), Size())


@settings(max_examples=25)
@given(st.lists(entries), st.lists(names), caps)
def test_whoever_enters_is_within_the_cap(
    wanted: list[LedgerEntry], leaving: list[str], cap: Cap
) -> None:
    batch = apply([], enter=wanted, leave=leaving, cap=cap)
    assert cap.broken_by(len(batch.entries), total(batch.entries)) is None or (
        not batch.entries
    )


@settings(max_examples=25)
@given(st.lists(entries), st.lists(entries), st.lists(names), st.lists(entries), caps)
def test_the_same_batch_once_more_changes_nothing(
    held: list[LedgerEntry],
    wanted: list[LedgerEntry],
    leaving: list[str],
    adopted: list[LedgerEntry],
    cap: Cap,
) -> None:
    entering = [each for each in wanted if each.checkout not in leaving]
    once = apply(held, enter=entering, leave=leaving, adopt=adopted, cap=cap)
    twice = apply(once.entries, enter=entering, leave=leaving, adopt=adopted, cap=cap)
    assert not twice.changed
    assert twice.entries == once.entries
    assert set(twice.refused) <= set(once.refused)


@settings(max_examples=25)
@given(st.lists(entries), st.lists(entries), caps)
def test_nobody_is_put_out_to_let_another_in(
    held: list[LedgerEntry], wanted: list[LedgerEntry], cap: Cap
) -> None:
    before = {each.checkout for each in held}
    after = {each.checkout for each in apply(held, enter=wanted, cap=cap).entries}
    assert before <= after


class Replicas(RuleBasedStateMachine):
    """Two replicas that swap one ledger, and die between any two steps."""

    CAP = Cap(count=3, cpu=4000, memory=None)

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.ledger: list[LedgerEntry] = []
        self.decided: dict[int, tuple[int, list[LedgerEntry], list[str]]] = {}
        self.given: set[str] = set()
        self.number = 0

    @rule(replica=st.integers(0, 1), cpu=st.integers(0, 3000), many=st.integers(1, 3))
    def decides_to_enter(self, replica: int, cpu: int, many: int) -> None:
        wanted = []
        for _ in range(many):
            self.number += 1
            name = f"c{self.number}"
            wanted.append(LedgerEntry(checkout=name, worker=name, cpu=_milli(cpu)))
        batch = apply(self.ledger, enter=wanted, cap=self.CAP)
        granted = [e.checkout for e in wanted if e.checkout not in batch.refused]
        self.decided[replica] = (self.version, batch.entries, granted)

    @rule(replica=st.integers(0, 1))
    def decides_to_leave(self, replica: int) -> None:
        gone = sorted(self.given)[:1]
        self.given -= set(gone)  # the row is written first, then the ledger
        batch = apply(self.ledger, leave=gone, cap=self.CAP)
        self.decided[replica] = (self.version, batch.entries, [])

    @rule(replica=st.integers(0, 1), answered=st.booleans())
    def swaps(self, replica: int, answered: bool) -> None:
        """The server takes a write only if it was decided on what is there."""
        version, wanted, granted = self.decided.pop(replica, (-1, [], []))
        if version == self.version:
            self.version += 1
            self.ledger = wanted
            if answered:
                self.given |= set(granted)

    @rule(replica=st.integers(0, 1))
    def dies(self, replica: int) -> None:
        self.decided.pop(replica, None)

    @rule()
    def somebody_removes_what_counts_nothing(self) -> None:
        self.version += 1
        self.ledger = [each for each in self.ledger if each.checkout in self.given]

    @invariant()
    def no_more_is_given_than_the_cap_allows(self) -> None:
        held = [each for each in self.ledger if each.checkout in self.given]
        assert self.given <= {each.checkout for each in self.ledger}
        assert self.CAP.broken_by(len(held), total(held)) is None


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=20, stateful_step_count=25)


def _milli(cpu: int) -> Quantity:
    return Quantity(f"{cpu}m")


# Shapes and TTLs

SHAPES = [
    Shape(name="large", cpu=Quantity("4"), memory=Quantity("16Gi")),
    Shape(name="small", cpu=Quantity("500m"), memory=Quantity("1Gi")),
    Shape(name="lean", cpu=Quantity("4"), memory=Quantity("1Gi")),
]


def request(**more: object) -> AcquireRequest:
    return AcquireRequest(pool=("n", "p"), tenant="t", holder="h", **more)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(st.integers(0, 5000), st.integers(0, 20))
def test_the_first_shape_that_is_offered_is_the_smallest_that_fits(
    cpu: int, memory: int
) -> None:
    wanted = request(cpu=_milli(cpu), memory=Quantity(f"{memory}Gi"))
    fitting = [
        each
        for each in SHAPES
        if each.cpu.milli >= cpu and int(each.memory) >= memory * 2**30
    ]
    if not fitting:
        with pytest.raises(Never, match="no shape"):
            best_fit(SHAPES, wanted)
        return
    found = best_fit(SHAPES, wanted)
    assert set(found) == set(fitting)
    assert size_of(found[0]) == min(map(size_of, fitting))


def test_a_named_shape_is_taken_literally_and_none_means_the_first() -> None:
    assert [each.name for each in best_fit(SHAPES, request(shape="lean"))] == ["lean"]
    assert [each.name for each in best_fit(SHAPES, request())] == ["large"]


def test_equal_amounts_are_equal_however_they_are_spelled() -> None:
    one = Shape(name="a", cpu=Quantity("1"), memory=Quantity("16Gi"))
    other = Shape(name="b", cpu=Quantity("1000m"), memory=Quantity("16384Mi"))
    assert size_of(one) == size_of(other)


def spec(**more: object) -> WorkerPoolSpec:
    return WorkerPoolSpec(template={}, shapes=SHAPES, **more)  # type: ignore[arg-type]


def test_a_time_to_live_of_zero_is_zero_and_not_the_default() -> None:
    tenants = [Tenant(name="t", ttl=0)]
    assert ttl_of(spec(idleTTL=60), "t", 0) == 0
    assert ttl_of(spec(idleTTL=60, tenants=tenants), "t", None) == 0
    assert ttl_of(spec(idleTTL=0), "t", None) == 0


def test_a_time_to_live_is_what_was_asked_for_else_the_tenants_else_the_pools() -> None:
    tenants = [Tenant(name="t", ttl=7)]
    pool = spec(idleTTL=60, maxTTL=90, tenants=tenants)
    assert ttl_of(pool, "t", 8) == 8
    assert ttl_of(pool, "t", None) == 7
    assert ttl_of(pool, "other", None) == 60
    assert ttl_of(pool, "t", 1000) == 90


def test_a_tenants_own_limits_replace_all_of_the_pools() -> None:
    tenants = [Tenant(name="t", limits=Limits(workers=2))]
    pool = spec(limits=Limits(workers=5, cpu=Quantity("9")), tenants=tenants)
    assert cap_of(pool, "t") == Cap(count=2)
    assert cap_of(pool, "other") == Cap(count=5, cpu=9000)
    assert cap_of(pool, "") == Cap(count=100, name="maxWorkers")
    assert idle_cap_of(pool, "t").unlimited
