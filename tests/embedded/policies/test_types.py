"""What does not fit the kinds that a policy is for is told in its status.

On a real cluster that is the work of a controller, so there it has its controllers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.policy_corpus.playing import checked
from hack.policy_corpus.typed import typed
from tests.embedded.policies.test_recorded import recorded
from trimtab.testing import Cluster, Options
from trimtab.testing.cluster import started

pytestmark = pytest.mark.cluster("embedded", "real")


@pytest.fixture(scope="module")
def controlled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind = request.config.getoption("--cluster")
    with started(kind, options=Options(controllers=True)) as cluster:
        yield cluster


async def test_an_expression_is_checked_against_every_kind_it_is_for(
    controlled: Cluster,
) -> None:
    found = await checked(controlled)
    for policy, status, wanted in zip(typed(), found, recorded()["typed"], strict=True):
        assert status == wanted, policy["spec"]
