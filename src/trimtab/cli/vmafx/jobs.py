"""``trimtab vmafx submit|watch|cancel``: jobs, from the command line."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.verbs import add_verb, followed
from trimtab.cli.vmafx.bar import Bar

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.operators.vmafx.kinds import VmafxJob

SUBMIT = "Create a VmafxJob: a node of the cluster scores it."
WATCH = "Follow a VmafxJob until it is over; the exit code says whether it succeeded."
CANCEL = "Cancel a VmafxJob, also while it is being scored."


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    submit = add_verb(commands, "submit", _submit, help="create a job", about=SUBMIT)
    submit.add_argument("reference", metavar="REF", help="the clip as it was")
    submit.add_argument("distorted", metavar="DIST", help="the clip to judge")
    submit.add_argument("--name", help="(default: one is made up)")
    submit.add_argument("--model", help="a model of libvmaf, by its name")
    submit.add_argument(
        "--priority", type=int, default=0, help="the higher, the sooner"
    )
    submit.add_argument(
        "--segments", type=common.count, metavar="N", help="score it in so many parts"
    )
    submit.add_argument("--wait", action="store_true", help="follow it to its end")
    watch = add_verb(commands, "watch", _watch, help="follow a job", about=WATCH)
    cancel = add_verb(commands, "cancel", _cancel, help="cancel a job", about=CANCEL)
    for made in (watch, cancel):
        made.add_argument("name", metavar="NAME")


async def _submit(client: Client, options: argparse.Namespace) -> int:
    from trimtab.api import Metadata
    from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec

    name, made_up = options.name or "", "" if options.name else "job-"
    job = await client.create(
        VmafxJob(
            metadata=Metadata(name=name, generateName=made_up),
            spec=VmafxJobSpec(
                reference=options.reference,
                distorted=options.distorted,
                model=options.model,
                priority=options.priority,
                segments=options.segments,
            ),
        )
    )
    print(f"vmafxjob/{job.metadata.name} created", flush=True)
    return await _followed(client, job) if options.wait else 0


async def _watch(client: Client, options: argparse.Namespace) -> int:
    from trimtab.operators.vmafx.kinds import VmafxJob

    return await _followed(client, await client.get(VmafxJob, options.name))


async def _cancel(client: Client, options: argparse.Namespace) -> int:
    from trimtab.operators.vmafx.kinds import VmafxJob

    await client.patch(VmafxJob, options.name, {"spec": {"cancel": True}})
    print(f"vmafxjob/{options.name} cancelled")
    return 0


async def _followed(client: Client, job: VmafxJob) -> int:
    """Follow a job; 0 if it succeeds."""
    bar = Bar(unit="%") if sys.stderr.isatty() else None
    return await followed(client, job, lambda seen: _told(seen, bar))


def _told(job: VmafxJob, bar: Bar | None) -> int | None:
    status = job.status
    if status.phase in ("Succeeded", "Failed", "Cancelled"):
        if bar:
            bar.clear()
        score = "" if status.score is None else f" VMAF {status.score:.4f}"
        print(f"{status.phase}{score} {status.message}".rstrip())
        return 0 if status.phase == "Succeeded" else 1
    if bar:
        bar.show(status.progress or 0, 100)
    return None
