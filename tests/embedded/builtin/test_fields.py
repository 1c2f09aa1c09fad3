"""Built-in kinds are selected by the fields that a real server selects them by."""

from __future__ import annotations

import pytest

from tests.embedded.builtin.tables import JSON, recorded, title
from trimtab.embedded.builtin.fields import field_error, fields, supported_fields

FACTS = recorded()


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_the_real_server_s_fields_are_supported_and_no_others(fact: JSON) -> None:
    accepted = {field for field, error in fact["fields"].items() if not error}
    supported = supported_fields(fact["group"], fact["kind"])
    assert accepted == supported


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_other_fields_are_refused_in_the_real_server_s_words(fact: JSON) -> None:
    for field, error in fact["fields"].items():
        if error:
            told = field_error(fact["group"], fact["kind"], field)
            assert told == error


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_values_are_those_by_which_the_real_server_finds_objects(fact: JSON) -> None:
    objects = [each["object"] for each in fact["rows"]]
    for selector, names in fact["found"].items():
        field, _, value = selector.partition("=")
        found = sorted(
            each["metadata"]["name"]
            for each in objects
            if fields(fact["group"], fact["kind"], each)[field] == value
        )
        assert (selector, found) == (selector, names)


@pytest.mark.parametrize("fact", FACTS, ids=title)
def test_every_supported_field_has_a_value(fact: JSON) -> None:
    for each in fact["rows"]:
        found = fields(fact["group"], fact["kind"], each["object"])
        assert found.keys() >= supported_fields(fact["group"], fact["kind"])
        assert all(type(value) is str for value in found.values())
