"""The worker pool, measured from the outside: `python -m bench.pool`.

A real etcd and kube-apiserver, a node whose pods are processes, one gateway, real
workers, and clients that count: TLS, tokens, reviews and epochs are all on. Beside each
figure stands the floor, what one PATCH of the same object costs on the same server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO, Any

from bench.measure import cpu
from trimtab.api import codec
from trimtab.api.kinds import ConfigMap
from trimtab.client import Client, load
from trimtab.client.transport import Request
from trimtab.pool.client import Pool
from trimtab.pool.gateway.service import NAME
from trimtab.pool.kinds import KINDS, LABEL_POOL, LABEL_WORKER, Worker, WorkerPool
from trimtab.testing import Cluster, Options, cluster
from trimtab.testing.operating import install
from trimtab.testing.waiting import eventually

ROOT = Path(__file__).resolve().parents[1]
ETCD = ("--unsafe-no-fsync",)
SPACES = ("bench-a", "bench-b", "bench-c", "bench-d")
WRITES = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})
OURS = frozenset({"workers", "tenantledgers", "workerpools"})

Plain = dict[str, Any]


class Figures:
    """Times of one phase, and what they come to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def add(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def at(self, part: float) -> float:
        """A quantile, in milliseconds."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, int(part * len(ranked)))] * 1000

    def __str__(self) -> str:
        most = max(self.seconds) * 1000
        return f"p50 {self.at(0.5):.1f}, p99 {self.at(0.99):.1f}, max {most:.0f} ms"


class Bench:
    """A cluster, a node, a gateway, and what is measured on them."""

    def __init__(self, here: Cluster, client: Client, folder: Path) -> None:
        self.cluster = here
        self.client = client
        self.folder = folder
        self.gateway: asyncio.subprocess.Process
        self.url = ""
        self.token = ""

    # Furniture

    async def furnish(self) -> None:
        await install(self.client, *KINDS)
        for space in (*SPACES, "bench-gateway"):
            meta: Plain = {"name": space}
            await self.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
            )
        meta = {"name": "clients", "namespace": SPACES[0]}
        rbac = "rbac.authorization.k8s.io"
        rule = {"apiGroups": ["trimtab.dev"], "resources": ["workerpools"]}
        role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole"}
        binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding"}
        named = {"metadata": {"name": "clients"}}
        for obj in (
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {**role, **named, "rules": [{**rule, "verbs": ["acquire", "get"]}]},
            {
                **binding,
                **named,
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "clients"},
                "subjects": [{"kind": "ServiceAccount", **meta}],
            },
        ):
            await self.client.create(obj)
        made = await self.client.token("clients", namespace=SPACES[0], seconds=86400)
        self.token = made.token

    async def pool(self, space: str, *, idle: int, **spec: Any) -> None:
        """A pool of real workers that stay."""
        container = {
            "name": "worker",
            "image": "local",
            "command": [sys.executable, "-m", "trimtab.pool.worker"],
            "env": [{"name": "PYTHONPATH", "value": str(ROOT / "src")}],
        }
        plain: Plain = {
            "metadata": {"name": "bench", "namespace": space},
            "spec": {
                "template": {"spec": {"containers": [container]}},
                "shapes": [{"name": "small", "cpu": "10m", "memory": "200Mi"}],
                "minIdle": idle,
                "maxWorkers": max(idle, 1),
                "idleTTL": 3600,
                **spec,
            },
        }
        await self.client.create(codec.convert(WorkerPool, plain))

    async def warm(self, space: str, count: int, *, within: float = 600.0) -> None:
        """Wait until so many workers of a pool are free."""

        async def look() -> bool:
            found = self.client.list(Worker, namespace=space, labels=LABEL_POOL)
            states = Counter([each.status.state.value async for each in found])
            return states["idle"] + states["hot-idle"] >= count

        await eventually(look, within=within, every=1.0)

    @asynccontextmanager
    async def connected(self, space: str, seed: int = 1) -> AsyncIterator[Pool]:
        found = await self.client.get(ConfigMap, NAME, namespace="bench-gateway")
        ca = found.data["ca.crt"].encode()
        pool = Pool.connect(
            self.url,
            pool=f"{space}/bench",
            token=self.token,
            ca=ca,
            random=Random(seed),
        )
        pool._caller._limit = 1024  # the clients' own connections are not measured
        async with pool:
            yield pool

    async def serve(
        self, *spaces: str, log: IO[bytes] | None = None
    ) -> asyncio.subprocess.Process:
        """Start a gateway for the pools of these namespaces."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "pool", "serve"),
            *("--kubeconfig", str(self.cluster.kubeconfig)),
            *("--namespace", "bench-gateway", "--namespaces", ",".join(spaces)),
            *("--port", "0", "--endpoints", "-1"),
            stderr=log or asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )

    # What the server and the gateway did

    async def writes(self) -> Counter[str]:
        """Writes that the API server has carried out, by resource."""
        request = Request(method="GET", path="/metrics")
        text = await self.client._calls.call(
            request, verb="get", into=bytes, limit=64 << 20
        )
        counts: Counter[str] = Counter()
        for labels, value in WRITES.findall(text.decode()):
            found = dict(LABEL.findall(labels))
            if found.get("verb") in CHANGING and found.get("code", "").startswith("2"):
                counts[found.get("resource", "")] += int(float(value))
        return counts

    def cpu(self) -> float:
        return cpu(self.gateway.pid)

    def rss(self) -> float:
        """The gateway's memory now, in MiB."""
        text = Path(f"/proc/{self.gateway.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else 0.0


async def cycle(pool: Pool, tenant: str, times: Figures) -> None:
    """Acquire a worker, use it, release it; the time until it was usable."""
    began = time.perf_counter()
    async with pool.acquire(tenant=tenant, wait=60.0) as worker:
        reply = await worker.call("POST", "/echo", body=b"hello")
        assert reply.status == 200, reply
        times.add(time.perf_counter() - began)


async def floor(bench: Bench) -> None:
    """What one status PATCH of a Worker costs: alone, and with 16 at a time."""
    row: Plain = {
        "metadata": {"name": "floor", "namespace": SPACES[3]},
        "spec": {
            "pool": "none",
            "shape": "small",
            "cpu": "1",
            "memory": "1Gi",
            "revision": "r",
        },
    }
    names = [f"floor-{number}" for number in range(16)]
    for name in names:
        row["metadata"]["name"] = name
        await bench.client.create(codec.convert(Worker, row))
    times = Figures()

    async def patch(number: int, name: str = names[0]) -> None:
        began = time.perf_counter()
        await bench.client.patch(
            Worker,
            name,
            {"status": {"epoch": number}},
            namespace=SPACES[3],
            subresource="status",
        )
        times.add(time.perf_counter() - began)

    for number in range(200):
        await patch(number)
    print(f"floor, one PATCH: {times}")
    began, count = time.perf_counter(), 0

    async def many(name: str) -> None:
        nonlocal count
        for number in range(1000, 1050):
            await patch(number, name)
            count += 1

    await asyncio.gather(*map(many, names))
    rate = count / (time.perf_counter() - began)
    print(f"floor, PATCHes with 16 in parallel: {rate:.0f}/s")
    for name in names:
        await bench.client.delete(Worker, name, namespace=SPACES[3])


async def serial(bench: Bench, count: int) -> None:
    times = Figures()
    async with bench.connected(SPACES[0]) as pool:
        for _ in range(10):
            await cycle(pool, "acme", Figures())
        for _ in range(count):
            await cycle(pool, "acme", times)
    print(f"serial warm acquire until usable: {times}")


async def poisson(bench: Bench, *, rate: float, seconds: float) -> None:
    """Requests that come when they come, over four namespaces."""
    random, times = Random(11), Figures()
    async with AsyncExitStack() as stack:
        pools = [
            await stack.enter_async_context(bench.connected(space, seed))
            for seed, space in enumerate(SPACES)
        ]
        async with asyncio.TaskGroup() as group:
            ends = time.perf_counter() + seconds
            while time.perf_counter() < ends:
                group.create_task(cycle(random.choice(pools), "acme", times))
                await asyncio.sleep(random.expovariate(rate))
    held = len(times.seconds) / seconds
    print(f"Poisson {rate:g}/s over four namespaces: {times}, {held:.1f}/s held")


async def burst(bench: Bench, count: int) -> None:
    """Everybody at once, on as many warm workers: strangers first, then the same."""
    async with bench.connected(SPACES[0], 21) as pool:
        for whose in ("whose connections are new", "who are connected"):
            times, hold = Figures(), asyncio.Event()
            granted = partial(_are, times, count)
            async with asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(_held(pool, times, hold))
                await eventually(granted, within=120.0)
                hold.set()
            print(f"burst of {count} {whose}, until granted: {times}")


def _are(times: Figures, count: int) -> bool:
    return len(times.seconds) == count


async def _held(pool: Pool, times: Figures, hold: asyncio.Event) -> None:
    began = time.perf_counter()
    async with pool.acquire(tenant="acme", wait=60.0):
        times.add(time.perf_counter() - began)
        await hold.wait()


async def sustained(
    bench: Bench, space: str, *, clients: int, seconds: float, title: str
) -> None:
    """As many cycles as there can be, and what each one costs."""
    times, warmup = Figures(), Figures()
    async with bench.connected(space, 31) as pool:
        await asyncio.gather(
            *(cycle(pool, f"tenant-{each % 4}", warmup) for each in range(clients))
        )
        before, used, began = await bench.writes(), bench.cpu(), time.perf_counter()
        ends = began + seconds

        async def client(number: int) -> None:
            while time.perf_counter() < ends:
                await cycle(pool, f"tenant-{number % 4}", times)

        await asyncio.gather(*(client(number) for number in range(clients)))
        passed = time.perf_counter() - began
        used = bench.cpu() - used
        await asyncio.sleep(1.0)  # the ledgers are left after the answers
        after = await bench.writes()
    cycles = len(times.seconds)
    written = after - before
    ours = sum(count for name, count in written.items() if name in OURS)
    rest = {name: count for name, count in written.items() if name not in OURS}
    print(
        f"sustained, {title}: {cycles / passed:.0f} cycles/s with {clients} clients "
        f"({times}); {ours / cycles:.2f} writes and {used / cycles * 1000:.2f} ms of "
        f"gateway CPU per cycle; besides {rest}"
    )


async def many(bench: Bench, count: int) -> None:
    """A gateway's memory with so many workers, whose pods nobody runs."""
    space = "bench-many"
    meta: Plain = {"name": space}
    await bench.client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    )
    await bench.pool(space, idle=0, maxWorkers=count)
    places = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with places:
            await _made_up(bench.client, space, f"bench-{number:016x}", number)

    await asyncio.gather(*(one(number) for number in range(count)))
    first, bench.gateway = bench.gateway, await bench.serve(space)
    try:
        await asyncio.sleep(10.0)
        print(f"gateway RSS with {count} workers: {bench.rss():.0f} MiB")
    finally:
        bench.gateway.terminate()
        await bench.gateway.wait()
        bench.gateway = first


