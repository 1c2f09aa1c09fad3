"""Laws of what the server does by itself: with time, and after any end of its process.

An image of the store's file is what a process that was killed at that moment leaves
behind. One is taken after every commit, and each must come to the same end.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.apis import Clock, api_on, asked, settle
from tests.embedded.asking import MERGE, Plain
from tests.embedded.rooms import FINALIZER
from tests.embedded.test_deletion import GROUP, definition
from trimtab.embedded.api import Api
from trimtab.embedded.store import Change, Store

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R"}


def test_an_event_lives_for_an_hour_after_its_last_change() -> None:
    store, clock = Store(None), Clock()
    api = api_on(store, clock=clock)
    for name in ("one", "two"):
        made = asked(api, "POST", EVENTS, event(name))
        assert made.status == 201, made.body
    clock.now += timedelta(minutes=59)
    api.maintain()
    changed = asked(api, "GET", f"{EVENTS}/two").obj | {"count": 2}
    assert asked(api, "PUT", f"{EVENTS}/two", changed).status == 200
    clock.now += timedelta(minutes=2)
    api.maintain()
    assert asked(api, "GET", EVENTS).names == ["two"]
    clock.now += timedelta(minutes=59)
    api.maintain()
    assert asked(api, "GET", EVENTS).names == []
    store.close()


PLACE = "/api/v1/namespaces"
MAPS = f"{PLACE}/doomed/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COGS = f"/apis/{GROUP}/v1/namespaces/doomed/cogs"


def make(api: Api, path: str, name: str, *owners: Plain, held: bool = False) -> Plain:
    """An object, whose owners wait for it; a held one waits for its release."""
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    meta = {"name": name, "ownerReferences": references}
    if held:
        meta["finalizers"] = [FINALIZER]
    body: Plain = {"metadata": meta}
    if path == COGS:
        body |= {"apiVersion": f"{GROUP}/v1", "kind": "Cogs"}
    made = asked(api, "POST", path, body)
    assert made.status == 201, made.body
    found: Plain = made.obj
    return found


def release(api: Api, path: str) -> None:
    """Take the finalizer off, if the object is there and still has it."""
    if asked(api, "GET", path).status == 200:
        patch = {"metadata": {"finalizers": None}}
        asked(api, "PATCH", path, patch, media=MERGE)


class Story:
    """What is there, how its deletion begins, what is released, and how it ends."""

    released: tuple[str, ...] = ()

    def prepare(self, api: Api) -> None:
        raise NotImplementedError

    def begin(self, api: Api) -> None:
        raise NotImplementedError

    def check(self, api: Api) -> None:
        raise NotImplementedError

    def finish(self, api: Api) -> None:
        """All that there is to do from wherever it stands."""
        settle(api)
        for path in self.released:
            release(api, path)
            settle(api)


class Foreground(Story):
    """An owner goes after its dependents, one of which has dependents of its own."""

    released: tuple[str, ...] = (f"{MAPS}/held",)

    def prepare(self, api: Api) -> None:
        first = make(api, MAPS, "first")
        second = make(api, MAPS, "second", first)
        make(api, MAPS, "third", second)
        make(api, MAPS, "held", first, held=True)

    def begin(self, api: Api) -> None:
        body = {"propagationPolicy": "Foreground"}
        assert asked(api, "DELETE", f"{MAPS}/first", body).status == 200

    def check(self, api: Api) -> None:
        assert asked(api, "GET", MAPS).names == ["kube-root-ca.crt"]


class Orphan(Foreground):
    """An owner goes alone, and nobody names it any more."""

    released: tuple[str, ...] = ()

    def begin(self, api: Api) -> None:
        body = {"propagationPolicy": "Orphan"}
        assert asked(api, "DELETE", f"{MAPS}/first", body).status == 200

    def check(self, api: Api) -> None:
        found = asked(api, "GET", MAPS)
        assert found.names == ["held", "kube-root-ca.crt", "second", "third"]
        owned = [
            each["metadata"]["name"]
            for each in found.obj["items"]
            if "ownerReferences" in each["metadata"]
        ]
        assert owned == ["third"]


class Background(Foreground):
    """An owner goes at once; who it owned, and whom those owned, follow."""

    def begin(self, api: Api) -> None:
        assert asked(api, "DELETE", f"{MAPS}/first").status == 200


class OfDefinition(Story):
    """A definition goes after the objects of its kind."""

    released: tuple[str, ...] = (f"{COGS}/held",)

    def prepare(self, api: Api) -> None:
        assert asked(api, "POST", DEFINITIONS, definition("cogs")).status == 201
        settle(api)
        for name in ("a", "b"):
            make(api, COGS, name)
        make(api, COGS, "held", held=True)

    def begin(self, api: Api) -> None:
        where = f"{DEFINITIONS}/cogs.{GROUP}"
        assert asked(api, "DELETE", where).status == 200

    def check(self, api: Api) -> None:
        assert asked(api, "GET", DEFINITIONS).names == []
        assert asked(api, "GET", COGS).status == 404
        assert api.store.count(f"{GROUP}/") == 0


class OfNamespace(OfDefinition):
    """A namespace goes after everything in it, custom objects too."""

    released: tuple[str, ...] = (f"{COGS}/held", f"{MAPS}/held")

    def prepare(self, api: Api) -> None:
        super().prepare(api)
        make(api, MAPS, "free", make(api, MAPS, "held", held=True))

    def begin(self, api: Api) -> None:
        assert asked(api, "DELETE", f"{PLACE}/doomed").status == 200

    def check(self, api: Api) -> None:
        assert asked(api, "GET", f"{PLACE}/doomed").status == 404
        assert api.store.count("core/configmaps/doomed/") == 0
        assert api.store.count(f"{GROUP}/") == 0


def images(store: Store, path: Path) -> tuple[list[Path], Callable[[], None]]:
    """Copies of a store's file, one for each commit from now on; and their end."""
    taken: list[Path] = []

    def take(change: Change) -> None:
        folder = path.parent / f"image-{change.revision}"
        folder.mkdir()
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            shutil.copy(source, folder / source.name)
        taken.append(folder / path.name)

    return taken, store.subscribe(take)


@pytest.mark.parametrize(
    "story", [Foreground, Background, Orphan, OfDefinition, OfNamespace]
)
def test_a_deletion_ends_well_wherever_the_process_was_killed(
    tmp_path: Path, story: type[Story]
) -> None:
    store = Store(tmp_path / "store")
    api = api_on(store)
    asked(api, "POST", PLACE, {"metadata": {"name": "doomed"}})
    told = story()
    told.prepare(api)
    settle(api)
    taken, no_more = images(store, tmp_path / "store")
    told.begin(api)
    told.finish(api)
    told.check(api)
    no_more()
    store.close()
    assert len(taken) > 2
    for image in taken:
        left = Store(image)
        again = api_on(left)
        told.finish(again)
        told.check(again)
        left.close()
