"""The embedded server beside etcd and kube-apiserver, in one run on the same cores.

``python bench/embedded.py`` starts one after the other, drives both with the same
client and prints a table; ``--page docs/embedded-benchmark.md`` writes it down.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.pods import namespace_of, pod
from bench.report import machine
from trimtab.client import Client, Options, WatchEvent, load
from trimtab.kinds import ConfigMap, Pod
from trimtab.testing import Cluster, cluster

KINDS = ("embedded", "real")
WRITERS = 16
WATCHERS = 100
CHANGES = 200
MiB = 1 << 20


class Result(msgspec.Struct, kw_only=True):
    """What one server did in one round."""

    start: float = 0.0
    rss_empty: float = 0.0
    rss_full: float = 0.0
    creates: float = 0.0
    gets: float = 0.0
    patches: float = 0.0
    applies: float = 0.0
    deliveries: float = 0.0


FIGURES = {
    "start": ("start to ready, s", False),
    "rss_empty": ("RSS empty, MiB", False),
    "rss_full": ("RSS with the Pods, MiB", False),
    "creates": ("creates of 7 KB Pods per second", True),
    "gets": ("gets per second", True),
    "patches": ("merge patches per second", True),
    "applies": ("applies per second", True),
    "deliveries": (f"watch deliveries per second, {WATCHERS} watchers", True),
}


def rss(on: Cluster) -> float:
    """The resident memory of the server's processes."""
    total = 0
    for pid in on.pids.values():
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        total += int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    return total / MiB


async def rate(work: Callable[[int], Awaitable[object]], count: int) -> float:
    """How many per second, with as many at once as a busy operator has."""
    numbers: Iterator[int] = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(worker())
    return count / (time.perf_counter() - began)


def place(number: int) -> tuple[str, str]:
    meta = pod(number)["metadata"]
    return meta["namespace"], meta["name"]


async def fan_out(client: Client) -> float:
    """Events that reach watchers per second, all of them watching the same thing."""
    name = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shouted"}}
    made = await client.create(name)
    version = made["metadata"]["resourceVersion"]
    ready = asyncio.Semaphore(0)

    async def listen() -> None:
        async with client.watch(
            ConfigMap, namespace="default", resource_version=version
        ) as events:
            ready.release()
            seen = 0
            while seen < CHANGES:
                batch = await events.batch()
                seen += sum(isinstance(each, WatchEvent) for each in batch)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WATCHERS):
            tasks.create_task(listen())
        for _ in range(WATCHERS):
            await ready.acquire()
        began = time.perf_counter()
        for number in range(CHANGES):
            patch = {"data": {"number": str(number)}}
            await client.patch(ConfigMap, "shouted", patch, namespace="default")
    return WATCHERS * CHANGES / (time.perf_counter() - began)


async def measure(kind: str, count: int) -> Result:
    result = Result()
    began = time.perf_counter()
    async with cluster(kind) as on:  # type: ignore[arg-type]
        result.start = time.perf_counter() - began
        await asyncio.sleep(2)
        result.rss_empty = rss(on)
        config = load(kubeconfig=on.kubeconfig)
        async with Client(config, options=Options(pool=WRITERS)) as client:
            await fill(client, count, result)
            await use(client, min(count, 2000), result)
            result.deliveries = await fan_out(client)
        result.rss_full = rss(on)
    return result


async def fill(client: Client, count: int, result: Result) -> None:
    for name in {namespace_of(number) for number in range(count)}:
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await client.create(obj)
    await client.discover("v1", "Pod")

    async def create(number: int) -> None:
        obj = pod(number)
        obj.pop("status", None)
        obj["spec"]["serviceAccountName"] = "default"  # the one that is there
        await client.create(obj, validation="Ignore")

    result.creates = await rate(create, count)


async def use(client: Client, count: int, result: Result) -> None:
    async def get(number: int) -> None:
        namespace, name = place(number)
        await client.get(Pod, name, namespace=namespace)

    async def patch(number: int) -> None:
        namespace, name = place(number)
        body = {"metadata": {"annotations": {"example.com/seen": str(number)}}}
        await client.patch(Pod, name, body, namespace=namespace)

    async def apply(number: int) -> None:
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"applied-{number}", "namespace": "default"},
            "data": {"text": "x" * 2000, "number": str(number)},
        }
        await client.apply(obj, manager="bench")

    result.gets = await rate(get, count)
    result.patches = await rate(patch, count)
    result.applies = await rate(apply, count)


def table(results: dict[str, list[Result]]) -> str:
    lines = [
        "| figure | embedded | etcd + kube-apiserver | ratio |",
        "|---|---|---|---|",
    ]
    for field, (name, _) in FIGURES.items():
        ours, theirs = (
            statistics.median(getattr(each, field) for each in results[kind])
            for kind in KINDS
        )
        form = ".2f" if field == "start" else ",.0f"
        lines.append(
            f"| {name} | {ours:{form}} | {theirs:{form}} | {ours / theirs:.2f} × |"
        )
    return "\n".join(lines)


def bars(results: dict[str, list[Result]]) -> list[str]:
    """What was aimed at and missed, a sentence each."""

    def middle(kind: str, field: str) -> float:
        values: list[float] = [getattr(each, field) for each in results[kind]]
        return statistics.median(values)

    missed = []
    if middle("embedded", "start") > 1.5:
        missed.append("it takes more than 1.5 s to start")
    for field in ("rss_empty", "rss_full"):
        if middle("embedded", field) > middle("real", field) / 4:
            missed.append(f"{FIGURES[field][0]}: more than a quarter of theirs")
    for field in ("creates", "patches"):
        if middle("embedded", field) < middle("real", field) / 2:
            missed.append(f"{FIGURES[field][0]}: less than half of theirs")
    if middle("embedded", "deliveries") < 20_000:
        missed.append("less than 20,000 watch deliveries per second")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--page", type=Path, help="write the table to this file")
    asked = parser.parse_args()
    results: dict[str, list[Result]] = {kind: [] for kind in KINDS}
    for number in range(asked.rounds):
        for kind in KINDS:
            print(f"Round {number + 1}: {kind}, {asked.pods} Pods.", flush=True)
            results[kind].append(asyncio.run(measure(kind, asked.pods)))
    text = table(results)
    missed = bars(results)
    verdict = "".join(f"- Missed: {each}.\n" for each in missed)
    print(f"{text}\n{verdict}")
    if asked.page:
        asked.page.write_text(
            "# The embedded server beside the real one\n\n"
            f"{asked.pods:,} Pods of 6 to 7 KB, {asked.rounds} round(s), "
            f"{WRITERS} requests at once, medians.\n\n{text}\n\n{verdict}"
            f"- Machine: {machine()}.\n"
            "- etcd runs without fsync; the embedded server keeps its objects in a "
            "SQLite file, synchronous=NORMAL.\n\n"
            "To run it again: `.venv/bin/python bench/embedded.py --page "
            "docs/embedded-benchmark.md`.\n"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
