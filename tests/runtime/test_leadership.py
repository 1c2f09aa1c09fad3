"""Laws of leadership: one leads, it can be lost, and somebody leads again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tests.embedded.worlds import in_process
from tests.runtime.relay import Relay
from tests.runtime.replicas import (
    DURATION,
    LASTING,
    MARGIN,
    NAME,
    RENEW_DEADLINE,
    RETRY,
    Local,
    comes_to_lead,
    connecting,
    quick,
    running,
)
from trimtab.api.times import MicroTime
from trimtab.client import Client
from trimtab.client.errors import NotFound
from trimtab.kinds import Lease, LeaseSpec
from trimtab.runtime.fence import NotLeader
from trimtab.runtime.leadership import Leadership, State
from trimtab.testing import Cluster, eventually


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with connecting(cluster, namespace)() as made:
        yield made


@pytest.fixture
def replica(cluster: Cluster, namespace: str) -> Callable[..., Local]:
    """Makes replicas; ``server`` is a relay's address, the rest goes to the options."""

    def make(who: str, *, server: str = "", **more: Any) -> Local:
        connect = connecting(cluster, namespace, server=server)
        return Local(connect, quick(namespace, who, **more))

    return make


def clock() -> float:
    return asyncio.get_running_loop().time()


async def lease_of(client: Client) -> Lease:
    return await client.get(Lease, NAME)


async def steal(client: Client, who: str, **spec: Any) -> Lease:
    """Write the Lease as a client-go elector would, without regard for anybody."""
    moment = MicroTime.of(datetime.now(UTC)).__encode__()
    given = {"holderIdentity": who, "leaseDurationSeconds": 2, **spec}
    body = {"spec": {"acquireTime": moment, "renewTime": moment, **given}}
    return await client.patch(Lease, NAME, body)


# One leads


async def test_one_of_two_replicas_leads_and_the_other_waits(
    client: Client, replica: Callable[..., Local]
) -> None:
    first, second = (replica(who, **LASTING) for who in ("first", "second"))
    async with running(first, second):
        await eventually(lambda: first.leads or second.leads)
        leader, other = (first, second) if first.leads else (second, first)
        who = leader.leadership.options.identity

        def knows() -> bool:
            return other.leadership.statistics().holder == who

        await eventually(knows)
        assert other.state is State.CONTENDING
        assert not other.fences
        assert not other.leadership.is_leader
        with pytest.raises(NotLeader):
            other.leadership.fence.check(0.0)
        lease = await lease_of(client)
        assert lease.spec.holderIdentity == who
        assert (lease.spec.leaseDurationSeconds, lease.spec.leaseTransitions) == (60, 0)
        assert leader.leadership.statistics().last_renewed is not None
    assert leader.changes == [True, False]
    assert not [each for each in threading.enumerate() if "lease" in each.name]


async def test_a_graceful_stop_hands_over_and_nobody_waits_for_the_leases_end(
    client: Client, replica: Callable[..., Local]
) -> None:
    first, second = (replica(who, **LASTING) for who in ("first", "second"))
    async with running(first):
        await comes_to_lead(first)
        async with running(second):
            await eventually(lambda: second.leadership.statistics().holder == "first")
            started = clock()
            await first.leadership.stop()
            await comes_to_lead(second)
            assert clock() - started < RETRY + MARGIN
            assert not first.fences[0].valid
            assert (await lease_of(client)).spec.leaseTransitions == 1
    released = (await lease_of(client)).spec
    assert not released.holderIdentity
    assert (released.leaseDurationSeconds, released.leaseTransitions) == (1, 1)


async def test_work_that_ends_on_a_stop_may_still_write(
    replica: Callable[..., Local],
) -> None:
    leader = replica("leader")

    async def ending() -> None:
        await asyncio.sleep(DURATION + 0.3)  # longer than without renewals
        leader.fences[0].check(0.1)

    leader.ending = ending  # type: ignore[method-assign]
    async with running(leader):
        await comes_to_lead(leader)
        await leader.leadership.stop()
        assert not leader.fences[0].valid


# It can be lost


