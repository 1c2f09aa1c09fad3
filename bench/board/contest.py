"""The contest: one server for each workload, and every peer in turn, round by round."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

from bench import pods
from bench.board import report, sessions
from bench.board.loading import Loaded, Written, create
from bench.board.peers import PEERS, QUICK, Peer, go_program
from bench.board.phases import Bench, Figures, Workload
from bench.board.running import Failed
from trimtab.client import Client, load
from trimtab.client.errors import NotFound
from trimtab.testing import Cluster, Options, Token, cluster, eventually

PODS = (10_000, 50_000)
USER = "writer"
Measure = Callable[[Workload], None]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument(
        "--only", metavar="PEER", help="only peers whose name has this, and ours"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"S and {PODS[0]:,} Pods, one round, ours and the fastest two",
    )
    parser.add_argument(
        "--workload",
        metavar="NAME",
        default="",
        help="only S, P, or one of the latter's sizes: 'P 10,000'",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        help="seconds to wait before each phase for others to be quiet (default 20)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="where the page goes (default docs/scoreboard.md, with --quick nowhere)",
    )
    return parser.parse_args()


def chosen(asked: argparse.Namespace) -> list[Peer]:
    """Who competes: those asked for that can be built here."""
    peers = [
        peer
        for peer in PEERS
        if peer.name in QUICK or not asked.quick
        if not asked.only or asked.only in peer.name or peer.name == PEERS[0].name
    ]
    for peer in peers:
        if not peer.there:
            print(f"{peer.name} is left out: there is no {peer.needs} here.")
    return [peer for peer in peers if peer.there]


@asynccontextmanager
async def server(asked: argparse.Namespace) -> AsyncIterator[tuple[Cluster, str]]:
    """A control plane of its own, and a token that may do anything there."""
    token = secrets.token_urlsafe()
    user = Token(token=token, user=USER, groups=("system:masters",))
    async with cluster("real", options=Options(tokens=[user])) as ready:
        yield ready, token


async def workload_s(client: Client) -> Workload:
    """Load the platform's objects; its sessions and settings are what is reconciled."""
    await create(client, sessions.definitions())
    for kind in sessions.KINDS:
        await eventually(partial(serves, client, kind), within=30.0)
    await create(client, sessions.namespaces())
    settings = await create(client, sessions.settings())
    made = await create(client, sessions.sessions())
    await create(client, sessions.some_pods(made.uids))
    metadata = [each.body["metadata"] for each in sessions.sessions()]
    both = settings + made
    return Workload(
        name="S",
        objects=both.objects,
        checksum=both.checksum,
        sessions=[(each["namespace"], each["name"]) for each in metadata],
    )


async def serves(client: Client, kind: str) -> bool:
    try:
        await client.discover(sessions.API, kind)
    except NotFound:
        return False
    return True


async def more_pods(client: Client, first: int, end: int) -> Loaded:
    """The Pods of a range of numbers."""
    if first == 0:
        await create(client, map(_namespace, range(pods.NAMESPACES)))
    each = (Written(pods.pod(n), pods.status(n)) for n in range(first, end))
    return await create(client, each)


def _namespace(number: int) -> Written:
    name = {"name": pods.namespace_of(number)}
    return Written({"apiVersion": "v1", "kind": "Namespace", "metadata": name})


class Contest:
    """Everything that one call of the program measures."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.found: list[Figures] = []
        self.failed: list[str] = []
        self._asked = asked
        self._rounds = 1 if asked.quick else asked.rounds
        self._peers = chosen(asked)

    async def run(self) -> None:
        for peer in self._peers:
            peer.command()  # builds it, or its environment
        if self._wants("S"):
            await self._sessions()
        wanted = PODS[:1] if self._asked.quick else PODS
        sizes = [size for size in wanted if self._wants(f"P {size:,}")]
        if sizes:
            await self._pods(sizes)

    def _wants(self, name: str) -> bool:
        return name.startswith(self._asked.workload)

    async def _sessions(self) -> None:
        async with server(self._asked) as (ready, token):
            began = time.monotonic()
            async with Client(load(kubeconfig=ready.kubeconfig)) as client:
                workload = await workload_s(client)
            _say(f"S was loaded in {time.monotonic() - began:.0f} s.")
            await self._measure(ready, token, workload)

    async def _pods(self, sizes: Sequence[int]) -> None:
        async with server(self._asked) as (ready, token):
            loaded, before = Loaded(0, 0, {}), 0
            for size in sizes:
                began = time.monotonic()
                async with Client(load(kubeconfig=ready.kubeconfig)) as client:
                    loaded += await more_pods(client, before, size)
                before = size
                _say(
                    f"{size:,} Pods were there after {time.monotonic() - began:.0f} s."
                )
                name = f"P {size:,}"
                workload = Workload(name, loaded.objects, loaded.checksum)
                await self._measure(ready, token, workload)

    async def _measure(self, on: Cluster, token: str, workload: Workload) -> None:
        bench = Bench(on, workload, token=token, patience=self._asked.patience)
        peers = [peer for peer in self._peers if workload.letter in peer.workloads]
        await asyncio.to_thread(self._collect, bench, peers)

    def _collect(self, bench: Bench, peers: Sequence[Peer]) -> None:
        for number, peer in order(peers, self._rounds):
            try:
                made = bench.run(peer, number=number)
            except Failed as error:
                _say(f"{peer.name} failed in round {number}: {error}")
                self.failed.append(f"{peer.name} (round {number})")
                continue
            _say(report.line(made))
            self.found.append(made)


def order(peers: Sequence[Peer], rounds: int) -> Iterator[tuple[int, Peer]]:
    """Every peer once a round, each round in an order of its own."""
    for number in range(rounds):
        shuffled = list(peers)
        Random(number).shuffle(shuffled)
        for peer in shuffled:
            yield number, peer


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    asked = arguments()
    if shutil.which("go") is None:
        raise SystemExit("The writer of events is a Go program: install Go.")
    go_program("writer")
    contest = Contest(asked)
    asyncio.run(contest.run())
    text = report.page(contest.found, failed=contest.failed)
    print(text)
    default = None if asked.quick or asked.only else Path("docs/scoreboard.md")
    if page := asked.page or default:
        page.write_text(text)
    return 0 if report.all_met(contest.found) else 1
