"""Asking: requests that are wrong, or wrong in more than one way.

What is looked at first is told: the path, the type of the body, the options, the body.
"""

from __future__ import annotations

from typing import Any

from tests.differential.kinds import sample, typed
from tests.differential.scenario import (
    APPLY,
    GROUP,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    YAML,
    Run,
    scenario,
)
from tests.differential.wire import JSON, Plain

CORE = "/api/v1/namespaces"
TYPES = (STRATEGIC, JSON, YAML, "text/plain", "application/apply-patch+json")
TWICE = b'{"metadata":{"labels":{"a":"1","a":"2"}},"zz":1,"zz":2}'
TOKENS = (
    *("bad", "ab", "a", "abcde", "!!!!", "a=", "YQ==", "e30", "e30=", "W10", "bnVsbA"),
    *("MQ", "Imci", "eyJ2IjoieCJ9", "eyJydiI6IngifQ", "eyJ2IjoxfQ"),
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0",
)


@scenario
def fields_that_nobody_knows_are_told_as_they_are_read(do: Run) -> None:
    extra = {"z": 1, "aa": [2], "a-b": 3, "tolerations": [{"z": {"b": 1}, "a": 3}]}
    copies = [("/spec", "/metadata"), ("/metadata", "/status"), ("/metadata", "/zz")]
    for plural in ("pods", "deployments"):
        do.create(plural, sample(plural))
        for origin, path in copies:
            copied = {"op": "copy", "from": origin, "path": path}
            do.patch(f"{plural}/a?dryRun=All", [copied], JSON_PATCH)
        for media in (MERGE, STRATEGIC):
            body = {"zz": 1, "spec": extra}
            do.patch(f"{plural}/a?dryRun=All", body, media)
            do.patch(f"{plural}/a?fieldValidation=Strict", body, media)


@scenario
def a_patch_is_asked_for_its_type_before_its_options(do: Run) -> None:
    for plural in ("configmaps", "things", "deployments"):
        do.create(plural, sample(plural))
        for part in ("", "/status", "/scale"):
            for media in TYPES:
                target = f"{plural}/a{part}?dryRun=All&force=true"
                do("PATCH", target, b"{}", media=media)
            do("PATCH", f"{plural}/a{part}?fieldValidation=Odd", b"{}", media=MERGE)
            do("PATCH", f"{plural}/none{part}?fieldManager=x", b"{}", media=APPLY)
            do("PATCH", f"{plural}/a{part}", b"{}", media=APPLY)


@scenario
def a_scale_is_read_as_strictly_as_an_object(do: Run) -> None:
    said = sample("things", "said")
    said["spec"]["replicas"] = 1
    do.create("things", said)
    do.create("things", sample("things"))
    do.create("deployments", sample("deployments"))
    for target in ("deployments/a/scale", "things/a/scale", "things/said/scale"):
        for how in ("Strict", "Warn", "Ignore"):
            for media in (MERGE, STRATEGIC):
                query = f"?dryRun=All&fieldValidation={how}"
                do("PATCH", f"{target}{query}", TWICE, media=media)
            scale = {"metadata": {"name": target.split("/")[1]}, "spec": {}, "zz": 1}
            do("PUT", f"{target}{query}", scale)
        for body in (b"{}", b"[]", b'{"spec":{"replicas":2}}', b'{"spec":null}'):
            do("PATCH", f"{target}?dryRun=All", body, media=MERGE)
            do("PATCH", f"{target}?dryRun=All", body, media=STRATEGIC)
        do("PATCH", f"{target}?dryRun=All", b"[]", media=JSON_PATCH)


@scenario
def who_owns_replicas_that_are_written_to_a_scale(do: Run) -> None:
    spec = {"metadata": {"name": "a"}, "spec": {"replicas": 5}}
    for plural in ("things", "deployments"):
        made = sample(plural)
        made["spec"]["replicas"] = 1
        do.create(plural, made)
        for more in ({}, {"apiVersion": "autoscaling/v1", "kind": "Scale"}):
            do("PUT", f"{plural}/a/scale", {**spec, **more})
            do.get(f"{plural}/a")
            do.patch(f"{plural}/a/scale?fieldManager=bob", {"spec": {"replicas": 7}})
            do.get(f"{plural}/a")
            do.patch(f"{plural}/a/scale?fieldValidation=Strict", {"zz": 1})


@scenario
def the_options_of_a_delete_are_in_its_body_if_it_has_one(do: Run) -> None:
    options: list[Any] = [
        {},
        {"kind": "X"},
        {"apiVersion": "nope/v1"},
        {"dryRun": ["x"]},
        {"dryRun": ["All"]},
        {"propagationPolicy": "Odd"},
    ]
    for plural in ("secrets", "things"):
        for body in options:
            do.prepare("POST", plural, sample(plural))
            do("DELETE", f"{plural}/a?dryRun=All", body)
            do.prepare("POST", plural, sample(plural))
            do("DELETE", f"{plural}/a?propagationPolicy=Odd&gracePeriodSeconds=x", body)
            for query in ("fieldSelector=bad%3Da", "labelSelector=%3D", "limit=x"):
                do("DELETE", f"{plural}?{query}&dryRun=All", body)
            named = "fieldSelector=metadata.name%3Da"
            do("DELETE", f"{plural}?{named}&resourceVersionMatch=Exact", body)
            do("DELETE", f"{plural}?{named}&dryRun=All", body)
            do("GET", f"{plural}?{named}")
            do.story[-1]["body"]["items"] = len(do.story[-1]["body"]["items"])


