"""What a real server answered to the scenarios, kept for machines without one.

`python -m hack.record_differences` makes it again.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

import msgspec

from tests.differential.wire import Plain

FILE = Path(__file__).parent / "data" / "answers.json.gz"


@lru_cache(maxsize=1)
def _all() -> dict[str, list[Plain]]:
    text = gzip.decompress(FILE.read_bytes())
    return msgspec.json.decode(text, type=dict[str, list[Plain]])


def answers(name: str) -> list[Plain]:
    """The answers to one scenario."""
    return _all()[name]


def write(stories: dict[str, list[Plain]]) -> int:
    """Keep them; the same bytes for the same answers."""
    text = msgspec.json.encode(stories, order="sorted")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress(text, 9, mtime=0))
    return FILE.stat().st_size


def names() -> set[str]:
    """The scenarios that were recorded."""
    return set(_all())