async def _made_up(client: Client, space: str, name: str, number: int) -> None:
    """A worker that looks idle, and its pod."""
    metadata = {"name": name, "namespace": space, "labels": {LABEL_POOL: "bench"}}
    spec = {"pool": "bench", "shape": "small", "cpu": "10m", "memory": "200Mi"}
    plain: Plain = {"metadata": metadata, "spec": {**spec, "revision": "r"}}
    row = await client.create(codec.convert(Worker, plain))
    status = {
        "state": "idle",
        "owner": "bench-00000000",
        "idleSince": "2026-01-01T00:00:00Z",
        "ttl": 10**9,
        "address": f"127.64.{number >> 8 & 255}.{number & 255}",
        "port": 8443,
        "pod": name,
    }
    await client.patch(
        Worker, name, {"status": status}, namespace=space, subresource="status"
    )
    owner = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Worker",
        "name": name,
        "uid": row.metadata.uid,
        "controller": True,
    }
    labels = {LABEL_POOL: "bench", LABEL_WORKER: name}
    pod = {"name": name, "namespace": space, "labels": labels}
    container = {"name": "worker", "image": "none"}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**pod, "ownerReferences": [owner]},
            "spec": {"nodeName": "nowhere", "containers": [container]},
        }
    )


async def main(options: argparse.Namespace) -> None:
    python = platform.python_version()
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {python}")
    print(f"etcd flags: {' '.join(ETCD)}; {options.workers} workers; one gateway")
    settings = Options(etcd_flags=ETCD)
    with TemporaryDirectory() as name:
        folder = Path(name)
        async with (
            cluster(options.cluster, options=settings) as here,
            Client(load(kubeconfig=here.kubeconfig)) as client,
        ):
            bench = Bench(here, client, folder)
            await bench.furnish()
            await floor(bench)
            async with _processes(bench):
                await _phases(bench, options)


