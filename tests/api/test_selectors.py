"""Laws of selectors: what the server selects, a cache selects.

``data/selectors.json`` was recorded from k8s.io/apimachinery: label selectors as text
and as they stand in specs, and field selectors, each with sets that match or do not.
"""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.api.codec import convert, decode, encode
from trimtab.api.selectors import (
    FieldSelector,
    FieldTerm,
    LabelSelector,
    LabelSelectorRequirement,
    Operator,
    Requirement,
    Selector,
)

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "selectors.json").read_text("utf-8")
)

keys = st.sampled_from(["a", "b", "in", "notin", "example.com/app"])
values = st.sampled_from(["", "x", "Y", "in", "notin", "1", "2", "007", "x.y_z-1"])
numbers = st.integers(0, 2**63 - 1).map(str)
labels_sets = st.dictionaries(keys, st.one_of(values, numbers, st.just("-3")))
some_values = st.frozensets(values, min_size=1).map(lambda each: tuple(sorted(each)))
one_value = values.map(lambda each: (each,))
one_number = st.one_of(st.integers(0, 9).map(str), numbers).map(lambda each: (each,))


def requirements_of(
    operators: list[Operator], given_values: st.SearchStrategy[tuple[str, ...]]
) -> st.SearchStrategy[Requirement]:
    return st.builds(Requirement, keys, st.sampled_from(operators), given_values)


requirements = st.one_of(
    requirements_of(["exists", "!"], st.just(())),
    requirements_of(["in", "notin"], some_values),
    requirements_of(["=", "==", "!="], one_value),
    requirements_of([">", "<"], one_number),
)
selectors = st.lists(requirements, max_size=5).map(Selector)

field_names = st.sampled_from(["a", "metadata.name", "spec.nodeName", "a!b", " c", "ä"])
field_values = st.one_of(st.sampled_from(["", "x"]), st.text(), st.text("\\,=!x"))
field_operators: st.SearchStrategy[Literal["=", "!="]] = st.sampled_from(["=", "!="])
field_terms = st.builds(FieldTerm, field_names, field_values, field_operators)
field_selectors = st.lists(field_terms, max_size=5).map(tuple).map(FieldSelector)


