"""Ported from kopf: the volume claims that its tutorial builds step by step.

There, a handler for each event (``on.create``, ``on.update``, ``on.field`` for the
labels) patched a claim and kept its name in an annotation. Here one function says what
should be; what changed, and whether it was missed while nobody ran, does not matter.

================================  ===================================================
kopf                              here
================================  ===================================================
``@kopf.on.create``, ``.update``  one ``@app.reconciles``
``@kopf.on.field(metadata.labels)``   the labels are part of what is applied
``kopf.adopt(claim)``             ``ctx.apply`` sets owner and label
``patch.status[…] = …``           ``ctx.done(status=…)``, typed
``@kopf.timer(interval=…)``       ``ctx.done(after=…)``
``kopf.PermanentError``           ``raise Terminal``
``kopf.TemporaryError(delay=…)``  ``raise Retry(after=…)``
================================  ===================================================

Run it on the cluster of your kubeconfig: ``trimtab run examples/from_kopf.py``.
"""

from __future__ import annotations

import trimtab
from trimtab import (
    BlockingContext,
    Metadata,
    Quantity,
    Resource,
    Result,
    Scope,
    Spec,
    Status,
    Terminal,
)
from trimtab.api import Object


class ClaimResources(Object):
    """How much a claim asks for."""

    requests: dict[str, Quantity] = {}


class ClaimSpec(Object):
    """The part of a claim's spec that is read or written here."""

    accessModes: list[str] = []
    resources: ClaimResources = ClaimResources()


class ClaimStatus(Object):
    """Whether there is a volume for it."""

    phase: str = ""


# A kind that Trimtab does not bring along is a class like any other.
class PersistentVolumeClaim(Resource, version="v1", builtin=True):
    """A slice of the built-in kind."""

    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class EphemeralVolumeClaimSpec(Spec):
    """What the user wants."""

    size: Quantity


class EphemeralVolumeClaimStatus(Status):
    """What became of it."""

    claim: str = ""
    phase: str = ""


class EphemeralVolumeClaim(
    Resource, group="kopf.example.com", version="v1", short=("evc", "evcs")
):
    """A volume claim that goes with the object that asked for it."""

    spec: EphemeralVolumeClaimSpec
    status: EphemeralVolumeClaimStatus = EphemeralVolumeClaimStatus()


app = trimtab.Operator("ephemeral-volumes")


@app.reconciles(
    EphemeralVolumeClaim, scope=Scope(everything=True), owns=[PersistentVolumeClaim]
)
def claim(wish: EphemeralVolumeClaim, ctx: BlockingContext) -> Result:
    """A plain function, as most handlers of kopf are; it runs in a thread."""
    if wish.spec.size <= Quantity("0"):
        raise Terminal(f"A volume of {wish.spec.size} cannot be had; ask for more.")
    made = ctx.apply(
        PersistentVolumeClaim(
            metadata=Metadata(name=wish.metadata.name, labels=wish.metadata.labels),
            spec=ClaimSpec(
                accessModes=["ReadWriteOnce"],
                resources=ClaimResources(requests={"storage": wish.spec.size}),
            ),
        )
    )
    return ctx.done(
        status=EphemeralVolumeClaimStatus(
            claim=made.metadata.name, phase=made.status.phase
        )
    )
