"""Reads see our own writes, and the watch has the last word."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cache.robots import Robot, robot
from trimtab.cache import Store, label, owner
from trimtab.cache.overlay import UNDATED

KEY = ("a", "r")


def made() -> Store[Robot]:
    return Store(Robot, indexes=[owner(), label("app")])


def test_a_read_after_an_own_write_sees_it() -> None:
    store = made()
    store.put(robot("r", 1, owner="f"))
    store.written(robot("r", 5, owner="g"))
    assert store.get(KEY) == robot("r", 5, owner="g")
    assert list(store.values()) == [robot("r", 5, owner="g")]
    assert store.children("f") == []
    assert store.children("g") == [robot("r", 5, owner="g")]
    assert (len(store), store.form(KEY)) == (1, "slice")
    assert store.statistics().overlay == 1


def test_an_own_creation_is_there_before_its_event() -> None:
    store = made()
    store.written(robot("r", 5, labels={"app": "x"}))
    assert KEY in store
    assert list(store.keys()) == [KEY]
    assert store.by("label:app", "x") == [robot("r", 5, labels={"app": "x"})]


def test_an_event_of_that_revision_or_a_newer_one_supersedes_a_write() -> None:
    for version in (5, 6):
        store = made()
        store.written(robot("r", 5))
        assert store.put(robot("r", 4, owner="f")) is not None
        assert store.get(KEY) == robot("r", 5)
        assert store.put(robot("r", version)) is not None
        assert store.statistics().overlay == 0
        assert store.get(KEY) == robot("r", version)


def test_a_write_that_the_selector_never_lets_through_goes_with_the_watch() -> None:
    store = made()
    store.written(robot("r", 5))
    store.observed("4", None)
    assert KEY in store
    store.observed("5", "b")
    assert KEY in store
    store.observed("5", "a")
    assert KEY not in store


def test_an_answer_that_comes_after_its_event_changes_nothing() -> None:
    store = made()
    store.put(robot("r", 6))
    store.observed("7", None)
    store.written(robot("r", 5))
    store.written(robot("filtered", 6))
    assert list(store.values()) == [robot("r", 6)]
    assert store.statistics().overlay == 0


def test_a_deleted_object_is_gone_at_once_and_stays_gone() -> None:
    store = made()
    store.put(robot("r", 1, owner="f"))
    store.deleted(KEY, "uid-r")
    store.put(robot("r", 2, owner="f"))
    store.observed("3", None)
    assert KEY not in store
    assert store.get(KEY) is None
    assert store.children("f") == []
    assert list(store.keys()) == []
    assert list(store.values()) == []
    assert len(store) == 0
    assert store.remove(robot("r", 4)) is not None
    assert store.statistics().overlay == 0


def test_a_tombstone_does_not_hide_a_later_object_of_the_name() -> None:
    store = made()
    store.put(robot("r", 1))
    store.deleted(KEY, "uid-r")
    store.put(robot("r", 9, uid="next"))
    assert store.get(KEY) == robot("r", 9, uid="next")
    assert store.statistics().overlay == 0


def test_what_we_created_and_deleted_never_appears() -> None:
    store = made()
    store.written(robot("r", 5))
    store.deleted(KEY, "uid-r")
    assert KEY not in store
    store.put(robot("r", 5))
    store.observed("5", None)
    assert KEY not in store
    store.remove(robot("r", 6))
    assert store.statistics().overlay == 0


def test_what_we_deleted_stays_gone_though_others_let_it_through_the_selector() -> None:
    store = made()
    store.written(robot("r", 3))
    store.deleted(KEY, "uid-r")
    store.observed("3", None)  # our own write was not let through
    store.put(robot("r", 4, labels={"app": "x"}))  # that of others, before our deletion
    assert store.get(KEY) is None
    assert store.by("label:app", "x") == []
    store.remove(robot("r", 5))
    assert store.statistics().overlay == 0


def test_a_deletion_of_which_the_watch_told_before_its_answer_leaves_nothing() -> None:
    store = made()
    store.put(robot("r", 3))
    store.remove(robot("r", 4))
    store.observed("4", None)
    store.deleted(KEY, "uid-r", resource_version="3")
    store.observed("5", None)
    assert store.statistics().overlay == 0


def test_a_late_word_of_an_earlier_write_changes_nothing() -> None:
    store = made()
    store.written(robot("r", 8, uid="next"))
    store.deleted(KEY, "uid-r")
    store.written(robot("r", 7, uid="next"))
    assert store.get(KEY) == robot("r", 8, uid="next")
    store.deleted(KEY, "next")
    store.written(robot("r", 9, uid="next"))
    assert store.get(KEY) is None


def test_tombstones_of_the_unknown_are_bounded() -> None:
    store = made()
    for number in range(UNDATED + 10):
        store.deleted(("a", f"r{number}"), f"uid-{number}")
    assert store.statistics().overlay == UNDATED


def test_a_write_that_no_watch_covers_is_not_kept() -> None:
    store = made()
    store.observed("1", "a")
    store.written(robot("r", 5, namespace="b"))
    store.deleted(("b", "s"), "uid-s")
    assert store.statistics().overlay == 0


def test_versions_that_are_no_numbers_yield_to_the_next_event() -> None:
    store = made()
    store.written(robot("r", "zz"))
    store.put(robot("r", "aa"))
    assert store.get(KEY) == robot("r", "aa")


class Written(RuleBasedStateMachine):
    """A server, a watch that lags behind it and lets only some objects through, us.

    The watch sends objects with the label app=x.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = made()
        self.revision = 0
        self.server: dict[str, Robot] = {}
        self.history: list[tuple[str, Robot]] = []
        self.sent = 0
        self.ours: dict[str, Robot | str] = {}
        """Our last word on a name that the watch has not passed: object or uid."""

    def commit(self, name: str, obj: Robot | None) -> Robot:
        self.revision += 1
        before = self.server.pop(name, None)
        if obj is None:
            assert before is not None
            was = before.metadata.labels
            gone = robot(name, self.revision, uid=before.metadata.uid, labels=was)
            self.history.append(("DELETED" if was else "", gone))
            return gone
        self.server[name] = obj
        leaves = before is not None and before.metadata.labels
        kind = "MODIFIED" if obj.metadata.labels else "DELETED" if leaves else ""
        self.history.append((kind, obj))
        return obj

    def next(self, name: str, inside: bool) -> Robot:
        now = self.server.get(name)
        uid = now.metadata.uid if now else f"uid-{self.revision + 1}"
        labels = {"app": "x"} if inside else {}
        return robot(name, self.revision + 1, uid=uid, labels=labels)

    @rule(name=st.sampled_from("rs"), inside=st.booleans(), own=st.booleans())
    def write(self, name: str, inside: bool, own: bool) -> None:
        obj = self.commit(name, self.next(name, inside))
        if own:
            self.store.written(obj)
            self.ours[name] = obj

    @precondition(lambda self: self.server)
    @rule(data=st.data(), own=st.booleans())
    def delete(self, data: st.DataObject, own: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.server)))
        gone = self.commit(name, None)
        if own:
            self.store.deleted(("a", name), gone.metadata.uid)
            self.ours[name] = gone.metadata.uid

    @precondition(lambda self: self.sent < len(self.history))
    @rule(all_of_it=st.booleans())
    def watch(self, all_of_it: bool) -> None:
        until = len(self.history) if all_of_it else self.sent + 1
        for kind, obj in self.history[self.sent : until]:
            if kind == "DELETED":
                self.store.remove(obj)
            elif kind:
                self.store.put(obj)
            self.store.observed(obj.metadata.resourceVersion, None)
        self.sent = until
        if self.sent == len(self.history):
            self.ours.clear()

    @invariant()
    def own_writes_are_seen(self) -> None:
        for name, word in self.ours.items():
            seen = self.store.get(("a", name))
            if isinstance(word, str):
                assert seen is None or seen.metadata.uid != word
                continue
            at = int(word.metadata.resourceVersion)
            if at > self.sent:
                assert seen is not None
                assert int(seen.metadata.resourceVersion) >= at

    @invariant()
    def a_watch_that_caught_up_is_the_server(self) -> None:
        if self.sent < len(self.history):
            return
        there = {n: obj for n, obj in self.server.items() if obj.metadata.labels}
        assert {obj.metadata.name: obj for obj in self.store.values()} == there
        assert len(self.store) == len(there)
        found = {obj.metadata.name for obj in self.store.by("label:app", "x")}
        assert found == set(there)


Written.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestWritten = Written.TestCase
