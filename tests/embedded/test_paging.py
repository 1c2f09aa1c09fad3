"""The law of pages: one state, whatever is written, and forgotten, between them."""

from __future__ import annotations

from random import Random

import pytest

from tests.embedded.apis import api_on, asked
from tests.embedded.objects import labelled
from trimtab.embedded.api import Api
from trimtab.embedded.lists import ListRequest, list_page
from trimtab.embedded.store import Compacted, Store

SECRETS = "/api/v1/namespaces/default/secrets"
NAMES = [f"n{number:02}" for number in range(40)]


def scribble(api: Api, random: Random) -> None:
    """One write: something new, something changed, or something gone."""
    path = f"{SECRETS}/{random.choice(NAMES)}"
    name = path.rpartition("/")[2]
    body = labelled(name, turn=str(random.randrange(1000)))
    body["kind"] = "Secret"
    if asked(api, "GET", path).status == 404:
        assert asked(api, "POST", SECRETS, body).status == 201
    elif random.random() < 0.5:
        assert asked(api, "PUT", path, body).status == 200
    else:
        assert asked(api, "DELETE", path).status == 200


def state(api: Api) -> list[tuple[str, str]]:
    return listed(asked(api, "GET", SECRETS).obj)


def listed(answer: dict[str, list[dict[str, dict[str, str]]]]) -> list[tuple[str, str]]:
    metas = [each["metadata"] for each in answer["items"]]
    return [(meta["name"], meta["resourceVersion"]) for meta in metas]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kept", [0, 5, 60])
def test_pages_are_of_one_state_or_say_that_it_is_forgotten(
    seed: int, kept: int
) -> None:
    random = Random(seed)
    store = Store(None)
    api = api_on(store)
    for _ in range(80):
        scribble(api, random)
    whole, found = state(api), []
    query = f"limit={random.randint(1, 9)}"
    token, revision = "", store.revision
    while True:
        page = asked(api, "GET", f"{SECRETS}?{query}{token}")
        if page.status == 410:
            assert revision < store.compacted
            break
        assert page.status == 200
        assert page.meta["resourceVersion"] == str(revision)
        found += listed(page.obj)
        left = len(whole) - len(found)
        assert page.meta.get("remainingItemCount", 0) == left
        if "continue" not in page.meta:
            assert found == whole
            store.close()
            return
        token = f"&continue={page.meta['continue']}"
        for _ in range(random.randrange(12)):
            scribble(api, random)
        store.maintain(0.0, keep_changes=kept)
    assert found == whole[: len(found)]
    rest = asked(api, "GET", f"{SECRETS}?continue={page.meta['continue']}")
    last = found[-1][0]
    assert listed(rest.obj) == [each for each in state(api) if each[0] > last]
    store.close()


def test_a_list_under_way_breaks_off_rather_than_tell_of_two_states() -> None:
    store = Store(None)
    api = api_on(store)
    for number in range(500):
        asked(api, "POST", SECRETS, {"metadata": {"name": f"n{number:04}"}})
    page = list_page(store, "core/secrets/default/", ListRequest(), None)
    values = iter(page.values)
    for _ in range(100):
        next(values)
    asked(api, "DELETE", f"{SECRETS}/n0450")
    assert asked(api, "POST", SECRETS, {"metadata": {"name": "n0451a"}}).status == 201
    store.compact(store.revision)
    with pytest.raises(Compacted):
        list(values)
    store.close()
