"""What the three kinds of patches answer, in the words of a real server.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Asker,
    Plain,
)
from tests.embedded.asking import ask as ask
from tests.embedded.objects import STRANGER, config_map, custom, deployment, gadget
from trimtab.testing import Cluster


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
    assert (refused.status, refused.obj["message"]) == refusal
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
