"""The operator of agent sessions, measured: `python -m bench.sessions`.

A real etcd and kube-apiserver hold the projects, sessions and Pods of a platform, and
the real operator runs on them as a process of its own. What it asks the server for is
read from the server's audit log, not from what it says of itself.

`--peer original` adds a column for a model of the operator that this one takes the
place of; `--warm` measures starts instead, and `--churn MINUTES` memory under work.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from bench.sessions.churn import churn
from bench.sessions.measuring import measure
from bench.sessions.operating import OURS, PEERS
from bench.sessions.platform import AUDIT, LARGE, Scale, tenth
from bench.sessions.table import table
from bench.sessions.warm import compare


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    made.add_argument("--scale", choices=("audited", "large", "both"), default="both")
    made.add_argument("--small", action="store_true", help="a tenth, to try it out")
    made.add_argument("--peer", choices=tuple(PEERS), action="append", default=[])
    made.add_argument("--warm", action="store_true", help="starts, warm and cold")
    made.add_argument("--count", type=int, default=20, help="starts of each kind")
    made.add_argument("--churn", type=float, metavar="MINUTES", default=0.0)
    return made


def scales(options: argparse.Namespace) -> list[Scale]:
    chosen = {"audited": [AUDIT], "large": [LARGE], "both": [AUDIT, LARGE]}
    return [tenth(scale) if options.small else scale for scale in chosen[options.scale]]


def main() -> int:
    options = parser().parse_args()
    if options.warm:
        return asyncio.run(compare(options.count))
    failed = 0
    for scale in scales(options):
        if options.churn:
            failed += asyncio.run(churn(scale, minutes=options.churn))
            continue
        peers = (OURS, *(PEERS[name] for name in options.peer))
        columns = [asyncio.run(measure(scale, peer)) for peer in peers]
        title = f"{scale.name}: {scale.sessions} sessions, {scale.namespaces} projects"
        print(f"\n{table(title, columns)}", flush=True)
        failed += columns[0].failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
