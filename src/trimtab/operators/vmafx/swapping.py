"""Writing a job's run: a compare-and-swap of that part of its status."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trimtab.api import wire
from trimtab.operators.vmafx.kinds import Run, VmafxJob
from trimtab.runtime.swapping import Part, difference
from trimtab.runtime.swapping import Stale as Stale
from trimtab.runtime.swapping import Swaps as Swaps


def _patch(job: VmafxJob, run: Run) -> dict[str, Any]:
    return {"run": difference(wire(job.status.run), wire(run))}


def _fence(job: VmafxJob) -> Run:
    run = job.status.run
    return replace(run, fence=run.fence + 1)


RUN = Part(VmafxJob, value=lambda job: job.status.run, patch=_patch, fence=_fence)
