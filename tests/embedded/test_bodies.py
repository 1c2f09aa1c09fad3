"""Bodies that cannot be read, or only by somebody who is not strict.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.embedded.asking import APPLY, JSON_PATCH, MERGE, STRATEGIC, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, config_map, custom, definition, gadget
from trimtab.testing import Cluster

YAML = "application/yaml"
PARSE = "couldn't get version/kind; json parse error: "
STRUCT = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
NAMELESS = (
    'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is '
    "required"
)

WRONG = [
    (b"", "unexpected end of JSON input", "<empty>"),
    (b"{", "unexpected end of JSON input", "{"),
    (b'{"a":"b', "unexpected end of JSON input", '{"a":"b'),
    (b"{} x", "invalid character 'x' after top-level value", "{} x"),
    (b"hello", "invalid character 'h' looking for beginning of value", "68656c6c6f"),
    (
        b"{a:1}",
        "invalid character 'a' looking for beginning of object key string",
        "{a:1}",
    ),
    (
        b'{"a":1,}',
        "invalid character '}' looking for beginning of object key string",
        '{"a":1,}',
    ),
    (b'{"a" 1}', "invalid character '1' after object key", '{"a" 1}'),
    (b'{"a":01}', "invalid character '1' after object key:value pair", '{"a":01}'),
    (b"[1 2]", "invalid character '2' after array element", "5b3120325d"),
    (b'{"a":-}', "invalid character '}' in numeric literal", '{"a":-}'),
    (
        b'{"a":1.}',
        "invalid character '}' after decimal point in numeric literal",
        '{"a":1.}',
    ),
    (b'{"a":1e}', "invalid character '}' in exponent of numeric literal", '{"a":1e}'),
    (
        b'{"a":tru}',
        "invalid character '}' in literal true (expecting 'e')",
        '{"a":tru}',
    ),
    (
        b'{"a":"b\nc"}',
        "invalid character '\\n' in string literal",
        '{"a":"b\nc"}',
    ),
    (b'{"a":"\\x"}', "invalid character 'x' in string escape code", '{"a":"\\x"}'),
    (
        b'{"a":"\\u12g"}',
        "invalid character 'g' in \\u hexadecimal character escape",
        '{"a":"\\u12g"}',
    ),
    (b"[]", f"json: cannot unmarshal array into {STRUCT}", "5b5d"),
    (b'"x"', f"json: cannot unmarshal string into {STRUCT}", "227822"),
    (b"5", f"json: cannot unmarshal number into {STRUCT}", "35"),
    (b"true", f"json: cannot unmarshal bool into {STRUCT}", "74727565"),
    (
        b'{"apiVersion":"v1","kind":5}',
        "json: cannot unmarshal number into Go struct field .kind of type string",
        '{"apiVersion":"v1","kind":5}',
    ),
    (
        b'{"apiVersion":5,"kind":"ConfigMap"}',
        "json: cannot unmarshal number into Go struct field .apiVersion of type string",
        '{"apiVersion":5,"kind":"Config ...',
    ),
]


@pytest.mark.parametrize(("body", "problem", "summary"), WRONG)
async def test_a_body_that_is_no_object_is_refused_with_its_beginning(
    ask: Asker, body: bytes, problem: str, summary: str
) -> None:
    path = ask.path("configmaps")
    told = f"the object provided is unrecognized (must be of type ConfigMap): {PARSE}"
    refusal = (400, "BadRequest", f"{told}{problem} ({summary})")
    assert (await ask("POST", path, body)).refusal == refusal
    assert (await ask("PUT", f"{path}/one", body)).refusal == refusal


async def test_options_of_a_deletion_are_read_like_any_body(ask: Asker) -> None:
    path = f"{ask.path('configmaps')}/none"
    refused = await ask("DELETE", path, b"{} x")
    told = f"{PARSE}invalid character 'x' after top-level value"
    assert refused.refusal == (400, "BadRequest", told)
    refused = await ask("DELETE", path, config_map())
    told = (
        'no kind "ConfigMap" is registered for version "v1" in scheme '
        '"pkg/runtime/scheme.go:111"'
    )
    assert refused.refusal == (400, "BadRequest", told)
    assert (await ask("DELETE", path, b"null")).status == 404


@pytest.mark.parametrize(
    ("media", "start"),
    [
        (MERGE, "error decoding patch: "),
        (JSON_PATCH, "error decoding patch: "),
        (STRATEGIC, ""),
    ],
)
async def test_a_patch_that_is_no_json_is_refused(
    ask: Asker, media: str, start: str
) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map())
    refused = await ask("PATCH", f"{path}/one", b'{"a":1,}', media=media)
    told = "invalid character '}' looking for beginning of object key string"
    assert refused.refusal == (400, "BadRequest", f"{start}{told}")


async def test_null_is_an_object_that_says_nothing(
    cluster: Cluster, ask: Asker
) -> None:
    path = ask.path("configmaps")
    assert (await ask("POST", path, b"null")).refusal == (422, "Invalid", NAMELESS)
    empty = await ask("POST", path, b"", media=YAML)
    assert empty.refusal == (422, "Invalid", NAMELESS)
    path = await custom(cluster, ask, "nulls", "Null")
    refused = await ask("POST", path, b"null")
    told = (
        "the object provided is unrecognized (must be of type Null): Object 'Kind' is "
        "missing in 'null' (6e756c6c)"
    )
    assert refused.refusal == (400, "BadRequest", told)


async def test_bytes_that_are_no_text_are_replaced(
    cluster: Cluster, ask: Asker
) -> None:
    body = (
        b'{"apiVersion":"%s","kind":"%s","metadata":{"name":"one",'
        b'"annotations":{"a":"\xff\xe2\x82x","b":"\\ud800","c":"\xc3\xa9"}}}'
    )
    wanted = {"a": "\ufffd\ufffd\ufffdx", "b": "\ufffd", "c": "é"}
    made = await ask("POST", ask.path("configmaps"), body % (b"v1", b"ConfigMap"))
    assert (made.status, made.meta["annotations"]) == (201, wanted)
    path = await custom(cluster, ask, "texts", "Text")
    made = await ask("POST", path, body % (f"{GROUP}/v1".encode(), b"Text"))
    assert (made.status, made.meta["annotations"]) == (201, wanted)


async def test_a_number_that_is_too_large_for_its_field_is_refused(
    cluster: Cluster, ask: Asker
) -> None:
    huge = 99999999999999999999
    body: Any = config_map(metadata={"name": "one", "generation": huge})
    refused = await ask("POST", ask.path("configmaps"), json.dumps(body).encode())
    assert refused.refusal[2].endswith(
        "json: cannot unmarshal number 99999999999999999999 into Go struct field "
        "ObjectMeta.metadata.generation of type int64"
    )
    path = await custom(cluster, ask, "numbers", "Number")
    body = {**gadget(metadata={"name": "one", "generation": huge}), "kind": "Number"}
    refused = await ask("POST", path, json.dumps(body).encode())
    assert refused.refusal[2].endswith(
        "json: cannot unmarshal number 100000000000000000000 into Go struct field "
        "ObjectMeta.generation of type int64"
    )


async def test_metadata_that_is_no_object_is_refused(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "metas", "Meta")
    refused = await ask("POST", path, {**gadget(metadata=5), "kind": "Meta"})
    told = (
        'Meta in version "v1" cannot be handled as a Meta: json: cannot unmarshal '
        "number into Go value of type v1.ObjectMeta"
    )
    assert refused.refusal == (400, "BadRequest", told)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"a:\t\n\tb: 1", "line 2: found character that cannot start any token"),
        (b"a: [1", "line 1: did not find expected ',' or ']'"),
        (b"a: &x 1\nb: *y\n", "unknown anchor 'y' referenced"),
        (b"a: \xff", "invalid leading UTF-8 octet"),
    ],
)
async def test_yaml_that_cannot_be_read_is_refused(
    ask: Asker, body: bytes, problem: str
) -> None:
    path = ask.path("configmaps")
    refused = await ask("POST", path, body, media=YAML)
    told = (
        "the object provided is unrecognized (must be of type ConfigMap): yaml: "
        f"{problem} ({body.hex()})"
    )
    assert refused.refusal == (400, "BadRequest", told)
    refused = await ask(
        "PATCH", f"{path}/one", body, media=APPLY, fieldManager="somebody"
    )
    told = f"error decoding YAML: error converting YAML to JSON: yaml: {problem}"
    assert refused.refusal == (400, "BadRequest", told)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "invalid object type: /, Kind="),
        (b"a: 1\n---\nb: 2\n", "invalid object type: /, Kind="),
        (
            b"- 1",
            (
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
                "json: cannot unmarshal array into Go value of type "
                "map[string]interface {}"
            ),
        ),
    ],
)
async def test_an_apply_of_what_is_no_object_is_refused(
    ask: Asker, body: bytes, problem: str
) -> None:
    path = f"{ask.path('configmaps')}/one"
    refused = await ask("PATCH", path, body, media=APPLY, fieldManager="somebody")
    assert refused.refusal == (400, "BadRequest", problem)


POD = 'Pod in version "v1" cannot be handled as a Pod: '
QUANTITY = (
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"overhead": {"cpu": {}}}, QUANTITY),
        (
            {"nodeSelector": {"a": 5}},
            (
                "json: cannot unmarshal number into Go struct field "
                "PodSpec.spec.nodeSelector of type string"
            ),
        ),
        (
            {"volumes": [{"name": "a", "configMap": {"items": 5}}]},
            (
                "json: cannot unmarshal number into Go struct field "
                "ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.items of "
                "type []v1.KeyToPath"
            ),
        ),
    ],
)
async def test_a_value_of_another_type_is_named_without_keys_and_positions(
    ask: Asker, spec: dict[str, Any], problem: str
) -> None:
    pod = {**config_map(), "kind": "Pod", "spec": {"containers": [], **spec}}
    refused = await ask("POST", ask.path("pods"), pod)
    assert refused.refusal == (400, "BadRequest", POD + problem)


async def test_a_schema_of_another_type_is_named_without_its_keys(ask: Asker) -> None:
    crd = definition("wrongs", "Wrong")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"] = {"type": 5}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    refused = await ask("POST", path, crd)
    assert refused.refusal[2].endswith(
        "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec."
        "versions.schema.openAPIV3Schema.properties.properties.type of type string"
    )
