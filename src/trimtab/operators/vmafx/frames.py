"""The score of each frame, kept in a ConfigMap that goes with its job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.api import Metadata, fit, owner_of
from trimtab.client import Client, NotFound
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx.kinds import FRAMES_KEY, VmafxJob

MANAGER = "vmafx-gateway"
# A ConfigMap holds 1 MiB; of longer clips each kept value is the worst of a stretch.
MOST = 20_000
# Of a segment all are kept, as far as they fit: those of the whole are made from them.
MOST_OF_SEGMENT = 90_000


def thinned(frames: Sequence[float], most: int = MOST) -> list[float]:
    """At most so many values: the worst of each stretch of equal length."""
    stretch = -(-len(frames) // most)
    return [
        min(frames[start : start + stretch]) for start in range(0, len(frames), stretch)
    ]


class _Kept(msgspec.Struct):
    """What the ConfigMap says: how many there are, and how many each value is for."""

    frames: int
    stretch: int
    vmaf: list[float]


async def joined(client: Client, segments: Sequence[VmafxJob]) -> list[float]:
    """The scores of all frames of segments, in order; none if some are not known."""
    found: list[float] = []
    for segment in segments:
        run = segment.status.run
        if run.scored is None or not run.scored.count:
            continue
        kept = await _read(client, segment.metadata.namespace, run.frames)
        if kept is None or len(kept.vmaf) != run.scored.count:
            return []
        found.extend(kept.vmaf)
    return found


async def _read(client: Client, namespace: str, name: str) -> _Kept | None:
    if not name:
        return None
    try:
        found = await client.get(ConfigMap, name, namespace=namespace)
        return msgspec.json.decode(found.data.get(FRAMES_KEY, ""), type=_Kept)
    except (NotFound, msgspec.DecodeError):
        return None


async def keep(client: Client, job: VmafxJob, frames: Sequence[float]) -> str:
    """Write the scores of a job's frames; the name of the ConfigMap."""
    # With a part that nobody can choose: no job is named so that it meets another's.
    name = fit(f"{job.metadata.name}-frames-{job.metadata.uid[:8]}")
    most = MOST if job.spec.segment is None else MOST_OF_SEGMENT
    content = _Kept(len(frames), -(-len(frames) // most), thinned(frames, most))
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
