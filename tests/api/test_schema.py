"""Laws of the schema generator: what each type becomes, and what is refused."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID, uuid4

import msgspec
import pytest
from msgspec import NODEFAULT

from tests.api.kitchen import Door, Heat, Kitchen, KitchenSpec, KitchenStatus, Level
from trimtab.api.bounds import violation
from trimtab.api.conditions import Conditions
from trimtab.api.crd import crd
from trimtab.api.objects import Object, Rule, Schema, Spec, Status, field
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata, Resource
from trimtab.api.schema import structural
from trimtab.api.times import Duration, MicroTime

JSON = dict[str, Any]
T = TypeVar("T")


def define(
    hint: Any, default: Any = NODEFAULT, *, base: Any = Spec, **options: Any
) -> Any:
    """A class ``Made`` with one field ``it``."""
    namespace: dict[str, Any] = {
        "__annotations__": {"it": hint},
        "__module__": __name__,
    }
    if default is not NODEFAULT:
        namespace["it"] = default
    return type(base)("Made", (base,), namespace, **options)


def schema_of(hint: Any, default: Any = NODEFAULT) -> JSON:
    """The schema of a field of this type."""
    made: JSON = structural(define(hint, default))["properties"]["it"]
    return made


STRING = {"type": "string"}
INTEGER = {"type": "integer", "format": "int64"}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
ATOMIC = {"x-kubernetes-list-type": "atomic"}
SET = {"x-kubernetes-list-type": "set"}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, STRING),
        (int, INTEGER),
        (float, {"type": "number", "format": "double"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "format": "byte"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (MicroTime, MicroTime.__schema__()),
        (Duration, Duration.__schema__()),
        (Quantity, Quantity.__schema__()),
        (Conditions, Conditions.__schema__()),
        (int | str, INT_OR_STRING),
        (Union[str, int], INT_OR_STRING),  # noqa: UP007 (both forms are used)
        (Any, ANYTHING),
        (NewType("Name", str), STRING),
        (Literal["a", "b"], STRING | {"enum": ["a", "b"]}),
        (Literal[1, 2], INTEGER | {"enum": [1, 2]}),
        (Heat, STRING | {"enum": ["Low", "High"]}),
        (Level, INTEGER | {"enum": [1, 2]}),
        (list[int], {"type": "array", "items": INTEGER} | ATOMIC),
        (Sequence[int], {"type": "array", "items": INTEGER} | ATOMIC),
        (set[str], {"type": "array", "items": STRING} | SET),
        (frozenset[Heat], {"type": "array"} | SET),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (dict[str, Any], {"type": "object"} | ANYTHING),
        (list[Any], {"type": "array", "items": ANYTHING} | ATOMIC),
        (
            list[int | None],
            {"type": "array", "items": INTEGER | {"nullable": True}} | ATOMIC,
        ),
        (
            Annotated[str, Schema(max_length=3, doc="Short.")],
            {"description": "Short.", "type": "string", "maxLength": 3},
        ),
        (
            dict[str, Annotated[int, Schema(minimum=1.0)]],
            {"type": "object", "additionalProperties": INTEGER | {"minimum": 1}},
        ),
    ],
)
def test_each_type_has_its_schema(hint: Any, expected: JSON) -> None:
    made = schema_of(hint)
    assert made.items() >= expected.items()


def test_an_optional_field_is_the_schema_of_its_type_and_not_required() -> None:
    for hint in (str | None, Optional[str]):  # noqa: UP045 (both forms are used)
        made = structural(define(hint, None))
        assert made["properties"]["it"] == STRING
        assert "required" not in made
    assert schema_of(Literal["a", None], None) == STRING | {"enum": ["a"]}


def test_a_field_is_required_where_it_has_no_default() -> None:
    assert structural(define(str))["required"] == ["it"]
    assert "required" not in structural(define(str, ""))


@pytest.mark.parametrize(
    ("hint", "default", "written"),
    [
        (int, 0, 0),
        (int, 3, 3),
        (bool, False, False),
        (float, 0.5, 0.5),
        (str, "x", "x"),
        (Heat, Heat.high, "High"),
        (Quantity, Quantity("1024Mi"), "1Gi"),
        (datetime, datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (list[int], field(default_factory=lambda: [1]), [1]),
        (Door, Door(), {}),
        (Door, Door(panes=3), {"color": "white", "panes": 3}),
    ],
)
def test_a_default_is_in_the_schema(hint: Any, default: Any, written: Any) -> None:
    assert schema_of(hint, default)["default"] == written


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (str, ""),
        (str | None, None),
        (list[int], []),
        (dict[str, str], {}),
        (set[str], set()),
        (Metadata, Metadata()),
        (Conditions, Conditions()),
    ],
)
def test_a_default_that_is_none_or_empty_is_not_in_the_schema(
    hint: Any, default: Any
) -> None:
    made = schema_of(hint, default)
    if hint is not Metadata:
        assert "default" not in made
    else:  # its generation has one
        assert made["default"] == {}


def test_a_default_under_a_rule_is_written_in_full() -> None:
    class Ruled(Object, rules=[Rule(rule="self.a > 0")]):
        a: int = 1

    assert schema_of(Ruled, Ruled())["default"] == {"a": 1}


def test_a_default_that_must_not_be_empty_is_written_in_full() -> None:
    held = field(default_factory=Door, min_properties=1)
    assert schema_of(Door, held)["default"] == {"color": "white", "panes": 2}


def _defaults(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield from (schema[key] for key in schema if key == "default")
        for value in schema.values():
            yield from _defaults(value)


def test_a_status_has_no_defaults_at_any_depth() -> None:
    assert list(_defaults(structural(KitchenSpec)))
    assert not list(_defaults(structural(KitchenStatus)))
    assert not list(_defaults(structural(Kitchen)["properties"]["status"]))


def test_every_default_fits_its_own_schema() -> None:
    for name, made in structural(KitchenSpec)["properties"].items():
        if "default" in made and made["default"] != {}:
            assert violation(made, made["default"]) is None, name


def test_a_description_is_the_doc_or_the_first_paragraph_of_the_class() -> None:
    spec = structural(KitchenSpec)
    assert spec["description"] == "All that one can wish of a kitchen."
    assert spec["properties"]["name"]["description"] == "What people call it."
    assert spec["properties"]["back"]["description"] == "What closes an oven."
    assert "description" not in spec["properties"]["size"]
    assert next(iter(spec)) == "description"


def test_a_docstring_is_not_inherited() -> None:
    class Quiet(Door):
        more: int = 0

    assert "description" not in structural(Quiet)


def test_bounds_stand_under_their_openapi_names() -> None:
    made = schema_of(
        int, field(default=4, minimum=2, maximum=9.0, exclusive_maximum=True)
    )
    assert made == INTEGER | {
        "minimum": 2,
        "maximum": 9,
        "exclusiveMaximum": True,
        "default": 4,
    }
    assert isinstance(made["maximum"], int)
    listed = schema_of(list[str], field(min_items=1, max_items=3))
    assert (listed["minItems"], listed["maxItems"]) == (1, 3)
    mapped = schema_of(
        dict[str, str], field(min_properties=1, max_properties=3, map_type="atomic")
    )
    assert (mapped["minProperties"], mapped["maxProperties"]) == (1, 3)
    assert mapped["x-kubernetes-map-type"] == "atomic"


def test_notes_add_up_and_the_outer_one_wins() -> None:
    Short = Annotated[str, Schema(max_length=5, pattern="^a", rules=(Rule(rule="a"),))]
    made = schema_of(Annotated[Short, Schema(min_length=1)], field(max_length=9))
    assert made == STRING | {
        "minLength": 1,
        "maxLength": 9,
        "pattern": "^a",
        "x-kubernetes-validations": [{"rule": "a"}],
    }


def test_rules_of_the_class_and_of_the_field_add_up() -> None:
    class Ruled(Object, rules=[Rule(rule="self.a > 0", field_path=".a")]):
        a: int = 1

    rule = Rule(
        rule="oldSelf.orValue(self) == self",
        message="it stays",
        message_expression="'it stays ' + string(self.a)",
        reason="FieldValueForbidden",
        optional_old_self=True,
    )
    made = schema_of(Ruled, field(rules=[rule]))
    assert made["x-kubernetes-validations"] == [
        {"rule": "self.a > 0", "fieldPath": ".a"},
        {
            "rule": rule.rule,
            "message": "it stays",
            "messageExpression": rule.message_expression,
            "reason": "FieldValueForbidden",
            "optionalOldSelf": True,
        },
    ]


def test_lists_say_how_they_merge() -> None:
    spec = structural(KitchenSpec)["properties"]
    assert spec["ports"]["x-kubernetes-list-type"] == "map"
    assert spec["ports"]["x-kubernetes-list-map-keys"] == ["port", "protocol"]
    assert spec["unique"]["x-kubernetes-list-type"] == "set"
    assert spec["doors"]["x-kubernetes-list-type"] == "atomic"


def test_a_resource_in_a_field_is_an_embedded_resource() -> None:
    made = structural(KitchenSpec)["properties"]["config"]
    assert made["x-kubernetes-embedded-resource"] is True
    assert made["required"] == ["apiVersion", "kind"]
    assert made["properties"]["metadata"] == {"type": "object"}


def test_a_resource_has_its_head_and_an_open_metadata() -> None:
    made = structural(Kitchen)
    assert list(made["properties"]) == [
        *("apiVersion", "kind", "metadata", "spec", "status")
    ]
    assert made["properties"]["metadata"] == {"type": "object"}
    assert made["required"] == ["spec"]


def test_nothing_in_a_schema_is_shared() -> None:
    seen: set[int] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict | list):
            assert id(value) not in seen
            seen.add(id(value))
            for child in value.values() if isinstance(value, dict) else value:
                walk(child)

    made = (structural(Kitchen), structural(Kitchen))
    for each in made:
        walk(each)


class Plain:
    """A class that is no struct."""


class Pair(NamedTuple):
    a: int


class Typed(TypedDict):
    a: int


class Tagged(Object, tag=True):
    a: int = 0


class Listed(Object, array_like=True):
    a: int = 0


class Box(Object, Generic[T]):
    a: int = 0


class Mixed(enum.Enum):
    a = 1
    b = "b"


class Flags(enum.Flag):
    a = 1


class Keyed(Object):
    name: str
    kind: str = "plain"
    empty: str = ""
    maybe: str | None = None
    null: str | None = field(default=None, nullable=True)
    parts: list[str] = []


class Changing(Object):
    size: int = field(
        default=0, rules=[Rule(rule="self >= oldSelf", message="it grows")]
    )


Meta = Annotated[int, msgspec.Meta(ge=1)]


@pytest.mark.parametrize(
    ("hint", "default", "problem"),
    [
        # types that have no schema, and what to use instead
        (tuple[int, str], NODEFAULT, r"tuple\[int, str\] has no schema; use list"),
        (tuple[int, ...], NODEFAULT, "use list"),
        (complex, NODEFAULT, "complex has no schema; use two floats"),
        (Callable[[], int], NODEFAULT, "an object holds no code"),
        (Plain, NODEFAULT, "Plain has no schema; use a subclass of trimtab.api.Object"),
        (Pair, NODEFAULT, "Pair has no schema"),
        (Typed, NODEFAULT, "Typed has no schema"),
        (Box[int], NODEFAULT, "Box.* has no schema"),
        (T, NODEFAULT, "has no schema"),
        (object, NODEFAULT, "object has no schema; use Any"),
        (None, NODEFAULT, "NoneType has no schema; use T | None"),
        (list, NODEFAULT, "list has no schema; use list"),
        (set, NODEFAULT, "set has no schema; use set"),
        (dict, NODEFAULT, r"use dict\[str, \.\.\.\]"),
        (timedelta, NODEFAULT, "use trimtab.api.Duration"),
        (date, NODEFAULT, "format='date'"),
        (Decimal, NODEFAULT, "use trimtab.api.Quantity"),
        (UUID, NODEFAULT, "format='uuid'"),
        (bytearray, NODEFAULT, "use bytes"),
        (Flags, NODEFAULT, "Flags has no schema"),
        (Tagged, NODEFAULT, "Tagged has a tag or is array_like"),
        (Listed, NODEFAULT, "Listed has a tag or is array_like"),
        # unions, choices, sets and maps
        (int | float, NODEFAULT, r"int \| float is a union"),
        (str | list[str] | None, None, "is a union"),
        (Door | Keyed, NODEFAULT, r"Door \| Keyed is a union"),
        (Literal[1, "a"], NODEFAULT, "1, 'a' must be all str or all int"),
        (Literal[True], NODEFAULT, "all str or all int"),
        (Mixed, NODEFAULT, "1, 'b' must be all str or all int"),
        (
            set[Door],
            NODEFAULT,
            r"set\[Door\] is not a set of scalars; use list\[Door\]",
        ),
        (set[int | str], NODEFAULT, "not a set of scalars"),
        (set[int | None], NODEFAULT, "cannot hold None"),
        (
            dict[int, str],
            NODEFAULT,
            r"keys of a JSON object are str, not int; use dict",
        ),
        (dict[Heat, str], NODEFAULT, "are str, not Heat"),
        (dict[str, complex], NODEFAULT, "complex has no schema"),
        (list[Annotated[int, Schema(pattern="a")]], NODEFAULT, "pattern does not fit"),
        # notes that would be enforced, or that fit nothing
        (Meta, NODEFAULT, r"msgspec.Meta would be enforced while decoding.*field"),
        (list[Meta], NODEFAULT, "msgspec.Meta"),
        (int, field(min_length=1), "min_length does not fit a JSON integer"),
        (str, field(minimum=1), "minimum does not fit a JSON string"),
        (str, field(min_items=1), "min_items does not fit a JSON string"),
        (bool, field(max_properties=1), "max_properties does not fit a JSON boolean"),
        (bool, field(format="x"), "format does not fit a JSON boolean"),
        (str, field(list_type="atomic"), "list_type does not fit a JSON string"),
        (str, field(list_keys=("a",)), "list_keys does not fit"),
        (list[str], field(map_type="atomic"), "map_type does not fit a JSON array"),
        (str, field(preserve_unknown=True), "preserve_unknown does not fit"),
        (dict[str, int], field(preserve_unknown=True), "preserve_unknown needs"),
        (str, field(embedded_resource=True), "embedded_resource does not fit"),
        (Door, field(embedded_resource=True), "embedded_resource needs"),
        (dict[str, str], field(embedded_resource=True), "embedded_resource needs"),
        (Any, field(rules=[Rule(rule="true")]), "a rule needs a typed value"),
        (list[Any], field(rules=[Rule(rule="true")]), "a rule needs a typed value"),
        (Heat, field(format="date"), "a format goes with str, int or float"),
        (Duration, field(format="duration"), "a format goes with str, int or float"),
        # bounds that cannot hold
        (int, field(minimum=3, maximum=2), "minimum 3 is above maximum 2"),
        (str, field(min_length=3, max_length=2), "minLength 3 is above"),
        (str, field(max_length=-1), "maxLength must be a whole number from 0 on"),
        (float, field(minimum=float("nan")), "minimum must be finite"),
        (int, field(maximum=1.5), "maximum 1.5 is no int64"),
        (int, field(multiple_of=0.5), "multipleOf 0.5 is no int64"),
        (int, field(minimum=-(2**40), format="int32"), "minimum .* is no int32"),
        (int, field(exclusive_minimum=True), "exclusiveMinimum says"),
        (int, field(multiple_of=0), "multipleOf must be above 0"),
        (str, field(format="phone"), "no server checks the format 'phone'"),
        (int, field(format="int16"), "no server checks the format 'int16'"),
        (bytes, field(format="uuid"), "has the format 'byte' already"),
        (Quantity, field(pattern="^1"), "has the pattern .* already"),
        (set[str], field(list_type="atomic"), "has the list_type 'set' already"),
        (str, field(pattern="("), r"the pattern '\(' is not valid"),
        (str, field(pattern="a(?=b)"), "looks around or back"),
        (str, field(pattern=r"(a)\1"), "looks around or back"),
        (str, field(pattern="a{1001}"), "RE2 repeats at most 1000 times"),
        (str, field(rules=[Rule(rule=" ")]), "a rule is empty"),
        (str, field(rules=[Rule(rule="a\n&& b")]), "spans lines"),
        (str, field(rules=[Rule(rule="a", message="b\nc")]), "must be one line"),
        (str, field(rules=[Rule(rule="a", reason="Bad")]), "'Bad' is no reason"),
        (Door, field(rules=[Rule(rule="a", field_path=".no")]), "leads nowhere"),
        (
            str,
            field(rules=[Rule(rule="true", optional_old_self=True)]),
            "does not use oldSelf",
        ),
        (list[Changing], NODEFAULT, "it is in an atomic list"),
        (list[list[Changing]], NODEFAULT, "it is in an atomic list"),
        (dict[str, list[Changing]], NODEFAULT, "it is in an atomic list"),
        (Changing, field(map_type="atomic"), "it is in an atomic map"),
        (Door, field(rules=[Rule(rule="a", field_path="")]), "leads nowhere"),
        # lists that merge
        (list[Keyed], field(list_type="map"), "need each other"),
        (list[Keyed], field(list_keys=("name",)), "need each other"),
        (
            list[Keyed],
            field(list_type="map", list_keys=("nope",)),
            "names 'nope', which the items do not have",
        ),
        (list[str], field(list_type="map", list_keys=("a",)), "do not have"),
        (list[Keyed], field(list_type="map", list_keys=("maybe",)), "must be required"),
        (list[Keyed], field(list_type="map", list_keys=("empty",)), "must be required"),
        (list[Keyed], field(list_type="map", list_keys=("parts",)), "must be a scalar"),
        (list[Keyed], field(list_type="map", list_keys=("null",)), "must be a scalar"),
        (
            list[Keyed],
            field(list_type="map", list_keys=("name", "name")),
            "names a key twice",
        ),
        (
            list[Keyed | None],
            field(list_type="map", list_keys=("name",)),
            "of type map cannot hold None",
        ),
        (list[Keyed], field(list_type="set"), "items of a set must be scalars"),
        (list[list[str]], field(list_type="set"), "items of a set must be scalars"),
        (list[set[str]], field(list_type="set"), "items of a set must be scalars"),
        # None and defaults
        (str, field(nullable=True), "nullable needs a type that admits None"),
        (list[Annotated[int, Schema(nullable=True)]], NODEFAULT, "nullable needs"),
        (Heat | None, field(default=None, nullable=True), "refuses null for an enum"),
        (list[Literal["a", None]], NODEFAULT, "refuses null for an enum"),
        (str | None, "x", "None is left out when it is written"),
        (str | None, NODEFAULT, "None is left out when it is written"),
        (int, None, r"its default is None; use int \| None"),
        (int, "3", "its default does not fit: it is of type str, not int"),
        (Quantity, "1Gi", "is of type str, not Quantity"),
        (list[int], field(default_factory=lambda: ["a"]), r"\[0\] is of type str"),
        (dict[str, int], field(default_factory=lambda: {"a": "b"}), "of type str"),
        (int, field(default=1, minimum=2), "its default 1 is below minimum 2"),
        (
            int,
            field(default=2, minimum=2, exclusive_minimum=True),
            "is the minimum, which is left out",
        ),
        (int, field(default=3, multiple_of=2), "is not a multiple of 2"),
        (float, field(default=2.0, multiple_of=0.5), "rounded down to 0"),
        (int, 2**63, "does not fit int64"),
        (str, field(default="abc", max_length=2), "its default 'abc' is above maxLen"),
        (str, field(default="b", pattern="^a"), "does not match the pattern"),
        (Literal["a"], "b", "is of type str, not Literal"),
        (
            list[Annotated[int, Schema(maximum=3)]],
            field(default_factory=lambda: [4]),
            "holds 4, which is above maximum 3",
        ),
        (
            dict[str, Annotated[int, Schema(maximum=3)]],
            field(default_factory=lambda: {"a": 4}),
            "has 'a': 4, which is above maximum 3",
        ),
        (str, field(default_factory=lambda: str(uuid4())), "gives another value"),
        (
            str,
            field(default="", owner="node"),
            "only the fields of a Status have owner",
        ),
    ],
)
def test_what_has_no_schema_is_an_error_at_definition_that_names_the_field(
    hint: Any, default: Any, problem: str
) -> None:
    with pytest.raises(TypeError, match=f"^Made\\.it: .*{problem}"):
        define(hint, default)


def test_a_status_field_must_have_a_default() -> None:
    with pytest.raises(TypeError, match=r"^Made\.it: .*none is required"):
        define(str, base=Status)


def test_a_list_key_in_a_status_must_be_required() -> None:
    keyed = field(default=[], list_type="map", list_keys=("kind",))
    assert define(list[Keyed], keyed)
    with pytest.raises(TypeError, match="in a status"):
        define(list[Keyed], keyed, base=Status)


class Node(Object):
    """A class that holds itself."""

    children: list[Node] = []


def test_a_class_that_holds_itself_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Node holds itself \(Made → Node → Node\)"):
        define(Node, Node())


def test_a_class_that_names_itself_while_it_is_defined_is_refused() -> None:
    with pytest.raises(TypeError, match="Loop holds itself"):

        class Loop(Spec):
            children: list[Loop] = []


def test_a_whole_resource_takes_no_map_type_and_no_facts_on_its_metadata() -> None:
    with pytest.raises(TypeError, match="a whole resource has no map_type"):

        class Whole(Resource, group="example.com", version="v1", map_type="atomic"):
            pass

    with pytest.raises(TypeError, match=r"Named\.metadata: .*self\.metadata\.name"):

        class Named(Resource, group="example.com", version="v1"):
            metadata: Metadata = field(default=Metadata(), max_properties=3)


def module(name: str, source: str) -> types.ModuleType:
    """A module of its own, so that its names resolve as those of users' modules do."""
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(source, name, "exec"), vars(made))
    return made


