"""What an apply answers and leaves behind, in the words of a real server.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.embedded.asking import APPLY, Answer, Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import STRANGER, config_map, deployment, meta_map


async def test_an_apply_creates_and_then_owns(ask: Asker) -> None:
    where = f"{ask.path('configmaps')}/one"

    async def apply(value: str, manager: str, **query: str) -> Answer:
        body = config_map("one", data={"a": value})
        return await ask(
            "PATCH", where, body, media=APPLY, fieldManager=manager, **query
        )

    assert (await apply("1", "one")).status == 201
    assert (await apply("1", "one")).status == 200
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
    assert (refused.status, refused.obj["message"]) == refusal


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
