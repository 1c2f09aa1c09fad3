"""What a write answers and leaves behind, in the words of a real server.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from tests.client.clusters import client_of, defines
from trimtab.client import load
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Progress, Request
from trimtab.testing import Cluster, eventually

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
STRANGER = "11111111-1111-1111-1111-111111111111"
GROUP = "writes.example.com"
LIMIT = 16 * 1024 * 1024
SPECIFIED = (
    "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
)

Plain = dict[str, Any]


class Answer(NamedTuple):
    """What came back: a status code, an object (or a Status), and warnings."""

    code: int
    obj: Any
    warnings: tuple[str, ...]

    @property
    def meta(self) -> Plain:
        found: Plain = self.obj["metadata"]
        return found

    @property
    def refusal(self) -> tuple[int, str, str]:
        return self.code, self.obj.get("reason", ""), self.obj["message"]

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        return [
            (each.get("reason", ""), each.get("field", ""), each.get("message", ""))
            for each in (self.obj.get("details") or {}).get("causes") or ()
        ]


class Asker:
    """Sends requests as they stand, however wrong, and reads the answers."""

    def __init__(self, transport: HttpTransport, namespace: str) -> None:
        self._transport = transport
        self.namespace = namespace

    def path(self, plural: str, *, group: str = "", version: str = "v1") -> str:
        root = f"/apis/{group}" if group else "/api"
        return f"{root}/{version}/namespaces/{self.namespace}/{plural}"

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = JSON,
        agent: str = "tests/1.0",
        **query: str,
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else _encoded(body)
        headers = [("Accept", JSON), ("User-Agent", agent)]
        if data is not None:
            headers.append(("Content-Type", media))
        request = Request(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers=tuple(headers),
            body=data,
        )
        response = await self._transport.send(request, progress=Progress())
        raw = bytes(await response.read(limit=LIMIT))
        response.close()
        is_json = JSON in "".join(response.headers("content-type"))
        obj = json.loads(raw) if is_json else raw.decode()
        return Answer(response.status, obj, tuple(response.headers("warning")))


def _encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


@asynccontextmanager
async def asking(cluster: Cluster, namespace: str) -> AsyncIterator[Asker]:
    """An asker for the length of the block."""
    transport = HttpTransport(load(kubeconfig=cluster.kubeconfig))
    try:
        yield Asker(transport, namespace)
    finally:
        await transport.close()


@pytest.fixture
async def ask(cluster: Cluster, namespace: str) -> AsyncIterator[Asker]:
    async with asking(cluster, namespace) as made:
        yield made


def definition(plural: str, kind: str, **subresources: Plain) -> Plain:
    """A custom kind with a size, a number of replicas and a status."""
    whole = {"type": "integer"}
    spec = {"size": whole, "replicas": whole}
    state = {
        "seen": {"type": "boolean"},
        "replicas": whole,
        "selector": {"type": "string"},
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": state},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": subresources,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


async def custom(
    cluster: Cluster, ask: Asker, plural: str, kind: str, **subresources: Plain
) -> str:
    """The path of a custom kind that is served from now on."""
    async with client_of(cluster, namespace=ask.namespace) as client:
        await defines(client, definition(plural, kind, **subresources))
    path = ask.path(plural, group=GROUP)

    async def is_served() -> bool:
        return (await ask("GET", path)).code == 200

    await eventually(is_served, within=20)
    return path


def config_map(name: str = "one", /, **more: Any) -> Plain:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return {**obj, "data": {"a": "1"}, **more}


def meta_map(**metadata: Any) -> Plain:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def gadget(name: str = "one", /, **more: Any) -> Plain:
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}}
    return {**obj, "spec": {"size": 1}, **more}


def deployment(name: str = "web", /, **more: Any) -> Plain:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
        **more,
    }


# Creating


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
    assert made.code == 201
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
        assert made.code == 201


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
        assert made.code == 201
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


# Replacing


async def test_a_put_is_about_the_object_that_the_path_names(ask: Asker) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map("one"))
    other = await ask("PUT", f"{path}/one", config_map("two"))
    assert other.refusal == (
        400,
        "BadRequest",
        "the name of the object (two) does not match the name on the URL (one)",
    )
    nameless = await ask(
        "PUT", f"{path}/one", {"apiVersion": "v1", "kind": "ConfigMap"}
    )
    assert nameless.refusal == (
        400,
        "BadRequest",
        (
            "the name of the object (one based on URL) was undeterminable: name must "
            "be provided"
        ),
    )
    absent = await ask("PUT", f"{path}/none", config_map("none"))
    assert absent.refusal == (404, "NotFound", 'configmaps "none" not found')


async def test_a_put_of_another_uid_is_a_conflict(ask: Asker) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    refused = await ask("PUT", f"{path}/one", meta_map(name="one", uid=STRANGER))
    assert refused.refusal == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on configmaps "one": StorageError: invalid '
            f"object, Code: 4, Key: /registry/configmaps/{ask.namespace}/one, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            f"precondition: {STRANGER}, UID in object meta: {made.meta['uid']}"
        ),
    )


async def test_built_in_objects_may_be_replaced_without_a_version(ask: Asker) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    for value, version in (("2", None), ("3", "0"), ("4", "")):
        meta = {"name": "one"} | (
            {} if version is None else {"resourceVersion": version}
        )
        put = config_map(metadata=meta, data={"a": value})
        replaced = await ask("PUT", f"{path}/one", put)
        assert (replaced.code, replaced.obj["data"]) == (200, {"a": value})
        assert replaced.meta["uid"] == made.meta["uid"]
    stale = config_map(metadata={"name": "one", "resourceVersion": "1"})
    refused = await ask("PUT", f"{path}/one", stale)
    assert refused.refusal == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on configmaps "one": the object has been '
            "modified; please apply your changes to the latest version and try again"
        ),
    )
    odd = config_map(metadata={"name": "one", "resourceVersion": "abc"})
    refused = await ask("PUT", f"{path}/one", odd)
    told = 'strconv.ParseUint: parsing "abc": invalid syntax'
    assert refused.refusal == (500, "", told)


async def test_custom_objects_and_leases_are_replaced_only_with_a_version(
    cluster: Cluster, ask: Asker
) -> None:
    gadgets = await custom(cluster, ask, "gadgets", "Gadget", status={})
    leases = ask.path("leases", group="coordination.k8s.io")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "one"},
    }
    for path, about, obj in (
        (gadgets, f"gadgets.{GROUP}", gadget()),
        (leases, "leases.coordination.k8s.io", lease),
    ):
        await ask("POST", path, obj)
        for version in ("", "0"):
            put = {**obj, "metadata": {"name": "one", "resourceVersion": version}}
            refused = await ask("PUT", f"{path}/one", put)
            told = f'{about} "one" is invalid: {SPECIFIED}'
            assert refused.refusal == (422, "Invalid", told)


async def test_a_put_makes_a_lease_and_no_config_map(ask: Asker) -> None:
    path = ask.path("leases", group="coordination.k8s.io")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    stranger = {**lease, "metadata": {"name": "one", "uid": STRANGER}}
    refused = await ask("PUT", f"{path}/one", stranger)
    assert refused.refusal[:2] == (409, "Conflict")
    assert refused.refusal[2].endswith(
        f"precondition: {STRANGER}, UID in object meta: "
    )
    made = {**lease, "metadata": {"name": "one", "resourceVersion": "5"}}
    dry = await ask("PUT", f"{path}/one", made, dryRun="All")
    assert dry.code == 201
    assert (await ask("GET", f"{path}/one")).code == 404
    assert (await ask("PUT", f"{path}/one", made)).code == 201


async def test_what_only_the_server_changes_stays(ask: Asker) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    put = meta_map(name="one", creationTimestamp="2000-01-01T00:00:00Z", selfLink="/x")
    replaced = await ask("PUT", f"{path}/one", put)
    assert replaced.meta["creationTimestamp"] == made.meta["creationTimestamp"]
    assert "selfLink" not in replaced.meta
    dying = meta_map(name="one", deletionTimestamp="2000-01-01T00:00:00Z")
    refused = await ask("PUT", f"{path}/one", dying)
    assert refused.refusal == (
        422,
        "Invalid",
        (
            'ConfigMap "one" is invalid: metadata.deletionTimestamp: Invalid value: '
            '"2000-01-01T00:00:00Z": field is immutable'
        ),
    )


# Generations, status and what makes no revision


async def test_a_generation_counts_changes_of_what_is_wished_for(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    made = await ask("POST", path, deployment(status={"replicas": 7}))
    assert made.meta["generation"] == 1
    assert "replicas" not in made.obj["status"]
    for patch, generation in (
        ({"metadata": {"labels": {"a": "b"}}}, 1),
        ({"status": {"replicas": 5}}, 1),
        ({"spec": {"replicas": 2}}, 2),
        ({"metadata": {"generation": 9}}, 2),
        ({"metadata": {"annotations": {"a": "b"}}}, 3),
    ):
        patched = await ask("PATCH", f"{path}/web", patch, media=MERGE)
        assert patched.meta["generation"] == generation
        assert "replicas" not in patched.obj["status"]
    finalizers = {"metadata": {"finalizers": ["example.com/hold"]}}
    await ask("PATCH", f"{path}/web", finalizers, media=MERGE)
    deleted = await ask("DELETE", f"{path}/web")
    assert deleted.meta["generation"] == 4


async def test_a_config_map_has_no_generation(ask: Asker) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    patched = await ask("PATCH", f"{path}/one", {"data": {"b": "2"}}, media=MERGE)
    assert "generation" not in made.meta
    assert "generation" not in patched.meta


async def test_the_status_of_a_built_in_object_is_written_apart(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    await ask("POST", path, deployment())
    both = {"spec": {"replicas": 7}, "status": {"replicas": 5}}
    patched = await ask("PATCH", f"{path}/web/status", both, media=MERGE)
    assert (patched.obj["spec"]["replicas"], patched.obj["status"]["replicas"]) == (
        1,
        5,
    )
    assert patched.meta["generation"] == 1
    assert patched.meta["managedFields"][-1]["subresource"] == "status"
    put = deployment(status={"replicas": 2})
    replaced = await ask("PUT", f"{path}/web/status", put)
    assert replaced.obj["status"] == {"replicas": 2}


async def test_the_status_of_a_custom_object_is_written_apart_if_it_says_so(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "gadgets", "Gadget", status={})
    made = await ask("POST", path, gadget(status={"seen": True}))
    assert "status" not in made.obj
    both = {"spec": {"size": 9}, "status": {"seen": True}}
    labels = {"metadata": {"labels": {"a": "b"}}}
    status = await ask("PATCH", f"{path}/one/status", both | labels, media=MERGE)
    assert (status.obj["spec"], status.obj["status"]) == ({"size": 1}, {"seen": True})
    assert "labels" not in status.meta
    assert status.meta["generation"] == 1
    other = {"spec": {"size": 9}, "status": {"seen": False}}
    main = await ask("PATCH", f"{path}/one", other, media=MERGE)
    assert (main.obj["spec"], main.obj["status"]) == ({"size": 9}, {"seen": True})
    assert main.meta["generation"] == 2


async def test_a_custom_kind_without_status_has_it_like_any_field(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "plains", "Plain")
    obj = {**gadget(status={"seen": True}), "kind": "Plain"}
    made = await ask("POST", path, obj)
    assert (made.obj["status"], made.meta["generation"]) == ({"seen": True}, 1)
    patch = {"status": {"seen": False}}
    patched = await ask("PATCH", f"{path}/one", patch, media=MERGE)
    assert (patched.obj["status"], patched.meta["generation"]) == ({"seen": False}, 2)
    labelled = {"metadata": {"labels": {"a": "b"}}}
    patched = await ask("PATCH", f"{path}/one", labelled, media=MERGE)
    assert patched.meta["generation"] == 2
    absent = await ask("GET", f"{path}/one/status")
    assert absent.refusal == (404, "NotFound", f'plains.{GROUP} "one" not found')


async def test_a_write_that_changes_nothing_makes_no_revision(ask: Asker) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    put = await ask("PUT", f"{path}/one", config_map("one"))
    patch = await ask("PATCH", f"{path}/one", {"data": {"a": "1"}}, media=MERGE)
    assert put.obj == patch.obj == made.obj
    applied, again = [
        await ask(
            "PATCH", f"{path}/one", config_map("one"), media=APPLY, fieldManager="me"
        )
        for _ in range(2)
    ]
    assert applied.meta["resourceVersion"] != made.meta["resourceVersion"]
    assert again.obj == applied.obj


# Trying out


async def test_a_dry_run_answers_and_keeps_nothing(ask: Asker) -> None:
    path = ask.path("configmaps")
    dry = await ask("POST", path, config_map("one"), dryRun="All")
    assert dry.code == 201
    assert dry.meta["uid"]
    assert "resourceVersion" not in dry.meta
    assert (await ask("GET", f"{path}/one")).code == 404
    made = await ask("POST", path, config_map("one"))
    twice = await ask("POST", path, config_map("one"), dryRun="All")
    told = 'configmaps "one" already exists'
    assert twice.refusal == (409, "AlreadyExists", told)
    other = config_map("one", data={"b": "2"})
    for answer in (
        await ask("PUT", f"{path}/one", other, dryRun="All"),
        await ask("PATCH", f"{path}/one", other, media=MERGE, dryRun="All"),
        await ask(
            "PATCH", f"{path}/one", other, media=APPLY, dryRun="All", fieldManager="me"
        ),
    ):
        assert answer.obj["data"]["b"] == "2"
        assert answer.meta["resourceVersion"] == made.meta["resourceVersion"]
    assert (await ask("DELETE", f"{path}/one", dryRun="All")).code == 200
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    assert (await ask("DELETE", f"{path}/one", body)).code == 200
    assert (await ask("GET", f"{path}/one")).obj == made.obj
    odd = await ask("POST", path, config_map("two"), dryRun="Some")
    assert odd.refusal[:2] == (422, "Invalid")
    assert odd.causes == [
        (
            "FieldValueNotSupported",
            "dryRun",
            'Unsupported value: ["Some"]: supported values: "All"',
        )
    ]


# Fields that the kind does not have


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_unknown_fields_are_refused_told_or_dropped(
    ask: Asker, method: str
) -> None:
    path = ask.path("deployments", group="apps")
    await ask("POST", path, deployment("there"))
    name = "new" if method == "POST" else "there"
    where = path if method == "POST" else f"{path}/there"
    body = deployment(name, bogus=1)
    body["spec"]["template"]["spec"]["containers"][0]["nope"] = 3
    unknown = [
        'unknown field "spec.template.spec.containers[0].nope"',
        'unknown field "bogus"',
    ]
    strict = await ask(method, where, body, fieldValidation="Strict", dryRun="All")
    told = (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding '
        f"error: {', '.join(unknown)}"
    )
    assert strict.refusal == (400, "BadRequest", told)
    for query in ({}, {"fieldValidation": "Warn"}):
        warned = await ask(method, where, body, dryRun="All", **query)
        assert warned.code in (200, 201)
        quoted = [f"299 - {json.dumps(each)}" for each in unknown]
        assert list(warned.warnings) == quoted
    ignored = await ask(method, where, body, fieldValidation="Ignore", dryRun="All")
    assert ignored.code in (200, 201)
    assert ignored.warnings == ()
    assert "bogus" not in ignored.obj


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_a_patch_with_unknown_fields_is_itself_invalid(
    ask: Asker, media: str
) -> None:
    path = ask.path("deployments", group="apps")
    await ask("POST", path, deployment())
    patch = {"spec": {"wrong": 1}, "bogus": {"a": 1}}
    where = f"{path}/web"
    strict = await ask("PATCH", where, patch, media=media, fieldValidation="Strict")
    assert strict.refusal[:2] == (422, "Invalid")
    assert strict.refusal[2].startswith(' "" is invalid: patch: Invalid value: ')
    assert strict.refusal[2].endswith(
        ': strict decoding error: unknown field "bogus", unknown field "spec.wrong"'
    )
    warned = await ask("PATCH", where, patch, media=media)
    assert warned.warnings == (
        r'299 - "unknown field \"bogus\""',
        r'299 - "unknown field \"spec.wrong\""',
    )


# Patching


@pytest.mark.parametrize(
    ("patch", "refusal"),
    [
        (
            [{"op": "replace", "path": "/metadata/name", "value": "q"}],
            (
                400,
                "the name of the object (q) does not match the name on the URL (one)",
            ),
        ),
        (
            [{"op": "remove", "path": "/metadata/name"}],
            (
                400,
                (
                    "the name of the object (one based on URL) was undeterminable: "
                    "name must be provided"
                ),
            ),
        ),
        (
            [{"op": "replace", "path": "/metadata/namespace", "value": "q"}],
            (
                400,
                (
                    "the namespace of the provided object does not match the namespace "
                    "sent on the request"
                ),
            ),
        ),
        (
            [{"op": "replace", "path": "/metadata/uid", "value": STRANGER}],
            (
                422,
                (
                    'ConfigMap "one" is invalid: metadata.uid: Invalid value: '
                    f'"{STRANGER}": field is immutable'
                ),
            ),
        ),
        (
            [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
            (
                409,
                (
                    'Operation cannot be fulfilled on configmaps "one": the object '
                    "has been modified; please apply your changes to the latest "
                    "version and try again"
                ),
            ),
        ),
        (
            [{"op": "test", "path": "/data/a", "value": "2"}],
            (
                422,
                "the server rejected our request due to an error in our request",
            ),
        ),
        (
            [{"op": "remove", "path": "/data/none"}],
            (
                422,
                "the server rejected our request due to an error in our request",
            ),
        ),
    ],
    ids=["name", "nameless", "namespace", "uid", "version", "test", "remove"],
)
async def test_a_json_patch_that_may_not_be_changes_nothing(
    ask: Asker, patch: list[Plain], refusal: tuple[int, str]
) -> None:
    path = ask.path("configmaps")
    made = await ask("POST", path, config_map("one"))
    refused = await ask("PATCH", f"{path}/one", patch, media=JSON_PATCH)
    assert (refused.code, refused.obj["message"]) == refusal
    assert (await ask("GET", f"{path}/one")).obj == made.obj


@pytest.mark.parametrize("media", [JSON_PATCH, MERGE, STRATEGIC])
async def test_what_is_not_there_cannot_be_patched(ask: Asker, media: str) -> None:
    patch: Any = [] if media == JSON_PATCH else {}
    refused = await ask("PATCH", f"{ask.path('configmaps')}/no", patch, media=media)
    assert refused.refusal == (404, "NotFound", 'configmaps "no" not found')


async def test_a_merge_patch_to_another_type_is_itself_invalid(ask: Asker) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map("one"))
    for patch, told in (
        ({"data": "x"}, "string into Go struct field ConfigMap.data of type map"),
        ({"data": {"a": 5}}, "number into Go struct field ConfigMap.data of type str"),
        (
            {"kind": "Secret", "data": None},
            "converting (v1.Secret) to (core.ConfigMap): unknown con",
        ),
        ({"apiVersion": "v9"}, 'no kind "ConfigMap" is registered for version "v9" in'),
    ):
        refused = await ask("PATCH", f"{path}/one", patch, media=MERGE)
        assert refused.refusal[:2] == (422, "Invalid")
        assert told in refused.refusal[2]
        assert refused.causes[0][:2] == ("FieldValueInvalid", "patch")


async def test_a_strategic_patch_merges_lists_by_their_keys(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    await ask("POST", path, deployment())

    async def containers(*patch: Plain) -> list[tuple[str, str]]:
        spec = {"template": {"spec": {"containers": list(patch)}}}
        answer = await ask("PATCH", f"{path}/web", {"spec": spec}, media=STRATEGIC)
        found = answer.obj["spec"]["template"]["spec"]["containers"]
        return [(each["name"], each["image"]) for each in found]

    added = await containers(
        {"name": "more", "image": "b"}, {"name": "web", "image": "c"}
    )
    assert added == [("more", "b"), ("web", "c")]
    removed = await containers({"name": "more", "$patch": "delete"})
    assert removed == [("web", "c")]


async def test_a_patch_of_a_type_that_the_kind_does_not_take_is_refused(
    cluster: Cluster, ask: Asker
) -> None:
    gadgets = await custom(cluster, ask, "gadgets", "Gadget", status={})
    await ask("POST", gadgets, gadget())
    for media in (STRATEGIC, "text/plain"):
        refused = await ask("PATCH", f"{gadgets}/one", {}, media=media)
        assert refused.refusal == (
            415,
            "UnsupportedMediaType",
            (
                "the body of the request was in an unknown format - accepted media "
                f"types include: {JSON_PATCH}, {MERGE}, {APPLY}"
            ),
        )
    path = ask.path("configmaps")
    await ask("POST", path, config_map("one"))
    refused = await ask("PATCH", f"{path}/one", {}, media=JSON)
    told = "415: Unsupported Media Type"
    assert refused.refusal == (415, "UnsupportedMediaType", told)


async def test_only_an_apply_may_force(ask: Asker) -> None:
    path = ask.path("configmaps")
    await ask("POST", path, config_map("one"))
    refused = await ask("PATCH", f"{path}/one", {}, media=MERGE, force="true")
    assert refused.refusal == (
        422,
        "Invalid",
        (
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be '
            "specified for non-apply patch"
        ),
    )


# Applying


async def test_an_apply_creates_and_then_owns(ask: Asker) -> None:
    where = f"{ask.path('configmaps')}/one"

    async def apply(value: str, manager: str, **query: str) -> Answer:
        body = config_map("one", data={"a": value})
        return await ask(
            "PATCH", where, body, media=APPLY, fieldManager=manager, **query
        )

    assert (await apply("1", "one")).code == 201
    assert (await apply("1", "one")).code == 200
    refused = await apply("2", "two")
    told = 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert refused.refusal == (409, "Conflict", told)
    cause = ("FieldManagerConflict", ".data.a", 'conflict with "one"')
    assert refused.causes == [cause]
    forced = await apply("2", "two", force="true")
    assert forced.obj["data"] == {"a": "2"}
    assert [each["manager"] for each in forced.meta["managedFields"]] == ["two"]


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (config_map(kind="Secret"), (400, "invalid object type: /v1, Kind=Secret")),
        (
            config_map(apiVersion="v2"),
            (400, "invalid object type: /v2, Kind=ConfigMap"),
        ),
        ({"kind": "ConfigMap"}, (400, "invalid object type: /, Kind=ConfigMap")),
        (
            meta_map(name="one", managedFields=[{"manager": "x"}]),
            (400, "metadata.managedFields must be nil"),
        ),
        (
            config_map("two"),
            (
                400,
                "the name of the object (two) does not match the name on the URL (one)",
            ),
        ),
        (
            config_map(bogus=1),
            (
                500,
                (
                    "failed to create typed patch object (/one; /v1, Kind=ConfigMap): "
                    ".bogus: field not declared in schema"
                ),
            ),
        ),
        (
            meta_map(name="one", uid=STRANGER),
            (
                409,
                (
                    'Operation cannot be fulfilled on configmaps "one": uid '
                    "mismatch: the provided object specified uid "
                    f"{STRANGER}, and no existing object was found"
                ),
            ),
        ),
    ],
    ids=["kind", "version", "versionless", "managed", "name", "unknown", "uid"],
)
async def test_an_apply_of_something_else_is_refused(
    ask: Asker, body: Plain, refusal: tuple[int, str]
) -> None:
    where = f"{ask.path('configmaps')}/one"
    refused = await ask("PATCH", where, body, media=APPLY, fieldManager="me")
    assert (refused.code, refused.obj["message"]) == refusal


async def test_an_apply_says_who_it_is_by(ask: Asker) -> None:
    where = f"{ask.path('configmaps')}/one"
    refused = await ask("PATCH", where, config_map("one"), media=APPLY)
    assert refused.refusal == (
        422,
        "Invalid",
        (
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is '
            "required for apply patch"
        ),
    )


async def test_an_applied_status_is_owned_as_such(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    await ask("POST", path, deployment())

    async def apply(name: str, count: int, manager: str) -> Answer:
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "status": {"replicas": count},
        }
        where = f"{path}/{name}/status"
        return await ask("PATCH", where, body, media=APPLY, fieldManager=manager)

    assert (await apply("web", 3, "one")).obj["status"]["replicas"] == 3
    refused = await apply("web", 4, "two")
    assert refused.causes == [
        (
            "FieldManagerConflict",
            ".status.replicas",
            'conflict with "one" with subresource "status"',
        )
    ]
    told = 'deployments.apps "none" not found'
    assert (await apply("none", 3, "one")).refusal == (404, "NotFound", told)


# Sizes


async def test_what_is_too_large_is_refused(ask: Asker) -> None:
    path = ask.path("configmaps")
    body = b" " * (3 * 1024 * 1024 + 1)
    refused = await ask("POST", path, body)
    assert refused.refusal[:2] == (413, "RequestEntityTooLarge")
    large = config_map("one", data={"a": "x" * (1024 * 1024 + 1)})
    refused = await ask("POST", path, large)
    assert refused.refusal == (
        422,
        "Invalid",
        'ConfigMap "one" is invalid: []: Too long: may not be more than 1048576 bytes',
    )


async def test_numbers_are_of_the_size_that_the_field_has(ask: Asker) -> None:
    path = ask.path("deployments", group="apps")
    for number in (2**31, 2**63, 1.5):
        body = deployment(spec={"replicas": number})
        refused = await ask("POST", path, body)
        assert refused.refusal == (
            400,
            "BadRequest",
            (
                'Deployment in version "v1" cannot be handled as a Deployment: json: '
                f"cannot unmarshal number {number} into Go struct field "
                "DeploymentSpec.spec.replicas of type int32"
            ),
        )