HEAD = """
from __future__ import annotations
from trimtab.api.objects import Object, Spec, Status, field
from trimtab.api.resource import Resource
"""


def test_a_name_that_comes_later_puts_the_check_off() -> None:
    made = module(
        "later",
        HEAD
        + """
class First(Spec):
    second: Second | None = None
    third: list[Second] = []

class Second(Object):
    size: int = 1
""",
    )
    properties = structural(made.First)["properties"]
    assert properties["second"]["properties"]["size"]["default"] == 1


def test_a_check_that_was_put_off_still_refuses() -> None:
    made = module(
        "later_wrong",
        HEAD
        + """
class First(Spec):
    second: Second | None = None

class Second: pass

class Third(Spec):
    first: Nope

class Whole(Resource, group="example.com", version="v1"):
    spec: Third
""",
    )
    with pytest.raises(TypeError, match=r"First\.second: Second has no schema"):
        structural(made.First)
    with pytest.raises(TypeError, match="Third: 'Nope' in its annotations is not def"):
        crd(made.Whole)


def test_annotations_inside_a_function_are_put_off_and_then_named() -> None:
    class Inner(Object):
        size: int = 1

    class Outer(Spec):
        inner: Inner | None = None

    with pytest.raises(TypeError, match="'Inner' in its annotations is not defined"):
        structural(Outer)


def test_a_status_whose_class_comes_later_is_refused_when_asked_for() -> None:
    made = module(
        "later_status",
        HEAD
        + """
class Whole(Resource, group="example.com", version="v1"):
    status: WholeStatus

class WholeStatus(Status):
    size: int = 0
""",
    )
    with pytest.raises(TypeError, match=r"Whole\.status: .*before this one"):
        structural(made.Whole)


def test_a_dotted_annotation_finds_its_default() -> None:
    made = module(
        "dotted",
        HEAD
        + """
import tests.api.kitchen as kitchen
class Whole(Resource, group="example.com", version="v1"):
    status: kitchen.KitchenStatus
""",
    )
    assert "status" in structural(made.Whole)["properties"]


@pytest.mark.parametrize(
    "pattern",
    [r"^\*+$", r"[*+]+", r"a\\1", r"\d+", "^[(?=]$", r"\p{L}+", r"a{1000}"],
)
def test_a_pattern_that_re2_knows_is_taken(pattern: str) -> None:
    assert schema_of(str, field(default="", pattern=pattern))["pattern"] == pattern
