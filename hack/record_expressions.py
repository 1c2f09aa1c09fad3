"""Records what a real API server makes of expressions in the rules of custom resources.

To make the facts again::

    python -m hack.record_expressions

Needs the programs that `make test-cluster` builds.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any, Final

from hack.expression_corpus.playing import refusals, sorted_out, spent, verdicts
from trimtab.testing.cluster import cluster

OUTPUT: Final = Path(__file__).resolve().parents[1] / "tests" / "embedded" / "data"
FILE: Final = OUTPUT / "expressions.json.gz"


async def record() -> dict[str, Any]:
    """Every expression with what is said of it."""
    async with cluster("real") as real:
        taken, refused = await sorted_out(real)
        return {
            "taken": taken,
            "refused": refused,
            "verdicts": await verdicts(real, taken),
            "refusals": await refusals(real, refused),
            "spent": await spent(real),
        }


def main() -> None:
    text = json.dumps(asyncio.run(record()), sort_keys=True, ensure_ascii=False)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
