"""The score of each frame, kept in a ConfigMap that goes with its job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.api import Metadata, fit, owner_of
from trimtab.client import Client
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx.kinds import FRAMES_KEY, VmafxJob

MANAGER = "vmafx-gateway"
# A ConfigMap holds 1 MiB; of longer clips each kept value is the worst of a stretch.
MOST = 20_000


def thinned(frames: Sequence[float], most: int = MOST) -> list[float]:
    """At most so many values: the worst of each stretch of equal length."""
    stretch = -(-len(frames) // most)
    return [
        min(frames[start : start + stretch]) for start in range(0, len(frames), stretch)
    ]


async def keep(client: Client, job: VmafxJob, frames: Sequence[float]) -> str:
    """Write the scores of a job's frames; the name of the ConfigMap."""
    # With a part that nobody can choose: no job is named so that it meets another's.
    name = fit(f"{job.metadata.name}-frames-{job.metadata.uid[:8]}")
    kept = thinned(frames)
    content = {"frames": len(frames), "stretch": -(-len(frames) // MOST), "vmaf": kept}
    made = ConfigMap(
        metadata=Metadata(
            name=name,
            namespace=job.metadata.namespace,
            ownerReferences=[owner_of(job)],
        ),
        data={FRAMES_KEY: msgspec.json.encode(content).decode()},
    )
    await client.apply(made, manager=MANAGER, force=True)
    return name
