"""Watchers read one bounded log, each at its own pace, and miss nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Store
from trimtab.embedded.watching import Hub, View, Watcher

PREFIX = "core/things/"


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store(None)
    yield store
    store.close()


def view(*, prefix: str = PREFIX, wanted: bytes | None = None) -> View:
    """A view whose lines are easy to read: type, value, revision."""

    def failure(problem: ApiProblem) -> bytes:
        return b"ERROR %d\n" % problem.code

    return View(
        prefix=prefix,
        matches=None if wanted is None else (lambda value: wanted in value),
        render=lambda kind, value, revision: b"%s %s\n" % (kind.encode(), value),
        form="plain",
        bookmark=lambda revision, end: b"BOOKMARK %d %d\n" % (revision, end),
        failure=failure,
    )


def watcher(
    hub: Hub,
    *,
    since: int | None = None,
    initial: bool = False,
    seen: View | None = None,
    timeout: float = 30,
) -> Watcher:
    return Watcher(
        hub,
        seen or view(),
        since=hub.store.revision if since is None else since,
        initial=initial,
        initial_end=initial,
        bookmarks=False,
        timeout=timeout,
    )


async def lines(watch: Watcher, count: int) -> list[str]:
    """The next lines, at least ``count`` of them."""
    found: list[str] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += (await watch.chunk()).decode().splitlines()
    return found


async def test_a_watcher_sees_each_change_once_in_order(store: Store) -> None:
    watch = watcher(Hub(store))
    store.put(PREFIX + "a", b"1")
    store.put(PREFIX + "a", b"2")
    store.delete(PREFIX + "a")
    assert await lines(watch, 3) == ["ADDED 1", "MODIFIED 2", "DELETED 2"]


async def test_a_watcher_sees_nothing_of_other_resources(store: Store) -> None:
    watch = watcher(Hub(store))
    store.put("core/others/a", b"other")
    store.put(PREFIX + "a", b"mine")
    assert await lines(watch, 1) == ["ADDED mine"]


async def test_a_watcher_that_waits_is_woken(store: Store) -> None:
    watch = watcher(Hub(store))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(lines(watch, 1))
        await asyncio.sleep(0)
        store.put(PREFIX + "a", b"1")
        assert await waiting == ["ADDED 1"]


async def test_initial_objects_come_before_changes_and_end_with_a_mark(
    store: Store,
) -> None:
    store.put(PREFIX + "a", b"1")
    store.put(PREFIX + "b", b"2")
    revision = store.revision
    watch = watcher(Hub(store), initial=True)
    store.put(PREFIX + "a", b"3")
    assert await lines(watch, 4) == [
        "ADDED 1",
        "ADDED 2",
        f"BOOKMARK {revision} 1",
        "MODIFIED 3",
    ]


async def test_an_object_that_enters_or_leaves_a_selection_is_added_or_deleted(
    store: Store,
) -> None:
    watch = watcher(Hub(store), seen=view(wanted=b"red"))
    store.put(PREFIX + "a", b"blue")
    store.put(PREFIX + "a", b"red")
    store.put(PREFIX + "a", b"dark red")
    store.put(PREFIX + "a", b"green")
    store.delete(PREFIX + "a")
    assert await lines(watch, 3) == [
        "ADDED red",
        "MODIFIED dark red",
        "DELETED dark red",
    ]


async def test_a_watcher_from_an_old_revision_reads_the_history(store: Store) -> None:
    start = store.revision
    store.put(PREFIX + "a", b"1")
    store.put(PREFIX + "a", b"2")
    watch = watcher(Hub(store), since=start)
    store.put(PREFIX + "a", b"3")
    assert await lines(watch, 3) == ["ADDED 1", "MODIFIED 2", "MODIFIED 3"]


async def test_a_slow_watcher_costs_no_memory_and_misses_nothing(store: Store) -> None:
    hub = Hub(store, limit=2_000)
    watch = watcher(hub)
    for number in range(500):
        store.put(PREFIX + "a", b"%d" % number)
    held = sum(len(log.entries) for log in hub._logs.values())
    assert held < 50
    found = await lines(watch, 500)
    assert [line.split()[1] for line in found] == [str(n) for n in range(500)]


async def test_a_watcher_behind_the_history_is_told_and_ended(store: Store) -> None:
    start = store.revision
    for number in range(5):
        store.put(PREFIX + "a", b"%d" % number)
    store.compact(store.revision)
    watch = watcher(Hub(store), since=start)
    assert await watch.chunk() == b"ERROR 410\n"
    assert await watch.chunk() == b""


async def test_a_watcher_that_nothing_concerns_does_not_grow_old(store: Store) -> None:
    start = store.revision
    store.put("core/others/a", b"1")
    watch = watcher(Hub(store), since=start)
    assert watch._collect() == b""
    store.compact(store.revision)
    store.put(PREFIX + "a", b"1")
    assert await lines(watch, 1) == ["ADDED 1"]


async def test_a_watch_ends_at_its_time(store: Store) -> None:
    watch = watcher(Hub(store), timeout=0.01)
    assert await watch.chunk() == b""


async def test_a_closed_watch_ends_whoever_waits_for_it(store: Store) -> None:
    watch = watcher(Hub(store))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(watch.chunk())
        await asyncio.sleep(0)
        watch.close()
        assert await waiting == b""


@given(
    writes=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(("x", "y", None))),
        max_size=30,
    ),
    limit=st.integers(300, 3_000),
    early=st.integers(0, 30),
)
def test_replaying_a_watch_gives_the_state_of_the_store(
    writes: list[tuple[str, str | None]], limit: int, early: int
) -> None:
    """Whatever the log's bound and whenever the watcher reads."""
    store = Store(None)
    hub = Hub(store, limit=limit)
    state: dict[bytes, None] = {}

    def keep(text: bytes) -> None:
        for line in text.splitlines():
            kind, value = line.split(b" ")
            key = value.split(b"=")[0]
            for known in [each for each in state if each.startswith(key + b"=")]:
                del state[known]
            if kind != b"DELETED":
                state[value] = None

    watch = watcher(hub)
    for number, (key, value) in enumerate(writes):
        if value is not None:
            store.put(PREFIX + key, f"{key}={value}{number}".encode())
        elif store.get(PREFIX + key) is not None:
            store.delete(PREFIX + key)
        if number == early:
            keep(watch._collect())
    while text := watch._collect():
        keep(text)
    rows = [row.value for row in store.range(PREFIX)]
    store.close()
    assert sorted(state) == sorted(rows)
