"""The second half of the demo: a clip is made, spoiled, and scored by the cluster.

An ffmpeg test picture is encoded twice. The operator of video scoring, its gateway and
a node run as processes; a VmafxJob goes in, and the score that comes out is compared
with what ffmpeg says when asked directly.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trimtab import Client, Metadata
from trimtab.client import Conflict, WatchEvent
from trimtab.kinds import ServiceAccount
from trimtab.operators.vmafx import scoring, tools
from trimtab.operators.vmafx.app import app
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxJobSpec
from trimtab.testing import install

RBAC = "rbac.authorization.k8s.io"
NODE = "node"


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of trimtab, while the block runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", *arguments, "--log", "warning"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def first_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 30)
    return line.decode().strip()


async def clip(to: Path, *arguments: str) -> Path:
    """What ffmpeg makes of some arguments."""
    process = await asyncio.create_subprocess_exec(
        *(tools.where(), "-loglevel", "error", "-nostdin", "-y", *arguments, str(to))
    )
    if await process.wait():
        raise RuntimeError(f"ffmpeg could not make {to.name}; run the demo again")
    return to


async def node_token(client: Client, folder: Path) -> Path:
    """The token of a service account that may work as a node, and do nothing else."""
    where = {"name": NODE, "namespace": "default"}
    file = folder / "node.token"
    file.touch(mode=0o600)
    try:
        await client.create(ServiceAccount(metadata=Metadata(name=NODE)))
    except Conflict:  # it was made for an earlier part of the demo, with its rights
        file.write_text((await client.token(NODE)).token)
        return file
    rule = {"apiGroups": ["vmafx.dev"], "resources": ["vmafxnodes"], "verbs": ["work"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": where}
    await client.create({**role, "rules": [rule]})
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": where,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NODE},
        "subjects": [{"kind": "ServiceAccount", **where}],
    }
    await client.create(binding)
    file.write_text((await client.token(NODE)).token)
    return file


async def scored(client: Client) -> VmafxJob:
    """The job when it is over."""
    async with asyncio.timeout(60):
        async with client.watch(VmafxJob, initial_events=True) as events:
            async for event in events:
                if isinstance(event, WatchEvent) and event.object.status.finishedAt:
                    return event.object
    raise RuntimeError("the watch ended before the score came; run the demo again")


async def show(client: Client, kubeconfig: Path) -> None:
    """Make two clips, have them scored by the cluster and directly, and compare."""
    await install(client, *app.kinds())
    at = ("--kubeconfig", str(kubeconfig))
    with tempfile.TemporaryDirectory(prefix="trimtab-demo-") as name:
        folder = Path(name)
        picture = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2")
        good = await clip(folder / "good.mp4", *picture, "-crf", "10")
        poor = await clip(folder / "poor.mp4", "-i", str(good), "-crf", "38")
        token = await node_token(client, folder)
        operator = ("run", "trimtab.operators.vmafx.app", "--port", "0", *at)
        serve = ("vmafx", "gateway", "--port", "0", "--root", name, *at)
        async with program(*operator), program(*serve) as gateway:
            address = (await first_line(gateway)).removeprefix("Serving on ")
            work = ("vmafx", "node", "--gateway", address.rstrip("."))
            async with program(*work, "--token", str(token), "--name", "laptop"):
                spec = VmafxJobSpec(reference=str(good), distorted=str(poor))
                await client.create(VmafxJob(metadata=Metadata(name="clip"), spec=spec))
                job = await scored(client)
        direct = await scoring.score(str(good), str(poor), ffmpeg=await tools.find())
    print(f"{job} was scored by the node {job.status.assignedNode}:")
    print(f"VMAF {job.status.score}; asked directly, ffmpeg says {direct.vmaf}.")
    if job.status.score is None or abs(job.status.score - direct.vmaf) > 1e-3:
        raise RuntimeError(f"the scores differ: {job.status}")
