"""Laws of replay: a request runs as often as it has to, and writes only once."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.embedded.apis import api_on, asked
from trimtab.embedded.answers import Answer
from trimtab.embedded.api import Api
from trimtab.embedded.calls import Call, CallAnswer, Pending
from trimtab.embedded.driver import Driver, seconds_of
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store
from trimtab.testing import eventually

Plain = dict[str, Any]
PATH = "/api/v1/namespaces/default/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"


def configuration(**more: Any) -> Plain:
    hook = {
        "name": "a.tests.trimtab.dev",
        "clientConfig": {"url": "https://nobody.example/x"},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
                "operations": ["*"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {"metadata": {"name": "hooks"}, "webhooks": [hook]}


@pytest.fixture
def api() -> Api:
    made = api_on(Store(None))
    path = f"{GROUP}/validatingwebhookconfigurations"
    assert asked(made, "POST", path, configuration()).status == 201
    return made


def request(body: Plain, **query: str) -> ApiRequest:
    return ApiRequest(
        method="POST",
        path=PATH,
        query=query,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
        user=ADMIN,
    )


class Webhook:
    """Answers in this process, where nobody calls; remembers what it was asked."""

    def __init__(self, *, wait: asyncio.Event | None = None) -> None:
        self.heard: list[Plain] = []
        self._wait = wait

    async def __call__(self, call: Call, body: bytes) -> CallAnswer:
        review = msgspec.json.decode(body)
        self.heard.append(review["request"])
        if self._wait is not None:
            await self._wait.wait()
        uid = review["request"]["uid"]
        review["response"] = {"uid": uid, "allowed": True}
        return CallAnswer(status=200, body=msgspec.json.encode(review))


async def test_nothing_is_written_while_somebody_is_still_asked(api: Api) -> None:
    before = api.store.revision
    with pytest.raises(Pending) as caught:
        api.handle(request({"metadata": {"name": "x"}}))
    assert (api.store.revision, len(caught.value.calls)) == (before, 1)
    with pytest.raises(Pending):  # nothing is known yet, so nothing has changed
        caught.value.again()
    assert api.store.revision == before


async def test_a_rerun_makes_up_what_the_run_before_it_made_up(api: Api) -> None:
    webhook = Webhook()
    driver = Driver(api, caller=webhook)
    made = await driver.answer(request({"metadata": {"generateName": "x-"}}))
    assert isinstance(made, Answer)
    assert isinstance(made.body, bytes)
    stored = msgspec.json.decode(made.body)
    [review] = webhook.heard
    del stored["metadata"]["resourceVersion"]
    assert review["object"] == stored
    assert review["uid"] != stored["metadata"]["uid"]
    driver.close()


async def test_the_same_seed_asks_the_same() -> None:
    heard = []
    for _ in range(2):
        api, webhook = api_on(Store(None)), Webhook()
        path = f"{GROUP}/mutatingwebhookconfigurations"
        assert asked(api, "POST", path, configuration()).status == 201
        driver = Driver(api, caller=webhook)
        for name in ("x", "y"):
            await driver.answer(request({"metadata": {"name": name}}))
        driver.close()
        heard.append(webhook.heard)
    assert heard[0] == heard[1]
    assert len({each["uid"] for each in heard[0]}) == 2


async def test_others_are_served_while_a_request_waits(api: Api) -> None:
    free = asyncio.Event()
    webhook = Webhook(wait=free)
    driver = Driver(api, caller=webhook)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(driver.answer(request({"metadata": {"name": "x"}})))
        while not webhook.heard:
            await asyncio.sleep(0)
        path = "/api/v1/namespaces/default/secrets"
        assert asked(api, "POST", path, {"metadata": {"name": "y"}}).status == 201
        assert asked(api, "GET", f"{PATH}/x").status == 404
        free.set()
    assert (await waiting).status == 201
    assert asked(api, "GET", f"{PATH}/x").status == 200
    driver.close()


async def test_a_request_that_runs_out_of_time_has_done_nothing(api: Api) -> None:
    driver = Driver(api, caller=Webhook(wait=asyncio.Event()))
    late = await driver.answer(request({"metadata": {"name": "x"}}, timeout="20ms"))
    assert isinstance(late, Answer)
    assert isinstance(late.body, bytes)
    told = msgspec.json.decode(late.body)
    assert (late.status, told["reason"]) == (504, "Timeout")
    assert asked(api, "GET", f"{PATH}/x").status == 404
    driver.close()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 34.0), ("2s", 2.0), ("1m", 34.0), ("1s500ms", 1.5), ("0", 34.0)],
)
def test_a_request_has_the_time_it_asks_for_but_no_more_than_any(
    text: str, seconds: float
) -> None:
    assert seconds_of(request({}, timeout=text)) == seconds


@pytest.mark.parametrize(
    ("text", "told"), [("soon", "invalid"), ("5", "missing unit in")]
)
async def test_a_time_that_nobody_can_read_is_refused(
    api: Api, text: str, told: str
) -> None:
    driver = Driver(api, caller=Webhook())
    refused = await driver.answer(request({"metadata": {"name": "x"}}, timeout=text))
    assert isinstance(refused, Answer)
    assert isinstance(refused.body, bytes)
    assert msgspec.json.decode(refused.body)["message"] == (
        f'invalid timeout specified in the request URL - time: {told} duration "{text}"'
    )
    driver.close()


async def test_what_the_server_does_itself_waits_for_those_who_are_asked(
    api: Api,
) -> None:
    asked(api, "DELETE", f"{GROUP}/validatingwebhookconfigurations/hooks")
    path = "/api/v1/namespaces"
    assert asked(api, "POST", path, {"metadata": {"name": "room"}}).status == 201
    for name in "xy":
        inside = f"{path}/room/configmaps"
        assert asked(api, "POST", inside, {"metadata": {"name": name}}).status == 201
    hooks = f"{GROUP}/validatingwebhookconfigurations"
    assert asked(api, "POST", hooks, configuration()).status == 201
    assert asked(api, "DELETE", f"{path}/room").status == 200
    while api.work():
        pass
    assert asked(api, "GET", f"{path}/room").status == 200
    webhook = Webhook()
    async with asyncio.TaskGroup() as group:
        driver = Driver(api, caller=webhook, group=group)
        driver.start()

        def gone() -> bool:
            return asked(api, "GET", f"{path}/room").status == 404

        await eventually(gone)
        driver.close()
    names = [each["oldObject"]["metadata"]["name"] for each in webhook.heard]
    assert sorted(names) == ["x", "y"]
