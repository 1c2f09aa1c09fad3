"""Field sets are sets of paths, kept in the form in which they are written."""

from __future__ import annotations

import copy
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.embedded.fieldsets import (
    FieldSet,
    MalformedFields,
    Path,
    difference,
    element_text,
    key_element,
    path_text,
    value_element,
)
from trimtab.embedded.plans import plan_of, settled, with_named
from trimtab.embedded.types import Type

ELEMENTS = (
    "f:a",
    "f:b",
    "f:c/d",
    key_element("name", "x"),
    key_element("port", 80, "protocol", "TCP"),
    key_element("port", 9, "protocol", "TCP"),
    value_element("text"),
    value_element(20),
    value_element(3),
    value_element(True),
    "i:2",
    "i:10",
)
PATHS = st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map(tuple)
MEMBERS = st.sets(PATHS, max_size=12)


def below(path: Path, members: set[Path]) -> bool:
    """Whether the path is one of these, or below one of them."""
    return any(path[: len(member)] == member for member in members)


@given(MEMBERS, MEMBERS)
def test_the_algebra_is_that_of_sets_of_paths(one: set[Path], other: set[Path]) -> None:
    left, right = FieldSet.of(one), FieldSet.of(other)
    assert set(left | right) == one | other
    assert set(left & right) == one & other
    assert set(left - right) == one - other
    assert set(left.without(right)) == {p for p in one if not below(p, other)}


@given(MEMBERS, MEMBERS)
def test_operations_leave_their_operands_alone(
    one: set[Path], other: set[Path]
) -> None:
    left, right = FieldSet.of(one), FieldSet.of(other)
    before = copy.deepcopy((left.tree, right.tree))
    _ = (left | right, left & right, left - right, left.without(right), left.leaves())
    assert (left.tree, right.tree) == before


@given(MEMBERS)
def test_members_are_found_and_counted_and_others_are_not(members: set[Path]) -> None:
    made = FieldSet.of(members)
    assert len(made) == len(members)
    assert bool(made) == bool(members)
    assert all(path in made for path in members)
    assert all((*path, "f:other") not in made for path in members)
    assert () not in made


@given(MEMBERS)
def test_leaves_are_the_members_that_have_none_below(members: set[Path]) -> None:
    inner = {path[:length] for path in members for length in range(1, len(path))}
    assert set(FieldSet.of(members).leaves()) == members - inner


@given(MEMBERS)
def test_a_set_survives_being_written_and_read(members: set[Path]) -> None:
    made = FieldSet.of(members)
    text = msgspec.json.encode(made.to_v1())
    again = FieldSet.from_v1(msgspec.json.decode(text))
    assert again == made
    assert msgspec.json.encode(again.to_v1()) == text


@given(st.lists(PATHS, max_size=12), st.randoms(use_true_random=False))
def test_a_set_is_written_in_one_way_however_it_was_made(
    members: list[Path], random: Random
) -> None:
    shuffled = list(members)
    random.shuffle(shuffled)
    one, other = FieldSet.of(members), FieldSet.of(shuffled)
    assert msgspec.json.encode(one.to_v1()) == msgspec.json.encode(other.to_v1())


@given(MEMBERS, MEMBERS)
def test_a_difference_that_takes_nothing_is_the_set_itself(
    one: set[Path], other: set[Path]
) -> None:
    left, right = FieldSet.of(one).tree, FieldSet.of(other).tree
    assert (difference(left, right) is left) == (not one & other)


def test_elements_are_in_the_order_of_their_kinds_and_values() -> None:
    made = FieldSet.of([(element,) for element in reversed(ELEMENTS)])
    assert list(made.to_v1()) == [
        "f:a",
        "f:b",
        "f:c/d",
        'k:{"name":"x"}',
        'k:{"port":9,"protocol":"TCP"}',
        'k:{"port":80,"protocol":"TCP"}',
        "v:3",
        "v:20",
        'v:"text"',
        "v:true",
        "i:2",
        "i:10",
    ]


