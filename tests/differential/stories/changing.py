"""Changing: updates, patches, status and scale, preconditions, managed fields."""

from __future__ import annotations

from tests.differential.kinds import SAMPLES, sample, typed
from tests.differential.scenario import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Run,
    scenario,
)
from tests.differential.stories.applying import named
from tests.differential.wire import Plain

TWO = ("configmaps", "things")


@scenario
def updates_and_their_preconditions(do: Run) -> None:
    for plural in (*TWO, "services", "leases"):
        made = do.create(plural, sample(plural))
        target = f"{plural}/a"
        do("PUT", target, made)
        changed = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
        now = do("PUT", target, changed).obj
        do("PUT", target, changed)
        meta = now["metadata"]
        others: list[Plain] = [
            {"resourceVersion": ""},
            {"resourceVersion": "0"},
            {"resourceVersion": "x"},
            {"uid": "11111111-2222-3333-4444-555555555555"},
            {"name": "b"},
            {"name": ""},
            {"namespace": "other"},
            {"namespace": ""},
            {"creationTimestamp": None},
            {"managedFields": []},
            {"managedFields": [{}]},
            {"managedFields": None},
            {"generation": 99},
            {"finalizers": ["a.b/c"]},
            {"deletionTimestamp": "2001-01-01T00:00:00Z"},
            {"ownerReferences": []},
        ]
        for other in others:
            do("PUT", target, {**now, "metadata": {**meta, **other}})
        do("PUT", f"{plural}/none", sample(plural, "none"))
        do("PUT", target, sample(plural))
        do.patch(target, {"metadata": {"finalizers": None}})


@scenario
def patches_of_each_sort(do: Run) -> None:
    for plural in (*TWO, "deployments"):
        do.create(plural, sample(plural))
        target = f"{plural}/a"
        for media in (MERGE, STRATEGIC, JSON_PATCH, APPLY):
            for body in (
                {},
                [],
                None,
                {"metadata": {"labels": {"a": "b"}}},
                [{"op": "add", "path": "/metadata/labels", "value": {"c": "d"}}],
                {"metadata": {"name": "other"}},
                {"metadata": {"resourceVersion": "1"}},
                {"metadata": {"uid": "other"}},
                {"kind": "Other"},
                {"apiVersion": "other/v1"},
                {"metadata": None},
                {"spec": "text"},
                {"unknown": 1},
                "text",
                1,
            ):
                text = body if body is not None else b"null"
                do.patch(target, b'"text"' if text == "text" else text, media)
            for raw in (b"", b"{", b"{}x", b"\xff"):
                do.patch(target, raw, media)


