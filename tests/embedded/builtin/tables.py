"""Recorded tables: what a real server showed of objects, and how it selected them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

JSON = dict[str, Any]

_FACTS = Path(__file__).parents[1] / "data" / "tables.json.gz"


def recorded() -> list[JSON]:
    """The facts of each kind."""
    facts: list[JSON] = json.loads(gzip.decompress(_FACTS.read_bytes()))
    return facts


def title(fact: JSON) -> str:
    """A kind's name, for the name of a test."""
    return f"{fact['group']}/{fact['version']}/{fact['kind']}".lstrip("/")
