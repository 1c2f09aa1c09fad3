"""Laws of rehearsals: one reconcile, with all of its effects, and no server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.examples.scenarios import EXAMPLES
from trimtab import Context, Metadata, Operator, Retry, Scope, Terminal
from trimtab.cli.loading import source_of
from trimtab.kinds import (
    ConfigMap,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    Secret,
)
from trimtab.testing import rehearse
from trimtab.testing.desk import NoServer


def loaded(name: str) -> Any:
    return source_of(EXAMPLES / f"{name}.py").module


async def test_what_is_applied_stated_and_owned_is_told() -> None:
    website = loaded("website")
    site = website.Website(
        metadata=Metadata(name="shop"), spec=website.WebsiteSpec(image="a:1")
    )
    done = await rehearse(website.app, site)
    made = done.one(Deployment)
    assert made.metadata.ownerReferences[0].kind == "Website"
    assert made.metadata.labels["trimtab.dev/operator"] == "websites"
    assert done.object.status.wished == 1
    assert (done.after, done.deleted, done.events) == (None, [], [])


async def test_objects_that_are_given_are_in_the_caches() -> None:
    website = loaded("website")
    site = website.Website(
        metadata=Metadata(name="shop"), spec=website.WebsiteSpec(image="a:1")
    )
    running = Deployment(
        metadata=Metadata(name="shop"),
        spec=DeploymentSpec(selector=website.LabelSelector(), template=TEMPLATE),
        status=DeploymentStatus(readyReplicas=1),
    )
    done = await rehearse(website.app, site, given=[running])
    assert done.object.status.ready == 1


async def test_finalizers_children_conditions_and_events_behave_as_they_will() -> None:
    buckets = loaded("buckets")
    wish = buckets.Bucket(
        metadata=Metadata(name="films"), spec=buckets.BucketSpec(readers=["ann"])
    )
    left = ConfigMap(metadata=Metadata(name="films-bob"))
    done = await rehearse(buckets.app, wish, given=[left])
    assert done.object.metadata.finalizers == [buckets.FINALIZER]
    assert [each.metadata.name for each in done.deleted] == ["films-bob"]
    assert done.object.status.conditions["Ready"].status == "True"
    assert [each.reason for each in done.events] == ["Made"]
    going = msgspec.structs.replace(
        done.object,
        metadata=msgspec.structs.replace(
            done.object.metadata, deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC)
        ),
    )
    assert buckets.store.buckets
    gone = await rehearse(buckets.app, going)
    assert not buckets.store.buckets
    assert not gone.object.metadata.finalizers


async def test_a_plain_function_is_rehearsed_in_its_thread() -> None:
    volumes = loaded("from_kopf")
    kind, spec = volumes.EphemeralVolumeClaim, volumes.EphemeralVolumeClaimSpec
    wish = kind(metadata=Metadata(name="a"), spec=spec(size="1Gi"))
    done = await rehearse(volumes.app, wish)
    assert done.one(volumes.PersistentVolumeClaim).metadata.name == "a"
    wrong = kind(metadata=Metadata(name="a"), spec=spec(size="0"))
    with pytest.raises(Terminal, match="cannot be had"):
        await rehearse(volumes.app, wrong)


async def test_reads_of_the_client_find_what_was_given_and_nothing_else() -> None:
    app = Operator("readers")
    key = Secret(metadata=Metadata(name="key"), data={"a": b"b"})
    seen: list[Any] = []

    @app.reconciles(ConfigMap, scope=Scope(everything=True))
    async def read(wish: ConfigMap, ctx: Context) -> None:
        if ctx.failures:
            async with ctx.client.watch(Secret) as events:
                await anext(events)
        seen.append((await ctx.client.get(Secret, "key")).data)
        every = [each.metadata.name async for each in ctx.client.list(Secret)]
        here = ctx.client.list(ConfigMap, namespace="other")
        assert (every, [each async for each in here]) == (["key"], [])
        raise Retry("later", after=5.0)

    wish = ConfigMap(metadata=Metadata(name="wish"))
    with pytest.raises(Retry):
        await rehearse(app, wish, given=[key])
    assert seen == [{"a": b"b"}]
    with pytest.raises(Exception, match="not among the objects"):
        await rehearse(app, wish)
    with pytest.raises(NoServer, match="needs a server"):
        await rehearse(app, wish, failures=1)


async def test_what_nobody_reconciles_is_refused() -> None:
    website = loaded("website")
    with pytest.raises(LookupError, match="no controller of websites reconciles"):
        await rehearse(website.app, ConfigMap(metadata=Metadata(name="x")))


TEMPLATE: Any = loaded("website").PodTemplateSpec()
