"""Laws of the client: a worker comes back however its block ends."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.pool.gateway_desk import Desk, desk, rule
from trimtab.client.errors import ConfigError
from trimtab.pool.client import Lost, Pool
from trimtab.pool.requests import Unavailable
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


class Broken(Exception):
    """What goes wrong in a block."""


async def test_a_worker_is_released_however_its_block_ends(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("one", rule("acquire"))
        with pytest.raises(Broken):
            async with here.pool(token) as pool, pool.acquire(tenant="acme"):
                raise Broken  # and it arrives as it was raised, in no group
        assert here.shelf.out == {}
        async with here.pool(token) as pool, asyncio.TaskGroup() as group:

            async def hold() -> None:
                async with pool.acquire(tenant="acme"):
                    await asyncio.sleep(3600)

            tasks = [group.create_task(hold()) for _ in range(5)]
            await eventually(lambda: len(here.shelf.out) == 5)
            for task in tasks:
                task.cancel()
                task.cancel()
            await asyncio.wait(tasks)
            await eventually(lambda: here.shelf.out == {})


async def test_one_renewal_names_every_worker_that_is_held(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as here:
        token = await here.account("two", rule("acquire"))
        async with here.pool(token) as pool:
            assert here.shelf.renewals == [], "who wants nothing renews nothing"
            async with (
                pool.acquire(tenant="acme") as one,
                pool.acquire(tenant="acme") as two,
            ):
                both = sorted((one.checkout, two.checkout))
                await eventually(
                    lambda: any(
                        sorted(known or ()) == both for _, known in here.shelf.renewals
                    ),
                    within=10.0,
                )
            holders = {holder for holder, _ in here.shelf.renewals}
            assert holders == {holder for _, holder in _asked(here)}


def _asked(here: Desk) -> list[tuple[str, str]]:
    return [(each.tenant, each.holder) for each in here.shelf.asked]


async def test_a_worker_is_lost_before_another_client_can_have_it(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.pool.gateway_desk.RENEW_WITHIN", 2.0)
    monkeypatch.setattr("trimtab.pool.client.RENEW", 0.2)
    async with desk(cluster, namespace) as here:
        token = await here.account("three", rule("acquire"))
        async with here.pool(token) as pool, pool.acquire(tenant="acme") as worker:
            await eventually(lambda: here.shelf.renewals)
            assert not worker.lost.is_set()
            await here.gateway.__aexit__(None, None, None)
            await asyncio.wait_for(worker.lost.wait(), 10)
            with pytest.raises(Lost):
                await worker.call("GET", "/")


async def test_another_gateway_is_asked_when_one_is_gone(
    cluster: Cluster, namespace: str
) -> None:
    async with desk(cluster, namespace) as gone, desk(cluster, namespace) as here:
        token = await here.account("four", rule("acquire"))
        urls = [gone.url, here.url]
        both = gone.authority.pem + here.authority.pem
        await gone.gateway.__aexit__(None, None, None)
        pool = Pool.connect(
            urls, pool=f"{namespace}/sql", token=token, ca=both, random=Random(3)
        )
        async with pool, pool.acquire(tenant="acme"):
            assert len(here.shelf.out) == 1
        assert here.shelf.out == {}


async def test_without_any_gateway_it_says_so_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimtab.pool.client.PATIENCE", 0.3)
    pool = Pool.connect("https://127.0.0.1:1", pool="a/b", token="t", random=Random(3))
    async with pool:
        with pytest.raises(Unavailable, match="No gateway answers"):
            async with pool.acquire(tenant="acme", wait=0.1):
                pass


@pytest.mark.parametrize("url", ["http://gateway", "gateway:1", "https://x:0x"])
def test_a_gateway_without_tls_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="is no gateway"):
        Pool.connect(url, pool="a/b", token="t")


def test_tokens_show_in_no_repr() -> None:
    pool = Pool.connect("https://gateway", pool="a/b", token="very-secret")
    assert "very-secret" not in repr(pool)
    with pytest.raises(ConfigError, match="NAMESPACE/NAME"):
        Pool.connect("https://gateway", pool="b", token="t")
