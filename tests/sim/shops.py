"""A small operator that does a bit of everything, for the tests of the simulation.

Each Shop has shelves (children), an entry in a register of another namespace (which no
owner reference covers, so a finalizer does), conditions, and a status with two owners,
one of which is written by a plain function that blocks.
"""

from __future__ import annotations

from contextlib import suppress

from trimtab import (
    Conditions,
    Context,
    Metadata,
    Operator,
    Resource,
    Result,
    Scope,
    Spec,
    Status,
    field,
)
from trimtab.client import NotFound
from trimtab.kinds import ConfigMap
from trimtab.runtime.blocking import BlockingContext

REGISTER = "register"


class ShopSpec(Spec):
    """What the shop is like."""

    goods: str = field(default="tea", min_length=1)
    shelves: int = field(default=1, minimum=0, maximum=4)


class ShopStatus(Status):
    """What two owners say of it."""

    selling: str = ""
    shelves: int = 0
    audited: str = field(default="", owner="auditor")
    conditions: Conditions = Conditions()


class Shop(Resource, group="sim.example.com", version="v1"):
    """A shop with shelves."""

    spec: ShopSpec = ShopSpec()
    status: ShopStatus = ShopStatus()


app = Operator("shops")
EVERYWHERE = Scope(everything=True)


def entry_of(shop: Shop) -> ConfigMap:
    """Its line in the register."""
    name = f"{shop.metadata.namespace}.{shop.metadata.name}"
    return ConfigMap(metadata=Metadata(name=name, namespace=REGISTER))


def shelf_of(shop: Shop, number: int) -> ConfigMap:
    name = f"{shop.metadata.name}-{number}"
    return ConfigMap(metadata=Metadata(name=name), data={"goods": shop.spec.goods})


@app.reconciles(Shop, scope=EVERYWHERE, owns=[ConfigMap])
async def stock(shop: Shop, ctx: Context) -> Result:
    """As many shelves as are wished for, and no more."""
    await ctx.apply(entry_of(shop))
    wanted = [shelf_of(shop, number) for number in range(shop.spec.shelves)]
    for shelf in wanted:
        await ctx.apply(shelf)
    names = {each.metadata.name for each in wanted}
    for child in ctx.children(ConfigMap):
        if child.metadata.name not in names:
            await ctx.delete(child)
    ctx.condition("Open", shop.spec.shelves > 0, reason="Stocked")
    stated = Shop.status_of("")
    return ctx.done(status=stated(selling=shop.spec.goods, shelves=len(wanted)))


@app.finalizes(Shop, "sim.example.com/register")
async def close(shop: Shop, ctx: Context) -> None:
    """Strike it from the register.

    It asks the server: a cache that is behind may not know the entry yet, and then it
    would stay for ever. (The simulation found this, after 77 seeds.)
    """
    name = entry_of(shop).metadata.name
    with suppress(NotFound):
        await ctx.delete(await ctx.client.get(ConfigMap, name, namespace=REGISTER))


@app.reconciles(Shop, scope=EVERYWHERE, on_change=("spec",))
def audit(shop: Shop, ctx: BlockingContext) -> Result:
    """A plain function: it may block."""
    stated = Shop.status_of("auditor")
    return ctx.done(status=stated(audited=f"{shop.spec.goods} was looked at"))
