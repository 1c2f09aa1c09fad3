"""Laws of wire structs: what is written, what is left out, and that it comes back."""

from __future__ import annotations

import enum
import json
from datetime import datetime
from typing import Annotated, Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from tests.api import kitchen
from tests.api.kitchen import Door, Heat, Kitchen, KitchenSpec, kitchen_spec
from tests.api.strategies import objects
from trimtab.api.codec import convert, decode, encode
from trimtab.api.objects import Object, Rule, Schema, builtins_of, field, wire
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, Resource


class Leaf(Object):
    name: str = ""
    mode: str = "fast"
    count: int = 0
    ratio: float = 0.0
    on: bool = False
    items: list[str] = []
    words: list[str] = field(default_factory=lambda: ["a"])
    child: Door = Door()
    plain: Metadata = Metadata()
    note: str | None = None
    cleared: str | None = field(default=None, nullable=True)
    noted: Annotated[str | None, Schema(nullable=True)] = None
    inner: Annotated[str, Schema(nullable=True)] | None = None
    from_: str = ""
    odd: str = field(default="", name="x-odd")
    stamp: str = field(default="", server_set=True)
    maybe: int | UnsetType = UNSET


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(objects(Kitchen))
def test_what_is_written_reads_back_as_the_same_object(given: Kitchen) -> None:
    assert decode(Kitchen, encode(given)) == given


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(objects(KitchenSpec))
def test_the_wire_form_is_json_and_writing_it_again_changes_nothing(
    spec: KitchenSpec,
) -> None:
    plain = wire(spec)
    assert json.loads(json.dumps(plain)) == plain
    assert wire(convert(KitchenSpec, plain)) == plain


def test_numbers_and_booleans_are_written_even_where_they_are_the_default() -> None:
    written = wire(Leaf())
    assert (written["count"], written["ratio"], written["on"]) == (0, 0.0, False)


def test_empty_is_left_out_where_the_default_is_empty_and_written_elsewhere() -> None:
    assert {"name", "items", "plain"}.isdisjoint(wire(Leaf()))
    emptied = wire(Leaf(mode="", words=[]))
    assert emptied["mode"] == ""
    assert emptied["words"] == []


def test_a_struct_that_was_given_is_written_where_the_default_is_none() -> None:
    class Holder(Object):
        leaf: Metadata | None = None

    assert wire(Holder()) == {}
    assert wire(Holder(leaf=Metadata())) == {"leaf": {}}


@pytest.mark.parametrize("attribute", ["cleared", "noted", "inner"])
def test_none_is_null_where_the_field_is_nullable(attribute: str) -> None:
    assert wire(Leaf())[attribute] is None
    assert wire(convert(Leaf, {attribute: "x"}))[attribute] == "x"


def test_none_is_left_out_where_the_field_is_not_nullable() -> None:
    assert "note" not in wire(Leaf())


def test_an_unset_field_is_absent_and_an_absent_one_is_unset() -> None:
    assert "maybe" not in wire(Leaf())
    assert decode(Leaf, b"{}").maybe is UNSET
    assert wire(Leaf(maybe=0))["maybe"] == 0


def test_a_trailing_underscore_and_a_given_name_are_not_on_the_wire() -> None:
    written = wire(Leaf(from_="here", odd="there"))
    assert (written["from"], written["x-odd"]) == ("here", "there")
    assert decode(Leaf, b'{"from":"here","x-odd":"there"}').from_ == "here"


def test_what_the_server_sets_is_read_and_never_written() -> None:
    read = decode(Leaf, b'{"stamp":"now"}')
    assert read.stamp == "now"
    assert "stamp" not in wire(read)
    assert "generation" not in wire(Metadata(generation=3, name="a"))


def test_unknown_fields_are_ignored() -> None:
    assert decode(Leaf, b'{"name":"a","unknown":{"b":[1]}}') == Leaf(name="a")


def test_a_value_of_the_wrong_type_is_refused_naming_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.child\.panes"):
        decode(Leaf, b'{"child":{"panes":"two"}}')


def test_bounds_are_not_enforced_while_reading() -> None:
    read = convert(KitchenSpec, wire(kitchen_spec()) | {"percent": 900, "name": ""})
    assert (read.percent, read.name) == (900, "")


