"""Laws of claims and of headroom: for people with kubectl."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.pool.core_site import SMALL, Site, site, site_with_node, template
from trimtab.api import Metadata, Quantity
from trimtab.cache import Change
from trimtab.client import NotFound, TrimtabError
from trimtab.kinds import Pod, Secret
from trimtab.pool import placeholders
from trimtab.pool.claims import Claims
from trimtab.pool.kinds import (
    LABEL_ROLE,
    Headroom,
    Shape,
    WorkerClaim,
    WorkerClaimSpec,
    WorkerPool,
    WorkerPoolSpec,
)
from trimtab.pool.parts import PoolOptions
from trimtab.pool.pods import WorkerPod, WorkerPodStatus
from trimtab.pool.states import State
from trimtab.testing import Cluster, eventually

Plain = dict[str, Any]
WAITING = WorkerClaim(
    metadata=Metadata(name="mine"), spec=WorkerClaimSpec(pool="pool", tenant="acme")
)


async def claimed(made: Site, name: str, state: str) -> WorkerClaim:
    async def look() -> WorkerClaim:
        found = await made.client.get(WorkerClaim, name, namespace=made.namespace)
        assert found.status.state == state, found.status
        return found

    return await eventually(look, within=20.0, every=0.1)


async def gone(made: Site, name: str) -> None:
    async def look() -> bool:
        try:
            await made.client.get(WorkerClaim, name, namespace=made.namespace)
        except NotFound:
            return True
        return False

    await eventually(look, within=20.0, every=0.1)


def claim(made: Site, name: str, pool: str = "pool") -> WorkerClaim:
    return WorkerClaim(
        metadata=Metadata(name=name, namespace=made.namespace),
        spec=WorkerClaimSpec(pool=pool, tenant="acme"),
    )


@pytest.mark.cluster
@pytest.mark.simulation
async def test_a_claim_has_a_worker_as_long_as_it_is_there(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with site_with_node(cluster, namespace, tmp_path) as made:
        await made.pool(minIdle=1, maxWorkers=1, idleTTL=60)
        async with made.replica():
            await made.client.create(claim(made, "mine"))
            await made.client.create(claim(made, "wrong", pool="other"))
            bound = await claimed(made, "mine", "Bound")
            (worker,) = await made.living(State.HOT)
            assert bound.status.worker == worker.metadata.name
            secret = await made.client.get(
                Secret, bound.status.tokenSecret, namespace=namespace
            )
            assert set(secret.data) == {"token", "ca.crt"}
            failed = await claimed(made, "wrong", "Failed")
            assert "no WorkerPool" in failed.status.conditions["Bound"].message
            await made.client.delete(WorkerClaim, "mine", namespace=namespace)
            await gone(made, "mine")
            await made.until(1, State.HOT_IDLE)


class Racing:
    """A server whose watch is quicker than its answers, as far as claims see it."""

    def __init__(self) -> None:
        self.claims: Claims
        self.claimants: set[str] = set()
        self.options = PoolOptions(lease_namespace="", period=1000.0)
        self.served = asyncio.Event()

    @property
    def client(self) -> Racing:
        return self

    @property
    def view(self) -> Racing:
        return self

    async def patch(self, kind: object, name: str, body: Plain, **more: object) -> None:
        given = Metadata(name=name, finalizers=body["metadata"]["finalizers"])
        new = replace(WAITING, metadata=given)
        self.claims.follow(Change("MODIFIED", new.key, WAITING, new))
        await asyncio.sleep(0)

    def by_holder(self, holder: str) -> list[object]:
        self.served.set()
        raise TrimtabError("That is all that this test asks for.")


async def test_a_change_that_comes_while_a_claim_is_served_is_not_passed_over() -> None:
    parts = Racing()
    parts.claims = Claims(cast(Any, parts), allocator=cast(Any, None))
    parts.claims.follow(Change("ADDED", WAITING.key, None, WAITING))
    async with asyncio.TaskGroup() as group:
        work = group.create_task(parts.claims.run())
        async with asyncio.timeout(5.0):
            await parts.served.wait()
        work.cancel()


@pytest.mark.cluster
async def test_headroom_is_what_the_spec_says_and_nothing_when_it_says_none(
    cluster: Cluster, namespace: str
) -> None:
    async with site(cluster, namespace) as made:
        await made.pool(headroom=Headroom(count=2))
        async with made.replica():

            async def there(count: int) -> bool:
                found = made.client.list(
                    Pod, namespace=namespace, labels=f"{LABEL_ROLE}=headroom"
                )
                assert len([each async for each in found]) == count
                return True

            await eventually(lambda: there(2))
            body = {"spec": {"headroom": None}}
            await made.client.patch(WorkerPool, "pool", body, namespace=namespace)
            await eventually(lambda: there(0))


def pool(count: int) -> WorkerPool:
    large = Shape(name="large", cpu=Quantity("2"), memory=Quantity("2Gi"))
    return WorkerPool(
        metadata=Metadata(name="p", namespace="n", uid="u"),
        spec=WorkerPoolSpec(
            template=template("here"),
            shapes=[SMALL, large],
            headroom=Headroom(count=count, shape="large", priorityClassName="low"),
        ),
    )


def placeholder(name: str, *, size: str = "2/2Gi", phase: str = "Running") -> WorkerPod:
    metadata = Metadata(name=name, namespace="n", annotations={placeholders.SIZE: size})
    return WorkerPod(metadata=metadata, status=WorkerPodStatus(phase=phase))


def test_a_placeholder_that_ended_or_has_another_size_does_not_count() -> None:
    found = [
        placeholder("a", phase="Failed"),
        placeholder("b", size="1/1Gi"),
        placeholder("c"),
        placeholder("d"),
        placeholder("e"),
    ]
    keep, surplus = placeholders.sorted_out(pool(2), found)
    assert [each.metadata.name for each in keep] == ["c", "d"]
    assert [each.metadata.name for each in surplus] == ["a", "b", "e"]
    assert placeholders.sorted_out(pool(0), found) == ([], found)


def test_a_placeholder_goes_where_workers_go_and_gives_way_to_them() -> None:
    made = placeholders.pod(pool(1), name="x")
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "here"}
    assert made["spec"]["priorityClassName"] == "low"
    (container,) = made["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "2Gi"}