def model(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """What one requirement means, said as plainly as it can be."""
    key, operator, wanted = requirement
    present = key in labels
    if operator == "exists":
        return present
    if operator == "!":
        return not present
    if operator in ("=", "==", "in"):
        return present and labels[key] in wanted
    if operator in ("!=", "notin"):
        return not present or labels[key] not in wanted
    try:
        number = int(labels[key])
    except (KeyError, ValueError):
        return False
    bound = int(wanted[0])
    return number > bound if operator == ">" else number < bound


def test_a_text_selects_what_go_selects_and_prints_what_go_prints() -> None:
    assert len(RECORDED["labels"]) > 300
    for fact in RECORDED["labels"]:
        if "error" in fact:
            with pytest.raises(ValueError, match=r"\.$"):
                Selector.from_string(fact["selector"])
            continue
        selector = Selector.from_string(fact["selector"])
        assert str(selector) == fact["canonical"], fact
        for result in fact["results"]:
            assert selector.matches(result["labels"]) is result["matches"], result


def test_what_a_spec_holds_selects_what_go_selects() -> None:
    assert len(RECORDED["wire"]) > 50
    for fact in RECORDED["wire"]:
        selector = convert(LabelSelector, fact["wire"])
        if "error" in fact:
            with pytest.raises(ValueError, match=r"\.$"):
                Selector.from_wire(selector)
            continue
        assert str(Selector.from_wire(selector)) == fact["canonical"], fact
        for result in fact["results"]:
            found = Selector.from_wire(selector).matches(result["labels"])
            assert found is result["matches"], (fact, result)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("", {"a": "b"}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a=", {}, False),
        ("a!=b", {}, True),
        ("a notin (b)", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a in ()", {"a": ""}, True),
        ("!a", {}, True),
        ("a", {"a": ""}, True),
        ("a>9", {"a": "10"}, True),
        ("a<9", {"a": "10"}, False),
        ("a>9", {"a": "many"}, False),
        ("a<9", {}, False),
        ("a=b,c", {"a": "b"}, False),
    ],
)
def test_a_selector_selects(text: str, labels: dict[str, str], expected: bool) -> None:
    assert Selector.from_string(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a in b", "'a in b' is not valid: there should be '(' in the place of 'b'."),
        ("a,", "'a,' is not valid: there should be a key in the place of the end."),
        ("a b", "there should be one of =, ==, !=, in, notin, < and > in the place"),
        ("-a=b", "The label key '-a' is not valid: name part must consist of"),
        ("a=-b", "The value of the label a '-b' is not valid: a valid label must"),
        ("a>x", "a>x needs a whole number of 64 bits."),
        ("a>9223372036854775808", "needs a whole number of 64 bits."),
    ],
)
def test_a_bad_selector_is_an_error_that_says_where(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        Selector.from_string(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@given(selectors)
def test_the_canonical_text_reads_back_as_an_equal_selector(selector: Selector) -> None:
    again = Selector.from_string(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)
    assert str(again) == str(selector)
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert copy.deepcopy(selector) == selector


@given(selectors, labels_sets)
def test_a_selector_matches_when_each_requirement_does(
    selector: Selector, labels: dict[str, str]
) -> None:
    expected = all(model(each, labels) for each in selector.requirements)
    assert selector.matches(labels) is expected


@given(selectors, selectors, labels_sets)
def test_both_of_two_selectors_is_their_conjunction(
    left: Selector, right: Selector, labels: dict[str, str]
) -> None:
    both = left & right
    assert both.matches(labels) is (left.matches(labels) and right.matches(labels))
    assert left & left == left
    assert left & Selector() == left
    assert bool(both) is (bool(left) or bool(right))


@given(labels_sets)
def test_nothing_selects_nothing_even_after_it_was_sent(labels: dict[str, str]) -> None:
    nothing = Selector.nothing()
    assert not nothing.matches(labels)
    assert not nothing.matches({"trimtab.dev/nothing": ""})
    assert str(nothing)
    assert Selector.from_string(str(nothing)) == nothing
    assert Selector.from_wire(None) == nothing


@given(st.dictionaries(keys, values), labels_sets)
def test_a_mapping_selects_who_carries_all_of_it(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    selector = Selector.from_mapping(wanted)
    assert selector.matches(labels) is (wanted.items() <= labels.items())
    assert selector == Selector.from_wire(LabelSelector(matchLabels=wanted))


def test_the_order_and_the_repetition_of_values_do_not_matter() -> None:
    assert Selector.from_string("a in (c,b,c),b") == Selector.from_string(
        "b,a in (b,c)"
    )
    spec = LabelSelector(
        matchExpressions=[
            LabelSelectorRequirement(key="a", operator="In", values=["c", "b", "c"])
        ]
    )
    assert str(Selector.from_wire(spec)) == "a in (b,c)"


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("a", "="),
        Requirement("a", "=", ("b", "c")),
        Requirement("a", "in"),
        Requirement("a", "exists", ("b",)),
        Requirement("a", "!", ("b",)),
        Requirement("a", ">", ("b",)),
        Requirement("", "exists"),
        Requirement("a", "=", ("b,c",)),
    ],
)
def test_no_selector_is_made_of_a_bad_requirement(requirement: Requirement) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        Selector([requirement])


def test_an_unknown_operator_of_a_spec_is_readable_but_selects_nothing_silently() -> (
    None
):
    data = b'{"matchExpressions":[{"key":"a","operator":"Near","values":["b"]}]}'
    selector = decode(LabelSelector, data)
    assert json.loads(encode(selector)) == json.loads(data)
    with pytest.raises(ValueError, match=r"'Near' is not an operator .* In, NotIn, Ex"):
        Selector.from_wire(selector)


@given(st.text(" \t\n=!(),<>abin/notx\\äé\x00", max_size=20))
def test_any_text_is_a_selector_or_a_value_error(text: str) -> None:
    readers: list[Callable[[str], object]] = [
        Selector.from_string,
        FieldSelector.from_string,
    ]
    for read in readers:
        try:
            selector = read(text)
        except ValueError:
            continue
        assert read(str(selector)) == selector


def test_selectors_do_not_change() -> None:
    selector: Any = Selector.from_string("a=b")
    field_selector: Any = FieldSelector.from_string("a=b")
    changes: list[Callable[[], None]] = [
        lambda: setattr(selector, "requirements", ()),
        lambda: delattr(selector, "requirements"),
        lambda: setattr(field_selector, "terms", ()),
    ]
    for change in changes:
        with pytest.raises(AttributeError):
            change()
    assert repr(selector) == "Selector('a=b')"
    assert repr(field_selector) == "FieldSelector('a=b')"
    assert selector != "a=b"
    assert field_selector != "a=b"


def test_fields_select_as_in_go() -> None:
    assert len(RECORDED["fields"]) > 50
    for fact in RECORDED["fields"]:
        text = fact["selector"]
        if "error" in fact or unsayable(text):
            with pytest.raises(ValueError, match=r"\.$"):
                FieldSelector.from_string(text)
            continue
        selector = FieldSelector.from_string(text)
        # Go sorts terms before it knows that == is =; ours sorts what it prints.
        assert sorted(str(selector).split(",")) == sorted(fact["canonical"].split(","))
        for result in fact["results"]:
            found = selector.matches(result["fields"].get)
            assert found is result["matches"], (fact, result)


def unsayable(text: str) -> bool:
    """Go takes an empty name, and a backslash in one; no kind has such a field."""
    return text in ("=", "==", "!=", "=b") or text.startswith(("\\", "a\\"))


@given(field_selectors)
def test_the_text_of_a_field_selector_reads_back_as_an_equal_one(
    selector: FieldSelector,
) -> None:
    again = FieldSelector.from_string(str(selector))
    assert again == selector
    assert hash(again) == hash(selector)
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert bool(selector) is bool(selector.terms)


@given(field_selectors, st.dictionaries(field_names, field_values))
def test_a_field_selector_matches_when_each_term_does(
    selector: FieldSelector, fields: dict[str, str]
) -> None:
    expected = all(
        (fields.get(term.field, "") == term.value) == (term.operator == "=")
        for term in selector.terms
    )
    assert selector.matches(fields.get) is expected


@given(st.dictionaries(field_names, field_values))
def test_fields_from_a_mapping_must_all_be_equal(fields: dict[str, str]) -> None:
    selector = FieldSelector.from_mapping(fields)
    assert selector.matches(fields.get)
    assert FieldSelector.from_string(str(selector)) == selector
    for field, value in fields.items():
        assert selector.exact(field) == value
        assert not selector.matches({**fields, field: f"{value}!"}.get)


def test_only_an_equality_says_what_a_field_is() -> None:
    selector = FieldSelector.from_string("a!=b,metadata.name==x")
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("a") is None
    assert selector.exact("b") is None


@pytest.mark.parametrize("field", ["", "a=b", "a,b", "a\\b", "a!", "!"])
def test_no_term_can_smuggle_in_another_through_its_name(field: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a field"):
        FieldSelector((FieldTerm(field, "x"),))
    with pytest.raises(ValueError, match="cannot be the name of a field"):
        FieldSelector.from_mapping({field: "x"})


def test_reading_and_asking_are_quick_on_hostile_input() -> None:
    before = time.process_time()
    for text in (
        "a" * 100_000,
        "a,=b" * 9_999,
        "(" * 100_000,
        "\\" * 99_999,
        "=" * 99_999,
    ):
        for read in (Selector.from_string, FieldSelector.from_string):
            with pytest.raises(ValueError) as error:
                read(text)
            assert len(str(error.value)) < 1_500
    assert not Selector.from_string("a>1").matches({"a": "9" * 100_000})
    assert time.process_time() - before < 2
