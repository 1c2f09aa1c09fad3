"""A disk that does not wait: these tests kill programs, and never the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quick_disk() -> Iterator[None]:
    """Flushing takes ten milliseconds, and changes nothing that a test can see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
