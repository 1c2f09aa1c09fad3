"""Laws of types made from the schemas of CRDs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.embedded.documents import CRDS, JSON
from trimtab.embedded.facts import definitions
from trimtab.embedded.types import OBJECT_META, Type, of_structural

OBJECT = {"apiVersion", "kind", "metadata"}
SCALARS = ("string", "integer", "number", "boolean")
NAMES = st.sampled_from(["a", "b", "c", "items", "properties", "default", "type"])
CONSTRAINTS: tuple[JSON, ...] = (
    {"minimum": 1},
    {"enum": [1, 2]},
    {"pattern": "^a"},
    {"maxLength": 3},
    {"nullable": True},
    {"default": 0},
    {"default": False},
    {"description": "Words."},
    {"format": "int64"},
    {"x-kubernetes-validations": [{"rule": "true"}]},
)


def with_constraints(schema: JSON) -> st.SearchStrategy[JSON]:
    chosen = st.lists(st.sampled_from(CONSTRAINTS), max_size=3)
    return chosen.map(
        lambda many: {k: v for one in [*many, schema] for k, v in one.items()}
    )


def leaves() -> st.SearchStrategy[JSON]:
    kinds: list[JSON] = [{"type": scalar} for scalar in SCALARS]
    kinds += [{"x-kubernetes-int-or-string": True}]
    kinds += [{"x-kubernetes-preserve-unknown-fields": True}]
    return st.sampled_from(kinds).flatmap(with_constraints)


def composed(inner: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    marks = st.sampled_from(
        [
            {},
            {"x-kubernetes-map-type": "atomic"},
            {"x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-embedded-resource": True},
        ]
    )
    objects = st.builds(
        lambda fields, mark: {"type": "object", "properties": fields, **mark},
        st.dictionaries(NAMES, inner, max_size=3),
        marks,
    )
    maps = inner.map(lambda each: {"type": "object", "additionalProperties": each})
    kinds = st.sampled_from([{}, {"x-kubernetes-list-type": "set"}])
    lists = st.builds(
        lambda each, mark: {"type": "array", "items": each, **mark}, inner, kinds
    )
    return st.one_of(objects, maps, lists).flatmap(with_constraints)


SCHEMAS = st.recursive(leaves(), composed, max_leaves=12)
ROOTS = st.builds(
    lambda fields: {"type": "object", "properties": fields},
    st.dictionaries(NAMES, SCHEMAS, max_size=4),
)


def pairs(schema: JSON, node: Type) -> Iterator[tuple[JSON, Type]]:
    """Each schema with the node that was made of it."""
    yield schema, node
    for name, each in schema.get("properties", {}).items():
        yield from pairs(each, node.fields[name])
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            assert node.element is not None
            yield from pairs(schema[key], node.element)


@given(ROOTS)
def test_nothing_that_a_schema_demands_is_lost(schema: JSON) -> None:
    for said, node in pairs(schema, of_structural(schema)):
        demands = {
            "minimum",
            "enum",
            "pattern",
            "maxLength",
            "x-kubernetes-validations",
        }
        assert node.facts == {key: said[key] for key in said if key in demands}
        assert node.nullable == said.get("nullable", False)
        default = said.get("default", UNSET)
        assert node.default is default or (
            node.default == default and type(node.default) is type(default)
        )


@given(ROOTS)
def test_the_shape_follows_the_schema(schema: JSON) -> None:
    for said, node in pairs(schema, of_structural(schema)):
        if said.get("x-kubernetes-int-or-string"):
            assert (node.shape, node.scalar) == ("scalar", "int-or-string")
        elif said.get("type") in SCALARS:
            assert (node.shape, node.scalar) == ("scalar", said["type"])
        elif "additionalProperties" in said:
            assert node.shape == "map"
        else:
            shapes = {"object": "object", "array": "list", None: "any"}
            assert node.shape == shapes[said.get("type")]


@given(ROOTS)
def test_objects_have_metadata_and_plain_structures_have_none(schema: JSON) -> None:
    root = of_structural(schema)
    assert root.fields.keys() >= OBJECT
    for said, node in pairs(schema, root):
        if node is not root and node.shape == "object":
            added = node.fields.keys() - said["properties"].keys()
            assert added == (OBJECT if node.embedded else set())


@given(ROOTS)
def test_making_a_type_leaves_the_schema_as_it_is(schema: JSON) -> None:
    before = copy.deepcopy(schema)
    of_structural(schema)
    assert schema == before


@pytest.fixture(scope="module")
def widget() -> Type:
    versions = {each["name"]: each for each in CRDS[0]["spec"]["versions"]}
    return of_structural(versions["v1"]["schema"]["openAPIV3Schema"])


def test_lists_without_a_type_are_atomic(widget: Type) -> None:
    fields = widget.fields["spec"].fields
    told = {
        name: (each.list_type, each.keys, each.atomic) for name, each in fields.items()
    }
    assert told["parts"] == ("map", ("name",), False)
    assert told["tags"] == ("set", (), False)
    assert told["words"] == ("atomic", (), True)
    assert told["limits"] == ("", (), True)
    assert told["labels"] == ("", (), False)


def test_what_may_hold_anything_is_kept(widget: Type) -> None:
    fields = widget.fields["spec"].fields
    assert (fields["anything"].shape, fields["anything"].preserve_unknown) == (
        "any",
        True,
    )
    assert (fields["open"].shape, fields["open"].preserve_unknown) == ("object", True)
    assert list(fields["open"].fields) == ["known"]
    assert fields["limits"].preserve_unknown is False


def test_embedded_resources_are_objects(widget: Type) -> None:
    fields = widget.fields["spec"].fields
    metadata = definitions().type(OBJECT_META)
    for name in ("template", "child"):
        assert fields[name].embedded
        assert fields[name].fields["metadata"] is metadata
    assert "spec" in fields["child"].fields


def test_metadata_is_that_of_built_in_kinds(widget: Type) -> None:
    metadata = widget.fields["metadata"]
    assert metadata.fields is definitions().type(OBJECT_META).fields
    assert metadata.facts["properties"]["name"]["maxLength"] == 20
    assert definitions().type(OBJECT_META).facts == {}


def test_a_map_of_anything_is_a_map() -> None:
    anything: tuple[bool | JSON, ...] = (True, {})
    for values in anything:
        field = {"type": "object", "additionalProperties": values}
        node = of_structural({"type": "object", "properties": {"a": field}}).fields["a"]
        assert node.shape == "map"
        assert node.element is not None
        assert node.element.shape == "any"


def test_scalars_without_constraints_are_shared() -> None:
    def root(**field: Any) -> Type:
        return of_structural({"type": "object", "properties": {"a": field}})

    plain = root(type="string", description="One.").fields["a"]
    assert root(type="string", description="Another.").fields["a"] is plain
    assert root(type="string", maxLength=1).fields["a"] is not plain
    zero, no = (root(type="integer", default=each).fields["a"] for each in (0, False))
    assert (zero.default, type(zero.default)) == (0, int)
    assert no.default is False


def test_a_default_of_any_kind_is_kept() -> None:
    wrong = {"type": "string", "default": {"not": "a string"}}
    node = of_structural({"type": "object", "properties": {"a": wrong}})
    assert node.fields["a"].default == {"not": "a string"}


def test_a_structural_schema_refers_to_nothing() -> None:
    with pytest.raises(ValueError, match="refers to nothing"):
        of_structural({"type": "object", "properties": {"a": {"$ref": "io.k8s.Pod"}}})
