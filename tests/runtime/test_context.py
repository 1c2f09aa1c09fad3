"""Laws of the context: whose an object is, what is sent, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.runtime.contexts import Bench
from tests.runtime.operating import Shop, client_in, shop
from trimtab import Client, Metadata
from trimtab.api import LabelSelector
from trimtab.client.errors import Conflict, NotFound
from trimtab.kinds import (
    ConfigMap,
    Container,
    Deployment,
    DeploymentSpec,
    Namespace,
    PodSpec,
    PodTemplateSpec,
    Secret,
)
from trimtab.runtime.context import Ended
from trimtab.testing import Cluster

LABEL = "trimtab.dev/operator"


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


def shelf(goods: str = "tea", *, labels: dict[str, str] | None = None) -> ConfigMap:
    metadata = Metadata(name="shelf", labels=labels or {})
    return ConfigMap(metadata=metadata, data={"goods": goods})


def till(replicas: int = 1) -> Deployment:
    labels = {"app": "till"}
    return Deployment(
        metadata=Metadata(name="till", labels=labels, annotations={"note": "mine"}),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(matchLabels=labels),
            template=PodTemplateSpec(
                metadata=Metadata(labels=labels),
                spec=PodSpec(containers=[Container(name="c", image="example.com/c")]),
            ),
        ),
    )


async def test_a_child_gets_its_place_our_label_and_its_owner(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    parent = await bench.opened()
    made = await bench.context(parent).apply(shelf(labels={"a": "b"}))
    assert made.metadata.namespace == parent.metadata.namespace
    assert made.metadata.labels == {"a": "b", LABEL: "shops"}
    (reference,) = made.metadata.ownerReferences
    assert (reference.kind, reference.uid) == ("Shop", parent.metadata.uid)
    assert reference.controller
    found = await client.get(ConfigMap, "shelf")
    assert found.metadata.ownerReferences == made.metadata.ownerReferences


async def test_a_child_that_lives_nowhere_gets_no_owner_that_it_cannot_have(
    client: Client, namespace: str
) -> None:
    bench = Bench(client, owns=[Namespace])
    ctx = bench.context(await bench.opened())
    made = await ctx.apply(Namespace(metadata=Metadata(name=f"{namespace}-x")))
    try:
        assert not made.metadata.ownerReferences
        assert made.metadata.labels[LABEL] == "shops"
    finally:
        await client.delete(Namespace, f"{namespace}-x")


async def test_the_object_itself_is_applied_as_it_is(client: Client) -> None:
    bench = Bench(client)
    parent = await bench.opened()
    ctx = bench.context(parent)
    mine = Shop(metadata=Metadata(name="corner", annotations={"note": "seen"}))
    made = await ctx.apply(mine)
    assert made.metadata.annotations == {"note": "seen"}
    assert not made.metadata.ownerReferences
    assert LABEL not in made.metadata.labels
    assert ctx.parent == made


async def test_an_intent_that_stands_is_not_sent_again(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap, Deployment])
    ctx = bench.context(await bench.opened())
    for _ in range(3):
        await ctx.apply(shelf())
        await ctx.apply(till())
    assert (bench.sent("apply"), bench.skipped("apply")) == (2, 4)
    assert ctx.writes == 2
    assert (await ctx.apply(shelf("milk"))).data == {"goods": "milk"}
    assert (await ctx.apply(till(2))).spec.replicas == 2
    assert bench.sent("apply") == 4


async def test_what_the_server_counts_as_no_change_of_the_wish_is_none(
    client: Client,
) -> None:
    bench = Bench(client, owns=[Deployment])
    ctx = bench.context(await bench.opened())
    made = await ctx.apply(till())
    status = {"status": {"replicas": 1, "observedGeneration": 1}}
    bench.saw(await client.patch(Deployment, "till", status, subresource="status"))
    again = await ctx.apply(till())
    assert bench.sent("apply") == 1
    assert again.metadata.resourceVersion != made.metadata.resourceVersion


async def test_drift_of_metadata_is_repaired(
    client: Client,
) -> None:
    bench = Bench(client, owns=[Deployment])
    ctx = bench.context(await bench.opened())
    made = await ctx.apply(till())
    for drift in (
        {"labels": {"app": None}},
        {"labels": {LABEL: "others"}},
        {"annotations": {"note": "yours"}},
        {"ownerReferences": None},
    ):
        bench.saw(await client.patch(Deployment, "till", {"metadata": drift}))
        again = await ctx.apply(till())
        assert again.metadata.labels == made.metadata.labels
        assert again.metadata.annotations["note"] == "mine"
        assert again.metadata.ownerReferences == made.metadata.ownerReferences
    assert bench.sent("apply") == 5


async def test_drift_of_the_wish_is_repaired_with_and_without_a_generation(
    client: Client,
) -> None:
    bench = Bench(client, owns=[ConfigMap, Deployment])
    ctx = bench.context(await bench.opened())
    await ctx.apply(shelf())
    await ctx.apply(till(2))
    bench.saw(await client.patch(ConfigMap, "shelf", {"data": {"goods": "sand"}}))
    bench.saw(await client.patch(Deployment, "till", {"spec": {"replicas": 7}}))
    assert (await ctx.apply(shelf())).data == {"goods": "tea"}
    assert (await ctx.apply(till(2))).spec.replicas == 2


async def test_what_is_not_mentioned_stays(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    await ctx.apply(shelf())
    await client.patch(ConfigMap, "shelf", {"data": {"theirs": "x"}})
    assert (await client.get(ConfigMap, "shelf")).data["theirs"] == "x"
    ctx = Bench(client, owns=[ConfigMap]).context(ctx.parent)  # after a restart
    assert (await ctx.apply(shelf("milk"))).data == {"goods": "milk", "theirs": "x"}


async def test_a_leader_writes_only_what_is_as_it_saw_it(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap], fenced=True)
    ctx = bench.context(await bench.opened())
    held = await ctx.apply(shelf())
    await client.patch(ConfigMap, "shelf", {"data": {"goods": "another leader's"}})
    with pytest.raises(Conflict):
        await ctx.apply(shelf("milk"))
    with pytest.raises(Conflict):
        await ctx.delete(held)
    found = await client.get(ConfigMap, "shelf")
    assert found.data["goods"] == "another leader's"
    bench.saw(found)
    assert (await ctx.apply(shelf("milk"))).data == {"goods": "milk"}


async def test_a_leader_does_not_bring_back_what_was_deleted_or_remade(
    client: Client,
) -> None:
    bench = Bench(client, owns=[ConfigMap], fenced=True)
    ctx = bench.context(await bench.opened())
    await ctx.apply(shelf())
    await client.delete(ConfigMap, "shelf")
    with pytest.raises((Conflict, NotFound)):
        await ctx.apply(shelf("milk"))
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "shelf")
    await client.create(shelf("theirs"))
    with pytest.raises(Conflict):
        await ctx.apply(shelf("milk"))
    assert (await client.get(ConfigMap, "shelf")).data == {"goods": "theirs"}


async def test_without_a_leader_an_apply_takes_over_what_somebody_wrote(
    client: Client,
) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    await ctx.apply(shelf())
    await client.patch(ConfigMap, "shelf", {"data": {"goods": "theirs"}})
    assert (await ctx.apply(shelf("milk"))).data == {"goods": "milk"}


async def test_a_swap_holds_only_for_what_was_read(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    read = await ctx.apply(shelf())
    wanted = shelf("milk")
    with pytest.raises(ValueError, match="has no resourceVersion to compare with"):
        await ctx.swap(wanted)
    wanted = ConfigMap(
        metadata=Metadata(name="shelf", resourceVersion=read.metadata.resourceVersion),
        data={"goods": "milk"},
    )
    assert (await ctx.swap(wanted)).data == {"goods": "milk"}
    with pytest.raises(Conflict):
        await ctx.swap(wanted)
    await client.delete(ConfigMap, "shelf")
    with pytest.raises(Conflict):
        await ctx.swap(wanted)


async def test_a_delete_is_of_this_very_object(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    old = await ctx.apply(shelf())
    await client.delete(ConfigMap, "shelf")
    await client.create(shelf("theirs"))
    with pytest.raises(Conflict):
        await ctx.delete(old)
    new = bench.saw(await client.get(ConfigMap, "shelf"))
    await ctx.delete(new)
    await ctx.delete(new)  # it is gone already
    assert (bench.sent("delete"), ctx.get(ConfigMap, "shelf")) == (1, None)


async def test_own_writes_are_read_at_once(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    assert ctx.get(ConfigMap, "shelf") is None
    made = await ctx.apply(shelf())
    assert ctx.get(ConfigMap, "shelf") == made
    assert ctx.children(ConfigMap) == [made]
    await ctx.delete(made)
    assert ctx.children(ConfigMap) == []


async def test_a_kind_that_is_not_watched_is_applied_every_time(client: Client) -> None:
    bench = Bench(client)
    ctx = bench.context(await bench.opened())
    for _ in range(2):
        await ctx.apply(Secret(metadata=Metadata(name="key")))
    assert bench.sent("apply") == 2
    assert len(bench.writer.ledger) == 0
    with pytest.raises(LookupError, match="watches no Secret; declare it"):
        ctx.get(Secret, "key")


async def test_what_is_known_of_an_object_goes_with_it(client: Client) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    made = await ctx.apply(shelf())
    ctx.condition("Ready", True, reason="Yes")
    ctx.status(Shop.status_of("door")(visitors=1))
    await ctx.flush()
    assert len(bench.writer.ledger) == 3
    bench.writer.forget(ConfigMap, made.key)
    bench.writer.forget(Shop, ctx.parent.key)
    assert len(bench.writer.ledger) == 0


async def test_nothing_is_written_through_a_context_that_has_ended(
    client: Client,
) -> None:
    bench = Bench(client, owns=[ConfigMap])
    ctx = bench.context(await bench.opened())
    made = await ctx.apply(shelf())
    ctx.end("the reconcile is over")
    for write in (ctx.apply(shelf("milk")), ctx.swap(made), ctx.delete(made)):
        with pytest.raises(Ended, match="any more: the reconcile is over"):
            await write
    with pytest.raises(Ended):
        ctx.condition("Ready", True, reason="Late")
    with pytest.raises(Ended):
        ctx.status(Shop.status_of("door")(visitors=1))
    with pytest.raises(Ended):
        ctx.event("Late", "Too late.")
    assert (await client.get(ConfigMap, "shelf")).data == {"goods": "tea"}
    assert ctx.get(ConfigMap, "shelf") == made
    assert shop("corner").metadata.name == ctx.parent.metadata.name
