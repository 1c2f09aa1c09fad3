"""Laws of OpenAPI: kubectl understands our documents as it does the real server's."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hack.record_embedded_facts import fields_of
from tests.embedded.documents import (
    CRDS,
    JSON,
    RECORDED,
    custom,
    kubectl,
    openapi,
    place,
    table,
)
from trimtab.embedded.discovery import custom_resources
from trimtab.embedded.facts import definitions, resources
from trimtab.embedded.openapi import OpenApi, custom_schemas

KINDS = "x-kubernetes-group-version-kind"
EXPLAINED = [key for key in RECORDED if key.startswith("explain ")]
PLACES = [key.removeprefix("paths ") for key in RECORDED if key.startswith("paths ")]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web"}]},
}
WIDGET = {
    "apiVersion": "samples.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "web"},
    "spec": {"size": 1},
}


@pytest.fixture(scope="module")
def documents() -> OpenApi:
    return openapi()


def third(documents: OpenApi, path: str) -> JSON:
    document = documents.v3(*place(path))
    assert document is not None
    return document


def parts(value: Any) -> Iterator[JSON]:
    """Every mapping within a document."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from parts(each)
    elif isinstance(value, list):
        for each in value:
            yield from parts(each)


def links(document: JSON) -> set[str]:
    """All references; a kind may have a field of that name, which is none."""
    found = (part.get("$ref") for part in parts(document))
    return {link for link in found if isinstance(link, str)}


def looked_up(document: JSON, link: str) -> Any:
    found: Any = document
    for step in link.removeprefix("#/").split("/"):
        found = found[step]
    return found


