"""Deleting: options, preconditions, finalizers, grace, collections."""

from __future__ import annotations

from tests.differential.kinds import sample
from tests.differential.scenario import Run, scenario
from tests.differential.wire import Plain

OTHER = "11111111-2222-3333-4444-555555555555"


@scenario
def deletes_and_their_preconditions(do: Run) -> None:
    for plural in ("configmaps", "things"):
        made = do.create(plural, sample(plural))["metadata"]
        wrong: list[Plain] = [
            {"preconditions": {"uid": OTHER}},
            {"preconditions": {"resourceVersion": "1"}},
            {"preconditions": {"uid": made["uid"], "resourceVersion": "1"}},
            {"preconditions": {"uid": ""}},
            {"propagationPolicy": "Odd"},
            {"propagationPolicy": "Foreground", "orphanDependents": True},
            {"orphanDependents": "x"},
            {"gracePeriodSeconds": -1, "dryRun": ["All"]},
            {"gracePeriodSeconds": "x"},
            {"dryRun": ["All"]},
            {"dryRun": ["Some"]},
            {"dryRun": []},
            {"kind": "Other", "apiVersion": "v1"},
            {"kind": "DeleteOptions", "apiVersion": "v1"},
            {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
            {"kind": "DeleteOptions", "apiVersion": "odd/v1"},
            {"unknown": 1},
        ]
        for options in wrong:
            do.prepare("POST", plural, sample(plural))
            do("DELETE", f"{plural}/a", options)
        do.prepare("POST", plural, sample(plural))
        for query in ("propagationPolicy=Odd", "gracePeriodSeconds=x", "dryRun=Some"):
            do("DELETE", f"{plural}/a?{query}")
        do("DELETE", f"{plural}/a?dryRun=All&propagationPolicy=Foreground")
        do("DELETE", f"{plural}/a", b"text")
        do("DELETE", f"{plural}/a", b"")
        do("DELETE", f"{plural}/a")


@scenario
def finalizers_hold_an_object(do: Run) -> None:
    for plural in ("configmaps", "things", "pods", "deployments"):
        do.create(plural, sample(plural, finalizers=["a.b/c", "a.b/d"]))
        do("DELETE", f"{plural}/a", {"gracePeriodSeconds": 0})
        do("DELETE", f"{plural}/a")
        do.patch(f"{plural}/a", {"metadata": {"labels": {"late": "yes"}}})
        do.patch(f"{plural}/a", {"metadata": {"finalizers": ["a.b/c", "a.b/new"]}})
        do.patch(f"{plural}/a", {"metadata": {"finalizers": ["a.b/c"]}})
        do("POST", plural, sample(plural))
        do.patch(f"{plural}/a?dryRun=All", {"metadata": {"finalizers": None}})
        do.patch(f"{plural}/a", {"metadata": {"finalizers": None}})
        do("GET", f"{plural}/a")


@scenario
def a_pod_on_a_node_has_grace(do: Run) -> None:
    for name, grace in (("a", None), ("b", 5), ("c", 0)):
        pod = sample("pods", name)
        pod["spec"]["nodeName"] = "n"
        do.create("pods", pod)
        options = None if grace is None else {"gracePeriodSeconds": grace}
        do("DELETE", f"pods/{name}", options)
        do("DELETE", f"pods/{name}", {"gracePeriodSeconds": 2})
        do("DELETE", f"pods/{name}", {"gracePeriodSeconds": 60})
        do("GET", f"pods/{name}")
        do("DELETE", f"pods/{name}?gracePeriodSeconds=0")
        do("GET", f"pods/{name}")


@scenario
def propagation_is_noted(do: Run) -> None:
    for plural in ("secrets", "things"):
        for policy in ("Orphan", "Foreground"):
            name = policy.lower()
            do.create(plural, sample(plural, name, finalizers=["a.b/c"]))
            do("DELETE", f"{plural}/{name}?propagationPolicy={policy}&dryRun=All")
        do.create(plural, sample(plural, "back"))
        do("DELETE", f"{plural}/back?propagationPolicy=Background")
        do.create(plural, sample(plural, "old"))
        do("DELETE", f"{plural}/old?orphanDependents=false")


@scenario
def collections_are_deleted(do: Run) -> None:
    for plural in ("secrets", "things"):
        for name in "abcd":
            labels = {"which": "odd" if name in "ac" else "even"}
            do.prepare("POST", plural, sample(plural, name, labels=labels))
        do("DELETE", f"{plural}?labelSelector=which%3Dnone")
        do("DELETE", f"{plural}?labelSelector=which%3Dodd&dryRun=All")
        do("DELETE", f"{plural}?labelSelector=which%3Dodd")
        do("GET", plural)
        do("DELETE", f"{plural}?fieldSelector=metadata.name%3Db")
        do("DELETE", f"{plural}?labelSelector=%3D")
        do("DELETE", f"{plural}?fieldSelector=odd%3D1")
        do("DELETE", plural, {"propagationPolicy": "Odd"})
        do("DELETE", plural, {"preconditions": {"uid": OTHER}})
        do.prepare("POST", plural, sample(plural, "f", finalizers=["a.b/c"]))
        do("DELETE", plural, {"kind": "DeleteOptions", "apiVersion": "v1"})
        do("GET", plural)
        do.patch(f"{plural}/f", {"metadata": {"finalizers": None}})
        do("GET", plural)
        do("DELETE", plural)
    do("DELETE", "/api/v1/secrets")


@scenario
def namespaces_have_finalizers_of_their_own(do: Run) -> None:
    do.create("namespaces", {"metadata": {"name": "doomed"}})
    do.create("namespaces", {"metadata": {"name": "Bad_Name"}})
    do("PUT", "namespaces/doomed/finalize", {"metadata": {"name": "doomed"}})
    do.patch("namespaces/doomed", {"metadata": {"labels": {"a": "b"}}})
    do.patch("namespaces/doomed", {"spec": {"finalizers": []}})
    do("DELETE", "namespaces/default")
    do("DELETE", "namespaces/kube-system?dryRun=All")


@scenario
def an_eviction_and_a_binding(do: Run) -> None:
    do.create("pods", sample("pods"))
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a"},
    }
    do("POST", "pods/a/eviction?dryRun=All", eviction)
    do("POST", "pods/none/eviction", {**eviction, "metadata": {"name": "none"}})
    do("POST", "pods/a/eviction", {**eviction, "metadata": {"name": "b"}})
    do("POST", "pods/a/eviction", {**eviction, "apiVersion": "policy/v1beta1"})
    node = {"target": {"kind": "Node", "name": "n"}}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}}
    do("POST", "pods/a/binding", {**binding, "target": {"name": ""}})
    do("POST", "pods/a/binding", {**binding, **node})
    do("POST", "pods/a/binding", {**binding, **node})
    do.get("pods/a")
    do("POST", "pods/a/eviction", eviction)