def test_members_of_a_node_come_before_those_of_its_children() -> None:
    made = FieldSet.of([("f:b",), ("f:a", "f:x"), ("f:a",), ("f:a", "f:x", "f:y")])
    assert [path_text(path) for path in made] == [".a", ".b", ".a.x", ".a.x.y"]


def test_a_member_with_members_below_says_so() -> None:
    made = FieldSet.of([("f:a",), ("f:a", "f:b")])
    assert made.to_v1() == {"f:a": {".": {}, "f:b": {}}}
    assert (made - FieldSet.of([("f:a",)])).to_v1() == {"f:a": {"f:b": {}}}
    assert (made - FieldSet.of([("f:a", "f:b")])).to_v1() == {"f:a": {}}


def test_equal_values_are_equal_elements() -> None:
    assert value_element(1) == value_element(1.0) == "v:1"
    assert value_element(True) == "v:true" != value_element(1)
    assert key_element("a", 1) != key_element("a", True)
    assert value_element("<&>") == r'v:"\u003c\u0026\u003e"'


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:a.b", ".a.b"),
        (key_element("name", 'a"b'), '[name="a\\"b"]'),
        (key_element("port", 80, "protocol", "TCP"), '[port=80,protocol="TCP"]'),
        (value_element("x"), '[="x"]'),
        (value_element(1.5), "[=1.5]"),
        (value_element(True), "[=true]"),
        ("i:3", "[3]"),
    ],
)
def test_elements_are_shown_as_the_real_server_shows_them(
    element: str, text: str
) -> None:
    assert element_text(element) == text


def test_what_a_client_sent_is_brought_into_canonical_form() -> None:
    sent = {
        "f:b": {".": {}},
        "f:a": {'k:{"y":1, "x":"<"}': {"f:c": {}, ".": {}}, "z:unknown": {}},
        "f:c": {"z:unknown": {}},
    }
    made = FieldSet.from_v1(sent).to_v1()
    assert made == {
        "f:a": {r'k:{"x":"\u003c","y":1}': {".": {}, "f:c": {}}},
        "f:b": {},
        "f:c": {},
    }
    assert list(made) == ["f:a", "f:b", "f:c"]


@pytest.mark.parametrize(
    "sent",
    [[], "text", {"a": {}}, {"nocolon": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": 1}],
)
def test_what_is_not_a_set_is_refused(sent: object) -> None:
    with pytest.raises(MalformedFields):
        FieldSet.from_v1(sent)


_TEXT = Type(shape="scalar", scalar="string")
_ITEM = Type(shape="object", fields={"name": _TEXT, "value": _TEXT})
_LIST = Type(shape="list", list_type="map", keys=("name",), element=_ITEM)
_ROOT = Type(
    shape="object",
    fields={
        "labels": Type(shape="map", element=_TEXT),
        "items": _LIST,
        "inner": Type(shape="object", fields={"list": _LIST, "text": _TEXT}),
    },
)


def test_named_fields_become_members_and_keys_of_maps_and_items_do_not() -> None:
    item = key_element("name", "x")
    made = FieldSet.of(
        [
            ("f:labels", "f:a"),
            ("f:items", item, "f:value"),
            ("f:inner", "f:list", item, "f:value"),
            ("f:unknown", "f:x"),
        ]
    )
    named = FieldSet(with_named(made.tree, plan_of(_ROOT)))
    assert set(named) - set(made) == {
        ("f:labels",),
        ("f:items",),
        ("f:inner",),
        ("f:inner", "f:list"),
    }


def test_of_what_became_atomic_only_the_whole_is_owned() -> None:
    atomic = msgspec.structs.replace(
        _ROOT,
        fields={
            **_ROOT.fields,
            "labels": Type(shape="map", element=_TEXT, atomic=True),
            "items": Type(shape="list", list_type="atomic", atomic=True, element=_ITEM),
        },
    )
    item = key_element("name", "x")
    made = FieldSet.of([("f:labels", "f:a"), ("f:items", item), ("f:inner", "f:text")])
    assert set(FieldSet(settled(made.tree, plan_of(atomic)))) == {
        ("f:labels",),
        ("f:items",),
        ("f:inner", "f:text"),
    }
    assert settled(made.tree, plan_of(_ROOT)) is made.tree
