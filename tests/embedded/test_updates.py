"""What replacing answers and leaves behind: versions, generations, status.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from tests.embedded.asking import APPLY, MERGE, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import (
    GROUP,
    STRANGER,
    config_map,
    custom,
    deployment,
    gadget,
    meta_map,
)
from trimtab.testing import Cluster

SPECIFIED = (
    "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
)


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
        assert (replaced.status, replaced.obj["data"]) == (200, {"a": value})
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
    assert dry.status == 201
    assert (await ask("GET", f"{path}/one")).status == 404
    assert (await ask("PUT", f"{path}/one", made)).status == 201


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
