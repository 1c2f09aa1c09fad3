"""Finalizers and children: a bucket outside of the cluster, a ConfigMap per reader.

The bucket is in somebody else's store, so nothing collects it: a finalizer keeps the
object until the bucket is gone. The ConfigMaps are children: they come and go with
``spec.readers``, and with the object.

Run it on the cluster of your kubeconfig: ``trimtab run examples/buckets.py``.
"""

from __future__ import annotations

from typing import Literal

import trimtab
from trimtab import (
    Conditions,
    Context,
    Metadata,
    Resource,
    Result,
    Scope,
    Spec,
    Status,
    field,
)
from trimtab.kinds import ConfigMap

FINALIZER = "example.com/bucket"


class BucketSpec(Spec):
    """Where the bucket is, and who may read it."""

    region: Literal["eu", "us"] = "eu"
    readers: list[str] = field(default=[], max_items=50)


class BucketStatus(Status):
    """What the operator made of it."""

    address: str = ""
    readers: int = 0
    conditions: Conditions = Conditions()


class Bucket(Resource, group="example.com", version="v1"):
    """A bucket in a store outside of the cluster."""

    spec: BucketSpec = BucketSpec()
    status: BucketStatus = BucketStatus()


class Store:
    """Stands for the API of a provider: buckets by their address."""

    def __init__(self) -> None:
        self.buckets: set[str] = set()

    async def make(self, address: str) -> bool:
        """Whether it was not there before; making one twice does no harm."""
        made = address not in self.buckets
        self.buckets.add(address)
        return made

    async def remove(self, address: str) -> None:
        self.buckets.discard(address)


app = trimtab.Operator("buckets")
store = Store()


@app.reconciles(Bucket, scope=Scope(everything=True), owns=[ConfigMap])
async def bucket(wish: Bucket, ctx: Context) -> Result:
    """Make the bucket, tell each reader where it is, forget who is none any more."""
    address = address_of(wish)
    if await store.make(address):
        ctx.event("Made", f"Made the bucket {address}.")
    letters = [letter_to(reader, wish) for reader in wish.spec.readers]
    for letter in letters:
        await ctx.apply(letter)
    wanted = {letter.metadata.name for letter in letters}
    for old in ctx.children(ConfigMap):
        if old.metadata.name not in wanted:
            await ctx.delete(old)
    ctx.condition("Ready", True, reason="Made")
    return ctx.done(status=BucketStatus(address=address, readers=len(letters)))


@app.finalizes(Bucket, FINALIZER)
async def removed(wish: Bucket, ctx: Context) -> None:
    """Called until it succeeds; only then the object goes, and the letters with it."""
    await store.remove(address_of(wish))
    ctx.event("Removed", f"Removed the bucket {address_of(wish)}.")


def address_of(wish: Bucket) -> str:
    return f"{wish.spec.region}.example.com/{wish.metadata.uid}"


def letter_to(reader: str, wish: Bucket) -> ConfigMap:
    return ConfigMap(
        metadata=Metadata(name=f"{wish.metadata.name}-{reader}"),
        data={"address": address_of(wish), "reader": reader},
    )
