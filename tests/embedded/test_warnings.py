"""What whoever writes a good object is warned of all the same.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import json

from tests.embedded.asking import APPLY, JSON_PATCH, MERGE, Answer, Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, config_map, custom, definition, gadget
from trimtab.testing import Cluster, eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOR = (
    'metadata.finalizers: "{}": prefer a domain-qualified finalizer name{} to avoid '
    "accidental conflicts with other finalizer writers"
)
TWICE = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix "
    "your requests; duplicate UID(s) observed: {}"
)


def told(answer: Answer) -> list[str]:
    return [json.loads(each.removeprefix("299 - ")) for each in answer.warnings]


def owned(obj: Plain, owners: list[Plain]) -> Plain:
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}


async def test_an_owner_is_kept_once(cluster: Cluster, ask: Asker) -> None:
    path = ask.path("configmaps")
    first, second = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": name,
            "uid": (await ask("POST", path, config_map(name))).meta["uid"],
        }
        for name in ("first", "second")
    ]
    uids = ", ".join(each["uid"] for each in (first, second, first))
    several = [first, second, first, second, first]
    things = await custom(cluster, ask, "owneds", "Owned")
    for where, obj in (
        (path, config_map()),
        (things, {**gadget(), "kind": "Owned"}),
    ):
        made = await ask("POST", where, owned(obj, several))
        assert made.meta["ownerReferences"] == [first, second]
        assert told(made) == [TWICE.format("", uids)]
        put = await ask("PUT", f"{where}/one", owned(made.obj, several))
        assert put.meta["ownerReferences"] == [first, second]
        assert told(put) == [TWICE.format("", uids)]
        patch = {"metadata": {"ownerReferences": [first, first]}}
        patched = await ask("PATCH", f"{where}/one", patch, media=MERGE)
        assert patched.meta["ownerReferences"] == [first]
        when = " after mutating admission happens"
        assert told(patched) == [TWICE.format(when, first["uid"])]
        other = {**first, "controller": True}
        put = await ask("PUT", f"{where}/one", owned(patched.obj, [first, other]))
        assert (put.status, told(put)) == (200, [])
        assert put.meta["ownerReferences"] == [first, other]


async def test_new_finalizers_with_poor_names_are_told_of(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "finals", "Final", status={})

    def final(name: str, *finalizers: str) -> Plain:
        meta = {"name": name, "finalizers": list(finalizers)}
        return {**gadget(metadata=meta), "kind": "Final"}

    made = await ask("POST", path, final("one", "foo", "example.com", "example.com/a"))
    with_path = POOR.format("example.com", " including a path (/)")
    assert told(made) == [with_path, POOR.format("foo", "")]
    meant = await ask("POST", path, final("two", "foo"), dryRun="All")
    assert told(meant) == [POOR.format("foo", "")]
    same = await ask("PATCH", f"{path}/one", {"spec": {"size": 2}}, media=MERGE)
    assert (same.status, told(same)) == (200, [])
    state = {"metadata": {"finalizers": ["bar"]}, "status": {"seen": True}}
    same = await ask("PATCH", f"{path}/one/status", state, media=MERGE)
    assert (same.status, told(same)) == (200, [])
    applied = await ask(
        "PATCH", f"{path}/six", final("six", "foo"), media=APPLY, fieldManager="me"
    )
    assert told(applied) == [POOR.format("foo", "")]
    refused = await ask("POST", path, {**final("bad", "foo"), "spec": {"size": "x"}})
    assert (refused.status, told(refused)) == (422, [])
    for name in ("one", "six"):
        patch = {"metadata": {"finalizers": None}}
        await ask("PATCH", f"{path}/{name}", patch, media=MERGE)


async def test_a_definition_with_a_format_that_means_nothing_is_told_of(
    ask: Asker,
) -> None:
    crd = definition("formats", "Format")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    fields = schema["properties"]["spec"]["properties"]
    fields["f"] = {"type": "string", "format": "zippy"}
    made = await ask("POST", CRDS, crd)
    assert (made.status, told(made)) == (201, ['unrecognized format "zippy"'])
    where = f"{CRDS}/formats.{GROUP}"
    patch = {"metadata": {"labels": {"a": "b"}}}
    patched = await ask("PATCH", where, patch, media=MERGE)
    assert (patched.status, told(patched)) == (200, [])
    await ask("DELETE", where)


async def test_a_rule_that_an_old_object_breaks_is_only_told_of(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "rules", "Rule", status={})
    old = {**gadget(spec={"size": 5}), "kind": "Rule"}
    assert (await ask("POST", path, old)).status == 201
    where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
    rule = {"rule": "self.size < 3", "message": "too big"}
    operation = {
        "op": "add",
        "path": f"{where}/x-kubernetes-validations",
        "value": [rule],
    }
    await ask("PATCH", f"{CRDS}/rules.{GROUP}", [operation], media=JSON_PATCH)

    async def is_checked() -> bool:
        return (await ask("POST", path, old, dryRun="All")).status == 422

    await eventually(is_checked, within=20)
    patch: Plain = {"metadata": {"labels": {"a": "b"}}}
    patched = await ask("PATCH", f"{path}/one", patch, media=MERGE)
    assert (patched.status, told(patched)) == (200, ["spec: Invalid value: too big"])
    patch = {"status": {"seen": True}}
    patched = await ask("PATCH", f"{path}/one/status", patch, media=MERGE)
    assert (patched.status, told(patched)) == (200, ["spec: Invalid value: too big"])
