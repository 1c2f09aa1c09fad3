"""Laws of Services as webhooks: found by their endpoints, known by their names.

No node routes in the embedded server, so it asks endpoints directly; a real one asks
the Service, which nobody answers for without nodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tests.embedded.apis import api_on, asked
from tests.embedded.asking import MERGE
from tests.embedded.webhooks.desk import Raw, a_desk, authority
from tests.embedded.webhooks.test_replay import GROUP, Webhook, configuration, request
from trimtab.embedded.answers import Answer
from trimtab.embedded.calls import Call, CallAnswer
from trimtab.embedded.driver import Driver
from trimtab.embedded.store import Store
from trimtab.embedded.webhooks.https import Https

Plain = dict[str, Any]
SERVICES = "/api/v1/namespaces/default/services"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
URL = "https://hook.default.svc:443/review?timeout=10s"
NAMED = {"name": "hook", "namespace": "default", "path": "/review"}


def made_slice(name: str, address: str, *, ready: bool = True) -> Plain:
    labels = {"kubernetes.io/service-name": name}
    return {
        "metadata": {"name": f"{name}-{address}", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
        "ports": [{"name": "https", "port": 8443}, {"name": "other", "port": 1}],
    }


class Calling(Webhook):
    """Remembers where it was called, too."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    async def __call__(self, call: Call, body: bytes) -> CallAnswer:
        self.calls.append(call)
        return await super().__call__(call, body)


async def test_a_service_is_asked_at_a_ready_endpoint_of_its_port() -> None:
    api, webhook = api_on(Store(None)), Calling()
    driver = Driver(api, caller=webhook)
    hooks = f"{GROUP}/validatingwebhookconfigurations"
    body = configuration(clientConfig={"service": NAMED})
    assert asked(api, "POST", hooks, body).status == 201

    async def told() -> str:
        answer = await driver.answer(request({"metadata": {"generateName": "x-"}}))
        assert isinstance(answer, Answer)
        assert isinstance(answer.body, bytes)
        message = str(msgspec.json.decode(answer.body).get("message", ""))
        return message.rpartition(f'Post "{URL}": ')[2]

    def put(path: str, body: Plain) -> None:
        answer = asked(api, "POST", path, body)
        assert answer.status == 201, answer.body

    assert await told() == 'service "hook" not found'
    ports = [{"name": "https", "port": 443}, {"name": "other", "port": 80}]
    put(SERVICES, {"metadata": {"name": "hook"}, "spec": {"ports": ports}})
    assert await told() == 'no endpoints available for service "hook"'
    put(SLICES, made_slice("other", "10.9.0.1"))
    put(SLICES, made_slice("hook", "10.9.0.2", ready=False))
    assert await told() == 'no endpoints available for service "hook"'
    put(SLICES, made_slice("hook", "10.9.0.4"))
    assert await told() == ""
    subsets = [
        {
            "addresses": [{"ip": "10.9.0.3"}],
            "ports": [{"name": "https", "port": 9443}],
        }
    ]
    put(ENDPOINTS, {"metadata": {"name": "hook"}, "subsets": subsets})
    assert await told() == ""
    places = [(each.url, each.address) for each in webhook.calls]
    assert places == [(URL, ("10.9.0.4", 8443)), (URL, ("10.9.0.3", 9443))]
    one = {"spec": {"ports": [{"name": "https", "port": 444}]}}
    assert asked(api, "PATCH", f"{SERVICES}/hook", one, media=MERGE).status == 200
    assert await told() == 'no service port 443 found for service "hook"'
    driver.close()


Calls = Callable[[str, int], Call]


@asynccontextmanager
async def calling() -> AsyncIterator[tuple[Https, Calls]]:
    https = Https()

    def call(url: str, port: int) -> Call:
        return Call(
            url=url,
            address=("127.0.0.1", port),
            ca=authority().pair.certificate,
            timeout=5.0,
            head=b"",
            tail=b"",
        )

    try:
        yield https, call
    finally:
        https.close()


async def test_whoever_answers_for_a_service_must_have_its_name() -> None:
    body = b'{"kind":"R","apiVersion":"v1","request":{"uid":"u"}}'
    async with calling() as (https, call):
        async with a_desk("hook.default.svc") as desk:
            first = await https(call(URL, desk.port), body)
            again = await https(call(URL, desk.port), body)
            assert (first.status, again.status, len(desk.heard)) == (200, 200, 2)
        async with a_desk("other.default.svc") as desk:
            answer = await https(call(URL, desk.port), body)
            assert "certificate is not valid for any names" in answer.error
            assert desk.heard == []


async def test_a_connection_that_was_ended_meanwhile_is_made_again() -> None:
    body = b'{"kind":"R","apiVersion":"v1","request":{"uid":"u"}}'
    async with calling() as (https, call):
        async with a_desk("hook.default.svc") as desk:
            port = desk.port
            assert (await https(call(URL, port), body)).status == 200
        refused = await https(call(URL, port), body)
        assert refused.error.endswith("connect: connection refused")


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    body = b'{"kind":"R","apiVersion":"v1","request":{"uid":"u"}}'
    async with calling() as (https, call), a_desk("hook.default.svc") as desk:
        desk.tell("/review", lambda _: Raw(b" " * (4 << 20)))
        answer = await https(call(URL, desk.port), body)
    assert "response body is too large" in answer.error
