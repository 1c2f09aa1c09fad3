"""Sessions of real runner processes, from their start to whatever ends them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.operators.sessions import journeys
from tests.operators.sessions.house import House, house
from trimtab.testing import Cluster


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[House]:
    async with house(cluster, namespace, tmp_path) as made:
        yield made


@pytest.mark.cluster("embedded", "real")
async def test_a_session_runs_stops_and_is_resumed(here: House) -> None:
    await journeys.lives(here)


@pytest.mark.cluster("real")
@pytest.mark.timeout(120)
async def test_every_end_of_a_runner_is_seen_for_what_it_is(here: House) -> None:
    await journeys.ends(here)
