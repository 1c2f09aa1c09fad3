"""A store is what its lists and watches said, whatever the order they said it in."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.cache.robots import Robot, robot
from trimtab.cache import Change, Store, label, owner


def made(**rest: Any) -> Store[Robot]:
    return Store(Robot, indexes=[owner(), label("app")], **rest)


def kinds(changes: list[Change[Robot]]) -> list[tuple[str, str]]:
    return sorted((change.type, change.key[1]) for change in changes)


def test_an_older_or_equal_version_changes_nothing() -> None:
    store = made()
    assert store.put(robot("r", 10)) is not None
    for version in (9, 10):
        assert store.put(robot("r", version)) is None
    change = store.put(robot("r", 11))
    assert change is not None
    assert change.type == "MODIFIED"
    assert (change.old, change.new) == (robot("r", 10), robot("r", 11))


def test_another_uid_is_another_object() -> None:
    store = made()
    first = store.put(robot("r", 1, uid="one", owner="f"))
    change = store.put(robot("r", 5, uid="two"))
    assert first is not None
    assert change is not None
    assert (change.type, change.old) == ("ADDED", None)
    assert change.replaced is not None
    assert change.replaced.type == "DELETED"
    assert change.replaced.old == robot("r", 1, uid="one", owner="f")
    assert store.children("f") == []


def test_an_event_of_an_object_that_was_replaced_changes_nothing() -> None:
    store = made()
    store.put(robot("r", 5, uid="two"))
    assert store.put(robot("r", 3, uid="one")) is None
    assert store.remove(robot("r", 4, uid="one")) is None
    assert store.get(("a", "r")) == robot("r", 5, uid="two")


def test_a_deletion_tells_the_final_state() -> None:
    store = made()
    store.put(robot("r", 5))
    assert store.remove(robot("r", 4)) is None
    final = robot("r", 6, status={"phase": "Done"})
    change = store.remove(final)
    assert change is not None
    assert (change.type, change.old, change.new) == ("DELETED", final, None)
    assert store.remove(final) is None
    assert ("a", "r") not in store


def test_a_deletion_of_a_later_object_removes_the_earlier_one() -> None:
    store = made()
    store.put(robot("r", 5, uid="one"))
    change = store.remove(robot("r", 9, uid="two"))
    assert change is not None
    assert change.old == robot("r", 5, uid="one")


def test_an_event_from_before_a_deletion_does_not_bring_a_ghost() -> None:
    store = made()
    store.put(robot("r", 5))
    store.remove(robot("r", 6))
    store.observed("6", None)
    assert store.put(robot("r", 5)) is None
    assert store.put(robot("r", 7, uid="new")) is not None


def test_versions_that_are_no_numbers_follow_the_order_of_events() -> None:
    store = made()
    store.put(robot("r", "b"))
    assert store.put(robot("r", "a")) is not None
    assert store.put(robot("r", "a")) is None
    assert store.remove(robot("r", "b")) is not None


def test_nothing_goes_before_a_list_is_complete() -> None:
    store = made()
    for name in ("stays", "goes", "changes"):
        store.put(robot(name, 1, owner="f"))
    relist = store.begin(None)
    assert relist.put(robot("stays", 1, owner="f")) is None
    changed = relist.put(robot("changes", 2))
    assert changed is not None
    assert changed.type == "MODIFIED"
    assert relist.put(robot("new", 3)) is not None
    assert ("a", "goes") in store
    (gone,) = relist.finish()
    assert (gone.type, gone.old) == ("DELETED", robot("goes", 1, owner="f"))
    assert sorted(store.keys()) == [("a", "changes"), ("a", "new"), ("a", "stays")]
    relist.abandon()


def test_a_list_that_breaks_off_removes_nothing() -> None:
    store = made()
    store.put(robot("one", 1))
    relist = store.begin(None)
    relist.put(robot("two", 2))
    relist.abandon()
    assert len(store) == 2


def test_an_object_that_a_list_has_but_nobody_can_read_stays() -> None:
    store = made()
    store.put(robot("one", 1))
    relist = store.begin(None)
    relist.keep(("a", "one"))
    assert relist.finish() == []


def test_a_list_of_a_namespace_leaves_the_others_alone() -> None:
    store = made()
    store.put(robot("one", 1, namespace="a"))
    store.put(robot("two", 2, namespace="b"))
    assert kinds(store.begin("a").finish()) == [("DELETED", "one")]
    assert kinds(store.drop("b")) == [("DELETED", "two")]
    assert len(store) == 0


def test_changes_are_initial_until_a_list_was_complete() -> None:
    store = made()
    broken = store.begin(None)
    first = broken.put(robot("one", 1))
    broken.abandon()
    relist = store.begin(None)
    second = relist.put(robot("two", 2))
    relist.finish()
    third = store.begin(None).put(robot("three", 3))
    initial = [change.initial for change in (first, second, third) if change]
    assert initial == [True, True, False]


def test_after_a_restored_backup_the_list_is_right() -> None:
    store = made()
    store.put(robot("r", 100))
    store.observed("100", None)
    assert store.begin(None).put(robot("r", 50)) is None
    change = store.begin(None, rewound=True).put(robot("r", 50))
    assert change is not None
    assert change.type == "MODIFIED"
    assert store.put(robot("new", 51)) is not None


def test_the_key_of_an_addition_is_the_one_that_the_store_holds() -> None:
    store = made()
    change = store.put(robot("r", 1, owner="f"))
    assert change is not None
    assert next(store.keys()) is change.key
    assert store.keys_by("owner", "f")[0] is change.key
    (gone,) = store.begin(None).finish()
    assert gone.key is change.key


names = st.sampled_from(["r", "s", "t"])
namespaces = st.sampled_from(["a", "b"])
uids = st.sampled_from(["one", "two"])
versions = st.integers(1, 30)


@st.composite
def robots(draw: st.DrawFn) -> Robot:
    return robot(
        draw(names),
        draw(versions),
        namespace=draw(namespaces),
        uid=draw(uids),
        owner=draw(st.sampled_from(["", "f", "g"])),
        labels=draw(st.sampled_from([{}, {"app": "x"}, {"app": "y"}])),
    )


def version(obj: Robot) -> int:
    return int(obj.metadata.resourceVersion)


class AgainstAModel(RuleBasedStateMachine):
    """What lists and watches say, in any order, against a plain map."""

    def __init__(self) -> None:
        super().__init__()
        self.store = made()
        self.model: dict[tuple[str, str], Robot] = {}
        self.passed: dict[str | None, int] = {}

    def expect(self, obj: Robot, *, listed: bool) -> list[str]:
        held = self.model.get(obj.key)
        if held is None:
            passed = self.passed.get(obj.key[0]) or self.passed.get(None) or 0
            if not listed and version(obj) < passed:
                return []
        elif version(obj) <= version(held):
            return []
        self.model[obj.key] = obj
        if held is None:
            return ["ADDED"]
        same = held.metadata.uid == obj.metadata.uid
        return ["MODIFIED"] if same else ["DELETED", "ADDED"]

    def check(self, change: Change[Robot] | None, expected: list[str]) -> None:
        steps = [] if change is None else [change.replaced, change]
        assert [step.type for step in steps if step] == expected

    @rule(obj=robots())
    def put(self, obj: Robot) -> None:
        expected = self.expect(obj, listed=False)
        self.check(self.store.put(obj), expected)

    @rule(obj=robots())
    def remove(self, obj: Robot) -> None:
        held = self.model.get(obj.key)
        change = self.store.remove(obj)
        newer = held is not None and version(obj) > version(held)
        final = held is not None and (
            (held.metadata.uid, version(held)) == (obj.metadata.uid, version(obj))
        )
        assert (change is not None) == (newer or final)
        if change is not None:
            del self.model[obj.key]

    @rule(
        namespace=st.none() | namespaces,
        objects=st.lists(robots(), max_size=5, unique_by=lambda obj: obj.key),
        complete=st.booleans(),
    )
    def relist(
        self, namespace: str | None, objects: list[Robot], complete: bool
    ) -> None:
        inside = [obj for obj in objects if namespace in (None, obj.key[0])]
        relist = self.store.begin(namespace)
        for obj in inside:
            expected = self.expect(obj, listed=True)
            self.check(relist.put(obj), expected)
        if not complete:
            relist.abandon()
            return
        listed = {obj.key for obj in inside}
        gone = {
            key: obj
            for key, obj in self.model.items()
            if namespace in (None, key[0]) and key not in listed
        }
        assert {change.key: change.old for change in relist.finish()} == gone
        for key in gone:
            del self.model[key]

    @rule(namespace=namespaces)
    def drop(self, namespace: str) -> None:
        gone = {key for key in self.model if key[0] == namespace}
        assert {change.key for change in self.store.drop(namespace)} == gone
        self.passed.pop(namespace, None)
        for key in gone:
            del self.model[key]

    @rule(at=versions, namespace=st.none() | namespaces)
    def observed(self, at: int, namespace: str | None) -> None:
        self.store.observed(str(at), namespace)
        self.passed[namespace] = at

    @invariant()
    def the_store_is_the_model(self) -> None:
        assert set(self.store.keys()) == set(self.model)
        assert len(self.store) == len(self.model)
        for key, obj in self.model.items():
            assert key in self.store
            assert self.store.get(key) == obj
        assert {obj.key: obj for obj in self.store.values()} == self.model
        assert self.store.statistics().by_form["slice"] == len(self.model)

    @invariant()
    def indexes_are_a_full_scan(self) -> None:
        for buckets in self.store._buckets.values():
            scanned: dict[str, set[tuple[str, str]]] = {}
            for key, obj in self.model.items():
                for value in buckets.index.values(obj):
                    scanned.setdefault(value, set()).add(key)
            assert buckets.contents() == scanned


AgainstAModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestAgainstAModel = AgainstAModel.TestCase
