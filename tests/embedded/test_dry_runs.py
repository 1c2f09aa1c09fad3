"""What is told of a write before it is kept: dry runs and unknown fields.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json

import pytest

from tests.embedded.asking import APPLY, MERGE, STRATEGIC, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import config_map, deployment


async def test_a_dry_run_answers_and_keeps_nothing(ask: Asker) -> None:
    path = ask.path("configmaps")
    dry = await ask("POST", path, config_map("one"), dryRun="All")
    assert dry.status == 201
    assert dry.meta["uid"]
    assert "resourceVersion" not in dry.meta
    assert (await ask("GET", f"{path}/one")).status == 404
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
    assert (await ask("DELETE", f"{path}/one", dryRun="All")).status == 200
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    assert (await ask("DELETE", f"{path}/one", body)).status == 200
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
        assert warned.status in (200, 201)
        quoted = [f"299 - {json.dumps(each)}" for each in unknown]
        assert list(warned.warnings) == quoted
    ignored = await ask(method, where, body, fieldValidation="Ignore", dryRun="All")
    assert ignored.status in (200, 201)
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
