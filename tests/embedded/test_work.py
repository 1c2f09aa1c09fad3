"""The law of work: nothing but a list costs more because more objects are stored.

Work is counted, not timed: steps of SQLite's machine, and calls in Python.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.embedded.apis import api_on, asked, settle
from tests.embedded.asking import APPLY, MERGE, Plain
from tests.embedded.objects import config_map
from tests.embedded.rooms import FINALIZER
from tests.embedded.test_deletion import definition
from tests.embedded.test_restarts import DEFINITIONS
from trimtab.embedded.api import Api, WatchAnswer
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store

FEW, MANY = 100, 5000
PLACE = "/api/v1/namespaces/default"
MAPS = f"{PLACE}/configmaps"
POD = {"containers": [{"name": "c", "image": "example.com/c:1"}]}


class Work(NamedTuple):
    """What something took: steps of SQLite's machine, and calls in Python."""

    steps: int
    calls: int

    def is_about(self, other: Work) -> bool:
        return all(
            mine <= 1.2 * theirs + 20 for mine, theirs in zip(self, other, strict=True)
        )


def work_of(store: Store, act: Callable[[], Any]) -> Work:
    """Do something once, and count.

    The garbage collector rests meanwhile: what it calls, it calls by chance.
    """
    steps = calls = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    def call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call") and frame.f_code is not step.__code__

    connection = store._file._connection
    connection.set_progress_handler(step, 1)
    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(call)
    try:
        act()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
        connection.set_progress_handler(None, 1)
    return Work(steps, calls)


def stored(kind: str, name: str, **more: Any) -> Plain:
    meta: Plain = {"name": name, "namespace": "default", "uid": f"uid-{kind}-{name}"}
    meta |= {"creationTimestamp": "2030-01-01T00:00:00Z", **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **more}


def crowd(count: int) -> Iterator[tuple[str, Plain]]:
    """So many objects of all kinds that something follows from."""
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": "uid-ConfigMap-owner",
        "blockOwnerDeletion": True,
    }
    yield "configmaps", stored("ConfigMap", "owner")
    for number in range(count // 6):
        name = f"old{number:05}"
        yield "configmaps", stored("ConfigMap", name, data={"a": "1"})
        meta = {"ownerReferences": [held], "finalizers": [FINALIZER]}
        yield "secrets", stored("Secret", name, metadata=meta, type="Opaque")
        meta = {"namespace": "doomed", "finalizers": [FINALIZER]}
        yield "secrets", stored("Secret", name, metadata=meta, type="Opaque")
        address = f"10.0.{1 + number // 250}.{number % 250 + 1}"
        spec = {"clusterIP": address, "ports": [{"port": 1}], "type": "ClusterIP"}
        yield "services", stored("Service", name, spec=spec)
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        yield "events", stored("Event", name, involvedObject=about)
        yield "pods", stored("Pod", name, spec={**POD, "nodeName": "n"})


def crowded(count: int) -> Api:
    """An API on a store that has so many objects, and knows all that it serves."""
    store = Store(None)
    for plural, obj in crowd(count):
        meta = obj["metadata"]
        key = f"core/{plural}/{meta['namespace']}/{meta['name']}"
        store.put(key, msgspec.json.encode(obj))
    api = api_on(store)
    do(api, "POST", "/api/v1/namespaces", {"metadata": {"name": "doomed"}})
    return api


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Api, Api]]:
    made = crowded(FEW), crowded(MANY)
    yield made
    for api in made:
        api.store.close()


def do(api: Api, method: str, path: str, body: Any = None, **options: Any) -> None:
    """A request that succeeds, and all that follows from it."""
    answer = asked(api, method, path, body, **options)
    assert answer.status in (200, 201), answer.body
    settle(api)


