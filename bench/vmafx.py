"""Video scoring, measured from the outside: `python -m bench.vmafx`.

A real etcd and kube-apiserver; operator, gateway and node as processes of their own; a
clip of ten seconds and a poorer copy of it, made on the spot. Four figures have a bar,
and the program ends with 1 where one is missed.

- *overhead*: from the creation of a job to its score in the status, against the same
  ffmpeg command run by hand, in turns; the median of each.
- *idle*: how often a slot that waits for work asks for it.
- *memory*: of an operator that has seen so many jobs end.
- *parallel*: a clip of two minutes in two segments on a node of two slots, against the
  whole of it on a node of one, with one thread a slot, in turns; the median of each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.measure import cpu
from trimtab.api import Metadata, wire
from trimtab.client import Bookmark, Client, load
from trimtab.client.calling import Caller, Place
from trimtab.kinds import ServiceAccount
from trimtab.operators.vmafx import commands, tools
from trimtab.operators.vmafx.kinds import Run, VmafxJob, VmafxJobSpec, VmafxNode
from trimtab.operators.vmafx.scaling.kinds import VmafxNodeSet
from trimtab.operators.vmafx.scoring import MODEL
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.testing import Cluster, Options, cluster, eventually
from trimtab.testing.operating import install

ROOT = Path(__file__).resolve().parents[1]
SPACE = "bench"
SECONDS, RATE, SIZE = 10, 25, "1280x720"
SLOTS = 4
IDLE = 90.0
"""Seconds that slots are watched: three times as long as one pull waits."""
BAR_OVERHEAD, BAR_IDLE, BAR_MEMORY, BAR_PARALLEL = 3.0, 1.0, 90.0, 0.6
LONG, LONG_SIZE = 120, "640x360"
PULLS = re.compile(
    r'^vmafx_controller_requests_total\{.*method="[^"]*PullWork".*\} (\S+)$',
    re.MULTILINE,
)


class Line(NamedTuple):
    """One row of the table."""

    figure: str
    value: str
    bar: str
    good: bool | None

    def __str__(self) -> str:
        word = {True: "pass", False: "FAIL", None: ""}[self.good]
        return f"{self.figure:<52} {self.value:>12} {self.bar:>10}  {word}"


class Bench:
    """A cluster, the programs on it, and what is measured."""

    def __init__(self, here: Cluster, client: Client, folder: Path) -> None:
        self.cluster = here
        self.client = client
        self.folder = folder
        self.lines: list[Line] = []
        self.grpc, self.http = _free_port(), _free_port()

    def say(self, line: Line) -> None:
        print(line, flush=True)
        self.lines.append(line)

    async def furnish(self) -> Path:
        """Kinds, a namespace, and an account for nodes; the file of its token."""
        kinds = (VmafxModelTraining, VmafxNodeSet, VmafxTenant)
        await install(self.client, VmafxJob, VmafxNode, *kinds)
        await self.client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        )
        where = {"name": "node", "namespace": SPACE}
        rbac = "rbac.authorization.k8s.io"
        rule = {"apiGroups": ["vmafx.dev"], "resources": ["vmafxnodes"]}
        await self.client.create(
            ServiceAccount(metadata=Metadata(name="node", namespace=SPACE))
        )
        await self.client.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "Role",
                "metadata": where,
                "rules": [{**rule, "verbs": ["work"]}],
            }
        )
        await self.client.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": where,
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "node"},
                "subjects": [{"kind": "ServiceAccount", **where}],
            }
        )
        made = await self.client.token("node", namespace=SPACE, seconds=86400)
        file = self.folder / "token"
        file.touch(mode=0o600)
        file.write_text(made.token)
        return file

    @asynccontextmanager
    async def program(self, *arguments: str) -> AsyncIterator[int]:
        """One of the programs, while the block runs; its process."""
        left_out = ("PYTHONDONTWRITEBYTECODE", "VMAFX_CONTROLLER_GRPC_ADDR")
        inherited = {k: v for k, v in os.environ.items() if k not in left_out}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", *arguments),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={
                **inherited,
                "PYTHONPATH": str(ROOT / "src"),
                "KUBECONFIG": str(self.cluster.kubeconfig),
            },
        )
        try:
            yield process.pid
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    def operator(self) -> tuple[str, ...]:
        where = ("--namespace", SPACE, "--namespaces", SPACE, "--port", "-1")
        return ("run", "trimtab.operators.vmafx.app", "--no-leader", *where)

    def gateway(self) -> tuple[str, ...]:
        ports = ("--port", str(self.grpc), "--http", str(self.http))
        where = ("-n", SPACE, "--root", str(self.folder), "--log", "warning")
        return ("vmafx", "gateway", *ports, *where)

    def node(self, token: Path, *, slots: int, threads: int = 0) -> tuple[str, ...]:
        at = ("--gateway", f"127.0.0.1:{self.grpc}", "--token", str(token))
        what = ("--slots", str(slots), "--threads", str(threads))
        return ("vmafx", "node", *at, "--name", "bench", *what)

    async def is_served(self) -> bool:
        return bool(await self.session())

    async def session(self) -> str:
        """Which life of the node there is; empty before its first."""
        found = self.client.list(VmafxNode, namespace=SPACE)
        return "".join([node.status.session async for node in found])

    def is_begun(self, before: str) -> Callable[[], Awaitable[bool]]:
        """Whether the node has begun another life since."""

        async def begun() -> bool:
            return await self.session() != before

        return begun

    async def pulls(self) -> float:
        """Pulls that the gateway has answered so far."""
        asking = Caller()
        try:
            place = Place(host="127.0.0.1", port=self.http, name="bench", tls=False)
            reply = await asking.call(place, "GET", "/metrics", within=10.0)
        finally:
            await asking.close()
        return sum(float(value) for value in PULLS.findall(reply.body.decode()))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# Overhead


async def overhead(bench: Bench, token: Path, rounds: int) -> None:
    """Jobs through the platform, and by hand, in turns."""
    reference, distorted = [
        await _clip(bench.folder / f"{name}.mp4", crf)
        for name, crf in (("reference", 10), ("distorted", 40))
    ]
    by_hand: list[float] = []
    by_job: list[float] = []
    async with (
        bench.program(*bench.operator()) as operator,
        bench.program(*bench.gateway()) as gateway,
        bench.program(*bench.node(token, slots=1)) as node,
    ):
        await eventually(bench.is_served, within=60.0, every=0.2)
        await _job(bench, "first", reference, distorted)  # everything is warm then
        ours, theirs = (operator, gateway, node), 0.0
        spent = 0.0
        for number in range(rounds):
            before = _children()
            by_hand.append(await _direct(bench.folder, reference, distorted))
            theirs += _children() - before
            start = sum(map(cpu, ours))
            by_job.append(await _job(bench, f"job-{number}", reference, distorted))
            spent += sum(map(cpu, ours)) - start
            print(f"  ffmpeg {by_hand[-1]:.2f} s, job {by_job[-1]:.2f} s", flush=True)
    extra = (median(by_job) / median(by_hand) - 1) * 100
    text = f"overhead over ffmpeg, {SECONDS} s of {SIZE}"
    good = extra < BAR_OVERHEAD
    bench.say(Line(text, f"{extra:.2f} %", f"< {BAR_OVERHEAD:g} %", good))
    share = spent / theirs * 100
    bench.say(Line("  CPU of all programs, of ffmpeg's", f"{share:.2f} %", "", None))


async def _clip(
    to: Path, crf: int, *, size: str = SIZE, seconds: int = SECONDS
) -> Path:
    source = f"testsrc2=size={size}:rate={RATE}:duration={seconds}"
    await _run(
        *(tools.where(), "-loglevel", "error", "-y", "-f", "lavfi", "-i", source),
        *("-c:v", "libx264", "-preset", "veryfast", "-crf", str(crf), str(to)),
        folder=to.parent,
    )
    return to


async def _direct(folder: Path, reference: Path, distorted: Path) -> float:
    """Seconds that the very same command takes."""
    command = commands.measure(
        f"file:{reference}",
        f"file:{distorted}",
        ffmpeg=await tools.find(),
        model=MODEL,
        threads=len(os.sched_getaffinity(0)),
    )
    began = time.perf_counter()
    await _run(*command, folder=folder)
    return time.perf_counter() - began


async def _run(*command: str, folder: Path) -> None:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=quiet, stderr=quiet
    )
    assert await process.wait() == 0, command


async def _job(
    bench: Bench,
    name: str,
    reference: Path,
    distorted: Path,
    segments: int | None = None,
) -> float:
    clips = (str(reference), str(distorted))
    spec = VmafxJobSpec(reference=clips[0], distorted=clips[1], segments=segments)
    metadata = Metadata(name=name, namespace=SPACE)
    began = time.perf_counter()
    made = await bench.client.create(VmafxJob(metadata=metadata, spec=spec))
    # Followed, and not asked for: that would take from ffmpeg what is measured.
    async with bench.client.watch(
        VmafxJob,
        namespace=SPACE,
        fields={"metadata.name": name},
        resource_version=made.metadata.resourceVersion,
    ) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                continue
            job = event.object
            assert job.status.phase != "Failed", job.status.message
            if job.status.phase == "Succeeded":
                break
    return time.perf_counter() - began


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


# Idle slots


async def idle(bench: Bench, token: Path) -> None:
    """Slots that find nothing to do."""
    async with (
        bench.program(*bench.gateway()),
        bench.program(*bench.node(token, slots=SLOTS)),
    ):
        await eventually(bench.is_served, within=60.0, every=0.2)
        await asyncio.sleep(5.0)
        before = await bench.pulls()
        await asyncio.sleep(IDLE)
        each = (await bench.pulls() - before) / SLOTS / IDLE * 30
    good = each <= BAR_IDLE
    text = "requests of an idle slot in 30 s"
    bench.say(Line(text, f"{each:.2f}", f"<= {BAR_IDLE:g}", good))


# Memory


async def memory(bench: Bench, jobs: int) -> None:
    """An operator that has seen so many jobs from their creation to their end."""
    async with bench.program(*bench.operator()) as operator:
        places = asyncio.Semaphore(32)
        now = datetime.now(UTC)

        async def one(number: int) -> None:
            async with places:
                await _finished(bench.client, f"old-{number:05}", now)

        await asyncio.gather(*(one(number) for number in range(jobs)))

        async def all_told() -> bool:
            found = bench.client.list(VmafxJob, namespace=SPACE)
            told = [job.status.phase == "Succeeded" async for job in found]
            return sum(told) >= jobs

        await eventually(all_told, within=900.0, every=2.0)
        await asyncio.sleep(5.0)
        rss, peak = _memory(operator)
    what = f"operator RSS with {jobs:,} finished jobs"
    good = rss < BAR_MEMORY
    bench.say(Line(what, f"{rss:.1f} MiB", f"< {BAR_MEMORY:g}", good))
    bench.say(Line("  at the most, meanwhile", f"{peak:.1f} MiB", "", None))


def _memory(pid: int) -> tuple[float, float]:
    """What a process has, and had at the most, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    rss, peak = (re.findall(rf"{each}:\s+(\d+)", text) for each in ("VmRSS", "VmHWM"))
    return int(rss[0]) / 1024, int(peak[0]) / 1024


