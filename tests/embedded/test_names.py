"""Laws of generated names: which are tried, how often, and what is said at the end."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.embedded.apis import api_on, asked
from tests.embedded.asking import Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import meta_map
from trimtab.embedded.store import Store

MAPS = "/api/v1/namespaces/default/configmaps"
TRIES = 8


class Scripted(Random):
    """Chance that makes the same five letters for so long, and then others."""

    same = 0

    def choices(
        self,
        population: Any,
        weights: Any = None,
        *,
        cum_weights: Any = None,
        k: int = 1,
    ) -> list[Any]:
        if self.same > 0:
            self.same -= 1
            return ["b"] * k
        return ["c"] * k


@pytest.mark.parametrize("taken", [0, 1, TRIES - 1, TRIES])
def test_a_name_is_made_up_eight_times(taken: int) -> None:
    chance = Scripted(1)
    store = Store(None)
    api = api_on(store, random=chance)
    asked(api, "POST", MAPS, meta_map(name="made-bbbbb"))
    chance.same = taken
    before = store.revision
    made = asked(api, "POST", MAPS, meta_map(generateName="made-"))
    if taken < TRIES:
        assert (made.status, made.meta["name"]) == (201, "made-ccccc")
        assert store.revision == before + 1
    else:
        assert made.refusal == (
            409,
            "AlreadyExists",
            (
                'configmaps "made-bbbbb" already exists, the server was not able to '
                "generate a unique name for the object"
            ),
        )
        assert made.obj["details"] == {
            "name": "made-bbbbb",
            "kind": "configmaps",
            "retryAfterSeconds": 1,
        }
        assert store.revision == before
    store.close()


async def test_a_given_name_is_not_made_up_again(ask: Asker) -> None:
    path = ask.path("configmaps")
    both = meta_map(name="one", generateName="made-")
    made = await ask("POST", path, both)
    assert (made.status, made.meta["name"]) == (201, "one")
    again = await ask("POST", path, both)
    assert again.refusal == (
        409,
        "AlreadyExists",
        (
            'configmaps "one" already exists, the server was not able to generate a '
            "unique name for the object"
        ),
    )
    assert again.obj["details"]["retryAfterSeconds"] == 1
