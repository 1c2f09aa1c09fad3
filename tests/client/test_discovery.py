"""Discovery: what a server has, asked once, shared by all, and kept for a while."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.client.conftest import ONCE, Connect
from tests.client.faults import Exchange, FaultServer, Handler, cut, hang, status
from tests.client.laws import ends_within, tells_well
from trimtab.api.resource import Info
from trimtab.client import Client, budget, discovery
from trimtab.client.errors import (
    DeadlineExceeded,
    Disconnected,
    Forbidden,
    Malformed,
    NotFound,
    TransportError,
)
from trimtab.testing import eventually

SOON = 0.2
POD = Info(version="v1", kind="Pod", plural="pods")
NODE = Info(version="v1", kind="Node", plural="nodes", namespaced=False)
DEPLOYMENT = Info(group="apps", version="v1", kind="Deployment", plural="deployments")
WIDGET = Info(group="example.com", version="v1", kind="Widget", plural="widgets")


def resource(info: Info) -> dict[str, Any]:
    return {
        "resource": info.plural,
        "responseKind": {"group": "", "version": "", "kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "subresources": [{"subresource": "status"}],
    }


def aggregated(*infos: Info) -> dict[str, Any]:
    groups: dict[str, dict[str, list[Any]]] = {}
    for info in infos:
        versions = groups.setdefault(info.group, {})
        versions.setdefault(info.version, []).append(resource(info))
    return {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {"version": version, "resources": found}
                    for version, found in versions.items()
                ],
            }
            for group, versions in groups.items()
        ],
    }


class Api:
    """A server's discovery, in the aggregated form or the legacy one."""

    def __init__(self, *infos: Info, legacy: bool = False) -> None:
        self.infos = list(infos)
        self.legacy = legacy
        self.down: dict[str, Handler] = {}
        """What answers in place of a path."""

    async def __call__(self, exchange: Exchange) -> None:
        path = exchange.path
        if path in self.down:
            await self.down[path](exchange)
        elif path in ("/api", "/apis"):
            core = path == "/api"
            infos = [info for info in self.infos if core == (info.group == "")]
            await exchange.json(self.root(core, infos))
        else:
            version = path.removeprefix("/apis/").removeprefix("/api/")
            await exchange.json(self.version(version))

    def root(self, core: bool, infos: list[Info]) -> dict[str, Any]:
        if not self.legacy:
            return aggregated(*infos)
        if core:
            return {"kind": "APIVersions", "versions": ["v1"]}
        versions = sorted({info.api_version for info in infos})
        groups = [{"versions": [{"groupVersion": each}]} for each in versions]
        return {"kind": "APIGroupList", "groups": groups}

    def version(self, version: str) -> dict[str, Any]:
        found = [
            {"name": info.plural, "kind": info.kind, "namespaced": info.namespaced}
            for info in self.infos
            if info.api_version == version
        ]
        scales = [{**each, "name": f"{each['name']}/scale"} for each in found]
        return {"groupVersion": version, "resources": found + scales}


@pytest.fixture
def api(server: FaultServer) -> Api:
    made = Api(POD, NODE, DEPLOYMENT)
    server.always(made)
    return made


async def test_the_aggregated_form_takes_two_requests_for_everything(
    api: Api, server: FaultServer, client: Client
) -> None:
    assert await client.discover("v1", "Pod") == POD
    assert await client.discover("v1", "Node") == NODE
    assert await client.discover("apps/v1", "Deployment") == DEPLOYMENT
    assert [request.path for request in server.requests] == ["/api", "/apis"]
    assert "as=APIGroupDiscoveryList" in server.requests[0].headers["Accept"]
    assert set(await client.discovery.all()) == {POD, NODE, DEPLOYMENT}


async def test_the_legacy_form_tells_the_same(
    api: Api, server: FaultServer, client: Client
) -> None:
    api.legacy = True
    assert await client.discover("v1", "Pod") == POD
    assert await client.discover("v1", "Node") == NODE
    assert await client.discover("apps/v1", "Deployment") == DEPLOYMENT
    paths = ["/api", "/api/v1", "/apis", "/apis/apps/v1"]
    assert [request.path for request in server.requests] == paths
    assert set(await client.discovery.all()) == {POD, NODE, DEPLOYMENT}


async def test_a_kind_that_is_not_there_is_asked_for_again_only_after_a_while(
    api: Api, server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFound, match=r"Widget in example\.com/v1"):
        await client.discover("example.com/v1", "Widget")
    with pytest.raises(NotFound):
        await client.discover("example.com/v1", "Widget")
    assert len(server.requests) == 2
    monkeypatch.setattr(discovery, "MISS_LIFETIME", 0.0)
    api.infos.append(WIDGET)
    assert await client.discover("example.com/v1", "Widget") == WIDGET
    assert len(server.requests) == 4


