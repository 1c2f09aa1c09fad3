"""The whole: a session with real repositories, edited while it runs, until it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.sessions import journeys
from tests.operators.sessions.house import house
from trimtab.testing import Cluster


@pytest.mark.cluster("real")
async def test_repositories_are_changed_under_a_session_and_it_goes_when_it_is_over(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with house(cluster, namespace, tmp_path) as here:
        await journeys.edits(here)
