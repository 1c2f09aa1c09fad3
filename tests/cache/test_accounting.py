"""The accounts are close to the truth, and the budget holds without losing anything."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any, get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.cache.robots import Robot, robot
from trimtab.api import decode
from trimtab.cache import Accountant, Store, label, owner
from trimtab.cache.keeping import Form, Keep
from trimtab.kinds import Pod


def pod(number: int, *, version: int = 1) -> bytes:
    """A Pod, some much larger than others."""
    labels = {f"example.com/label-{n}": f"{number}-{n}" for n in range(number % 7)}
    status = {
        "name": "main",
        "imageID": f"registry.example.com/app@sha256:{number:064x}",
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    return json.dumps(
        {
            "metadata": {
                "name": f"pod-{number:08}",
                "namespace": f"team-{number % 5}",
                "uid": f"00000000-0000-0000-0000-{number:012}",
                "resourceVersion": str(version * 100_000 + number),
                "labels": labels,
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": f"set-{number // 3}",
                        "uid": f"00000000-0000-0000-0001-{number // 3:012}",
                    }
                ],
            },
            "spec": {
                "nodeName": f"node-{number % 9}",
                "containers": [{"name": "main"}],
            },
            "status": {"phase": "Running", "containerStatuses": [status]},
        }
    ).encode()


def filled(count: int, **rest: Any) -> Store[Pod]:
    store = Store(Pod, indexes=[owner(), label("example.com/label-1")], **rest)
    for number in range(count):
        data = pod(number)
        store.put(decode(Pod, data), raw=data if store.needs_raw else None)
    return store


def packed(store: Store[Pod]) -> tuple[str, str]:
    """The key of one that is."""
    return next(filter(lambda key: store.form(key) == "bytes", store.keys()))


@pytest.mark.parametrize(
    ("keep", "budget"),
    [
        ("slice", None),
        ("full", None),
        ("key", None),
        ("slice", 1_200_000),
        ("full", 900_000),
    ],
)
def test_accounted_bytes_are_within_a_fifth_of_the_truth(
    keep: Keep[Pod], budget: int | None
) -> None:
    filled(64, keep=keep)  # whatever is made once is there
    gc.collect()
    tracemalloc.start()
    try:
        store = filled(1_000, keep=keep, accountant=Accountant(budget))
        gc.collect()
        truth, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    accounted = store.statistics().bytes
    assert truth * 0.8 < accounted < truth * 1.2
    assert budget is None or accounted <= budget


def test_a_slice_costs_little_beyond_itself() -> None:
    filled(64)
    objects = [decode(Pod, pod(number)) for number in range(2_000)]
    store = Store(Pod, indexes=[owner()])
    gc.collect()
    tracemalloc.start()
    try:
        for obj in objects:
            store.put(obj)
        gc.collect()
        truth, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert truth / len(objects) < 250


def test_the_cold_are_packed_and_the_warm_are_not() -> None:
    accountant = Accountant(3_000_000)
    store = filled(1_000, accountant=accountant)
    warm = [("team-0", "pod-00000000"), ("team-1", "pod-00000001")]
    for number in range(1_000, 4_000):
        for key in warm:
            assert store.get(key) is not None
        store.put(decode(Pod, pod(number)))
    assert [store.form(key) for key in warm] == ["slice", "slice"]
    forms = store.statistics().by_form
    assert forms["bytes"] > forms["slice"] > 0
    assert forms["key"] == 0
    assert accountant.statistics().packed >= forms["bytes"]
    assert accountant.statistics().promoted == 0


def test_reading_what_was_packed_makes_it_a_slice_again() -> None:
    accountant = Accountant(1_000_000)
    store = filled(1_000, accountant=accountant)
    key = packed(store)
    number = int(key[1][4:])
    assert store.get(key) == decode(Pod, pod(number))
    assert store.form(key) == "slice"
    assert accountant.statistics().promoted == 1
    assert accountant.bytes <= 1_000_000


def test_a_full_object_stays_whole_when_its_slice_goes() -> None:
    store = filled(1_000, keep="full", accountant=Accountant(1_000_000))
    key = packed(store)
    number = int(key[1][4:])
    assert store.full(key) == json.loads(pod(number))
    assert store.get(key) == decode(Pod, pod(number))


def test_a_relist_of_packed_objects_changes_nothing() -> None:
    store = filled(600, accountant=Accountant(500_000))
    before = store.statistics().by_form
    relist = store.begin(None)
    for number in range(600):
        assert relist.put(decode(Pod, pod(number))) is None
    assert relist.finish() == []
    assert store.statistics().by_form == before


def test_several_stores_share_a_budget_and_leave_it_when_they_go() -> None:
    accountant = Accountant(1_500_000)
    one = filled(500, accountant=accountant)
    two = filled(500, accountant=accountant)
    assert accountant.bytes <= 1_500_000
    assert one.statistics().by_form["bytes"] > 0
    assert two.statistics().by_form["bytes"] > 0
    del two
    gc.collect()
    assert accountant.bytes == one.statistics().bytes


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="holds nothing"):
        Accountant(0)


class UnderABudget(RuleBasedStateMachine):
    """Puts, reads and deletions while entries are being demoted all the time."""

    def __init__(self) -> None:
        super().__init__()
        self.accountant = Accountant(24_000)
        indexes = [owner(), label("app")]
        self.store = Store(Robot, indexes=indexes, accountant=self.accountant)
        self.model: dict[tuple[str, str], Robot] = {}
        self.version = 0

    @rule(
        number=st.integers(0, 40), size=st.integers(0, 2000), app=st.sampled_from("xy")
    )
    def put(self, number: int, size: int, app: str) -> None:
        self.version += 1
        obj = robot(
            f"r{number}",
            self.version,
            owner=f"f{number % 3}",
            labels={"app": app},
            spec={"extra": {"text": "x" * size, "list": list(range(size % 50))}},
        )
        self.store.put(obj)
        self.model[obj.key] = obj

    @rule(number=st.integers(0, 40))
    def get(self, number: int) -> None:
        key = ("a", f"r{number}")
        if self.store.form(key) == "key":
            assert self.store.get(key) is None
        else:
            assert self.store.get(key) == self.model.get(key)

    @rule(number=st.integers(0, 40))
    def remove(self, number: int) -> None:
        obj = self.model.pop(("a", f"r{number}"), None)
        if obj is not None:
            form = self.store.form(obj.key)
            (gone,) = [c for c in [self.store.remove(obj)] if c is not None]
            assert (form, gone.old) == (form, obj)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert set(self.store.keys()) == set(self.model)
        read = {obj.key: obj for obj in self.store.values()}
        assert all(self.model[key] == obj for key, obj in read.items())
        forms = [self.store.form(key) for key in self.model]
        assert self.store.statistics().by_form == {
            form: forms.count(form) for form in get_args(Form)
        }
        assert len(read) == len(self.model) - self.store.statistics().by_form["key"]

    @invariant()
    def indexes_are_a_full_scan(self) -> None:
        for value in "xy":
            wanted = {
                key
                for key, obj in self.model.items()
                if obj.metadata.labels["app"] == value
            }
            assert set(self.store.keys_by("label:app", value)) == wanted

    @invariant()
    def the_budget_holds(self) -> None:
        self.accountant.settle()
        within = self.accountant.bytes <= 24_000
        assert within or self.store.statistics().by_form["key"] == len(self.model)


UnderABudget.TestCase.settings = settings(max_examples=30, stateful_step_count=40)
TestUnderABudget = UnderABudget.TestCase