def plain(schema: Any) -> Any:
    """A reference that stands alone says the same with and without ``allOf``."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if list(schema) == ["allOf"] and len(schema["allOf"]) == 1:
        return plain(schema["allOf"][0])
    return {key: plain(value) for key, value in schema.items()}


@pytest.mark.parametrize("path", PLACES)
def test_paths_are_those_of_the_real_server_but_for_streams(
    documents: OpenApi, path: str
) -> None:
    ours = {
        where: {
            method: [operation["x-kubernetes-action"], *gvk(operation[KINDS])]
            for method, operation in methods.items()
        }
        for where, methods in third(documents, path)["paths"].items()
    }
    theirs = {
        where: kept
        for where, methods in RECORDED[f"paths {path}"].items()
        if (
            kept := {key: told for key, told in methods.items() if told[0] != "connect"}
        )
    }
    assert ours == theirs


def gvk(kind: JSON) -> list[str]:
    return [kind["group"], kind["version"], kind["kind"]]


@pytest.mark.parametrize("path", PLACES)
def test_every_link_of_a_document_leads_somewhere(
    documents: OpenApi, path: str
) -> None:
    document = third(documents, path)
    assert links(document)
    assert all(looked_up(document, link) is not None for link in links(document))


def test_what_is_said_beside_a_reference_is_not_lost(documents: OpenApi) -> None:
    schemas = third(documents, "apis/apps/v1")["components"]["schemas"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert "$ref" not in strategy
    assert list(strategy["allOf"][0]) == ["$ref"]


def test_schemas_of_custom_kinds_are_those_of_the_real_server(
    documents: OpenApi,
) -> None:
    ours: JSON = {}
    for path in PLACES:
        schemas = third(documents, path)["components"]["schemas"]
        ours |= {name: each for name, each in schemas.items() if ".example." in name}
    assert plain(ours) == plain(RECORDED["v3 schemas"])


def test_schemas_of_the_old_version_are_those_of_the_real_server(
    documents: OpenApi,
) -> None:
    schemas = documents.v2()["definitions"]
    ours = {name: each for name, each in schemas.items() if ".example." in name}
    assert ours == RECORDED["v2 schemas"]


def test_an_int_or_string_says_so_to_those_who_know_only_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"port": {"x-kubernetes-int-or-string": True}},
    }
    crd = copy.deepcopy(CRDS[2])
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    made = OpenApi(
        custom_resources(crd), definitions=definitions(), custom=custom_schemas(crd)
    )
    document = third(made, "apis/alpha.example.org/v1alpha1")
    early = document["components"]["schemas"]["org.example.alpha.v1alpha1.Early"]
    either = early["properties"]["port"]["anyOf"]
    assert either == [{"type": "integer"}, {"type": "string"}]


def test_publishing_leaves_a_crd_as_it_is(documents: OpenApi) -> None:
    before = copy.deepcopy(CRDS)
    documents.v2()
    documents.v3_index()
    assert before == CRDS


@pytest.mark.parametrize("path", PLACES)
def test_whatever_can_be_patched_is_validated_by_the_server(
    documents: OpenApi, path: str
) -> None:
    document = third(documents, path)
    for methods in document["paths"].values():
        if patch := methods.get("patch"):
            names = {each["name"] for each in patch["parameters"]}
            assert {"fieldValidation", "fieldManager", "dryRun", "force"} <= names
            strategic = "application/strategic-merge-patch+json"
            understood = strategic in patch["requestBody"]["content"]
            assert understood == ("example" not in path)


def test_the_old_document_is_valid_swagger(documents: OpenApi) -> None:
    document = documents.v2()
    assert document["swagger"] == "2.0"
    assert all(looked_up(document, link) is not None for link in links(document))
    for path, methods in document["paths"].items():
        for operation in methods.values():
            given = operation["parameters"]
            within = {each["name"] for each in given if each["in"] == "path"}
            assert within == set(re.findall(r"{(\w+)}", path))
            assert sum(each["in"] == "body" for each in given) <= 1
            assert all(
                "description" in each for each in operation["responses"].values()
            )
    unsayable = {"anyOf", "oneOf", "allOf", "not", "nullable", "default"}
    for schema in document["definitions"].values():
        assert not [each for each in subschemas(schema) if unsayable & each.keys()]


def subschemas(schema: JSON) -> Iterator[JSON]:
    yield schema
    for each in schema.get("properties", {}).values():
        yield from subschemas(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from subschemas(schema[key])


def test_the_index_names_every_version_and_no_other(documents: OpenApi) -> None:
    index = documents.v3_index()["paths"]
    assert sorted(index) == sorted(PLACES)
    for path, entry in index.items():
        url = re.escape(f"/openapi/v3/{path}?hash=") + "[0-9A-F]{128}"
        assert re.fullmatch(url, entry["serverRelativeURL"])
    assert documents.v3("apps", "v2") is None


def test_the_hash_changes_with_the_content_and_only_then() -> None:
    first = openapi()
    crd = copy.deepcopy(CRDS[2])
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["description"] = "It says more now."
    other = first.changed(table(), custom={**custom(), **custom_schemas(crd)})
    before, after = first.v3_index()["paths"], other.v3_index()["paths"]
    differing = {path for path in after if before[path] != after[path]}
    assert differing == {"apis/alpha.example.org/v1alpha1"}
    assert first.changed(table(), custom=custom()).v3_index()["paths"] == before
    assert openapi().v3_index()["paths"] == before


def test_documents_without_crds_have_no_custom_kinds() -> None:
    made = openapi().changed(resources(), custom={})
    assert not [path for path in made.v3_index()["paths"] if "example" in path]


def test_every_kind_and_each_of_its_fields_is_described(documents: OpenApi) -> None:
    for resource in resources():
        place = f"apis/{resource.api_version}" if resource.group else "api/v1"
        schemas = third(documents, place)["components"]["schemas"]
        schema = schemas[resource.definition]
        for part in (schema, *schema["properties"].values()):
            assert re.fullmatch(r"[A-Z].+\.", part["description"]), resource.kind


def test_every_type_is_described_in_one_line(documents: OpenApi) -> None:
    own = set(re.findall(r'"description": "([^"]+)"', json.dumps(CRDS)))
    for path in PLACES:
        for schema in third(documents, path)["components"]["schemas"].values():
            said = schema.get("description", "It is somebody's own.")
            assert said in own or re.fullmatch(r"[A-Z].{2,118}\.", said)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("core.v1.ContainerPort", "A container port."),
        ("core.v1.EnvVar", "An env var."),
        ("core.v1.PodSpec", "What is wanted of a Pod."),
        ("core.v1.PodList", "Objects of the kind Pod."),
        ("core.v1.NFSVolumeSource", "A NFS volume source."),
    ],
)
def test_what_nobody_described_is_called_by_its_name(
    documents: OpenApi, kind: str, text: str
) -> None:
    schemas = third(documents, "api/v1")["components"]["schemas"]
    assert schemas[f"io.k8s.api.{kind}"]["description"] == text


def test_a_field_is_described_by_what_its_schema_tells(documents: OpenApi) -> None:
    schemas = third(documents, "api/v1")["components"]["schemas"]
    fields = schemas["io.k8s.api.core.v1.PodStatus"]["properties"]
    assert fields["startTime"]["description"].startswith("An instant")
    assert fields["conditions"]["description"] == "One entry for each type."
    assert "description" not in fields["phase"]


def explained(document: JSON, words: str) -> str:
    """The fields that ``kubectl explain`` shows, in its words."""
    name, *flags = words.split()
    resource, *fields = name.split(".")
    (schema,) = [
        schema
        for schema in document["components"]["schemas"].values()
        if resource in [kind["kind"].lower() for kind in schema.get(KINDS, ())]
    ]
    for field in fields:
        schema = inner(document, schema)["properties"][field]
    lines = explain(document, schema, 1, "--recursive" in flags, ())
    return "\n".join(lines)


def inner(document: JSON, schema: JSON) -> JSON:
    """What a schema is made of, behind its links, lists and maps."""
    while True:
        if "$ref" in schema:
            schema = looked_up(document, schema["$ref"])
        elif "allOf" in schema and "properties" not in schema:
            schema = schema["allOf"][0]
        elif isinstance(schema.get("items"), dict):
            schema = schema["items"]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            return schema


def explain(
    document: JSON, schema: JSON, level: int, deep: bool, above: tuple[str, ...]
) -> Iterator[str]:
    target = inner(document, schema)
    for name, each in sorted(target.get("properties", {}).items()):
        demanded = " -required-" * (name in target.get("required", ()))
        yield f"{'  ' * level}{name}\t<{shown_type(document, each)}>{demanded}"
        if values := each.get("enum"):
            told = [value or '""' for value in values[:4]]
            told += ["...."] * (len(values) > 4)
            yield f"{'  ' * level}enum: {', '.join(told)}"
        link = json.dumps(each)
        if deep and link not in above:
            yield from explain(document, each, level + 1, deep, (*above, link))


def shown_type(document: JSON, schema: JSON) -> str:
    if "items" in schema:
        return f"[]{shown_type(document, schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{shown_type(document, schema['additionalProperties'])}"
    if "allOf" in schema:
        return shown_type(document, schema["allOf"][0])
    if "$ref" in schema:
        kind = looked_up(document, schema["$ref"]).get("type", "object")
        return str(kind) if kind != "object" else schema["$ref"].rpartition(".")[2]
    kind = str(schema.get("type", "object"))
    return "Object" if kind == "object" else kind


def home(words: str) -> str:
    """The document in which something is explained."""
    resource = re.split(r"[ .]", words)[0]
    if "--api-version=" in words:
        return "apis/" + words.split("--api-version=")[1].split()[0]
    (found,) = [
        each
        for each in {each.kind: each for each in reversed(table())}.values()
        if each.singular == resource
    ]
    return f"apis/{found.api_version}" if found.group else "api/v1"


@pytest.mark.parametrize("key", EXPLAINED)
def test_the_documents_explain_what_the_real_ones_do(
    documents: OpenApi, key: str
) -> None:
    words = key.removeprefix("explain ")
    ours = explained(third(documents, home(words)), words)
    assert ours.splitlines() == RECORDED[key].splitlines()


async def test_kubectl_explains_our_kinds_as_it_does_the_real_ones(
    documents: OpenApi, tmp_path: Path
) -> None:
    with kubectl(tmp_path) as tool:
        if tool is None:
            for key in EXPLAINED:
                test_the_documents_explain_what_the_real_ones_do(documents, key)
            return
        for key in EXPLAINED:
            text = await tool.run(*key.split())
            assert fields_of(text).splitlines() == RECORDED[key].splitlines()
        text = await tool.run("explain", "deployment.spec.strategy.type")
        assert text.splitlines()[:4] == [
            "GROUP:      apps",
            "KIND:       Deployment",
            "VERSION:    v1",
            "",
        ]
        text = await tool.run("explain", "widget.spec.size")
        assert "How big." in text


async def test_kubectl_leaves_validation_to_the_server(
    documents: OpenApi, tmp_path: Path
) -> None:
    with kubectl(tmp_path) as tool:
        if tool is None:
            for path in PLACES:
                test_whatever_can_be_patched_is_validated_by_the_server(documents, path)
            return
        for obj in (POD, WIDGET):
            made = await tool.run(
                *("create", "--dry-run=client", "--validate=strict", "-o=name"),
                *("-f", "-"),
                stdin=msgspec.json.encode(obj).decode(),
            )
            assert made.strip().endswith("/web")
