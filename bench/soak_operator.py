"""The operator that is soaked: each Load becomes ConfigMaps, and says so in its status.

It does what operators do: children, status, a condition, a finalizer, Events, timers,
retries, and a cleanup that is a plain function in a thread.
"""

from __future__ import annotations

import trimtab
from trimtab import (
    BlockingContext,
    Conditions,
    Context,
    Metadata,
    Resource,
    Result,
    Retry,
    Scope,
    Spec,
    Status,
    field,
)
from trimtab.kinds import ConfigMap

FINALIZER = "soak.example.com/parts"
NAME = "soak"
LOOK_AGAIN = 20.0
"""Seconds after which the largest look again: timers that deletions must not leave."""


class LoadSpec(Spec):
    """What is to be carried."""

    text: str = ""
    copies: int = field(default=1, minimum=0, maximum=3)
    stumbles: int = field(default=0, minimum=0, maximum=3)
    """How often the first reconcile of a change fails before it succeeds."""


class LoadStatus(Status):
    """What is carried."""

    text: str = ""
    copies: int = 0
    conditions: Conditions = Conditions()


class Load(Resource, group="soak.example.com", version="v1"):
    """Something that is carried in as many ConfigMaps as it says."""

    spec: LoadSpec = LoadSpec()
    status: LoadStatus = LoadStatus()


app = trimtab.Operator(NAME)


def parts_of(load: Load) -> dict[str, ConfigMap]:
    """The children that a Load should have, by name."""
    name = load.metadata.name
    return {
        f"{name}-{number}": ConfigMap(
            metadata=Metadata(name=f"{name}-{number}"), data={"text": load.spec.text}
        )
        for number in range(load.spec.copies)
    }


@app.reconciles(Load, scope=Scope(everything=True), owns=[ConfigMap])
async def carry(load: Load, ctx: Context) -> Result:
    """Make the parts that should be, delete those that should not, and say so."""
    news = load.status.text != load.spec.text
    if news and ctx.failures < load.spec.stumbles:
        raise Retry("it stumbles as often as it was told to")
    parts = parts_of(load)
    for part in parts.values():
        await ctx.apply(part)
    for child in ctx.children(ConfigMap):
        if child.metadata.name not in parts:
            await ctx.delete(child)
    if news:
        ctx.event("Carried", f"{len(parts)} parts carry {load.spec.text}.")
    ctx.condition("Ready", True, reason="Carried")
    again = LOOK_AGAIN if load.spec.copies == 3 else None
    status = LoadStatus(text=load.spec.text, copies=len(parts))
    return ctx.done(status=status, after=again)


@app.finalizes(Load, FINALIZER)
def drop(load: Load, ctx: BlockingContext) -> None:
    """Delete the parts before the whole goes."""
    for child in ctx.children(ConfigMap):
        ctx.delete(child)
    ctx.event("Dropped", "Its parts are gone.")