async def test_nobody_contends_again_before_the_old_work_has_ended(
    client: Client, replica: Callable[..., Local]
) -> None:
    leader, thread_may_end = replica("leader", **LASTING), threading.Event()

    async def ending() -> None:
        assert not leader.fences[0].valid, "it was cancelled before it was revoked"
        await asyncio.to_thread(thread_may_end.wait, 10.0)

    leader.ending = ending  # type: ignore[method-assign]
    async with running(leader):
        await comes_to_lead(leader)
        await steal(client, "thief")
        await eventually(lambda: leader.state is State.EMPTYING)
        assert leader.changes == [True, False]
        await steal(client, "")  # free for anybody who contends
        version = (await lease_of(client)).metadata.resourceVersion
        await asyncio.sleep(2 * RETRY)
        assert (await lease_of(client)).metadata.resourceVersion == version
        thread_may_end.set()
        await comes_to_lead(leader)
        old, new = leader.fences
        new.check(0.1)
        with pytest.raises(NotLeader, match="held by thief now"):
            old.check(0.0)
        assert leader.leadership.statistics().terms == 2


async def test_a_leader_that_is_cut_off_loses_it_before_another_leads(
    cluster: Cluster, replica: Callable[..., Local]
) -> None:
    async with Relay(cluster.server) as relay:
        far, near = replica("far", server=relay.server), replica("near")
        lead, lost = near.lead, list[bool]()

        async def leads() -> None:
            lost.append(not far.fences[0].valid)
            await lead()

        near.lead = leads  # type: ignore[method-assign]
        async with running(far):
            await comes_to_lead(far)
            async with running(near):
                await eventually(lambda: near.leadership.statistics().holder == "far")
                relay.cut()
                began = clock()
                await eventually(lambda: not far.leads)
                assert clock() - began < RENEW_DEADLINE + MARGIN
                await eventually(lambda: far.state is State.CONTENDING)
                await comes_to_lead(near)
                assert clock() - began < DURATION + RETRY + MARGIN
                assert lost == [True]
                relay.mend()
                await eventually(lambda: far.leadership.statistics().holder == "near")
                assert not far.leads
                await near.leadership.stop()
                await comes_to_lead(far)
            assert not far.fences[0].valid


async def test_a_slow_server_costs_nobody_the_lease(
    cluster: Cluster, client: Client, replica: Callable[..., Local]
) -> None:
    async with Relay(cluster.server) as relay:
        slow = replica("slow", server=relay.server, **LASTING)
        other = replica("other", **LASTING)
        async with running(slow):
            await comes_to_lead(slow)
            relay.delay = 0.25
            async with running(other):
                seen = set[object]()

                async def is_renewed() -> bool:
                    seen.add((await lease_of(client)).spec.renewTime)
                    return len(seen) > 3

                await eventually(is_renewed)
                assert slow.leads
                assert len(slow.fences) == 1
                assert not other.fences
            relay.delay = 0.0


async def test_a_busy_loop_keeps_the_lease(replica: Callable[..., Local]) -> None:
    leader, other = replica("leader"), replica("other")
    async with running(leader):
        await comes_to_lead(leader)
        async with running(other):
            time.sleep(DURATION + RETRY + 0.3)
            leader.fences[0].check(0.1)
            await eventually(lambda: other.leadership.statistics().holder == "leader")
            assert leader.leads
            assert not other.fences


async def test_a_stuck_loop_loses_the_lease_and_contends_again(
    client: Client, replica: Callable[..., Local]
) -> None:
    leader, looked = replica("leader", stuck=0.5), asyncio.Event()
    leader.ending = looked.wait  # type: ignore[assignment]  # before it contends again
    async with running(leader):
        await eventually(lambda: leader.fences)
        time.sleep(1.5)
        with pytest.raises(NotLeader, match=r"has been stuck for \d+ s"):
            leader.fences[0].check(0.0)
        spec = (await lease_of(client)).spec
        assert spec.renewTime is not None
        assert (datetime.now(UTC) - spec.renewTime).total_seconds() > 0.5
        looked.set()
        await eventually(lambda: len(leader.fences) >= 2)
        await comes_to_lead(leader)


@pytest.mark.parametrize("what", ["label", "delete"])
async def test_what_others_do_to_the_lease_object_costs_nobody_the_lease(
    client: Client, replica: Callable[..., Local], what: str
) -> None:
    leader, other = (replica(who, **LASTING) for who in ("leader", "other"))
    async with running(leader):
        await comes_to_lead(leader)
        async with running(other):
            await eventually(lambda: other.leadership.statistics().holder == "leader")
            if what == "label":
                patch = {"metadata": {"labels": {"a": "b"}}}
                old = await client.patch(Lease, NAME, patch)
            else:
                old = await lease_of(client)
                await client.delete(Lease, NAME)

            async def is_renewed() -> bool:
                with suppress(NotFound):
                    found = await lease_of(client)
                    return found.spec.renewTime != old.spec.renewTime
                return False

            await eventually(is_renewed)
            assert leader.leads
            assert len(leader.fences) == 1
            assert not other.fences
            if what == "label":
                assert (await lease_of(client)).metadata.labels == {"a": "b"}