@scenario
def json_patches(do: Run) -> None:
    for plural in TWO:
        do.create(plural, sample(plural, annotations={"a/b": "1", "t.x": "2"}))
        for operations in (
            [{"op": "test", "path": "/metadata/name", "value": "a"}],
            [{"op": "test", "path": "/metadata/name", "value": "b"}],
            [{"op": "test", "path": "/metadata/none", "value": None}],
            [{"op": "test", "path": "/none/none", "value": 1}],
            [{"op": "remove", "path": "/metadata/none"}],
            [{"op": "remove", "path": "/metadata/annotations/a~1b"}],
            [{"op": "replace", "path": "/metadata/annotations/t.x", "value": "3"}],
            [{"op": "replace", "path": "/metadata/none", "value": "3"}],
            [{"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]}],
            [{"op": "add", "path": "/metadata/finalizers/-", "value": "a.b/d"}],
            [{"op": "add", "path": "/metadata/finalizers/0", "value": "a.b/e"}],
            [{"op": "add", "path": "/metadata/finalizers/9", "value": "a.b/f"}],
            [{"op": "add", "path": "/metadata/finalizers/-1", "value": "a.b/g"}],
            [{"op": "remove", "path": "/metadata/finalizers/1"}],
            [{"op": "remove", "path": "/metadata/finalizers/7"}],
            [
                {
                    "op": "copy",
                    "from": "/metadata/name",
                    "path": "/metadata/annotations/n",
                }
            ],
            [
                {
                    "op": "move",
                    "from": "/metadata/annotations/n",
                    "path": "/metadata/annotations/m",
                }
            ],
            [{"op": "move", "from": "/none", "path": "/x"}],
            [{"op": "odd", "path": "/metadata"}],
            [{"op": "add", "value": 1}],
            [{"path": "/metadata"}],
            [{"op": "add", "path": "metadata", "value": 1}],
            [{"op": "add", "path": "", "value": {}}],
            [{"op": "remove", "path": ""}],
            [{"op": "add", "path": "/metadata/labels/a/b", "value": "x"}],
            [{"op": "add", "path": "/metadata/annotations/z"}],
            [{"op": "remove", "path": "/metadata/finalizers"}],
            [{"op": "test", "path": "/metadata/name", "value": "a"}] * 10001,
            ["text"],
            [None],
        ):
            do.patch(f"{plural}/a", operations, JSON_PATCH)


def _pod(spec: Plain) -> Plain:
    return {"spec": {"template": {"spec": spec}}}


@scenario
def strategic_patches(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    target = "deployments/a"
    bodies: list[Plain] = [
        _pod({"containers": [{"name": "main", "image": "img:2"}]}),
        _pod({"containers": [{"name": "side", "image": "img:3"}]}),
        _pod({"containers": [{"image": "img:3"}]}),
        _pod({"containers": [{"name": "side", "$patch": "delete"}]}),
        _pod({"containers": [{"name": "none", "$patch": "delete"}]}),
        _pod({"containers": [{"$patch": "replace"}, {"name": "x", "image": "i"}]}),
        _pod({"$setElementOrder/containers": [{"name": "main"}, {"name": "x"}]}),
        _pod({"$retainKeys": ["containers"], "containers": [{"name": "x"}]}),
        _pod({"volumes": [{"name": "v", "emptyDir": {}}]}),
        _pod({"volumes": [{"name": "v", "emptyDir": None, "hostPath": {"path": "/"}}]}),
        _pod({"tolerations": [{"key": "a"}]}),
        _pod({"containers": [{"name": "x", "env": [{"name": "A", "value": "1"}]}]}),
        _pod(
            {"containers": [{"name": "x", "env": [{"name": "A", "$patch": "delete"}]}]}
        ),
        {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c", "a.b/d"]}},
        {"metadata": {"labels": {"$patch": "replace", "only": "this"}}},
        {"$patch": "delete"},
        {"$patch": "odd"},
        {"spec": {"strategy": {"type": "Recreate"}}},
        {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
        {"spec": {"replicas": "x"}},
        {"spec": {"replicas": None}},
        {"spec": {"replicas": 3000000000}},
        {"spec": {"replicas": 1.5}},
        {"spec": {"paused": "x"}},
        {"spec": {"template": []}},
        _pod({"containers": {}}),
        _pod({"containers": ["x"]}),
        _pod({"containers": None}),
    ]
    for body in bodies:
        do.patch(target, body, STRATEGIC)


@scenario
def status_is_written_apart(do: Run) -> None:
    thing = {**sample("things"), "status": {"phase": "ignored"}}
    do.create("things", thing)
    do("PUT", "things/a", {**thing, "spec": {"text": "b"}})
    do("PUT", "things/a/status", {**thing, "spec": {"text": "c"}})
    do.patch("things/a/status", {"status": {"replicas": 2}, "spec": {"text": "d"}})
    do.patch("things/a/status", {"metadata": {"labels": {"a": "b"}}})
    do.patch("things/a", {"status": {"phase": "no"}})
    do.apply("things/a/status", named("things", status={"conditions": [{"type": "A"}]}))
    do.apply("things/a/status", named("things", spec={"text": "x"}), "bob")
    do.get("things/a/status")
    do("DELETE", "things/a/status")
    deployment = do.create("deployments", sample("deployments"))
    with_status = {**deployment, "status": {"replicas": 3, "observedGeneration": 1}}
    do("PUT", "deployments/a", with_status)
    do("PUT", "deployments/a/status", {**with_status, "spec": {}})
    do("PUT", "deployments/a/status", {**sample("deployments"), "status": {}})
    do.patch("deployments/a/status", {"status": {"replicas": -1}})
    do.patch("deployments/a/status", {"status": {"replicas": 4}}, STRATEGIC)
    do.patch("deployments/a/status", {"metadata": {"labels": {"a": "b"}}})
    do.apply("deployments/a/status", named("deployments", status={"readyReplicas": 1}))
    do.get("deployments/a/status")
    do.create("pods", {**sample("pods"), "status": {"phase": "Running"}})
    do.patch("pods/a/status", {"status": {"phase": "Running", "podIP": "10.1.1.1"}})
    do.patch("pods/a/status", {"status": {"phase": "Odd"}})


@scenario
def scales(do: Run) -> None:
    for plural in ("deployments", "things", "replicasets", "statefulsets"):
        made = sample(plural)
        made["spec"]["replicas"] = 2
        do.create(plural, made)
        target = f"{plural}/a/scale"
        scale = do.get(target)
        do("PUT", target, {**scale, "spec": {"replicas": 3}})
        do("PUT", target, {**scale, "spec": {"replicas": 4}})
        do("PUT", target, {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
        do("PUT", target, {"metadata": {"name": "b"}, "spec": {"replicas": 1}})
        do.patch(target, {"spec": {"replicas": 5}})
        do.patch(target, {"spec": {"replicas": -5}})
        do.patch(target, {"spec": {"replicas": "x"}})
        do.patch(target, {"spec": {"replicas": 3000000000}})
        do.patch(target, {"spec": None})
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "a"},
            "spec": {"replicas": 7},
        }
        do.apply(target, body)
        do.apply(target, body, force=True)
        do.get(f"{plural}/a")
        do("GET", f"{plural}/none/scale")
        do("POST", target, body)
        do("DELETE", target)


@scenario
def what_is_immutable_stays(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    do.patch("deployments/a", {"spec": {"selector": {"matchLabels": {"x": "y"}}}})
    do.create("services", sample("services"))
    do.patch("services/a", {"spec": {"clusterIP": "10.0.0.77"}})
    do.patch("services/a", {"spec": {"type": "NodePort"}})
    do.patch("services/a", {"spec": {"type": "ExternalName"}})
    do.create("pods", sample("pods"))
    do.patch("pods/a", {"spec": {"nodeName": "x"}})
    do.patch("pods/a", {"spec": {"restartPolicy": "Never"}})
    do.create("jobs", sample("jobs"))
    do.patch("jobs/a", {"spec": {"completions": 3}})
    do.create("secrets", {**sample("secrets"), "immutable": True})
    do.patch("secrets/a", {"stringData": {"b": "1"}})
    do.patch("secrets/a", {"immutable": False})
    do.patch("secrets/a", {"type": "other"})
    do.create("configmaps", {**sample("configmaps"), "immutable": True})
    do.patch("configmaps/a", {"data": {"b": "1"}})
    do.patch("configmaps/a", {"metadata": {"labels": {"b": "1"}}})
    do.create("roles", sample("roles"))
    do.create("rolebindings", sample("rolebindings"))
    do.patch("rolebindings/a", {"roleRef": {"name": "other"}})
    do.create(
        "things", {**typed("things"), "metadata": {"name": "a"}, "spec": {"kept": "1"}}
    )
    do.patch("things/a", {"spec": {"kept": "2"}})


@scenario
def generations_count_changes_of_the_spec(do: Run) -> None:
    for plural in ("deployments", "things", "strangers", "ingresses", "cronjobs"):
        do.create(plural, sample(plural))
        do.patch(f"{plural}/a", {"metadata": {"labels": {"a": "b"}}})
        do.patch(f"{plural}/a", {"status": {"x": 1}})
        spec = {"deployments": {"replicas": 4}, "cronjobs": {"suspend": True}}
        do.patch(f"{plural}/a", {"spec": spec.get(plural, {"text": "z"})})
        do.patch(f"{plural}/a", {"metadata": {"finalizers": ["a.b/c"]}})
        do("DELETE", f"{plural}/a")
        do.patch(f"{plural}/a", {"metadata": {"finalizers": None}})


@scenario
def every_kind_is_updated_and_patched(do: Run) -> None:
    for plural in SAMPLES:
        if plural == "jobs":  # its times are stored in another way the second time
            continue
        made = do.create(plural, sample(plural))
        do("PUT", f"{plural}/a?fieldManager=x", made)
        labels = {"metadata": {"labels": {"a": "b"}}}
        do.patch(f"{plural}/a?fieldManager=y", labels)
        do.patch(f"{plural}/a?fieldManager=z", labels, STRATEGIC)
        body = {"apiVersion": made["apiVersion"], "kind": made["kind"]}
        do.apply(f"{plural}/a", {**body, **sample(plural)})
        do.apply(f"{plural}/b", {**body, **sample(plural, "b")})
