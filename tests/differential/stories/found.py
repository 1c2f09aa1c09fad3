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


@scenario
def wrong_types_are_told_in_the_order_of_go(do: Run) -> None:
    do.create("configmaps", sample("configmaps"))
    do.patch("configmaps/a", {"binaryData": "x", "data": 1}, STRATEGIC)
    both = {"metadata": {"annotations": "x", "labels": 1}}
    do.patch("configmaps/a", both, STRATEGIC)
    do.create("pods", sample("pods"))
    for spec in ({"restartPolicy": 1}, {"nodeName": 1}, {"dnsPolicy": 1.5}):
        do.patch("pods/a", {"spec": spec}, STRATEGIC)
    do.create("services", sample("services"))
    targets: list[Any] = [True, 1.5, 2.0, {}, [], 3000000000]
    for target in targets:
        port = {"port": 80, "targetPort": target}
        do.patch("services/a", {"spec": {"ports": [port]}}, STRATEGIC)


@scenario
def a_strategic_merge_that_has_a_key_twice_is_shown_merged(do: Run) -> None:
    do.create("services", sample("services"))
    ports = [{"port": 443, "name": "web"}, {"port": 443, "name": "dns"}]
    do.patch("services/a", {"metadata": "x", "spec": {"ports": ports}}, STRATEGIC)
    bad = {"immutable": "x", "data": None, "$patch": "replace"}
    do.create("configmaps", sample("configmaps"))
    do.patch("configmaps/a", bad, STRATEGIC)


@scenario
def an_empty_map_is_not_none_to_an_immutable_object(do: Run) -> None:
    for plural, kind in (("configmaps", "ConfigMap"), ("secrets", "Secret")):
        head = {"apiVersion": "v1", "kind": kind, **NAMED}
        do.create(plural, {**head, "immutable": True})
        for field in ("data", "binaryData", "stringData"):
            do.apply(f"{plural}/a", {**head, field: {}})
            do("PUT", f"{plural}/a", {**head, "immutable": True, field: {}})
            do.patch(f"{plural}/a", {field: {}})
            do.patch(f"{plural}/a", {field: {}}, STRATEGIC)


@scenario
def the_address_of_a_pod_is_the_first_of_its_addresses(do: Run) -> None:
    made = do.create("pods", sample("pods"))
    several = [{"ip": "10.1.1.1"}, {"ip": "fd00::1"}]
    do("PUT", "pods/a/status", {**made, "status": {"podIPs": several}})
    do.patch("pods/a/status", {"status": {"podIPs": [{"ip": "10.1.1.2"}]}})
    do.patch("pods/a/status", {"status": {"podIP": None}})
    do.patch("pods/a/status", {"status": {"podIPs": None}})
    do.apply("pods/b", {**POD, **sample("pods", "b")})
    do.apply("pods/b/status", {**POD, "status": {"podIPs": several}})


@scenario
def a_field_that_is_named_and_nothing_is_selected_by_nothing(do: Run) -> None:
    do.create("secrets", sample("secrets"))
    for terms in ("metadata.name=a,=", "==,metadata.name=a", "!=", ",,", "a=b,="):
        do("GET", f"secrets?fieldSelector={terms}")


@scenario
def what_was_applied_empty_is_stored_and_read_without(do: Run) -> None:
    """So the next write is never in vain."""
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}}
    more: list[dict[str, Any]] = [
        {"metadata": {"labels": None}},
        {"metadata": {"annotations": {}}},
        {"metadata": {"finalizers": []}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"generateName": ""}},
        {"metadata": {"creationTimestamp": None}},
        {"spec": {"any": None}},
        {"spec": {"any": {"x": None}}},
        {"spec": {"anythings": {"a": None}}},
        {"spec": {"labels": {}}},
        {"spec": {"template": template}},
        {"status": None},
    ]
    for number, each in enumerate(more):
        name = f"n{number}"
        target, plain = f"things/{name}", {**typed("things"), "metadata": {}}
        body = {**plain, **each}
        for intent in (body, plain):
            intent["metadata"] = {**intent["metadata"], "name": name}
        do.apply(target, body)
        do.get(target)
        do.apply(target, plain, "bob")
        do.apply(target, body)
        do.apply(target, body)
        do.patch(target, {})
    nothing = {**typed("things"), "metadata": {"name": "n0"}}
    for _ in range(2):
        do.apply("things/n0/status", {**nothing, "status": None})
        do.apply("things/n0", nothing)


@scenario
def a_value_that_reads_itself_is_told_before_others(do: Run) -> None:
    good = sample("deployments")
    spread = {**good["spec"], "strategy": {"rollingUpdate": {"maxSurge": True}}}
    do.create("deployments", {**good, "metadata": {"labels": "x"}, "spec": spread})
    bad = {"name": 1, "emptyDir": {"sizeLimit": "zz"}}
    do.create("pods", {**sample("pods"), "spec": {"volumes": [bad], "hostPID": 1}})


