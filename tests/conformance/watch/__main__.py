"""Runs informers through the suite and prints a table: peer by scenario.

``python -m tests.conformance.watch`` runs Trimtab's; with ``--peers`` kopf's index and
the official client's informer too, each in an environment of its own, which the first
run makes. ``--program`` runs any other: see ``subjects.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import environments
from tests.conformance.watch.scenarios import SCENARIOS
from tests.conformance.watch.stage import Scenario, Verdict, perform
from tests.conformance.watch.subjects import Program
from tests.conformance.watch.world import NAMESPACE

ROOT = Path(__file__).resolve().parents[3]
PEERS = Path(__file__).parent / "peers"
OURS = (sys.executable, "-m", "tests.conformance.watch.peers.ours")
PATIENCE = 30.0
"""Seconds to come right again; some wait for five before they try a second time."""
PATIENCE_LONG = 240.0


class Peer(NamedTuple):
    name: str
    command: tuple[str, ...]


def peers_of(asked: argparse.Namespace) -> list[Peer]:
    found = [Peer("Trimtab", OURS)]
    if asked.peers:
        for name, package, program in (
            ("kopf index", "kopf", "kopf_index.py"),
            ("official informer", "kubernetes", "official.py"),
        ):
            python = environments.python_of(package)
            label = f"{name} ({environments.version_of(package)})"
            found.append(Peer(label, (str(python), str(PEERS / program))))
    for command in asked.program:
        words = tuple(shlex.split(command))
        found.append(Peer(Path(words[-1]).name, words))
    return found


async def judge(peer: Peer, scenario: Scenario, folder: Path) -> Verdict:
    log = folder / f"{peer.name.replace(' ', '-')}.log"
    subject = Program(*peer.command, log=log)
    patience = PATIENCE_LONG if scenario.long else PATIENCE
    try:
        return await perform(scenario, subject, folder=folder, patience=patience)
    except TimeoutError:
        return Verdict(scenario.name, "it does not answer")


async def run(peers: Sequence[Peer], scenarios: Sequence[Scenario]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [
        f"| scenario | {' | '.join(each.name for each in peers)} |",
        f"|---|{'---|' * len(peers)}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for scenario in scenarios:
            cells = []
            for peer in peers:
                verdict = await judge(peer, scenario, Path(folder))
                print(f"{peer.name}: {verdict}", file=sys.stderr, flush=True)
                cells.append(cell(verdict))
            lines.append(f"| {scenario.name} | {' | '.join(cells)} |")
    return lines


def cell(verdict: Verdict) -> str:
    outcome = verdict.outcome
    words = outcome.replace(f"{NAMESPACE}/", "")
    words = words if words in ("ok", "n/a") else f"**{words}**"
    return f"{words} ({verdict.notes})" if verdict.notes else words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="run kopf and kubernetes")
    parser.add_argument("--program", action="append", default=[], metavar="COMMAND")
    parser.add_argument("--long", action="store_true", help="100,000 objects, too")
    parser.add_argument("--only", default="", metavar="WORD", help="of scenarios")
    asked = parser.parse_args()
    scenarios = [
        each
        for each in SCENARIOS
        if asked.only in each.name and (asked.long or not each.long)
    ]
    table = asyncio.run(run(peers_of(asked), scenarios))
    print("\n".join(table))
    ours = [line.split(" | ")[1] for line in table[2:]]
    return 0 if all(each.startswith("ok") for each in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