async def _finished(client: Client, name: str, now: datetime) -> None:
    """A job as a gateway leaves it."""
    spec = VmafxJobSpec(reference="/clips/reference.mp4", distorted=f"/clips/{name}")
    metadata = Metadata(name=name, namespace=SPACE)
    await client.create(VmafxJob(metadata=metadata, spec=spec))
    names = ("psnr", "ssim", "motion", "adm", "vif_scale0", "vif_scale1", "vif_scale2")
    run = Run(
        attempt=1,
        node="bench",
        session="s",
        since=now,
        ended=now,
        outcome="completed",
        score=75.0,
        features=dict.fromkeys(names, 0.5),
    )
    status = {"status": {"run": wire(run)}}
    await client.patch(VmafxJob, name, status, namespace=SPACE, subresource="status")


# Parallel


async def parallel(bench: Bench, token: Path, rounds: int) -> None:
    """A long clip on one slot, and on two, in turns."""
    clips = [
        await _clip(
            bench.folder / f"long-{name}.mp4", crf, size=LONG_SIZE, seconds=LONG
        )
        for name, crf in (("reference", 10), ("distorted", 40))
    ]
    took: dict[int, list[float]] = {1: [], 2: []}
    async with (
        bench.program(*bench.operator()),
        bench.program(*bench.gateway()),
    ):
        for number in range(rounds):
            for slots, times in took.items():
                session = await bench.session()
                async with bench.program(*bench.node(token, slots=slots, threads=1)):
                    await eventually(bench.is_begun(session), within=60.0, every=0.2)
                    name, segments = (
                        f"slots-{slots}-{number}",
                        slots if slots > 1 else None,
                    )
                    times.append(await _job(bench, name, clips[0], clips[1], segments))
                print(f"  {slots} slots {times[-1]:.2f} s", flush=True)
    ratio = median(took[2]) / median(took[1])
    text = f"two slots to one, {LONG} s of {LONG_SIZE}, one thread each"
    good = ratio <= BAR_PARALLEL
    bench.say(Line(text, f"{ratio:.3f}", f"<= {BAR_PARALLEL:g}", good))


async def main(options: argparse.Namespace) -> int:
    python = platform.python_version()
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {python}")
    with TemporaryDirectory() as name:
        async with (
            cluster(options.cluster, options=Options()) as here,
            Client(load(kubeconfig=here.kubeconfig)) as client,
        ):
            bench = Bench(here, client, Path(name))
            token = await bench.furnish()
            if options.rounds:
                await overhead(bench, token, options.rounds)
            if not options.busy:
                await idle(bench, token)
            if options.jobs:
                await memory(bench, options.jobs)
            if options.parallel:
                await parallel(bench, token, options.parallel)
    print("\n" + "\n".join(map(str, bench.lines)))
    return int(any(line.good is False for line in bench.lines))


def parsed() -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m bench.vmafx", description=__doc__)
    made.add_argument("--cluster", default="real", choices=("real", "embedded"))
    made.add_argument("--rounds", type=int, default=5, help="0 leaves it out")
    made.add_argument("--jobs", type=int, default=10_000, help="0 leaves it out")
    made.add_argument("--parallel", type=int, default=3, help="rounds; 0 leaves it out")
    made.add_argument("--busy", action="store_true", help="leave out the idle slots")
    return made.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parsed())))
