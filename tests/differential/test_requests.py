"""The embedded server answers as a real one does, request by request.

Where a real server can run, both are asked now; everywhere, the embedded server's
answers are compared with those that were recorded of the real one.
"""

from __future__ import annotations

import pytest

from tests.differential import recorded, stories
from tests.differential.scenario import SCENARIOS, differences, play
from tests.differential.wire import Wire

assert stories.__all__, "importing them notes the scenarios"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_embedded_server_answers_as_was_recorded_of_a_real_one(
    here: Wire, name: str
) -> None:
    found = differences(play(here, name), recorded.answers(name))
    assert not found, "\n".join(found)


@pytest.mark.cluster("real")
def test_a_real_server_answers_as_the_embedded_one(fresh: Wire, there: Wire) -> None:
    """All scenarios at once: whatever differs is in the message."""
    found = []
    for name in SCENARIOS:
        lines = differences(play(fresh, name), play(there, name))
        found += [f"{name}:", *lines] if lines else []
    assert not found, "\n".join(found)


def test_nothing_is_recorded_that_is_not_asked() -> None:
    assert recorded.names() == set(SCENARIOS)