async def test_a_known_kind_is_believed_for_its_lifetime(
    api: Api, server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MISS_LIFETIME", 0.0)
    await client.discover("v1", "Pod")
    await client.discover("v1", "Pod")
    await client.discovery.all()
    assert len(server.requests) == 2
    monkeypatch.setattr(discovery, "LIFETIME", 0.0)
    await client.discover("v1", "Pod")
    await client.discovery.all()
    assert len(server.requests) == 6


async def test_the_table_has_a_bound(
    api: Api, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_RESOURCES", 2)
    assert len(await client.discovery.all()) == 2


async def test_many_who_ask_at_once_share_one_answer(
    api: Api, server: FaultServer, client: Client
) -> None:
    asked = [client.discover("v1", "Pod") for _ in range(50)]
    assert await asyncio.gather(*asked) == [POD] * 50
    assert len(server.requests) == 2


async def test_who_asks_and_fails_fails_alone(
    api: Api, server: FaultServer, connect: Connect
) -> None:
    client = connect(retry=ONCE)
    server.play(cut)
    asked = [client.discover("v1", "Pod") for _ in range(5)]
    got = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in got] == [Disconnected] + [Info] * 4
    assert len(server.requests) == 3


async def test_who_asks_and_is_cancelled_leaves_the_question_to_the_next(
    api: Api, server: FaultServer, client: Client
) -> None:
    server.play(hang)
    asker = asyncio.ensure_future(client.discover("v1", "Pod"))
    await eventually(lambda: server.requests)
    waiters = [asyncio.ensure_future(client.discover("v1", "Pod")) for _ in range(3)]
    await asyncio.sleep(0.02)
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    with ends_within(0):
        assert await asyncio.gather(*waiters) == [POD] * 3
    assert len(server.requests) == 3


async def test_a_cancelled_waiter_disturbs_nobody(
    api: Api, server: FaultServer, client: Client
) -> None:
    go = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        await go.wait()
        await api(exchange)

    server.play(later)
    asker = asyncio.ensure_future(client.discover("v1", "Pod"))
    await eventually(lambda: server.requests)
    waiters = [asyncio.ensure_future(client.discover("v1", "Pod")) for _ in range(2)]
    await asyncio.sleep(0.02)
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    go.set()
    assert await asker == await waiters[1] == POD
    assert len(server.requests) == 2


async def test_a_waiter_waits_no_longer_than_its_own_deadline(
    api: Api, server: FaultServer, client: Client
) -> None:
    server.always(hang)
    asker = asyncio.ensure_future(client.discover("v1", "Pod"))
    await eventually(lambda: server.requests)
    with ends_within(SOON), pytest.raises(DeadlineExceeded) as caught, budget(SOON):
        await client.discover("v1", "Pod")
    tells_well(caught.value)
    assert not asker.done()
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker


async def test_the_deadline_is_for_all_the_requests_together(
    api: Api, server: FaultServer, client: Client
) -> None:
    api.legacy = True
    for number in range(50):
        more = Info(group=f"g{number}", version="v1", kind="X", plural="xs")
        api.infos.append(more)

    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(0.2)
        await api(exchange)

    server.always(slowly)
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        await client.discovery.refresh(deadline=SOON)


async def test_a_write_of_a_plain_object_minds_its_deadline_while_it_discovers(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    for call in (client.create, client.replace):
        with ends_within(SOON), pytest.raises(DeadlineExceeded):
            await call(plain, deadline=SOON)
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        await client.apply(plain, manager="tests", deadline=SOON)


@pytest.mark.parametrize("code", [403, 404, 503])
async def test_an_extension_that_is_down_hides_only_its_own_kinds(
    api: Api, client: Client, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.legacy = True
    api.infos.append(WIDGET)
    api.down["/apis/example.com/v1"] = status(code, message="it is down")
    with caplog.at_level(logging.WARNING, "trimtab.client"):
        assert await client.discover("apps/v1", "Deployment") == DEPLOYMENT
    assert "it is down" in caplog.text
    with pytest.raises(NotFound):
        await client.discover("example.com/v1", "Widget")


async def test_a_failure_leaves_what_was_known(
    api: Api, server: FaultServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(retry=ONCE)
    await client.discover("v1", "Pod")
    api.down["/apis"] = cut
    with pytest.raises(TransportError):
        await client.discovery.refresh()
    assert await client.discover("v1", "Pod") == POD


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(status(403), Forbidden), (status(404), NotFound)],
)
async def test_a_server_that_does_not_tell_is_named(
    api: Api, client: Client, fault: Handler, expected: type
) -> None:
    api.down["/api"] = fault
    with pytest.raises(expected) as caught:
        await client.discover("v1", "Pod")
    tells_well(caught.value)


ODD = [
    {},
    {"items": [{}]},
    {"items": [{"versions": None}]},
    {"items": [{"versions": [{"version": "v1"}]}]},
    {"items": [{"versions": [{"version": "v1", "resources": None}]}]},
    {"items": [{"versions": [{"version": "v1", "resources": [{"resource": "x"}]}]}]},
    {"groups": None, "versions": None},
    {"groups": [{}]},
]


@pytest.mark.parametrize("odd", ODD)
async def test_what_is_left_out_is_not_there(
    api: Api, client: Client, odd: dict[str, Any]
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.json(odd)

    api.down["/apis"] = handler
    assert set(await client.discovery.all()) == {POD, NODE}


@pytest.mark.parametrize("odd", [[], {"items": {}}, {"items": [{"metadata": []}]}])
async def test_discovery_of_another_shape_is_malformed(
    api: Api, client: Client, odd: Any
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.json(odd)

    api.down["/api"] = handler
    with pytest.raises(Malformed) as caught:
        await client.discover("v1", "Pod")
    tells_well(caught.value)
