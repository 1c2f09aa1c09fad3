"""What was stored under an older schema is read by the present one.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.definitions import structure
from tests.embedded.asking import MERGE, Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, custom
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster

PLURAL = "revisions"


def revision(name: str) -> Plain:
    made = {"apiVersion": f"{GROUP}/v1", "kind": "Revision", "metadata": {"name": name}}
    return {**made, "spec": {"size": 1, "replicas": 2}}


async def redefine(ask: Asker, **fields: Plain) -> None:
    """Give the spec of the kind other fields."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}"
    found = (await ask("GET", path)).obj
    [version] = found["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"] = structure(**fields)
    changed = await ask("PATCH", path, {"spec": found["spec"]}, media=MERGE)
    assert changed.status == 200


async def test_what_was_stored_is_pruned_and_defaulted_by_the_schema_of_today(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, PLURAL, "Revision")
    old = (await ask("POST", path, revision("old"))).obj
    await redefine(
        ask,
        size={"type": "integer"},
        colour={"type": "string", "default": "red"},
        deep={
            **structure(inner={"type": "integer", "default": 3}),
            "default": {},
        },
    )
    wanted = {"size": 1, "colour": "red", "deep": {"inner": 3}}

    async def is_read_anew() -> bool:
        return bool((await ask("GET", f"{path}/old")).obj["spec"] == wanted)

    await eventually(is_read_anew, within=20)
    read = (await ask("GET", f"{path}/old")).obj
    version = old["metadata"]["resourceVersion"]
    assert read["metadata"]["resourceVersion"] == version, "nothing was written"
    [listed] = (await ask("GET", path)).obj["items"]
    assert listed["spec"] == wanted
    await ask("POST", path, {**revision("new"), "spec": {"colour": "blue"}})
    [new, again] = (await ask("GET", path)).obj["items"]
    assert new["spec"] == {"colour": "blue", "deep": {"inner": 3}}
    assert again["spec"] == wanted
