"""Objects with holes where others have names, schemas or hosts are refused in words.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.embedded.asking import Asker, Plain, ask
from tests.embedded.protobuf_bodies import samples, without_nulls

__all__ = ["ask"]

SCHEMA = "spec.validation.openAPIV3Schema.properties[spec].properties"
FORM = "; desired format: https://host[/path]"


def sample(kind: str) -> Plain:
    found = next(each for each in samples() if each.kind == kind)
    obj: Plain = deepcopy(without_nulls(found.object))
    return obj


def definition(*, owners: Any = None, version: Any = None, tags: Any = None) -> Plain:
    """A CRD that has something else in one of these places."""
    crd = sample("CustomResourceDefinition")
    if owners is not None:
        crd["metadata"]["ownerReferences"] = owners
    crd["spec"]["versions"][0].update(version or {})
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"].update(tags or {})
    return crd


@pytest.mark.parametrize(
    ("crd", "fields"),
    [
        (definition(version={"name": None}), ["spec.versions[0].name"]),
        (
            definition(owners=[{"kind": "A"}]),
            [
                f"metadata.ownerReferences.{name}"
                for name in ("apiVersion", "name", "uid")
            ],
        ),
        (definition(tags={"tags": None}), [f"{SCHEMA}[tags].type"]),
    ],
    ids=["version", "owner", "schema"],
)
async def test_a_definition_with_a_hole_is_refused(
    ask: Asker, crd: Plain, fields: list[str]
) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await ask("POST", path, crd)
    assert answer.status == 422
    assert [field for _, field, _ in answer.causes] == fields


async def test_a_definition_may_have_a_hole_among_alternatives(ask: Asker) -> None:
    more = {"type": "object", "anyOf": [None, {"minProperties": 1}]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await ask("POST", path, definition(tags={"more": more}), dryRun="All")
    assert answer.status == 201, answer.obj
    schema = answer.obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    told = schema["properties"]["spec"]["properties"]["more"]
    assert told["anyOf"] == [{}, {"minProperties": 1}]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://127.0.0.1[1/", "invalid IP-literal"),
        ("https://[::1", "missing ']' in host"),
        ("https://a:b/", 'invalid port ":b" after host'),
    ],
    ids=["bracket", "open", "port"],
)
async def test_a_webhook_of_no_address_is_refused(
    ask: Asker, url: str, why: str
) -> None:
    configuration = sample("ValidatingWebhookConfiguration")
    configuration["webhooks"][0]["clientConfig"] = {"url": url}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    answer = await ask("POST", path, configuration, dryRun="All")
    told = f'Required value: url must be a valid URL: parse "{url}": {why}{FORM}'
    assert answer.status == 422
    assert answer.causes == [
        ("FieldValueRequired", "webhooks[0].clientConfig.url", told)
    ]
