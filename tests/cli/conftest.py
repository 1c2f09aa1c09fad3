"""What tests of commands share."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PASSING = (str(ROOT / "examples"), tempfile.gettempdir())
# The clone itself may be somewhere below the folder for what is temporary.
STAYING = (str(ROOT / "src"), str(ROOT / "tests"), sys.prefix)


@pytest.fixture
def modules() -> Iterator[None]:
    """What loading a file changes is as it was afterwards.

    Modules of the library stay: a second copy would have classes of its own.
    """
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(PASSING) and not file.startswith(STAYING):
            del sys.modules[name]