@scenario
def what_is_of_the_cluster_is_in_no_namespace(do: Run) -> None:
    for path in (
        f"{CORE}/default/nodes",
        f"{CORE}/default/nodes/a",
        f"{CORE}/default/namespaces",
        f"{CORE}/default/persistentvolumes",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles",
        f"/apis/{GROUP}/v1/namespaces/default/worlds",
        f"/apis/{GROUP}/v1/namespaces/default/worlds/a",
    ):
        for method in ("GET", "POST", "PUT", "DELETE"):
            body = {"metadata": {"name": "a"}} if method in ("POST", "PUT") else None
            do(method, path, body)
        do.patch(path, {})


@scenario
def names_and_paths_that_nothing_can_have(do: Run) -> None:
    here = f"{CORE}/{do.namespace}"
    things = f"/apis/{GROUP}/v1/namespaces/{do.namespace}/things"
    for path in (
        *(f"{here}/secrets/{name}" for name in ("%zz", "%", "%4", ".", "..", "a%25b")),
        *(f"{things}/{name}" for name in ("%zz", "..", "a%25b", "./status")),
        *(f"{here}/pods/../{part}" for part in ("log", "status")),
        *(f"{here}/pods/none/{part}" for part in ("exec", "attach")),
        f"{CORE}/../nodes",
        f"{CORE}/..",
    ):
        do("GET", path)
        do("DELETE", path)
        do.patch(path, {})
        do("PUT", path, {**typed("things"), "metadata": {"name": ".."}})


@scenario
def what_cannot_be_read_of_a_query_is_not_there(do: Run) -> None:
    do.prepare("POST", "secrets", sample("secrets"))
    do.prepare("POST", "secrets", sample("secrets", "b"))
    for query in (
        *("labelSelector=%zz", "labelSelector=%", "limit=1;limit=2", "a=b;c", "&&&"),
        *("=x", "limit=%31", "limit=1&limit=0", "limit=0&limit=1", "limit=x;&limit=1"),
        *("labelSelector=none&labelSelector=", "fieldSelector=%2&limit=1"),
    ):
        do("GET", f"secrets?{query}")


@scenario
def tokens_that_no_server_gave(do: Run) -> None:
    for plural in ("secrets", "things"):
        for token in TOKENS:
            do("GET", f"{plural}?continue={token}")


@scenario
def documents_by_other_methods_and_in_other_forms(do: Run) -> None:
    for path in (
        *("/healthz/", "/readyz/", "/healthznot", "/apis//v1", "/apis//", "/apis/apps"),
        *("/apis/apps/", f"/apis/{GROUP}", "/.well-known/openid-configuration/"),
        "/openid/v1/jwks",
    ):
        for method in ("POST", "DELETE", "HEAD"):
            do(method, path)
        do("GET", path, accept="text/plain")


@scenario
def a_null_that_is_applied_to_metadata_is_read_as_nothing(do: Run) -> None:
    several: list[Plain] = [
        {"annotations": {"a": None}},
        {"labels": {"a": None, "b": "c"}},
    ]
    for number, meta in enumerate(several):
        name = f"n{number}"
        body = {**typed("things"), "metadata": {"name": name, **meta}}
        plain = {**typed("things"), "metadata": {"name": name}}
        do.apply(f"things/{name}", body)
        do.get(f"things/{name}")
        do.apply(f"things/{name}", plain, "bob")
        do.apply(f"things/{name}", body)
        do.apply(f"things/{name}", body)
        do.patch(f"things/{name}", {})


@scenario
def who_somebody_cannot_be(do: Run) -> None:
    do.create("secrets", sample("secrets"))
    for headers in (
        {"Impersonate_User": "bob"},
        {"Impersonate_User": "bob", "Impersonate_Group": "system:masters"},
        {"Impersonate_User": "bob", "Impersonate_Uid": "u"},
        {"Impersonate_User": "system:anonymous"},
        {"Impersonate_User": f"system:serviceaccount:{do.namespace}:default"},
        {"Impersonate_User": "system:serviceaccount:default"},
        {"Impersonate_User": "system:serviceaccount::x"},
        {"Impersonate_User": "system:serviceaccount:a:B_"},
        {"Impersonate_User": "system:node:"},
        {"Impersonate_User": "bob", "Impersonate_Extra_Foo": "x"},
        {"Impersonate_Group": "g"},
        {"Impersonate_Uid": "u"},
        {"Impersonate_Extra_Foo": "x"},
        {"Impersonate_User": ""},
    ):
        do("GET", "secrets/a", **headers)
        do("GET", "/api/v1/nodes", **headers)
        do("GET", "/nope", **headers)
        do("POST", "secrets?dryRun=All", sample("secrets", "b"), **headers)