def acts(name: str) -> dict[str, Callable[[Api], None]]:
    """One of each verb, on an object of that name, in the order that it lives."""
    path = f"{MAPS}/{name}"
    mine = f"{path}?fieldManager=me&force=true"
    event = {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
    port: Plain = {"spec": {"ports": [{"port": 80}]}}
    named: Plain = {"metadata": {"name": name}}
    return {
        "create": lambda api: do(api, "POST", MAPS, config_map(name)),
        "get": lambda api: do(api, "GET", path),
        "update": lambda api: do(api, "PUT", path, config_map(name, data={"b": "1"})),
        "patch": lambda api: do(api, "PATCH", path, {"data": {"c": "2"}}, media=MERGE),
        "apply": lambda api: do(api, "PATCH", mine, config_map(name), media=APPLY),
        "service": lambda api: do(api, "POST", f"{PLACE}/services", named | port),
        "event": lambda api: do(api, "POST", f"{PLACE}/events", named | event),
        "pod": lambda api: do(api, "POST", f"{PLACE}/pods", {**named, "spec": POD}),
        "namespace": lambda api: do(api, "POST", "/api/v1/namespaces", named),
        "delete": lambda api: do(api, "DELETE", path),
        "delete a namespace": lambda api: do(
            api, "DELETE", f"/api/v1/namespaces/{name}"
        ),
        "maintain": lambda api: none(api.maintain()),
    }


def none(result: Any) -> None:
    """Nothing, whatever came of it."""


def test_a_request_costs_the_same_among_few_and_among_many(
    both: tuple[Api, Api],
) -> None:
    for api in both:  # the first of its kind builds what the others use
        for act in acts("first").values():
            act(api)
    few, many = (
        {
            name: work_of(api.store, partial(act, api))
            for name, act in acts("second").items()
        }
        for api in both
    )
    assert {
        name: (few[name], work)
        for name, work in many.items()
        if not work.is_about(few[name])
    } == {}


def test_a_request_costs_the_same_among_few_and_among_many_definitions() -> None:
    costs = []
    for count in (1, 60):
        store = Store(None)
        api = api_on(store)
        for number in range(count):
            do(api, "POST", DEFINITIONS, definition(f"cogs{number}"))
        owner = asked(api, "POST", MAPS, config_map("a")).meta
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
        for name in ("b", "c"):
            meta = {
                "name": name,
                "ownerReferences": [{**reference, "uid": owner["uid"]}],
            }
            body = config_map(name, metadata=meta)
            work = work_of(store, partial(do, api, "POST", MAPS, body))
        costs.append(work)
        store.close()
    few, many = costs
    assert many.is_about(few), (few, many)


def test_a_list_does_cost_more(both: tuple[Api, Api]) -> None:
    """So the counting counts."""
    few, many = (work_of(api.store, partial(do, api, "GET", MAPS)) for api in both)
    assert not many.is_about(few)


async def test_an_event_of_a_watch_costs_the_same_among_few_and_among_many(
    both: tuple[Api, Api],
) -> None:
    few, many = [await _watched(api) for api in both]
    assert many.is_about(few), (few, many)


async def _watched(api: Api) -> Work:
    """The cost of telling one watcher of one change."""
    query = {"watch": "1", "resourceVersion": str(api.store.revision)}
    request = ApiRequest(method="GET", path=MAPS, query=query, user=ADMIN)
    answer = api.handle(request)
    assert isinstance(answer, WatchAnswer)
    told: list[bytes] = []

    def tell() -> None:
        # It is there already, so the coroutine ends without a turn of the loop.
        chunk = answer.watcher.chunk()
        with pytest.raises(StopIteration) as end:
            chunk.send(None)
        told.append(end.value.value)

    for name in ("told-first", "told"):
        do(api, "POST", MAPS, config_map(name))
        work = work_of(api.store, tell)
    assert len(told) == 2
    assert b'"told"' in told[1]
    answer.watcher.close()
    return work


@pytest.mark.parametrize(
    ("place", "dying"),
    [("default", f"{MAPS}/owner"), ("doomed", "/api/v1/namespaces/doomed")],
    ids=["owner", "namespace"],
)
def test_letting_one_go_costs_the_same_however_many_are_waited_for(
    both: tuple[Api, Api], place: str, dying: str
) -> None:
    """What waits for all of them is looked at each time that one of them goes."""
    few, many = (_let_go(api, place, dying) for api in both)
    assert many.is_about(few), (few, many)


def _let_go(api: Api, place: str, dying: str) -> Work:
    do(api, "DELETE", dying, {"propagationPolicy": "Foreground"})
    free = {"metadata": {"finalizers": None}}
    for number in range(2):
        path = f"/api/v1/namespaces/{place}/secrets/old{number:05}"
        work = work_of(api.store, partial(do, api, "PATCH", path, free, media=MERGE))
        assert asked(api, "GET", path).status == 404
    assert asked(api, "GET", dying).status == 200
    return work
