"""Creating: every kind, names, bodies that are wrong, validation, dry runs."""

from __future__ import annotations

from typing import Any

from tests.differential.kinds import POD_SPEC, SAMPLES, sample, typed
from tests.differential.scenario import GROUP, YAML, Run, scenario

SPECS: tuple[Any, ...] = (
    {"number": "x"},
    {"number": 1.5},
    {"number": 10000000},
    {"small": 3000},
    {"small": -1},
    {"small": 3000000000},
    {"ratio": "x"},
    {"flag": "yes"},
    {"mixed": 1.5},
    {"mixed": []},
    {"color": "pink"},
    {"short": "TOO LONG"},
    {"words": ["a", "a"]},
    {"numbers": [1, 1]},
    {"items": [{"name": "a"}, {"name": "a"}]},
    {"items": [{}]},
    {"items": [None]},
    {"list": [None]},
    {"text": None, "maybe": None, "preset": None, "deep": None},
    {"labels": {"a": None}},
    {"template": {}},
    {"template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "A B"}}},
    {"color": "pink", "small": -1, "words": ["a", "a"], "number": "x"},
    [],
    "text",
    None,
)
"""Of things; none of them is good."""


@scenario
def every_kind_is_made_read_listed_and_deleted(do: Run) -> None:
    for plural in SAMPLES:
        do.create(plural, sample(plural, labels={"mine": "yes"}))
        do.get(f"{plural}/a")
        do("POST", plural, sample(plural))
        do.get(f"{plural}?labelSelector=mine%3Dyes")
        do("DELETE", f"{plural}/a")


@scenario
def names_are_made_of_generate_name(do: Run) -> None:
    for plural in ("configmaps", "things"):
        do.create(plural, {**typed(plural), "metadata": {"generateName": "made-"}})
        do.create(
            plural,
            {**typed(plural), "metadata": {"generateName": "made-", "name": "kept"}},
        )
        do.create(
            plural,
            {**typed(plural), "metadata": {"generateName": "made-", "name": "kept"}},
        )
        do.create(plural, {**typed(plural), "metadata": {"generateName": "Made-"}})
        do.create(plural, {**typed(plural), "metadata": {"generateName": "m" * 70}})
        do.create(plural, {**typed(plural), "metadata": {}})
        do.create(plural, {})


@scenario
def bad_names_and_metadata_are_refused(do: Run) -> None:
    for plural in ("configmaps", "things", "serviceaccounts", "roles"):
        for name in ("Upper", "a_b", "-a", "a" * 254, "a.b", "a/b", "..", "%"):
            do.create(plural, sample(plural, name))
    for plural in ("configmaps", "things"):
        do.create(plural, sample(plural, labels={"a b": "c"}))
        do.create(plural, sample(plural, labels={"a": "c d"}))
        do.create(plural, sample(plural, labels={"a": None}))
        do.create(plural, sample(plural, labels={"a": 1}))
        do.create(plural, sample(plural, labels=[]))
        do.create(plural, sample(plural, annotations={"A/B/C": ""}))
        do.create(plural, sample(plural, finalizers=["x"]))
        do.create(plural, sample(plural, finalizers=["x y/z"]))
        do.create(plural, sample(plural, ownerReferences=[{}]))
        do.create(plural, sample(plural, namespace="elsewhere"))
        do.create(plural, sample(plural, resourceVersion="1"))
        do.create(plural, sample(plural, resourceVersion="x"))
        do.create(plural, sample(plural, resourceVersion="0", name="zero"))


@scenario
def metadata_that_the_server_owns_is_its_own(do: Run) -> None:
    for plural in ("configmaps", "things"):
        made = sample(
            plural,
            uid="11111111-2222-3333-4444-555555555555",
            generation=7,
            creationTimestamp="2001-01-01T00:00:00Z",
            deletionTimestamp="2001-01-01T00:00:00Z",
            deletionGracePeriodSeconds=5,
            selfLink="/x",
            managedFields=[],
        )
        do.create(plural, made)


@scenario
def bodies_that_cannot_be_read(do: Run) -> None:
    for plural in ("configmaps", "things"):
        for body in (
            b"",
            b"{",
            b"[]",
            b"null",
            b'"text"',
            b"1",
            b"{}{}",
            b'{"metadata":{"name":"a"},}',
            b'{"metadata":"a"}',
            b'{"metadata":{"name":1}}',
            b'{"metadata":null}',
            b'{"kind":1}',
            b"\xff\xfe",
            b'{"metadata":{"name":"b"},"data":[]}',
            b'{"metadata":{"name":"c"},"data":{"a":1}}',
            b"\x00",
            b"a: b\n",
        ):
            do("POST", plural, body)
            do("POST", plural, body, media=YAML)
    do("POST", "configmaps")
    do("PUT", "configmaps/a")
    do("PATCH", "configmaps/a")


@scenario
def the_kind_in_a_body_must_fit(do: Run) -> None:
    for plural, kind, version in (
        ("configmaps", "ConfigMap", "v1"),
        ("things", "Thing", f"{GROUP}/v1"),
        ("deployments", "Deployment", "apps/v1"),
    ):
        name = {"metadata": {"name": "a"}}
        good = {**sample(plural), "kind": kind, "apiVersion": version}
        do.create(plural, {**good, "kind": "Other"}, "?fieldValidation=Ignore")
        do.create(plural, {**good, "apiVersion": "other/v1"})
        do.create(plural, {**good, "apiVersion": version + "x"})
        do.create(plural, {**good, "kind": ""})
        do.create(plural, {**good, "apiVersion": ""})
        do.create(plural, {**name, "kind": kind + "List", "apiVersion": version})
        do.create(plural, {**name, "kind": "Status", "apiVersion": "v1"})
        do.create(plural, good)
        do("PUT", f"{plural}/a", {**good, "kind": "Other"})
        do("PUT", f"{plural}/a", {**good, "apiVersion": "other/v1"})


@scenario
def unknown_fields_are_told_as_asked(do: Run) -> None:
    bodies = {
        "configmaps": {"metadata": {"name": "a", "x": 1}, "y": 2},
        "pods": {"metadata": {"name": "a"}, "spec": {**POD_SPEC, "nope": {"a": 1}}},
        "things": {
            **typed("things"),
            "metadata": {"name": "a", "x": 1},
            "spec": {"nope": 1, "any": {"x": 1}, "nested": {"inner": {"q": 1}}},
            "y": 2,
        },
        "strangers": {**typed("strangers"), "metadata": {"name": "a", "x": 1}, "y": 2},
    }
    for plural, body in bodies.items():
        for how in ("Strict", "Warn", "Ignore", "", "Odd"):
            do("POST", f"{plural}?dryRun=All&fieldValidation={how}", body)
        do("POST", f"{plural}?dryRun=All", body)


@scenario
def repeated_fields_are_told_as_asked(do: Run) -> None:
    for plural in ("configmaps", "things"):
        body = b'{"metadata":{"name":"a","name":"b"},"metadata":{"labels":{"a":"b"}}}'
        text = b"metadata:\n  name: a\n  name: b\n"
        for how in ("Strict", "Warn", "Ignore"):
            target = f"{plural}?dryRun=All&fieldValidation={how}"
            do("POST", target, body)
            do("POST", target, text, media=YAML)


@scenario
def a_dry_run_leaves_nothing(do: Run) -> None:
    for plural in ("configmaps", "things", "services"):
        do.create(plural, sample(plural), "?dryRun=All")
        do("GET", f"{plural}/a")
        do.create(plural, sample(plural), "?dryRun=Some")
        do.create(plural, sample(plural), "?dryRun=All&dryRun=All")
        do.create(plural, sample(plural), "?dryRun=")
        do("PUT", f"{plural}/a?dryRun=All", sample(plural, labels={"a": "b"}))
        do.patch(f"{plural}/a?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
        do("DELETE", f"{plural}/a?dryRun=All")
        do("GET", f"{plural}/a")
    do.create("configmaps", {"metadata": {"generateName": "made-"}}, "?dryRun=All")


@scenario
def field_managers_of_a_create(do: Run) -> None:
    for plural in ("configmaps", "things"):
        for index, query in enumerate(
            ("?fieldManager=me", "?fieldManager=", "?fieldManager=" + "m" * 129)
        ):
            do.create(plural, sample(plural, f"a{index}"), query)
        do("POST", plural, sample(plural, "b"), agent="my-tool/v1.2 (linux) x/y")
        do("POST", plural, sample(plural, "c"), agent="")
        do("POST", plural, sample(plural, "d"), agent="a" * 200)
        do.create(plural, sample(plural, "e"), "?fieldManager=a%00b")
        do.create(plural, sample(plural, "f"), "?fieldManager=%C3%A9")


@scenario
def a_namespace_must_be_there(do: Run) -> None:
    for plural in ("configmaps", "things"):
        path = do.path(plural, namespace="nowhere")
        do("POST", path, sample(plural))
        do("GET", path)
        do("GET", f"{path}/a")
        do("DELETE", f"{path}/a")
        do.apply(f"{path}/a", _typed(plural))


def _typed(plural: str) -> dict[str, object]:
    kinds = {"configmaps": ("v1", "ConfigMap"), "things": (f"{GROUP}/v1", "Thing")}
    version, kind = kinds[plural]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}


@scenario
def invalid_objects_are_refused_with_causes(do: Run) -> None:
    do.create("deployments", {"metadata": {"name": "a"}})
    do.create("deployments", {"metadata": {"name": "a"}, "spec": {"replicas": -1}})
    bad = sample("deployments")
    bad["spec"]["selector"]["matchLabels"] = {"app": "other"}
    do.create("deployments", bad)
    do.create("services", {"metadata": {"name": "a"}, "spec": {"ports": []}})
    port = {"port": 80, "protocol": "XYZ", "targetPort": "bad name"}
    do.create("services", {"metadata": {"name": "a"}, "spec": {"ports": [port, port]}})
    do.create("pods", {"metadata": {"name": "a"}, "spec": {"containers": []}})
    do.create("pods", {"metadata": {"name": "a"}})
    do.create("jobs", {"metadata": {"name": "a"}, "spec": {"template": {}}})
    do.create("secrets", {"metadata": {"name": "a"}, "data": {"a": "not base64!"}})
    do.create("secrets", {"metadata": {"name": "a"}, "type": "kubernetes.io/tls"})
    do.create("configmaps", {"metadata": {"name": "a"}, "data": {"a b": ""}})
    do.create("configmaps", {"metadata": {"name": "a"}, "binaryData": {"a": "%"}})
    for spec in SPECS:
        do.create(
            "things",
            {**typed("things"), "metadata": {"name": "a"}, "spec": spec},
            "?dryRun=All",
        )
