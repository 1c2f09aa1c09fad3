"""Fields that a body has twice: refused, told of, or left alone, as is wished for.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.embedded.asking import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, config_map, custom, gadget
from trimtab.embedded import duplicates
from trimtab.testing import Cluster

YAML = "application/yaml"
MAP = (
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","name":"one"},'
    b'"data":{"a":"1","a":"2","a":"3"},"data":{"b":"1"},"zip":{"c":1,"c":2},"zip":2}'
)
MAP_FIELDS = [
    'duplicate field "metadata.name"',
    'duplicate field "data.a"',
    'duplicate field "data"',
    'unknown field "zip"',
]
POD = (
    b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"},"spec":{"foo":1,'
    b'"foo":2,"containers":[{"name":"m","image":"x","image":"y","bar":{"q":1,"q":2}},'
    b'{"name":"n","image":"x","env":[{"name":"A","name":"B"}]}]}}'
)
POD_FIELDS = [
    'unknown field "spec.foo"',
    'duplicate field "spec.containers[0].image"',
    'unknown field "spec.containers[0].bar"',
    'duplicate field "spec.containers[1].env[0].name"',
]
CUSTOM = (
    b'{"apiVersion":"writes.example.com/v1","kind":"Twice","metadata":{"name":"one",'
    b'"labels":{"x":"1","x":"2"},"nope":1,"nope":2},"spec":{"size":1,"size":2,'
    b'"zip":1,"zip":2},"spec":{"size":3,"size":4},"extra":{"z":1,"z":2}}'
)
CUSTOM_FIELDS = [
    'duplicate field "metadata.labels.x"',
    'duplicate field "metadata.nope"',
    'duplicate field "spec.size"',
    'duplicate field "spec.zip"',
    'duplicate field "spec"',
    'duplicate field "extra.z"',
    'unknown field "metadata.nope"',
    'unknown field "extra"',
]


def told(answer: Answer) -> list[str]:
    """The texts of warnings."""
    return [json.loads(each.removeprefix("299 - ")) for each in answer.warnings]


async def _strictly(ask: Asker, path: str, body: bytes, **more: Any) -> str:
    refused = await ask("POST", path, body, fieldValidation="Strict", **more)
    assert refused.refusal[:2] == (400, "BadRequest")
    handled, _, fields = refused.refusal[2].partition("strict decoding error: ")
    assert "cannot be handled as a" in handled
    return fields


@pytest.mark.parametrize(
    ("plural", "body", "fields"),
    [("configmaps", MAP, MAP_FIELDS), ("pods", POD, POD_FIELDS)],
)
async def test_a_repeated_field_of_a_built_in_object_is_told_in_its_place(
    ask: Asker, plural: str, body: bytes, fields: list[str]
) -> None:
    path = ask.path(plural)
    assert await _strictly(ask, path, body) == ", ".join(fields)
    if plural == "pods":
        return
    made = await ask("POST", path, body, fieldValidation="Warn")
    assert (made.status, told(made)) == (201, fields)
    # A struct that is written twice is filled twice.
    assert made.obj["data"] == {"a": "3", "b": "1"}
    put = await ask("PUT", f"{path}/one", body, fieldValidation="Ignore")
    assert (put.status, put.warnings) == (200, ())
    assert put.obj["data"] == {"a": "3", "b": "1"}


async def test_the_last_of_a_repeated_field_counts_in_a_custom_object(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "twices", "Twice")
    assert await _strictly(ask, path, CUSTOM) == ", ".join(CUSTOM_FIELDS)
    made = await ask("POST", path, CUSTOM)
    assert (made.status, told(made)) == (201, CUSTOM_FIELDS)
    assert made.obj["spec"] == {"size": 4}
    patch = b'{"spec":{"size":5,"size":6},"zip":1,"zip":2}'
    patched = await ask("PATCH", f"{path}/one", patch, media=MERGE)
    assert told(patched) == [
        'duplicate field "spec.size"',
        'duplicate field "zip"',
        'unknown field "zip"',
    ]
    assert patched.obj["spec"] == {"size": 6}


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_a_repeated_field_of_a_patch_is_told(ask: Asker, media: str) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map())
    patch = b'{"data":{"m":"1","m":"2"},"data":{"k":"1"},"zip":1,"zip":2}'
    fields = [
        'duplicate field "data.m"',
        'duplicate field "data"',
        'duplicate field "zip"',
        'unknown field "zip"',
    ]
    refused = await ask(
        "PATCH", f"{path}/one", patch, media=media, fieldValidation="Strict"
    )
    assert refused.refusal[:2] == (422, "Invalid")
    assert refused.refusal[2].endswith(f"strict decoding error: {', '.join(fields)}")
    patched = await ask("PATCH", f"{path}/one", patch, media=media)
    assert (patched.status, told(patched)) == (200, fields)
    assert patched.obj["data"] == {"a": "1", "k": "1"}


async def test_a_repeated_field_of_an_operation_is_told_for_itself(ask: Asker) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map())
    patch = (
        b'[{"op":"add","op":"replace","path":"/data","value":{"c":"1","c":"2"}},'
        b'{"op":"add","path":"/zip","value":{"b":1,"b":2}}]'
    )
    patched = await ask("PATCH", f"{path}/one", patch, media=JSON_PATCH)
    assert told(patched) == [
        'json patch duplicate field "[0].op"',
        'json patch duplicate field "[0].value.c"',
        'json patch duplicate field "[1].value.b"',
        'duplicate field "data.c"',
        'unknown field "zip"',
    ]
    assert patched.obj["data"] == {"c": "2"}


LINES = [
    'line 5: key "x" already set in map',
    'line 8: key "a" already set in map',
    'line 10: key "data" already set in map',
]


def _yaml(end: str = "") -> bytes:
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n"
        "  labels: {x: '1', x: '2'}\ndata:\n  a: '1'\n  a: '2'\ndata:\n  b: '3'\n" + end
    ).encode()


async def test_a_repeated_key_of_yaml_is_told_by_its_line(ask: Asker) -> None:
    path = ask.path("configmaps")
    fields = await _strictly(ask, path, _yaml("zip: 1\n"), media=YAML)
    lines = "\n  ".join(LINES)
    assert fields == f'yaml: unmarshal errors:\n  {lines}, unknown field "zip"'
    made = await ask("POST", path, _yaml("zip: 1\n"), media=YAML)
    assert told(made) == [*LINES, 'unknown field "zip"']
    assert made.obj["data"] == {"b": "3"}


async def test_a_repeated_key_of_an_apply_is_told_if_the_rest_is_good(
    ask: Asker,
) -> None:
    path = f"{ask.path('configmaps')}/one"
    lines = "\n  ".join(LINES)

    async def apply(body: bytes, validation: str) -> Answer:
        return await ask(
            "PATCH",
            path,
            body,
            media=APPLY,
            fieldManager="somebody",
            fieldValidation=validation,
        )

    refused = await apply(_yaml(), "Strict")
    assert refused.refusal == (
        400,
        "BadRequest",
        (
            "error strict decoding YAML: error converting YAML to JSON: yaml: "
            f"unmarshal errors:\n  {lines}"
        ),
    )
    assert told(await apply(_yaml(), "Warn")) == LINES
    assert (await apply(_yaml(), "Ignore")).warnings == ()
    unknown = await apply(_yaml("zip: 1\n"), "Strict")
    assert unknown.status == 500
    assert unknown.refusal[2].endswith(".zip: field not declared in schema")


async def test_a_body_that_is_refused_is_warned_of_too(
    cluster: Cluster, ask: Asker
) -> None:
    refused = await ask("POST", ask.path("configmaps"), {"zip": 1})
    assert (refused.status, told(refused)) == (422, ['unknown field "zip"'])
    path = await custom(cluster, ask, "bads", "Bad")
    bad = {**gadget(spec={"size": "x", "zip": 1}), "kind": "Bad"}
    assert bad["apiVersion"] == f"{GROUP}/v1"
    refused = await ask("POST", path, bad)
    assert (refused.status, told(refused)) == (422, ['unknown field "spec.zip"'])


async def test_many_warnings_are_cut_short(ask: Asker) -> None:
    body = {**config_map(), **{f"field{n:03}" + "x" * 300: 1 for n in range(30)}}
    made = await ask("POST", ask.path("configmaps"), body)
    assert made.status == 201
    assert [len(each) for each in told(made)] == [256] * 16


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=20,
)


@given(json_values, some.booleans())
def test_what_has_no_duplicates_is_never_suspected(value: Any, raw: bool) -> None:
    body = json.dumps(value, ensure_ascii=not raw, indent=2).encode()
    assert duplicates.pairs_of(body, json.loads(body)) is None


@given(json_values, some.text())
def test_a_duplicate_is_always_found(value: Any, key: str) -> None:
    name = json.dumps(key)
    body = f'[1,{{{name}:{json.dumps(value)},{name}:""}}]'.encode()
    found = duplicates.pairs_of(body, json.loads(body))
    assert f"[1].{key}" in duplicates.untyped(found)
