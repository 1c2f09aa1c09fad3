"""Policies do what they do on a real server, and are refused in its words.

It was asked, by `hack/record_policies.py`; each law here runs on either server, so on a
real one it says that the record is still true.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hack.policy_corpus.playing import Answers, cleared, played, tried
from hack.policy_corpus.refused import refused
from hack.policy_corpus.scenarios import scenarios
from trimtab.testing import Cluster

pytestmark = pytest.mark.cluster("embedded", "real")
DATA = Path(__file__).parents[1] / "data" / "policies.json.gz"
TRIES = 100
"""How often a real server, which takes its time to notice a policy, is asked."""


def recorded() -> Any:
    return json.loads(gzip.decompress(DATA.read_bytes()))


async def test_a_policy_that_cannot_work_is_refused_where_it_is_wrong(
    cluster: Cluster,
) -> None:
    wanted = recorded()["refused"]
    answers = await tried(cluster)
    for body, answer, expected in zip(refused(), answers, wanted, strict=True):
        assert answer == expected, body


async def test_a_request_comes_to_what_its_policies_make_of_it(
    cluster: Cluster,
) -> None:
    wanted: Answers = recorded()["played"]
    tries = 0

    async def settled(first: Answers) -> bool:
        nonlocal tries
        tries += 1
        good = all(
            _code(answers[0]) == _code(wanted[name][0])
            for name, answers in first.items()
        )
        return good or tries == TRIES

    try:
        found = await played(cluster, settled)
    finally:
        await cleared(cluster)
    for scenario in scenarios():
        pairs = zip(found[scenario.name], wanted[scenario.name], strict=True)
        for request, (answer, expected) in zip(scenario.requests, pairs, strict=True):
            assert answer == expected, (scenario.name, request)


def _code(answer: dict[str, Any]) -> Any:
    return answer["code"], answer["body"].get("message"), answer["warnings"]