def test_sets_are_written_sorted_so_that_output_is_stable() -> None:
    assert builtins_of({"b", "a", "c"}) == ["a", "b", "c"]
    assert builtins_of(frozenset({Heat.low, Heat.high})) == ["High", "Low"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="no JSON form"):
        wire(Leaf(ratio=number))


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        wire(kitchen_spec(opened=datetime(2026, 1, 1)))  # noqa: DTZ001 (the point)


def test_what_has_no_wire_form_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match="complex has no wire form"):
        builtins_of(3j)


def test_every_kind_of_enum_is_written_by_its_value() -> None:
    class Text(enum.StrEnum):
        a = "A"

    class Number(enum.IntEnum):
        one = 1

    assert builtins_of([Text.a, Number.one, Heat.low]) == ["A", 1, "Low"]


def test_bytes_and_values_take_their_own_forms() -> None:
    assert builtins_of({"a": b"\x00", "b": Quantity("1024Mi")}) == {
        "a": "AA==",
        "b": "1Gi",
    }


def test_a_resource_says_what_it_is_without_a_field_for_it() -> None:
    made = Kitchen(spec=kitchen_spec())
    written = wire(made)
    assert list(written)[:2] == ["apiVersion", "kind"]
    assert written["apiVersion"] == made.apiVersion == "kitchens.example.com/v1"
    assert written["kind"] == made.kind == "Kitchen"
    assert not {"apiVersion", "kind"} & set(Kitchen.__struct_fields__)


class Shed(Resource, group="example.com", version="v1"):
    """A kind as people write it: its parts have no defaults of their own."""

    spec: Leaf
    status: kitchen.KitchenStatus


def test_a_part_that_is_absent_is_made_of_its_defaults() -> None:
    assert decode(Shed, b"{}").spec == Leaf()
    assert decode(Shed, b"{}").status == kitchen.KitchenStatus()


def test_a_subclass_is_the_same_kind_with_more_fields() -> None:
    class Bigger(Kitchen):
        extra: str = ""

    assert Bigger.__resource__ == Kitchen.__resource__
    assert wire(Bigger(spec=kitchen_spec(), extra="x"))["extra"] == "x"


def test_a_subclass_keeps_the_facts_of_its_base_and_replaces_those_it_redeclares() -> (
    None
):
    rule = Rule(rule="true")

    class Base(Object, rules=[rule], preserve_unknown=True, map_type="atomic"):
        kept: str = field(default="", max_length=3)
        changed: str = field(default="", max_length=3)

    class Derived(Base, rules=[Rule(rule="false")]):
        changed: str = ""

    assert Derived.__facts__["kept"].schema.max_length == 3
    assert "changed" not in Derived.__facts__
    facts = Derived.__schema_facts__
    assert [each.rule for each in facts.rules] == ["true", "false"]
    assert (facts.preserve_unknown, facts.map_type) == (True, "atomic")


def test_objects_do_not_change_and_equal_ones_hash_alike() -> None:
    door = Door(color="red")
    with pytest.raises(AttributeError):
        door.color = "blue"  # type: ignore[misc]
    metadata = Metadata(name="a")
    assert metadata == Metadata(name="a")


def test_a_part_with_required_fields_is_required_itself() -> None:
    with pytest.raises(msgspec.ValidationError, match="spec"):
        decode(Kitchen, b"{}")


class Plain:
    """A class that takes no part in the protocol."""


def test_the_hooks_refuse_a_class_that_json_cannot_make() -> None:
    with pytest.raises(NotImplementedError, match="Plain cannot be read from JSON"):
        decode(Plain, b"1")


@given(st.characters(codec="utf-8"))
def test_what_is_written_is_json_and_yaml_that_say_the_same(character: str) -> None:
    data = encode({"a": f"x{character}y"})
    assert json.loads(data) == {"a": f"x{character}y"}
    assert yaml.safe_load(data) == {"a": f"x{character}y"}


@pytest.mark.parametrize("number", [0x7F, 0x80, 0x85, 0x9F, 0xFFFE, 0xFFFF])
def test_what_yaml_cannot_hold_raw_is_escaped(number: int) -> None:
    assert encode([chr(number)]) == b'["\\u%04x"]' % number


def test_any_value_survives_inside_untyped_fields() -> None:
    value: dict[str, Any] = {"a": [None, {"b": None}], "c": 1.5, "": ""}
    assert wire(kitchen_spec(options=value))["options"] == value
