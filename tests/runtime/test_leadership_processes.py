"""Laws of leadership between processes that are killed and stopped."""

from __future__ import annotations

import signal

from tests.runtime.replica import SHARED
from tests.runtime.replicas import DURATION, MARGIN, NAME, RETRY, beside, connecting
from trimtab.api.resource import Metadata
from trimtab.kinds import ConfigMap, Lease
from trimtab.testing import Cluster


async def test_after_a_kill_another_leads_within_the_duration_and_a_retry(
    cluster: Cluster, namespace: str
) -> None:
    async with beside(cluster, namespace, "first") as first:
        await first.event("leads")
        async with beside(cluster, namespace, "second") as second:
            assert (await second.event("sees"))["holder"] == "first"
            killed = first.send(signal.SIGKILL)
            led = (await second.event("leads"))["at"]
            assert led - killed < DURATION + RETRY + MARGIN
            asked = second.send(signal.SIGTERM)
            stopped = (await second.event("stopped"))["at"]
            assert stopped - asked < MARGIN
    async with connecting(cluster, namespace)() as client:
        assert not (await client.get(Lease, NAME)).spec.holderIdentity


async def test_a_leader_that_was_paused_finds_its_fence_closed_and_contends_again(
    cluster: Cluster, namespace: str
) -> None:
    async with beside(cluster, namespace, "first") as first:
        await first.event("leads")
        async with beside(cluster, namespace, "second") as second:
            assert (await second.event("sees"))["holder"] == "first"
            first.send(signal.SIGSTOP)
            await second.event("leads")
            first.send(signal.SIGCONT)
            assert (await first.event("ended"))["refused"]
            second.send(signal.SIGTERM)
            await second.event("stopped")
            await first.event("leads")


async def test_a_write_that_was_stopped_behind_the_fence_is_refused_by_the_server(
    cluster: Cluster, namespace: str
) -> None:
    async with connecting(cluster, namespace)() as client:
        await client.create(ConfigMap(metadata=Metadata(name=SHARED)))
        async with beside(cluster, namespace, "first", work="late") as first:
            await first.event("leads")
            async with beside(cluster, namespace, "second", work="writes") as second:
                await second.event("wrote")
                first.send(signal.SIGCONT)
                assert (await first.event("conflict"))["refused"], "asked once more"
        assert (await client.get(ConfigMap, SHARED)).data == {"by": "new"}
