"""Laws of the whole: real gateways, real workers, and what is left afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pool.town import town
from trimtab.testing import Cluster


async def test_a_worker_is_warm_exclusive_and_gone_when_its_time_is_up(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with town(cluster, namespace, tmp_path) as here:
        await here.make("sql", minIdle=1, maxWorkers=3, idleTTL=1)
        door = await here.open("--endpoints", "0")
        await here.until("sql", idle=1)
        async with await here.connect("sql") as pool:
            async with pool.acquire(tenant="acme") as worker:
                reply = await worker.call("POST", "/witness")
                seen = json.loads(reply.body)
                assert (reply.status, seen["checkout"]) == (200, worker.checkout)
                assert seen["tenant"] == "acme"
                held = worker
            assert (await held.call("POST", "/witness")).status == 403
        script = 'test -s "$TRIMTAB_WORKER_CA" && echo "$TRIMTAB_WORKER_EPOCH"'
        said = await here.command(
            *("acquire", "sql", "--tenant", "acme", "--gateway", door.url),
            *("--service-account", "clients", "--exec", "sh", "-c", script),
        )
        assert int(said.splitlines()[-1]) >= 1
        said = await here.command("acquire", "sql", "--tenant", "acme")
        assert "is yours" in said
        claim = said.split()[-1]
        assert await here.command("release", claim) == f"{claim} is given back.\n"
        scrape = await here.scraped()
        assert 'trimtab_pool_requests_total{code="ok",verb="acquire"} 2.0' in scrape
        assert 'trimtab_pool_pass_timestamp_seconds{pass="rows"}' in scrape
        assert "trimtab_pool_may_act 1.0" in scrape
        await here.want("sql", minIdle=0)
        await here.empty()
        assert not [each for each in here.witnessed() if each["event"] == "shared"]


@pytest.mark.simulation  # for its time: it runs where the real server does
@pytest.mark.timeout(200)
async def test_a_worker_is_activated_over_grpc_before_its_first_use(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with town(cluster, namespace, tmp_path) as here:
        await here.make(
            *("sql", "--grpc", "8446"),
            minIdle=1,
            maxWorkers=2,
            activation={"protocol": "grpc", "port": 8446},
        )
        await here.open()
        await here.until("sql", idle=1)
        async with await here.connect("sql") as pool:
            for _ in range(2):
                async with pool.acquire(tenant="acme") as worker:
                    assert (await worker.call("POST", "/witness")).status == 200
        served = [each for each in here.witnessed() if each["event"] != "clean"]
        assert [each["event"] for each in served] == ["activate", "serve", "serve"]
        assert {each["tenant"] for each in served} == {"acme"}
