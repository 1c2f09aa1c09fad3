"""Records what a real API server makes of admission policies.

The policies of :mod:`hack.policy_corpus` are posted to a real control plane, the bad
ones to see why, the good ones to see what they do. To make the facts again::

    python -m hack.record_policies

Needs the programs that `make test-cluster` builds.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any, Final

from hack.policy_corpus.playing import Answers, checked, played, tried
from trimtab.testing import Options
from trimtab.testing.cluster import cluster

OUTPUT: Final = Path(__file__).resolve().parents[1] / "tests" / "embedded" / "data"
FILE: Final = OUTPUT / "policies.json.gz"
# How long a real server may take to notice a policy.
PATIENCE: Final = 4.0


async def record() -> dict[str, Any]:
    """All answers."""
    async with cluster("real") as real:
        refusals = await tried(real)

        async def wait(asked: Answers) -> bool:
            await asyncio.sleep(PATIENCE)
            return True

        answers = await played(real, wait)
    async with cluster("real", options=Options(controllers=True)) as real:
        warnings = await checked(real)
    return {"refused": refusals, "played": answers, "typed": warnings}


def main() -> None:
    text = json.dumps(asyncio.run(record()), sort_keys=True)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
