"""Laws of running an operator in a test: in one line, alone, and gone afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.examples.scenarios import EXAMPLES
from trimtab import Context, Metadata, Operator, Resource, Scope
from trimtab.cli.loading import source_of
from trimtab.kinds import ConfigMap
from trimtab.testing import Cluster, running


class Land(Resource, group="operating.example.com", version="v1", namespaced=False):
    """A kind that is in no namespace."""


async def test_an_operator_runs_in_one_line_and_its_conditions_are_awaited(
    cluster: Cluster, namespace: str
) -> None:
    buckets: Any = source_of(EXAMPLES / "buckets.py").module
    async with running(buckets.app, cluster, namespace) as run:
        wish = buckets.Bucket(
            metadata=Metadata(name="films"), spec=buckets.BucketSpec(readers=["ann"])
        )
        await run.client.create(wish)
        made = await run.condition(buckets.Bucket, "films")
        assert made.status.readers == 1
        letter = await run.until(ConfigMap, "films-ann", lambda each: each.data)
        assert letter.data["reader"] == "ann"
        await run.client.delete(buckets.Bucket, "films")
        await run.gone(buckets.Bucket, "films")
    assert {task.get_name() for task in asyncio.all_tasks()}.isdisjoint({"caches"})
    # The declaration is as it was: another test may narrow it to its own namespace.
    (definition,) = buckets.app.controllers()
    assert definition.primary.scope.everything


async def test_kinds_without_a_namespace_are_run_as_they_are(
    cluster: Cluster, namespace: str
) -> None:
    app = Operator("lands")
    seen = asyncio.Event()

    @app.reconciles(Land, scope=Scope(everything=True))
    async def look(land: Land, ctx: Context) -> None:
        seen.set()

    async with running(app, cluster, namespace, leader=True) as run:
        await run.client.create(Land(metadata=Metadata(name=namespace[-20:])))
        async with asyncio.timeout(10):
            await seen.wait()
        assert run.manager.leadership is not None


async def test_what_does_not_come_is_told(cluster: Cluster, namespace: str) -> None:
    app = Operator("lookers")

    @app.reconciles(ConfigMap, scope=Scope(everything=True))
    async def look(wish: ConfigMap, ctx: Context) -> None: ...

    with pytest.raises(BaseExceptionGroup) as caught:
        async with running(app, cluster, namespace) as run:
            await run.until(ConfigMap, "never", within=0.1)
    assert caught.group_contains(AssertionError, match="ConfigMap never is so: not so")