async def _phases(bench: Bench, options: argparse.Namespace) -> None:
    few = max(4, options.workers // 10)
    await bench.pool(SPACES[0], idle=options.workers)
    for space in SPACES[1:3]:
        await bench.pool(space, idle=few)
    limits = {"workers": few, "cpu": "1000", "memory": "1000Gi"}
    await bench.pool(SPACES[3], idle=few, limits=limits)
    began = time.perf_counter()
    for space in SPACES:
        await bench.warm(space, options.workers if space == SPACES[0] else few)
    print(f"all workers are warm after {time.perf_counter() - began:.0f} s")
    made = options.workers + 3 * few
    print(f"gateway RSS with {made} workers: {bench.rss():.0f} MiB")
    await serial(bench, options.serial)
    await burst(bench, options.workers)
    await poisson(bench, rate=45.0, seconds=options.seconds)
    await sustained(
        bench, SPACES[1], clients=few, seconds=options.seconds, title="no limits"
    )
    await sustained(
        bench, SPACES[3], clients=few, seconds=options.seconds, title="all limits"
    )
    print(f"gateway RSS at the end: {bench.rss():.0f} MiB")
    if options.many:
        await many(bench, options.many)


@asynccontextmanager
async def _processes(bench: Bench) -> AsyncIterator[None]:
    """A node and a gateway, each a process of its own."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    where = ("--kubeconfig", str(bench.cluster.kubeconfig))
    log = (bench.folder / "log").open("ab")
    node = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.pool_node", *where),
        *("--folder", str(bench.folder / "node")),
        stderr=log,
        env=environment,
    )
    bench.gateway = await bench.serve(*SPACES, log=log)

    def serving() -> str:
        text = (bench.folder / "log").read_text(errors="replace")
        assert bench.gateway.returncode is None, text[-3000:]
        found = re.search(r"Serving on \S+ port (\d+)", text)
        return found[1] if found else ""

    try:
        bench.url = f"https://127.0.0.1:{await eventually(serving, within=60.0)}"
        yield
    finally:
        for process in (bench.gateway, node):
            if process.returncode is None:
                process.terminate()
            await process.wait()
        log.close()


def parsed() -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m bench.pool", description=__doc__)
    made.add_argument("--cluster", default="real", choices=("real", "embedded"))
    made.add_argument("--workers", type=int, default=300)
    made.add_argument("--serial", type=int, default=300)
    made.add_argument("--many", type=int, default=10_000, help="0 leaves it out")
    made.add_argument("--seconds", type=float, default=20.0)
    return made.parse_args()


if __name__ == "__main__":
    asyncio.run(main(parsed()))
