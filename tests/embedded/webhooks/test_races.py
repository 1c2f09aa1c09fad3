"""Laws of time: what happens between a review and the write it is about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.embedded.asking import MERGE, Asker
from tests.embedded.asking import settling as settling
from tests.embedded.webhooks.desk import Desk, Office, patch, rule
from tests.embedded.webhooks.desk import desk as desk
from tests.embedded.webhooks.desk import office as office

pytestmark = [pytest.mark.cluster("embedded", "real")]

Plain = dict[str, Any]


async def test_the_object_that_was_reviewed_is_the_one_that_is_stored(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = f"{ask.path('configmaps')}/x"
    await ask("POST", ask.path("configmaps"), {"metadata": {"name": "x"}})
    hook = office.hook("/race", [rule(["configmaps"], "UPDATE")])
    await office.validating(hook)
    others: list[int] = []

    async def meddle(request: Plain) -> None:
        """While the first review is under way, somebody else writes."""
        if "mine" in (request["object"].get("data") or {}) and not others:
            change = {"data": {"theirs": "1"}}
            others.append((await ask("PATCH", path, change, media=MERGE)).status)

    desk.tell("/race", meddle)
    answer = await ask("PATCH", path, {"data": {"mine": "1"}}, media=MERGE)
    assert (answer.status, others) == (200, [200])
    assert answer.obj["data"] == {"mine": "1", "theirs": "1"}
    last = desk.at("/race")[-1]
    assert last["object"]["data"] == {"mine": "1", "theirs": "1"}
    assert last["oldObject"]["data"] == {"theirs": "1"}
    stored = (await ask("GET", path)).obj
    assert stored["data"] == last["object"]["data"]


async def test_a_write_about_a_version_that_is_gone_by_then_conflicts(
    ask: Asker, desk: Desk, office: Office
) -> None:
    places = ask.path("configmaps")
    made = (await ask("POST", places, {"metadata": {"name": "x"}})).obj
    await office.mutating(office.hook("/race", [rule(["configmaps"], "UPDATE")]))

    async def meddle(request: Plain) -> None:
        if "mine" in (request["object"].get("data") or {}):
            change = {"data": {"theirs": "1"}}
            await ask("PATCH", f"{places}/x", change, media=MERGE)

    desk.tell("/race", meddle)
    refused = await ask("PUT", f"{places}/x", {**made, "data": {"mine": "1"}})
    assert (refused.status, refused.obj["reason"]) == (409, "Conflict")
    assert (await ask("GET", f"{places}/x")).obj["data"] == {"theirs": "1"}


async def test_what_is_created_meanwhile_exists_already(
    ask: Asker, desk: Desk, office: Office
) -> None:
    path = ask.path("configmaps")
    labels = {"matchLabels": {"reviewed": "yes"}}
    hook = office.hook("/race", [rule(["configmaps"])], objectSelector=labels)
    await office.validating(hook)

    async def meddle(_: Plain) -> None:
        await ask("POST", path, {"metadata": {"name": "x"}, "data": {"theirs": "1"}})

    desk.tell("/race", meddle)
    meta = {"name": "x", "labels": {"reviewed": "yes"}}
    refused = await ask("POST", path, {"metadata": meta})
    assert (refused.status, refused.obj["reason"]) == (409, "AlreadyExists")
    assert (await ask("GET", f"{path}/x")).obj["data"] == {"theirs": "1"}


async def test_what_a_request_makes_up_stays_the_same_while_others_are_asked(
    ask: Asker, desk: Desk, office: Office
) -> None:
    desk.tell(
        "/label",
        lambda _: patch({"op": "add", "path": "/metadata/labels/b", "value": "c"}),
    )
    await office.mutating(office.hook("/label", [rule(["services"])]))
    await office.validating(office.hook("/see", [rule(["services"], "CREATE")]))
    body = {
        "metadata": {"generateName": "gen-", "labels": {"a": "b"}},
        "spec": {"ports": [{"port": 80}], "type": "NodePort"},
    }
    made = (await ask("POST", ask.path("services"), body)).obj
    [review] = desk.at("/see")
    seen, meta = review["object"], made["metadata"]
    assert meta.pop("resourceVersion")
    assert (review["name"], seen) == (meta["name"], made)


async def test_webhooks_that_only_look_are_asked_at_the_same_time(
    ask: Asker, desk: Desk, office: Office
) -> None:
    together = asyncio.Barrier(3)

    async def meet(_: Plain) -> None:
        await together.wait()

    names = ("/one", "/two", "/three")
    for each in names:
        desk.tell(each, meet)
    hooks = [office.hook(each, [rule(["secrets"], "CREATE")]) for each in names]
    await office.validating(*hooks)
    made = await ask("POST", ask.path("secrets"), {"metadata": {"name": "x"}})
    assert made.status == 201
    assert sorted(each for each, _ in desk.heard) == sorted(names)
