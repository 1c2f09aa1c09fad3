"""What creating answers and leaves behind, in the words of a real server.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.embedded.asking import Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import STRANGER, config_map, meta_map


async def test_a_new_object_has_what_the_server_makes_and_nothing_a_client_made_up(
    ask: Asker,
) -> None:
    made = await ask(
        "POST",
        ask.path("configmaps"),
        meta_map(
            name="one",
            uid=STRANGER,
            selfLink="/x",
            creationTimestamp="2000-01-01T00:00:00Z",
            deletionTimestamp="2000-01-01T00:00:00Z",
            deletionGracePeriodSeconds=4,
        ),
    )
    assert made.status == 201
    assert sorted(made.meta) == [
        "creationTimestamp",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ]
    assert made.meta["uid"] != STRANGER
    assert made.meta["creationTimestamp"] > "2020"


async def test_a_new_object_may_not_name_a_version(ask: Asker) -> None:
    path = ask.path("configmaps")
    refused = await ask("POST", path, meta_map(name="one", resourceVersion="5"))
    told = "resourceVersion should not be set on objects to be created"
    assert refused.refusal == (500, "", told)
    for name, version in (("zero", "0"), ("none", "abc")):
        made = await ask("POST", path, meta_map(name=name, resourceVersion=version))
        assert made.status == 201


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            meta_map(name="one", namespace="other"),
            (
                400,
                "BadRequest",
                (
                    "the namespace of the provided object does not match the namespace "
                    "sent on the request"
                ),
            ),
        ),
        (
            {**meta_map(name="one"), "kind": "Secret"},
            (
                400,
                "BadRequest",
                (
                    'Secret in version "v1" cannot be handled as a ConfigMap: '
                    "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
                ),
            ),
        ),
        (
            config_map(apiVersion="v2"),
            (
                400,
                "BadRequest",
                (
                    'ConfigMap in version "v2" cannot be handled as a ConfigMap: no '
                    'kind "ConfigMap" is registered for version "v2" in scheme '
                    '"pkg/runtime/scheme.go:111"'
                ),
            ),
        ),
        (
            meta_map(),
            (
                422,
                "Invalid",
                (
                    'ConfigMap "" is invalid: metadata.name: Required value: name or '
                    "generateName is required"
                ),
            ),
        ),
        (
            config_map(metadata=None),
            (
                422,
                "Invalid",
                (
                    'ConfigMap "" is invalid: metadata.name: Required value: name or '
                    "generateName is required"
                ),
            ),
        ),
        (
            meta_map(name=5),
            (
                400,
                "BadRequest",
                (
                    'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: '
                    "cannot unmarshal number into Go struct field "
                    "ObjectMeta.metadata.name of type string"
                ),
            ),
        ),
        (
            config_map(data={"a": 5}),
            (
                400,
                "BadRequest",
                (
                    'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: '
                    "cannot unmarshal number into Go struct field ConfigMap.data of "
                    "type string"
                ),
            ),
        ),
    ],
    ids=["namespace", "kind", "version", "nameless", "null", "number", "data"],
)
async def test_a_body_that_is_not_the_object_is_refused(
    ask: Asker, body: Plain, refusal: tuple[int, str, str]
) -> None:
    assert (await ask("POST", ask.path("configmaps"), body)).refusal == refusal


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"x"', b"5", b"{bad", b'{"a":}', b"{} x"]
)
async def test_a_body_that_is_no_object_is_a_bad_request(
    ask: Asker, body: bytes
) -> None:
    for method, name in (("POST", ""), ("PUT", "/one")):
        refused = await ask(method, ask.path("configmaps") + name, body)
        assert refused.refusal[:2] == (400, "BadRequest")
        assert "json" in refused.refusal[2]


async def test_generated_names_are_tried_until_one_is_free(ask: Asker) -> None:
    path = ask.path("configmaps")
    names = set()
    for _ in range(30):
        made = await ask("POST", path, meta_map(generateName="made-"))
        assert made.status == 201
        names.add(made.meta["name"])
    assert len(names) == 30
    assert all(len(name) == len("made-") + 5 for name in names)
    long = await ask("POST", path, meta_map(generateName="x" * 100))
    assert len(long.meta["name"]) == 63


async def test_managed_fields_of_a_new_object_are_its_writers(ask: Asker) -> None:
    path = ask.path("configmaps")
    named = await ask("POST", path, config_map("one"), fieldManager="me")
    agent = await ask("POST", path, config_map("two"), agent="agent/v1 (x)")
    for made, manager in ((named, "me"), (agent, "agent")):
        (entry,) = made.meta["managedFields"]
        assert entry.pop("time")
        assert entry == {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    long = await ask("POST", path, config_map("three"), agent="a" * 200)
    assert long.meta["managedFields"][0]["manager"] == "a" * 128
    refused = await ask("POST", path, config_map("four"), fieldManager="b" * 129)
    assert refused.refusal == (
        422,
        "Invalid",
        (
            'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not '
            "be more than 128 bytes"
        ),
    )
