"""Laws of what a server says about itself, whatever kinds come and go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import JSON_PATCH, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.test_deletion import definition
from trimtab.testing import eventually

GROUP = "documents.tests.trimtab.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_the_version_is_of_kubernetes(ask: Asker) -> None:
    version = (await ask("GET", "/version")).obj
    assert version.keys() == {
        "major",
        "minor",
        "emulationMajor",
        "emulationMinor",
        "minCompatibilityMajor",
        "minCompatibilityMinor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    }
    assert version["gitVersion"].startswith(f"v1.{version['minor']}.")


@pytest.mark.parametrize("where", ["healthz", "livez", "readyz"])
async def test_health_is_one_word_or_many_lines(ask: Asker, where: str) -> None:
    for path in (where, f"{where}/ping", f"{where}/etcd"):
        reply = await ask("GET", f"/{path}")
        assert (reply.status, reply.body) == (200, b"ok")
        assert reply.media == "text/plain; charset=utf-8"
    lines = (await ask("GET", f"/{where}?verbose")).body.decode().splitlines()
    assert lines[0] == "[+]ping ok"
    assert "[+]etcd ok" in lines
    assert lines[-1] == f"{where} check passed"
    assert (await ask("GET", f"/{where}/nothing")).status == 404


async def test_the_root_lists_every_group_and_version(ask: Asker) -> None:
    paths = (await ask("GET", "/")).obj["paths"]
    assert paths == sorted(paths)
    wanted = {"/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/version"}
    assert wanted <= set(paths)
    groups = (await ask("GET", "/apis")).obj["groups"]
    for group in groups:
        assert f"/apis/{group['name']}" in paths
        for version in group["versions"]:
            assert f"/apis/{version['groupVersion']}" in paths


@pytest.mark.parametrize(
    "path", ["/api/v1/nothings", "/apis/apps/v9/deployments", "/apis/apps/v1/nothings"]
)
async def test_an_unknown_resource_of_a_known_group_is_not_found(
    ask: Asker, path: str
) -> None:
    reply = await ask("GET", path)
    assert reply.status == 404
    assert reply.obj == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server could not find the requested resource",
        "reason": "NotFound",
        "details": {},
        "code": 404,
    }


@pytest.mark.parametrize("path", ["/apis/no.such.group/v1/things", "/apis/no.such/v1"])
async def test_an_unknown_group_is_no_page(ask: Asker, path: str) -> None:
    reply = await ask("GET", path)
    assert (reply.status, reply.body) == (404, b"404 page not found\n")


def our_definition() -> dict[str, Any]:
    made = definition("leaves")
    made["spec"]["group"] = GROUP
    made["metadata"]["name"] = f"leaves.{GROUP}"
    return made


async def test_a_kind_comes_and_goes_with_its_definition(ask: Asker) -> None:
    """In discovery of the group, of all groups, and in OpenAPI."""
    where = f"apis/{GROUP}/v1"

    async def seen() -> tuple[bool, bool, bool]:
        groups = (await ask("GET", "/apis")).obj["groups"]
        index = (await ask("GET", "/openapi/v3")).obj["paths"]
        return (
            (await ask("GET", f"/{where}")).status == 200,
            GROUP in [group["name"] for group in groups],
            where in index,
        )

    async def is_there() -> bool:
        return await seen() == (True, True, True)

    async def is_gone() -> bool:
        return await seen() == (False, False, False)

    assert await is_gone()
    assert (await ask("POST", DEFINITIONS, our_definition())).status == 201
    await eventually(is_there, within=30)
    resources = (await ask("GET", f"/{where}")).obj["resources"]
    assert [each["name"] for each in resources] == ["leaves"]
    await ask("DELETE", f"{DEFINITIONS}/leaves.{GROUP}")
    await eventually(is_gone, within=60)


async def test_the_address_of_a_schema_changes_with_it(ask: Asker) -> None:
    body = our_definition()
    body["spec"]["group"] = group = f"more.{GROUP}"
    body["metadata"]["name"] = name = f"leaves.{group}"
    await ask("POST", DEFINITIONS, body)

    async def address() -> str:
        index = (await ask("GET", "/openapi/v3")).obj["paths"]
        found: str = index.get(f"apis/{group}/v1", {}).get("serverRelativeURL", "")
        return found

    first = await eventually(address, within=30)
    others = (await ask("GET", "/openapi/v3")).obj["paths"]["api/v1"]
    change = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/description",
            "value": "It was changed.",
        }
    ]
    changed = await ask("PATCH", f"{DEFINITIONS}/{name}", change, media=JSON_PATCH)
    assert changed.status == 200

    async def has_changed() -> bool:
        return await address() != first

    await eventually(has_changed, within=30)
    assert (await ask("GET", "/openapi/v3")).obj["paths"]["api/v1"] == others
    await ask("DELETE", f"{DEFINITIONS}/{name}")
