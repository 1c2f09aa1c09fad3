"""Laws of statuses: one write each, nobody else's fields, and nothing is lost."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from tests.client.clusters import defines
from tests.runtime.contexts import Bench
from tests.runtime.operating import Shop, ShopStatus, client_in, until
from trimtab import (
    Client,
    Conditions,
    Context,
    Metadata,
    Resource,
    Result,
    Retry,
    Status,
    Terminal,
    crd,
    field,
)
from trimtab.client.errors import Conflict
from trimtab.kinds import ConfigMap
from trimtab.testing import Cluster

CONDITION = {"reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_in(cluster, namespace) as client:
        yield client


async def state(bench: Bench, parent: Shop, status: Any = None, **stated: bool) -> Shop:
    """One reconcile that states conditions and a status; what is then there."""

    async def handler(site: Shop, ctx: Context) -> Result:
        for name, value in stated.items():
            ctx.condition(name, value, reason="Because")
        return ctx.done(status=status)

    await bench.reconcile(parent, handler)
    return bench.saw(await bench.client.get(Shop, parent.metadata.name))


def visited(visitors: int) -> Any:
    return Shop.status_of("door")(visitors=visitors)


async def test_a_reconcile_writes_its_status_once(client: Client) -> None:
    bench = Bench(client)
    parent = await bench.opened()

    async def handler(site: Shop, ctx: Context) -> Result:
        ctx.status(Shop.status_of("")(selling="tea"))
        ctx.condition("Ready", True, reason="Open")
        ctx.condition("Full", False, reason="Empty")
        return ctx.done(status=Shop.status_of("")(shelves=3))

    await bench.reconcile(parent, handler)
    found = await client.get(Shop, "corner")
    assert (found.status.selling, found.status.shelves) == ("tea", 3)
    assert {each: found.status.conditions.is_true(each) for each in ("Ready", "Full")}
    assert bench.sent("status") == 1
    await bench.reconcile(bench.saw(found), handler)
    assert (bench.sent("status"), bench.skipped("status")) == (1, 1)


async def test_owners_write_under_their_own_names_and_keep_out_of_each_other(
    client: Client,
) -> None:
    bench = Bench(client)
    parent = await bench.opened()
    parent = await state(bench, parent, visited(7))
    parent = await state(bench, parent, ShopStatus(selling="tea"))
    assert (parent.status.visitors, parent.status.selling) == (7, "tea")
    parent = await state(bench, parent, visited(0))
    assert (parent.status.visitors, parent.status.selling) == (0, "tea")
    raw = await client.get(Shop.__resource__, "corner")
    managers = {each["manager"] for each in raw["metadata"]["managedFields"]}
    assert {"shops.shelve", "shops.shelve.door"} <= managers


async def test_a_field_of_another_owner_is_refused_before_anything_is_sent(
    client: Client,
) -> None:
    bench = Bench(client)
    parent = await state(bench, await bench.opened(), visited(7))
    with pytest.raises(TypeError, match="visitors is written by 'door'"):
        await state(bench, parent, ShopStatus(visitors=8))
    # What it says of others as they are is what a status that was read says.
    await state(bench, parent, ShopStatus(visitors=7, selling="tea"))
    with pytest.raises(TypeError, match=r"ShopStatus.selling is written by the contr"):
        Shop.status_of("door")(selling="tea")
    with pytest.raises(TypeError, match="has a status of the type ShopStatus, not"):
        await state(bench, parent, OldShopStatus())
    assert (await client.get(Shop, "corner")).status.visitors == 7


async def test_what_a_partial_does_not_mention_stays_also_after_a_restart(
    client: Client,
) -> None:
    partial = Shop.status_of("")
    parent = await Bench(client).opened()
    parent = await state(Bench(client), parent, ShopStatus(selling="tea", shelves=2))
    parent = await state(Bench(client), parent, partial(shelves=3))
    parent = await state(Bench(client), parent, Ready=True)
    parent = await state(Bench(client), parent, Full=True)
    parent = await state(Bench(client), parent, partial(shelves=4))
    parent = await state(Bench(client), parent, visited(1))
    assert (parent.status.selling, parent.status.shelves) == ("tea", 4)
    assert parent.status.visitors == 1
    assert set(parent.status.conditions) == {"Ready", "Full"}


async def test_a_whole_status_states_also_what_is_empty(client: Client) -> None:
    bench = Bench(client)
    parent = await bench.opened()
    parent = await state(bench, parent, ShopStatus(selling="tea", shelves=2))
    for _ in range(3):
        parent = await state(bench, parent, ShopStatus())
        assert (parent.status.selling, parent.status.shelves) == ("", 0)
    assert bench.sent("status") == 2
    parent = await state(bench, parent, Shop.status_of("")(selling="tea"))
    parent = await state(bench, parent, Shop.status_of("")(selling=""))
    assert parent.status.selling == ""


@pytest.mark.parametrize("stated", [ShopStatus(shelves=2), ShopStatus(selling="tea")])
async def test_drift_of_a_status_is_repaired(
    client: Client, stated: ShopStatus
) -> None:
    bench = Bench(client)
    parent = await state(bench, await bench.opened(), stated)
    drift = {"status": {"selling": "sand", "shelves": 9}}
    parent = bench.saw(await client.patch(Shop, "corner", drift, subresource="status"))
    parent = await state(bench, parent, stated)
    assert parent.status == stated
    assert bench.sent("status") == 2


async def test_a_status_that_was_decided_on_something_older_is_refused(
    client: Client,
) -> None:
    bench = Bench(client)
    parent = await bench.opened()
    await client.patch(Shop, "corner", {"spec": {"goods": "milk"}})
    with pytest.raises(Conflict):
        await state(bench, parent, ShopStatus(selling="tea"))


async def test_a_condition_of_somebody_else_stays_theirs(client: Client) -> None:
    ours, theirs = Bench(client), Bench(client, name="paint")
    parent = await state(theirs, await theirs.opened(), Painted=True)
    parent = await state(ours, parent, Ready=True)
    parent = await state(theirs, parent, Painted=False)
    # A status that was read and is sent back says nothing new of their conditions.
    read = ShopStatus(selling="tea", conditions=parent.status.conditions)
    parent = await state(ours, parent, read, Ready=False)
    assert [parent.status.conditions[each].status for each in ("Painted", "Ready")] == [
        "False",
        "False",
    ]
    raw = await client.get(Shop.__resource__, "corner")
    owners = {
        entry["manager"]: set(entry["fieldsV1"]["f:status"].get("f:conditions", {}))
        for entry in raw["metadata"]["managedFields"]
        if "f:status" in entry["fieldsV1"]
    }
    assert owners == {
        "shops.shelve": {'k:{"type":"Ready"}'},
        "shops.paint": {'k:{"type":"Painted"}'},
    }


async def test_a_transition_is_a_change_of_the_status_and_of_nothing_else(
    client: Client,
) -> None:
    bench = Bench(client)
    began = bench.clock.now
    parent = await state(bench, await bench.opened(), Ready=True)
    first = parent.status.conditions["Ready"]
    assert (first.lastTransitionTime, first.observedGeneration) == (began, 1)
    bench.clock.now += timedelta(minutes=5)
    await client.patch(Shop, "corner", {"spec": {"goods": "milk"}})
    parent = bench.saw(await client.get(Shop, "corner"))
    parent = await state(bench, parent, Ready=True)
    second = parent.status.conditions["Ready"]
    assert (second.lastTransitionTime, second.observedGeneration) == (began, 2)
    parent = await state(bench, parent, Ready=False)
    third = parent.status.conditions["Ready"]
    assert third.lastTransitionTime == bench.clock.now


async def test_conditions_that_come_with_a_status_are_stated(client: Client) -> None:
    bench = Bench(client)
    parent = await bench.opened()

    async def handler(site: Shop, ctx: Context) -> Result:
        ctx.condition("Ready", True, reason="Open")
        told = site.status.conditions.set("Full", False, reason="No", now=ctx.now)
        return ctx.done(status=ShopStatus(selling="tea", conditions=told))

    await bench.reconcile(parent, handler)
    found = await client.get(Shop, "corner")
    assert set(found.status.conditions) == {"Ready", "Full"}
    assert bench.sent("status") == 1


@pytest.mark.parametrize("error", [Retry("not yet"), Terminal("never")])
async def test_what_was_stated_before_giving_up_is_the_explanation(
    client: Client, error: Exception
) -> None:
    bench = Bench(client)
    parent = await bench.opened()

    async def handler(site: Shop, ctx: Context) -> None:
        ctx.condition("Ready", False, reason="Closed", message="We are on holiday.")
        raise error

    with pytest.raises(type(error)):
        await bench.reconcile(parent, handler)
    found = await until(client, "corner", lambda each: each.status.conditions)
    assert found.status.conditions["Ready"].message == "We are on holiday."


class OldShopStatus(Status):
    """What a kind whose CRD somebody else made says."""

    conditions: Conditions = Conditions()


class OldShop(Resource, group="runtime.example.com", version="v1"):
    """A kind whose server keeps every condition that it is given."""

    status: OldShopStatus = OldShopStatus()


async def test_duplicates_collapse_into_one_with_one_write(client: Client) -> None:
    definition = copy.deepcopy(crd(OldShop))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    listed = schema["properties"]["status"]["properties"]["conditions"]
    for name in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
        del listed[name]
    await defines(client, definition)
    await client.create(OldShop(metadata=Metadata(name="old")))
    doubled = [
        {"type": "Ready", "status": each, **CONDITION} for each in ("False",) * 3
    ]
    body = {"status": {"conditions": doubled}}
    parent = await client.patch(OldShop, "old", body, subresource="status")
    bench = Bench(client, kind=OldShop)

    async def handler(site: OldShop, ctx: Context) -> None:
        assert site.status.conditions.had_duplicates == (bench.sent("status") == 0)
        ctx.condition("Ready", True, reason="Open")

    await bench.reconcile(bench.saw(parent), handler)
    raw = await client.get(OldShop.__resource__, "old")
    (only,) = raw["status"]["conditions"]
    assert only["status"] == "True"
    sent = bench.sent("status")
    assert sent == 2, "the collapse, and the statement"
    await bench.reconcile(bench.saw(await client.get(OldShop, "old")), handler)
    assert bench.sent("status") == sent


async def test_what_has_no_status_or_no_conditions_cannot_state_them(
    client: Client,
) -> None:
    bench = Bench(client, kind=ConfigMap)
    made = await client.create(ConfigMap(metadata=Metadata(name="a")))
    ctx = bench.context(made)
    with pytest.raises(TypeError, match="ConfigMap has no status"):
        ctx.condition("Ready", True, reason="Open")
    with pytest.raises(TypeError, match="ConfigMap has no status"):
        ctx.status(ShopStatus())

    async def handler(site: ConfigMap, ctx: Context) -> None:
        raise Retry("not yet")

    with pytest.raises(Retry):
        await bench.reconcile(made, handler)


class StandStatus(Status):
    """What a kind says whose conditions are not the controller's."""

    sold: int = 0
    conditions: Conditions = field(default=Conditions(), owner="door")


class Stand(Resource, group="runtime.example.com", version="v1"):
    """A kind whose conditions have an owner."""

    status: StandStatus = StandStatus()


async def test_conditions_are_stated_under_the_name_of_their_owner(
    client: Client,
) -> None:
    await defines(client, crd(Stand))
    made = await client.create(Stand(metadata=Metadata(name="a")))
    for name in ("Open", "Full"):  # the second after a restart
        bench = Bench(client, kind=Stand)
        ctx = bench.context(bench.saw(made))
        ctx.condition(name, True, reason="Because")
        ctx.status(Stand.status_of("")(sold=3))
        await ctx.flush()
        made = await client.get(Stand, "a")
    assert set(made.status.conditions) == {"Open", "Full"}
    assert made.status.sold == 3
    raw = await client.get(Stand.__resource__, "a")
    owners = {
        entry["manager"]: set(entry["fieldsV1"]["f:status"])
        for entry in raw["metadata"]["managedFields"]
        if entry["operation"] == "Apply"
    }
    assert owners == {"shops.shelve": {"f:sold"}, "shops.shelve.door": {"f:conditions"}}
