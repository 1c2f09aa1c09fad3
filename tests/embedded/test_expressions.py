"""Every function of an expression comes to what it comes to on a real server.

It was asked, by `hack/record_expressions.py`; each law here runs on either server, so
on a real one it says that the record is still true.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hack.expression_corpus.playing import (
    budgets,
    expressions,
    refusals,
    spent,
    verdicts,
)
from trimtab.testing import Cluster

DATA = Path(__file__).with_name("data") / "expressions.json.gz"


def recorded() -> Any:
    return json.loads(gzip.decompress(DATA.read_bytes()))


def test_every_expression_of_the_corpus_is_on_record() -> None:
    facts = recorded()
    assert sorted([*facts["taken"], *facts["refused"]]) == sorted(expressions())


@pytest.mark.cluster("embedded", "real")
async def test_an_expression_comes_to_the_same_value_or_error(cluster: Cluster) -> None:
    facts = recorded()
    found = await verdicts(cluster, facts["taken"])
    rows = zip(facts["taken"], found, facts["verdicts"], strict=True)
    for text, answer, expected in rows:
        assert answer == expected, text


@pytest.mark.cluster("embedded", "real")
async def test_a_mistake_in_an_expression_is_told_in_the_same_words(
    cluster: Cluster,
) -> None:
    facts = recorded()
    found = await refusals(cluster, facts["refused"])
    for answer, expected in zip(found, facts["refusals"], strict=True):
        assert answer == expected


@pytest.mark.cluster("embedded", "real")
async def test_rules_are_stopped_at_the_same_cost_to_the_last_unit(
    cluster: Cluster,
) -> None:
    found = await spent(cluster)
    rows = zip(budgets(), found, recorded()["spent"], strict=True)
    for rules, answer, expected in rows:
        assert answer == expected, rules
    assert {answer["code"] for answer in found} == {201, 422}
