"""Found: the smallest requests that the two servers once answered differently."""

from __future__ import annotations

from typing import Any

from tests.differential.kinds import sample, typed
from tests.differential.scenario import JSON_PATCH, STRATEGIC, Run, scenario

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
POD = {"apiVersion": "v1", "kind": "Pod"}
NAMED = {"metadata": {"name": "a"}}


@scenario
def an_applied_number_loses_the_bits_that_its_field_has_no_room_for(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    for number in (3000000000, 4294967296 + 2, 2147483648, -1, 2.0, 2.5):
        body = {**DEPLOYMENT, **NAMED, "spec": {"replicas": number}}
        do.apply("deployments/a", body, force=True)
        do.patch("deployments/a", {"spec": {"replicas": number}}, STRATEGIC)
        do.patch("deployments/a", {"spec": {"replicas": number}})


@scenario
def an_applied_object_that_is_new_must_have_a_name(do: Run) -> None:
    do.apply("things/a", {**typed("things"), "metadata": {}})
    do.apply("things/a", {**typed("things"), "metadata": None})
    do.apply("deployments/a", {**DEPLOYMENT, **sample("deployments", ""), **DEPLOYMENT})
    do.create("things", sample("things"))
    do.apply("things/a", {**typed("things"), "metadata": {}})


@scenario
def a_json_patch_that_does_not_apply_has_empty_details(do: Run) -> None:
    for plural in ("configmaps", "things"):
        do.create(plural, sample(plural))
        add = [{"op": "add", "path": "/metadata/annotations/a", "value": None}]
        do.patch(f"{plural}/a", add, JSON_PATCH)


@scenario
def tolerations_that_every_pod_gets_come_back(do: Run) -> None:
    do.create("pods", sample("pods"))
    do.patch("pods/a", {"spec": {"tolerations": None}})
    do.patch("pods/a", {"spec": {"tolerations": []}}, STRATEGIC)


@scenario
def null_labels_of_a_custom_object_are_empty(do: Run) -> None:
    do.create("things", sample("things", labels={"a": None}, annotations={"b": None}))
    body = sample("things", "b", labels="x", annotations={"a": 1}, finalizers=[1])
    do.create("things", body)


@scenario
def the_last_event_of_an_object_shows_what_was_stored(do: Run) -> None:
    for plural in ("secrets", "things", "pods"):
        before = do.prepare("POST", plural, sample(plural, "before")).obj
        version = before["metadata"]["resourceVersion"]
        do.prepare("POST", plural, sample(plural, finalizers=["a.b/c"]))
        do.prepare("DELETE", f"{plural}/a")
        do.patch(f"{plural}/a", {"metadata": {"finalizers": None}})
        do.prepare("POST", plural, sample(plural, "b"))
        do("DELETE", f"{plural}/b")
        do.prepare("POST", plural, sample(plural, "zz-last"))
        do.watch(f"{plural}?watch=1&resourceVersion={version}")
        do.story[-1]["asked"] = f"WATCH {plural}"


@scenario
def nulls_that_are_applied_are_refused_where_they_may_not_be(do: Run) -> None:
    specs: list[Any] = [
        None,
        {"text": None},
        {"preset": None, "deep": {"a": None}},
        {"labels": {"a": None}},
        {"words": None, "items": None},
        {"any": None, "maybe": None},
        {"any": {"a": None}},
        {"nested": {"inner": None}},
        {"whole": {"a": None}},
        {"open": {"known": None, "x": None}},
    ]
    for number, spec in enumerate(specs):
        name = {"metadata": {"name": f"n{number}"}}
        do.apply(f"things/n{number}", {**typed("things"), **name, "spec": spec})
        do.create("things", {**typed("things"), **name, "spec": spec}, "?dryRun=All")
    do.create("things", sample("things"))
    do.apply("things/a/status", {**typed("things"), **NAMED, "status": None})


@scenario
def owners_that_are_null_are_refused(do: Run) -> None:
    for plural in ("configmaps", "things"):
        do.create(plural, sample(plural, ownerReferences=[None]))
        do.create(plural, sample(plural, finalizers=[None]))


@scenario
def of_two_wrong_types_the_first_in_order_is_told(do: Run) -> None:
    do.create("configmaps", sample("configmaps"))
    do.patch("configmaps/a", {"metadata": "x", "binaryData": "x"})
    do.patch("configmaps/a", {"metadata": {"annotations": 1.5}})
    do.create("things", sample("things"))
    do.patch("things/a", {"metadata": {"labels": 1.5, "annotations": 1.5}})


@scenario
def bytes_that_are_applied_are_decoded_from_json(do: Run) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **NAMED, "binaryData": {"a": "x"}}
    do.apply("configmaps/a", body)


@scenario
def a_key_that_is_no_scalar_has_its_own_text(do: Run) -> None:
    for name in ({}, {"a": 1}, [], ["a", 1]):
        spec = {"containers": [{"name": name}]}
        do.apply("pods/a", {**POD, **NAMED, "spec": spec})


@scenario
def an_object_that_is_named_is_never_more_than_a_page(do: Run) -> None:
    for plural in ("secrets", "things"):
        for name in "ab":
            do.prepare("POST", plural, sample(plural, name))
        do("GET", f"{plural}?limit=1&fieldSelector=metadata.name%3Da")
        do("GET", f"{plural}?limit=1&fieldSelector=metadata.name!%3Db")
        do("GET", f"{plural}?limit=1&labelSelector=%20")
        do("GET", f"{plural}?limit=&labelSelector=none")
        do("GET", f"{plural}?fieldSelector=%3Da")


@scenario
def a_strategic_merge_is_shown_as_it_is_left(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    for body in (
        {"metadata": "x", "$retainKeys": ["metadata"]},
        {"metadata": None, "spec": "x", "$patch": "replace"},
    ):
        do.patch("deployments/a", body, STRATEGIC)
    secrets = {"spec": {"template": {"spec": {"imagePullSecrets": [None]}}}}
    do.patch("deployments/a", secrets)
