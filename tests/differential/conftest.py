"""The servers that are compared: the embedded one, and a real one where there is one.

In the default tier there is no real server: its recorded answers stand for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.differential import kinds
from tests.differential.fuzzing import Pair
from tests.differential.wire import Wire
from trimtab.testing.cluster import started
from trimtab.testing.options import Options


@pytest.fixture(scope="session")
def here() -> Iterator[Wire]:
    """An embedded server of our own, with the kinds of the scenarios."""
    with started("embedded", options=Options()) as cluster:
        wire = Wire(cluster)
        kinds.install(wire)
        yield wire
        wire.close()


@pytest.fixture
def fresh() -> Iterator[Wire]:
    """Another embedded server, which nobody has asked anything yet."""
    with started("embedded", options=Options()) as cluster:
        wire = Wire(cluster)
        kinds.install(wire)
        yield wire
        wire.close()


@pytest.fixture(scope="session")
def there() -> Iterator[Wire]:
    """A real server of our own."""
    with started("real", options=Options()) as cluster:
        wire = Wire(cluster)
        kinds.install(wire)
        yield wire
        wire.close()


@pytest.fixture
def cases() -> int:
    """How many cases a long test tries: 1000 of each kind, or as ``CASES`` says."""
    return int(os.environ.get("CASES", "1000"))


@pytest.fixture
def pair(here: Wire, there: Wire) -> Pair:
    return Pair(here, there)
