"""Laws of ``trimtab pool``: what people see, and how they let a worker go."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.commands import printed, refused
from trimtab import Client, load
from trimtab.api import Metadata, Quantity, wire
from trimtab.pool import explaining
from trimtab.pool.kinds import (
    KINDS,
    LABEL_POOL,
    Checkout,
    Shape,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
    WorkerSpec,
    WorkerStatus,
)
from trimtab.pool.states import Reason, State
from trimtab.testing import Cluster
from trimtab.testing.operating import install

HELD = Checkout(id="c0ffee00c0ffee00", holder="client-1")


def a_pool(namespace: str) -> WorkerPool:
    size = Shape(name="small", cpu=Quantity("1"), memory=Quantity("1Gi"))
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    return WorkerPool(
        metadata=Metadata(name="sql", namespace=namespace),
        spec=WorkerPoolSpec(template=template, shapes=[size], maxWorkers=2),
    )


def a_worker(name: str, namespace: str, **status: Any) -> Worker:
    return Worker(
        metadata=Metadata(name=name, namespace=namespace, labels={LABEL_POOL: "sql"}),
        spec=WorkerSpec(
            pool="sql",
            shape="small",
            cpu=Quantity("1"),
            memory=Quantity("1Gi"),
            revision="r",
        ),
        status=WorkerStatus(owner="gateway-1", **status),
    )


async def furnish(cluster: Cluster, namespace: str) -> None:
    """A pool with one worker that is held and one that is free."""
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        await install(client, *KINDS)
        await client.create(a_pool(namespace))
        for worker in (
            a_worker("busy", namespace, state=State.HOT, tenant="acme", checkout=HELD),
            a_worker("free", namespace, state=State.IDLE),
        ):
            made = await client.create(worker)
            body = {"status": wire(worker)["status"]}
            await client.patch(
                Worker,
                made.metadata.name,
                body,
                namespace=namespace,
                subresource="status",
            )


async def state_of(cluster: Cluster, namespace: str, name: str) -> WorkerStatus:
    async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
        return (await client.get(Worker, name, namespace=namespace)).status


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_people_see_a_pool_and_let_its_workers_go(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(furnish(cluster, namespace))
    where = ("--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace)
    assert "sql" in printed(capsys, "pool", "ls", *where)
    listed = printed(capsys, "pool", "ls", "sql", *where).splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [
        ["busy", "hot", "acme"],
        ["free", "idle", "-"],
    ]
    told = printed(capsys, "pool", "explain", "busy", *where)
    assert "client-1 has it" in told
    told = printed(capsys, "pool", "explain", "sql", *where)
    assert "has 2 of at most 2 workers" in told
    assert "No more can be spawned" in told

    assert "goes when it is released" in printed(
        capsys, "pool", "drain", "busy", *where
    )
    status = run(state_of(cluster, namespace, "busy"))
    assert (status.state, status.checkout) == (State.DRAINING, HELD)
    assert printed(capsys, "pool", "release", "busy", *where) == "busy goes.\n"
    assert run(state_of(cluster, namespace, "busy")).checkout is None
    assert printed(capsys, "pool", "drain", "free", *where) == "free goes.\n"
    assert run(state_of(cluster, namespace, "free")).state is State.DRAINING
    assert "There is no worker nobody" in refused(
        capsys, "pool", "drain", "nobody", *where
    )


def test_a_certificate_without_its_key_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "pool", "serve", "--certificate", "x.pem")
    assert "needs its key" in said


@pytest.mark.parametrize("state", State)
def test_every_state_and_every_reason_is_explained(state: State) -> None:
    now = datetime.now(UTC)
    for reason in Reason:
        worker = a_worker(
            "w",
            "default",
            state=state,
            tenant="acme",
            checkout=HELD,
            idleSince=now - timedelta(seconds=9),
            reaper="gateway-1",
            reapAfter=now,
            retireReason=reason.value,
        )
        lines = explaining.worker(worker, a_pool("default"), now=now)
        assert state.value in lines[0]
        assert all(line.endswith(".") for line in lines), lines
        assert any("has marked it" in line for line in lines)
    assert explaining.WHY.keys() == set(Reason)
