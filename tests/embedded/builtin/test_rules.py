"""Built-in objects are made and refused as a real server makes and refuses them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.embedded.builtin.recorded import (
    JSON,
    Answer,
    asked,
    group_and_kind,
    read,
    rows,
    told,
)

FACTS = rows("builtin")
RANDOM = rows("builtin_random")
KINDS = sorted(FACTS)
LIMITS = Path(__file__).parents[1] / "data" / "builtin_limits.json"
UNORDERED = {("v1/Node", "capacity")}
"""Problems of several keys of one map, which the real server looks at in any order."""


def of(kind: str, *, outcome: str) -> list[tuple[JSON, Answer, Answer]]:
    """The questions about a kind to which a real server gave such an answer."""
    found = []
    for row in FACTS[kind] + RANDOM.get(kind, []):
        wanted = told(row)
        if getattr(wanted, outcome) is not None:
            found.append((row, wanted, asked(row)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_is_what_a_real_server_stores(kind: str) -> None:
    for row, wanted, got in of(kind, outcome="object"):
        assert got.causes is None, row["name"]
        assert got.object == wanted.object, row["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_has_the_causes_of_a_real_server(kind: str) -> None:
    for row, wanted, got in of(kind, outcome="causes"):
        assert got.causes is not None, row["name"]
        assert wanted.causes is not None
        if (kind, row["name"]) in UNORDERED:
            assert sorted(got.causes) == sorted(wanted.causes), row["name"]
        else:
            assert got.causes == wanted.causes, row["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_read_is_refused_in_the_same_words(kind: str) -> None:
    for row, wanted, got in of(kind, outcome="problem"):
        assert got.problem == wanted.problem, row["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_generations_are_those_of_a_real_server(kind: str) -> None:
    for row, wanted, got in of(kind, outcome="object"):
        assert got.generation == wanted.generation, row["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_its_defaults_stays_as_it_is(kind: str) -> None:
    for row in FACTS[kind]:
        if "object" not in row:
            continue
        group, name = group_and_kind(row)
        once = copy.deepcopy(row["object"])
        read(group, name, once)
        twice = copy.deepcopy(once)
        read(group, name, twice)
        assert twice == once, row["name"]


def test_each_kind_was_asked_about_good_and_bad_objects() -> None:
    for kind in KINDS:
        answers = [told(row) for row in FACTS[kind] + RANDOM.get(kind, [])]
        assert any(each.object for each in answers), kind
        assert any(each.causes for each in answers), kind


def test_every_limit_is_a_line() -> None:
    limits = json.loads(LIMITS.read_text())["LIMITS"]
    assert limits == sorted(set(limits))
    for limit in limits:
        assert limit
        assert "\n" not in limit