# Beside client-go


async def test_an_elector_like_client_go_is_respected_until_it_dies(
    client: Client, replica: Callable[..., Local]
) -> None:
    """Its times are another clock's, far behind; only its writes count."""
    old = "2001-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "go", "leaseDurationSeconds": 2, "leaseTransitions": 7}
    times = {"acquireTime": old, "renewTime": old}
    await client.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME},
            "spec": {**spec, **times},
        }
    )
    ours = replica("ours")
    async with running(ours):
        for number in range(8):
            await asyncio.sleep(0.35)
            renewed, died = f"2001-01-01T00:00:{number:02}.000000Z", clock()
            await client.patch(Lease, NAME, {"spec": {"renewTime": renewed}})
            assert not ours.fences
        await comes_to_lead(ours)
        assert 2.0 <= clock() - died <= 2.0 + RETRY + MARGIN
        assert (await lease_of(client)).spec.leaseTransitions == 8


async def test_an_elector_like_client_go_sees_ours_alive_and_then_free(
    client: Client, replica: Callable[..., Local]
) -> None:
    ours = replica("ours")
    async with running(ours):
        await comes_to_lead(ours)
        first = (await lease_of(client)).spec
        assert first.renewTime is not None

        async def renewed() -> LeaseSpec | None:
            found = (await lease_of(client)).spec
            return found if found.renewTime != first.renewTime else None

        within = (first.leaseDurationSeconds or 0) + MARGIN
        second = await eventually(renewed, within=within)
        assert second is not None
        assert second.renewTime is not None
        assert second.holderIdentity == "ours"
        assert second.acquireTime == first.acquireTime
        assert second.renewTime > first.renewTime
        await ours.leadership.stop()
    assert not (await lease_of(client)).spec.holderIdentity


# How it ends


async def test_work_that_fails_ends_the_run_and_releases_the_lease(
    client: Client, replica: Callable[..., Local]
) -> None:
    async def lead() -> None:
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await replica("one").leadership.run(lead)
    assert not (await lease_of(client)).spec.holderIdentity


async def test_work_that_returns_ends_the_run_and_releases_the_lease(
    client: Client, replica: Callable[..., Local]
) -> None:
    leadership = replica("one").leadership
    await leadership.run(lambda: asyncio.sleep(0))
    assert leadership.statistics().terms == 1
    assert not (await lease_of(client)).spec.holderIdentity


async def test_a_cancelled_run_has_ended_its_work_and_released_the_lease(
    client: Client, replica: Callable[..., Local]
) -> None:
    one = replica("one")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.leadership.run(one.lead))
        await comes_to_lead(one)
        task.cancel()
    assert one.running == 0
    assert not one.fences[0].valid
    assert not (await lease_of(client)).spec.holderIdentity


async def test_a_server_that_is_away_delays_a_stop_by_two_seconds_at_most(
    cluster: Cluster, replica: Callable[..., Local]
) -> None:
    async with Relay(cluster.server) as relay:
        one = replica("one", server=relay.server)
        async with running(one):
            await comes_to_lead(one)
            relay.cut()
            began = clock()
            await one.leadership.stop()
            assert clock() - began < 2.0 + MARGIN


async def test_a_bug_of_ours_ends_the_run_and_closes_the_fence(
    cluster: Cluster, namespace: str
) -> None:
    moments = [datetime.now(UTC)]
    one = Local(connecting(cluster, namespace), quick(namespace, "one"))

    def now() -> datetime:
        return moments.pop()

    one.leadership = Leadership(
        connecting(cluster, namespace),
        quick(namespace, "one"),
        random=Random(1),
        now=now,
    )
    with pytest.raises(ExceptionGroup) as caught:
        await one.leadership.run(one.lead)
    assert caught.group_contains(IndexError)
    assert one.running == 0
    assert not one.fences[0].valid


async def test_all_of_it_can_run_in_one_loop() -> None:
    threads = set(threading.enumerate())
    async with in_process() as world:
        one, two = (
            Local(world.connect, quick("default", who, **LASTING), thread=False)
            for who in "ab"
        )
        async with running(one):
            await comes_to_lead(one)
            async with running(two):
                assert set(threading.enumerate()) <= threads
                await one.leadership.stop()
                await comes_to_lead(two)