@scenario
def a_refused_patch_is_shown_in_its_order(do: Run) -> None:
    for plural in ("configmaps", "things", "services"):
        do.create(plural, sample(plural, labels={"b": "1", "a": "2"}))
        meta = {"annotations": None, "labels": "x", "finalizers": "x"}
        do.patch(f"{plural}/a", {"metadata": meta})
        add = {"op": "add", "path": "/metadata", "value": meta}
        do.patch(f"{plural}/a", [add], JSON_PATCH)
        labels = {"op": "test", "path": "/metadata/labels/a", "value": "2"}
        copied = {"op": "copy", "from": "/metadata", "path": "/copied"}
        wrong = {"op": "add", "path": "/metadata/labels", "value": 1}
        do.patch(f"{plural}/a", [labels, copied, wrong], JSON_PATCH)


@scenario
def labels_that_are_empty_are_shown_as_such(do: Run) -> None:
    empty: list[Any] = [{}, None]
    for labels in empty:
        spec = {"template": {"metadata": {"labels": labels}}}
        do.apply("deployments/a", {**DEPLOYMENT, **NAMED, "spec": spec})


@scenario
def addresses_of_a_pod_that_are_none(do: Run) -> None:
    do.create("pods", sample("pods"))
    for several in ([None, None], [{"ip": "1.2.3.4"}, {"ip": "x"}]):
        do.patch("pods/a/status", {"status": {"podIPs": several}})


@scenario
def a_new_job_is_another_one_after_any_write(do: Run) -> None:
    do("PUT", "jobs/a", do.create("jobs", sample("jobs")))
    do.patch("jobs/a", {})
    body = {"apiVersion": "batch/v1", "kind": "Job", **sample("jobs", "b")}
    for _ in range(3):
        do.apply("jobs/b", body)
    do.create("jobs", sample("jobs", "c"))
    do.patch("jobs/c/status", {"status": {"active": 1}})
    do.patch("jobs/c", {})


@scenario
def the_status_of_a_service_that_is_not_there_makes_one(do: Run) -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}]}}
    body = {**sample("services"), "apiVersion": "v1", "kind": "Service"}
    do("PUT", "services/a/status", {**body, "status": status})
    do("PUT", "services/a", do.get("services/a"))
    do.patch("services/none/status", {"status": status})
    do.apply("services/b/status", {**body, "metadata": {"name": "b"}, "status": status})
    do.apply("services/c/status", {**body, "metadata": {"name": "c"}, "spec": {}})
    for name in ("Bad", "1a", "a.b", "-a", "a" * 64):
        do.create("services", sample("services", name))


@scenario
def a_null_in_a_status_that_is_not_written_is_nobody_s_mistake(do: Run) -> None:
    state = {"status": {"conditions": None}}
    do.apply("things/a", {**typed("things"), **NAMED, **state})
    do.apply("things/a", {**typed("things"), **NAMED, **state, "spec": {"color": "x"}})
    do.get("things/a")


@scenario
def a_number_that_is_whole_is_written_so(do: Run) -> None:
    spec = {"ratio": 2.0, "anythings": {"a": [3.0, 2.5, 1e20, -4.0]}}
    do.apply("things/a", {**typed("things"), **NAMED, "spec": spec})
    do.create("things", {**typed("things"), "metadata": {"name": "b"}, "spec": spec})
    for name in "ab":
        do.patch(f"things/{name}", {"metadata": "x"})
    do.patch("things/a", {"spec": {"anythings": {"b": 5.0}}})
    do.patch("things/a", {"metadata": "x"})
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **sample("deployments", "c")}
    do.apply("deployments/c", {**body, "spec": {**body["spec"], "replicas": 2.0}})


@scenario
def an_object_that_loses_its_name_is_not_warned_of_its_owners(do: Run) -> None:
    do.create("deployments", sample("deployments"))
    meta = {"ownerReferences": [None, None]}
    for value in (meta, {**meta, "name": "a"}):
        add = {"op": "add", "path": "/metadata", "value": value}
        do.patch("deployments/a", [add], JSON_PATCH)


@scenario
def an_order_of_what_is_no_object_is_refused(do: Run) -> None:
    do.create("pods", sample("pods"))
    items: list[Any] = [None, "x", 1, ["a"], {}, {"name": "main"}]
    for one in items:
        for other in items:
            spec = {"containers": [one], "$setElementOrder/containers": [other]}
            do.patch("pods/a?dryRun=All", {"spec": spec}, STRATEGIC)
    spec = {"containers": [], "$setElementOrder/containers": [{"name": "main"}, None]}
    do.patch("pods/a?dryRun=All", {"spec": spec}, STRATEGIC)
