"""The official Python client's informer keeps here what it keeps anywhere."""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes import informer

from trimtab.testing.waiting import eventually

KINDS = (informer.ADDED, informer.MODIFIED, informer.DELETED)


@pytest.fixture
def core(api: Any) -> Any:
    return official.CoreV1Api(api)


def config_map(name: str) -> Any:
    labels = {"kept": "yes"}
    return official.V1ConfigMap(
        metadata=official.V1ObjectMeta(name=name, labels=labels), data={}
    )


@pytest.fixture
def kept(core: Any, namespace: str) -> Iterator[Any]:
    """An informer of the marked ConfigMaps in the namespace, not yet started."""
    made = informer.SharedInformer(
        core.list_namespaced_config_map, namespace, label_selector="kept=yes"
    )
    yield made
    made.stop()


def heard(kept: Any) -> list[tuple[str, str]]:
    """What the informer tells of, as it comes."""
    events: list[tuple[str, str]] = []

    def note(kind: str) -> None:
        def add(made: Any) -> None:
            events.append((kind, made.metadata.name))

        kept.add_event_handler(kind, add)

    for kind in KINDS:
        note(kind)
    return events


async def test_an_informer_follows_what_is_there_and_what_comes(
    core: Any, kept: Any, namespace: str
) -> None:
    core.create_namespaced_config_map(namespace, config_map("early"))
    events = heard(kept)
    kept.start()
    await eventually(lambda: events == [("ADDED", "early")], describe="a list")
    core.create_namespaced_config_map(namespace, config_map("late"))
    core.patch_namespaced_config_map("late", namespace, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("early", namespace)
    expected = [
        ("ADDED", "early"),
        ("ADDED", "late"),
        ("MODIFIED", "late"),
        ("DELETED", "early"),
    ]
    await eventually(lambda: events == expected, describe="the changes")
    assert kept.cache.list_keys() == [f"{namespace}/late"]
    assert kept.cache.get_by_key(f"{namespace}/late").data == {"a": "1"}


async def test_an_informer_sees_what_leaves_its_selection(
    core: Any, kept: Any, namespace: str
) -> None:
    core.create_namespaced_config_map(namespace, config_map("one"))
    events = heard(kept)
    kept.start()
    await eventually(lambda: events == [("ADDED", "one")], describe="a list")
    unmarked = {"metadata": {"labels": {"kept": None}}}
    core.patch_namespaced_config_map("one", namespace, unmarked)
    gone = [("ADDED", "one"), ("DELETED", "one")]
    await eventually(lambda: events == gone, describe="a deletion")
    assert kept.cache.list() == []
    assert core.read_namespaced_config_map("one", namespace).metadata.labels is None


async def test_an_informer_starts_again_where_it_stopped(
    core: Any, kept: Any, namespace: str
) -> None:
    core.create_namespaced_config_map(namespace, config_map("one"))
    events = heard(kept)
    kept.start()
    await eventually(lambda: len(events) == 1, describe="a list")
    core.create_namespaced_config_map(namespace, config_map("two"))
    await eventually(lambda: len(events) == 2, describe="a change")
    kept.stop()
    core.create_namespaced_config_map(namespace, config_map("three"))
    kept.start()
    await eventually(lambda: len(events) == 3, describe="what it missed")
    assert events == [("ADDED", name) for name in ("one", "two", "three")]
