"""Laws of sources: which change wakes whom, and says why."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from tests.runtime.contexts import nothing
from tests.runtime.operating import Shop, ShopSpec, here
from trimtab import Metadata, Operator, Watched
from trimtab.api.resource import OwnerReference, owner_of
from trimtab.cache import Change, Key
from trimtab.kinds import ConfigMap, Secret
from trimtab.runtime.definitions import Definition
from trimtab.runtime.lanes import Entry
from trimtab.runtime.queue import Queue
from trimtab.runtime.sources import Children, Others, Primary, Subscriber
from trimtab.runtime.workqueue import WorkQueue


class Forgetting:
    """What of the writer a source knows."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[type, Key]] = []

    def forget(self, kind: type, key: Key) -> None:
        self.forgotten.append((kind, key))


class Woken:
    """A controller's sources, and the queue that they fill."""

    def __init__(
        self, *, on_change: Iterable[str] | None = None, to: Any = None
    ) -> None:
        app = Operator("shops")
        app.reconciles(
            Shop,
            scope=here("town"),
            owns=[ConfigMap],
            on_change=None if on_change is None else tuple(on_change),
            watches=[
                Watched(
                    kind=Secret, scope=here("town"), to=to or (lambda _: ["corner"])
                )
            ],
        )(nothing)
        definition: Definition = app.controllers()[0]
        self.queue = WorkQueue(Queue(random=Random(1)))
        self.writer: Any = Forgetting()
        self.primary = self._made(Primary, definition, definition.primary)
        self.children = self._made(Children, definition, definition.owns[0])
        self.others = self._made(Others, definition, definition.watches[0])

    def _made(self, kind: type[Subscriber], definition: Definition, source: Any) -> Any:
        made = kind(definition, source, self.queue, self.writer)
        made.replaying = False
        return made

    async def taken(self) -> list[Entry]:
        """All that waits, done with."""
        entries = []
        while len(self.queue):
            entries.append(await self.queue.get())
            self.queue.done(entries[-1].key)
        return entries

    async def names(self) -> list[str]:
        return sorted(each.key[1] for each in await self.taken())


def corner(**changes: Any) -> Shop:
    metadata = Metadata(name="corner", namespace="town", uid="u", generation=1)
    made = Shop(metadata=metadata, spec=ShopSpec(goods="tea"))
    return msgspec.structs.replace(made, **changes)


def shelf(*owners: OwnerReference, goods: str = "tea") -> ConfigMap:
    metadata = Metadata(name="shelf", namespace="town", ownerReferences=list(owners))
    return ConfigMap(metadata=metadata, data={"goods": goods})


def added(new: Any, *, initial: bool = False) -> Change[Any]:
    return Change(type="ADDED", key=new.key, old=None, new=new, initial=initial)


def modified(old: Any, new: Any) -> Change[Any]:
    return Change(type="MODIFIED", key=new.key, old=old, new=new)


def removed(old: Any) -> Change[Any]:
    return Change(type="DELETED", key=old.key, old=old, new=None)


async def test_an_object_wakes_itself_and_the_cause_names_the_fields() -> None:
    woken = Woken()
    woken.primary(added(corner()))
    woken.primary(modified(corner(), corner(spec=ShopSpec(goods="milk"))))
    (entry,) = await woken.taken()
    assert entry.key == ("town", "corner")
    assert [str(each) for each in entry.causes] == ["change", "change (spec.goods)"]


async def test_the_first_list_wakes_every_object_after_what_is_live() -> None:
    woken = Woken()
    woken.primary(added(corner(), initial=True))
    other = corner(metadata=Metadata(name="new", namespace="town"))
    woken.primary(added(other))
    entries = await woken.taken()
    assert [each.key[1] for each in entries] == ["new", "corner"]
    assert entries[1].causes[0].why == "initial"


async def test_a_change_of_nothing_that_is_read_wakes_nobody() -> None:
    woken = Woken(on_change=("spec.goods",))
    woken.primary(modified(corner(), corner(spec=ShopSpec(shelves=5))))
    woken.primary(modified(corner(), corner()))
    Woken().primary(modified(corner(), corner()))
    assert await woken.names() == []


async def test_what_is_gone_is_forgotten_and_wakes_nobody() -> None:
    woken = Woken()
    woken.primary(added(corner()))
    woken.primary(removed(corner()))
    assert await woken.names() == []
    assert woken.writer.forgotten == [(Shop, ("town", "corner"))]


async def test_a_child_wakes_its_owner_whatever_happens_to_it() -> None:
    woken = Woken()
    child = shelf(owner_of(corner()))
    for change in (
        added(child),
        modified(child, shelf(owner_of(corner()), goods="sand")),
        removed(child),
    ):
        woken.children(change)
        (entry,) = await woken.taken()
        assert entry.key == ("town", "corner")
        assert str(entry.causes[0]).startswith("owned change of ConfigMap town/shelf")
    assert woken.writer.forgotten == [(ConfigMap, ("town", "shelf"))]


async def test_a_child_that_changes_hands_wakes_both_owners() -> None:
    woken = Woken()
    other = corner(metadata=Metadata(name="other", namespace="town", uid="v"))
    woken.children(modified(shelf(owner_of(corner())), shelf(owner_of(other))))
    assert await woken.names() == ["corner", "other"]


@pytest.mark.parametrize(
    "owner",
    [
        OwnerReference(apiVersion="v1", kind="Shop", name="a", uid="u"),
        OwnerReference(apiVersion="other.com/v1", kind="Shop", name="a", uid="u"),
        OwnerReference(
            apiVersion="runtime.example.com/v1", kind="Mall", name="a", uid="u"
        ),
    ],
)
async def test_an_owner_of_another_kind_is_not_ours(owner: OwnerReference) -> None:
    woken = Woken()
    woken.children(added(shelf(owner)))
    woken.children(added(shelf()))
    assert await woken.names() == []


async def test_an_owner_of_another_version_of_the_kind_is_ours() -> None:
    woken = Woken()
    older = OwnerReference(
        apiVersion="runtime.example.com/v1beta1", kind="Shop", name="corner", uid="u"
    )
    woken.children(added(shelf(older)))
    assert await woken.names() == ["corner"]


def secret(*shops: str) -> Secret:
    labels = dict.fromkeys(shops, "")
    return Secret(metadata=Metadata(name="key", namespace="town", labels=labels))


async def test_something_watched_wakes_those_whom_it_concerned_or_concerns() -> None:
    woken = Woken(to=lambda each: each.metadata.labels)
    woken.others(modified(secret("a", "b"), secret("b", "c")))
    assert await woken.names() == ["a", "b", "c"]
    woken.others(removed(secret("c")))
    (entry,) = await woken.taken()
    assert str(entry.causes[0]) == "watched change of Secret town/key"


async def test_a_mapper_may_name_objects_elsewhere() -> None:
    woken = Woken(to=lambda _: [("village", "corner"), "corner"])
    woken.others(added(secret()))
    keys = {each.key for each in await woken.taken()}
    assert keys == {("village", "corner"), ("town", "corner")}


async def test_only_what_was_there_before_the_controller_wakes_nobody() -> None:
    woken = Woken()
    child = shelf(owner_of(corner()))
    for source, obj in ((woken.children, child), (woken.others, secret())):
        source.replaying = True
        source(added(obj, initial=True))
        assert await woken.names() == []
        # A namespace that comes into scope later has a first list of its own.
        source.replaying = False
        source(added(obj, initial=True))
        assert await woken.names() == ["corner"]
