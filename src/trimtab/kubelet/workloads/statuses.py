"""Statuses: what a controller says of its object, written if any of it is new."""

from __future__ import annotations

from typing import Any

from trimtab.kubelet.workloads.kinds import Plain
from trimtab.runtime.context import Context


async def say(ctx: Context, owner: Any, status: Plain, *, exact: bool = False) -> None:
    """Write a status; ``exact``: only to the object in the state that was seen."""
    held = owner.status
    if any(getattr(held, name) != value for name, value in status.items()):
        await write(ctx, owner, status, exact=exact)


async def write(
    ctx: Context, owner: Any, status: Plain, *, exact: bool = False
) -> None:
    """The same, new or not."""
    meta, body = owner.metadata, {"status": status}
    if exact:
        body["metadata"] = {"resourceVersion": meta.resourceVersion}
    await ctx.client.patch(
        type(owner), meta.name, body, namespace=meta.namespace, subresource="status"
    )
