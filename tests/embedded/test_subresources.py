"""What stands below objects: scales, evictions, bindings, tokens, logs, finalizers.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.asking import APPLY, JSON_PATCH, MERGE, Answer, Asker, Plain
from tests.embedded.asking import ask as ask
from tests.embedded.objects import GROUP, STRANGER, custom, deployment, gadget
from trimtab.testing import Cluster

SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and "
    "try again"
)
REVIEWS = "/apis/authentication.k8s.io/v1"


def scale(name: str, replicas: Any, **metadata: str) -> Plain:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": name, **metadata},
        "spec": {"replicas": replicas},
    }


def pod(name: str = "one", **more: Any) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "one"}},
        "spec": {"containers": [{"name": "main", "image": "x"}], **more},
    }


def owners(obj: Plain) -> set[tuple[str, str, str]]:
    """Who owns the number of replicas of an object."""
    return {
        (each["manager"], each["operation"], each.get("subresource", ""))
        for each in obj["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }


async def _scaled(ask: Asker, path: str, obj: Plain) -> str:
    made = await ask("POST", path, obj, fieldManager="maker")
    assert made.status == 201
    return f"{path}/{obj['metadata']['name']}"


@pytest.mark.parametrize("plural", ["deployments", "statefulsets", "gadgets"])
async def test_a_scale_changes_one_field_and_who_owns_it(
    cluster: Cluster, ask: Asker, plural: str
) -> None:
    path = ask.path(plural, group="apps")
    obj = deployment()
    if plural == "statefulsets":
        obj["kind"] = "StatefulSet"
    if plural == "gadgets":
        path = await custom(cluster, ask, "sizes", "Size", status={}, scale=SCALE)
        obj = {**gadget("web", spec={"replicas": 1}), "kind": "Size"}
    where = await _scaled(ask, path, obj)
    read = await ask("GET", f"{where}/scale")
    assert (read.obj["kind"], read.obj["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert read.obj["spec"] == {"replicas": 1}

    async def then(answer: Answer, replicas: int, owner: tuple[str, str, str]) -> None:
        assert (answer.status, answer.obj["spec"]) == (200, {"replicas": replicas})
        now = (await ask("GET", where)).obj
        assert now["spec"]["replicas"] == replicas
        assert owners(now) == {owner}

    put = await ask("PUT", f"{where}/scale", scale("web", 3), fieldManager="put")
    await then(put, 3, ("put", "Update", "scale"))
    patch: Any = {"spec": {"replicas": 4}}
    patched = await ask(
        "PATCH", f"{where}/scale", patch, media=MERGE, fieldManager="merge"
    )
    await then(patched, 4, ("merge", "Update", "scale"))
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 6}]
    patched = await ask(
        "PATCH", f"{where}/scale", patch, media=JSON_PATCH, fieldManager="json"
    )
    await then(patched, 6, ("json", "Update", "scale"))
    assert (await ask("GET", where)).meta["generation"] == 4


async def test_an_applied_scale_is_owned(ask: Asker) -> None:
    where = await _scaled(ask, ask.path("deployments", group="apps"), deployment())

    async def apply(**query: str) -> Answer:
        return await ask(
            "PATCH", f"{where}/scale", scale("web", 5), media=APPLY, **query
        )

    refused = await apply(fieldManager="me")
    told = 'conflict with "maker" using autoscaling/v1'
    assert refused.status == 409
    assert refused.causes == [("FieldManagerConflict", ".spec.replicas", told)]
    assert (await apply(fieldManager="me", force="true")).status == 200
    now = (await ask("GET", where)).obj
    assert owners(now) == {("me", "Apply", "scale")}
    assert now["spec"]["replicas"] == 5
    assert (await apply()).refusal[:2] == (422, "Invalid")


async def test_a_scale_is_about_the_object_and_its_version(ask: Asker) -> None:
    where = await _scaled(ask, ask.path("deployments", group="apps"), deployment())
    about = 'Operation cannot be fulfilled on deployments.apps "web": '
    for body, refusal in (
        (scale("web", 7, resourceVersion="1"), (409, "Conflict", about + MODIFIED)),
        (
            scale("web", -1),
            (
                422,
                "Invalid",
                (
                    'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: '
                    "-1: must be greater than or equal to 0"
                ),
            ),
        ),
        (
            scale("other", 1),
            (
                400,
                "BadRequest",
                (
                    "the name of the object (other) does not match the name on the URL "
                    "(web)"
                ),
            ),
        ),
    ):
        assert (await ask("PUT", f"{where}/scale", body)).refusal == refusal
    refused = await ask("PUT", f"{where}/scale", scale("web", 1, uid=STRANGER))
    assert refused.refusal[:2] == (409, "Conflict")
    assert f"UID in precondition: {STRANGER}" in refused.refusal[2]
    dry = await ask("PUT", f"{where}/scale", scale("web", 2), dryRun="All")
    assert dry.obj["spec"] == {"replicas": 2}
    assert (await ask("GET", f"{where}/scale")).obj["spec"] == {"replicas": 1}
    absent = await ask("GET", f"{ask.path('deployments', group='apps')}/no/scale")
    assert absent.refusal == (404, "NotFound", 'deployments.apps "no" not found')
    assert (await ask("DELETE", f"{where}/scale")).refusal[:2] == (
        405,
        "MethodNotAllowed",
    )


async def test_a_custom_scale_may_be_written_where_none_is_read(
    cluster: Cluster, ask: Asker
) -> None:
    path = await custom(cluster, ask, "sizes", "Size", status={}, scale=SCALE)
    where = await _scaled(ask, path, {**gadget("web"), "kind": "Size"})
    unread = await ask("GET", f"{where}/scale")
    assert unread.refusal == (
        500,
        "InternalError",
        (
            'Internal error occurred: the spec replicas field ".spec.replicas" does '
            "not exist"
        ),
    )
    negative = await ask("PUT", f"{where}/scale", scale("web", -1))
    assert negative.refusal == (
        422,
        "Invalid",
        (
            f'Size.{GROUP} "web" is invalid: .spec.replicas: Invalid value: -1: should '
            "be a non-negative integer"
        ),
    )
    written = await ask("PUT", f"{where}/scale", scale("web", 3))
    assert written.obj["spec"] == {"replicas": 3}


# Evictions


def eviction(name: str = "one", /, **more: Any) -> Plain:
    meta = {"name": name}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, **more}


NOW: Plain = {"deleteOptions": {"gracePeriodSeconds": 0}}


async def test_an_eviction_without_a_budget_deletes(ask: Asker) -> None:
    path = ask.path("pods")
    await ask("POST", path, pod())
    where = f"{path}/one/eviction"
    refused = await ask("POST", where, eviction("other"))
    told = "name in URL does not match name in Eviction object"
    assert refused.refusal == (400, "BadRequest", told)
    absent = await ask("POST", f"{path}/no/eviction", eviction("no"))
    assert absent.refusal == (404, "NotFound", 'pods "no" not found')
    other: Plain = {"deleteOptions": {"preconditions": {"uid": STRANGER}}}
    refused = await ask("POST", where, eviction(**other))
    assert refused.refusal[:2] == (409, "Conflict")
    assert (await ask("POST", where, eviction(), dryRun="All")).status == 201
    assert (await ask("GET", f"{path}/one")).status == 200
    evicted = await ask("POST", where, eviction(**NOW))
    assert (evicted.status, evicted.obj["status"]) == (201, "Success")
    assert (await ask("GET", f"{path}/one")).status == 404


async def test_an_eviction_spends_what_the_budget_allows(ask: Asker) -> None:
    path, budgets = ask.path("pods"), ask.path("poddisruptionbudgets", group="policy")
    await ask("POST", path, pod())
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}
    budget = {"metadata": {"name": "few"}, "spec": spec}
    await ask("POST", budgets, budget)
    ready = [{"type": "Ready", "status": "True"}]
    phase = {"status": {"phase": "Running", "conditions": ready}}
    await ask("PATCH", f"{path}/one/status", phase, media=MERGE)
    await ask("POST", path, pod("two"))
    phase = {"status": {"phase": "Running"}}
    await ask("PATCH", f"{path}/two/status", phase, media=MERGE)

    async def allows(count: int) -> None:
        status = {
            "observedGeneration": 1,
            "disruptionsAllowed": count,
            "currentHealthy": 1 + count,
            "desiredHealthy": 1,
            "expectedPods": 2,
        }
        where = f"{budgets}/few/status"
        assert (
            await ask("PATCH", where, {"status": status}, media=MERGE)
        ).status == 200

    async def left() -> int:
        found: int = (await ask("GET", f"{budgets}/few")).obj["status"][
            "disruptionsAllowed"
        ]
        return found

    await allows(0)
    for query in ({}, {"dryRun": "All"}):
        refused = await ask("POST", f"{path}/one/eviction", eviction(), **query)
        assert refused.refusal == (
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        )
        assert refused.causes == [
            (
                "DisruptionBudget",
                "",
                "The disruption budget few needs 1 healthy pods and has 1 currently",
            )
        ]
    # One that is not ready goes for free while enough others are.
    assert (await ask("POST", f"{path}/two/eviction", eviction("two"))).status == 201
    await allows(1)
    dry = await ask("POST", f"{path}/one/eviction", eviction(), dryRun="All")
    assert (dry.status, await left()) == (201, 1)
    evicted = await ask("POST", f"{path}/one/eviction", eviction(**NOW))
    assert (evicted.status, await left()) == (201, 0)
    assert (await ask("GET", f"{path}/one")).status == 404


# Bindings


def binding(name: str = "one", **more: Any) -> Plain:
    target = {"kind": "Node", "name": "node"}
    meta = {"name": name}
    obj = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    return {**obj, **more}


async def test_a_pod_is_bound_once(ask: Asker) -> None:
    path = ask.path("pods")
    await ask("POST", path, pod())
    where = f"{path}/one/binding"
    for body, refusal in (
        (binding(target={}), (500, "", "target.name: Required value")),
        (
            binding(target={"kind": "Pod", "name": "x"}),
            (
                500,
                "",
                (
                    'target.kind: Unsupported value: "Pod": supported values: "Node", '
                    '"<empty>"'
                ),
            ),
        ),
        (
            binding("other"),
            (400, "BadRequest", "name in URL does not match name in Binding object"),
        ),
    ):
        assert (await ask("POST", where, body)).refusal == refusal
    assert (await ask("POST", where, binding(), dryRun="All")).status == 201
    assert "nodeName" not in (await ask("GET", f"{path}/one")).obj["spec"]
    assert (await ask("POST", where, binding())).status == 201
    bound = (await ask("GET", f"{path}/one")).obj
    assert bound["spec"]["nodeName"] == "node"
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    again = await ask("POST", where, binding())
    assert again.refusal == (
        409,
        "Conflict",
        (
            'Operation cannot be fulfilled on pods/binding "one": pod one is already '
            'assigned to node "node"'
        ),
    )


# Tokens


async def test_a_token_is_for_whom_and_as_long_as_it_says(ask: Asker) -> None:
    accounts = ask.path("serviceaccounts")
    await ask("POST", accounts, {"metadata": {"name": "me"}})
    where = f"{accounts}/me/token"

    async def request(**spec: Any) -> Answer:
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        return await ask("POST", where, {**kind, "spec": spec})

    async def review(token: str, **spec: Any) -> Plain:
        body = {"spec": {"token": token, **spec}}
        answer = await ask("POST", f"{REVIEWS}/tokenreviews", body)
        found: Plain = answer.obj["status"]
        return found

    short = await request(expirationSeconds=599)
    assert short.refusal == (
        422,
        "Invalid",
        (
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
            "Invalid value: 599: may not specify a duration less than 10 minutes"
        ),
    )
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "no"}
    absent = await request(boundObjectRef=bound)
    assert absent.refusal == (404, "NotFound", 'pods "no" not found')
    ours = (await request()).obj["status"]["token"]
    theirs = await request(audiences=["them"], expirationSeconds=700)
    assert theirs.obj["spec"]["audiences"] == ["them"]
    assert theirs.obj["spec"]["expirationSeconds"] == 700
    token = theirs.obj["status"]["token"]
    found = await review(ours)
    assert found["authenticated"] is True
    name = f"system:serviceaccount:{ask.namespace}:me"
    assert found["user"]["username"] == name
    assert found["user"]["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{ask.namespace}",
        "system:authenticated",
    ]
    for refused in (
        await review(token),
        await review(ours, audiences=["them"]),
        await review("no token at all"),
    ):
        assert "authenticated" not in refused
        assert "invalid bearer token" in refused["error"]
    meant = await review(token, audiences=["them", "others"])
    assert (meant["authenticated"], meant["audiences"]) == (True, ["them"])
    empty = await ask("POST", f"{REVIEWS}/tokenreviews", {"spec": {}})
    told = "token is required for TokenReview in authentication"
    assert empty.refusal == (400, "BadRequest", told)


async def test_a_client_may_ask_who_it_is(ask: Asker) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await ask("POST", f"{REVIEWS}/selfsubjectreviews", body)
    user = answer.obj["status"]["userInfo"]
    assert answer.status == 201
    assert "system:authenticated" in user["groups"]
    assert user["username"]


# Logs and namespaces


async def test_logs_are_of_one_container_of_a_pod_that_is_there(ask: Asker) -> None:
    path = ask.path("pods")
    both = [{"name": "x", "image": "i"}, {"name": "y", "image": "i"}]
    await ask("POST", path, pod(containers=both))
    absent = await ask("GET", f"{path}/no/log")
    assert absent.refusal == (404, "NotFound", 'pods "no" not found')
    unnamed = await ask("GET", f"{path}/one/log")
    told = "a container name must be specified for pod one, choose one of: [x y]"
    assert unnamed.refusal == (400, "BadRequest", told)
    unknown = await ask("GET", f"{path}/one/log", container="z")
    told = "container z is not valid for pod one"
    assert unknown.refusal == (400, "BadRequest", told)


async def test_a_namespace_is_finalized_apart(ask: Asker) -> None:
    where = f"/api/v1/namespaces/{ask.namespace}"
    obj = (await ask("GET", where)).obj
    more = {**obj, "spec": {"finalizers": ["kubernetes", "example.com/hold"]}}
    finalized = await ask("PUT", f"{where}/finalize", more)
    assert finalized.obj["spec"] == more["spec"]
    put = {**finalized.obj, "spec": {}, "metadata": {"name": ask.namespace}}
    assert (await ask("PUT", where, put)).obj["spec"] == more["spec"]
    now = (await ask("GET", where)).obj
    back = await ask("PUT", f"{where}/finalize", {**now, "spec": obj["spec"]})
    assert back.obj["spec"] == obj["spec"]
