"""Describing: discovery, versions, health, OpenAPI, and what CRDs publish."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.kinds import POD_SPEC, sample
from tests.differential.scenario import GROUP, Run, scenario
from tests.differential.wire import JSON, Plain

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@scenario
def discovery_documents(do: Run) -> None:
    for path in (
        "/api",
        "/api/v1",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/batch/v1",
        "/apis/autoscaling",
        "/apis/autoscaling/v1",
        "/apis/autoscaling/v2",
        "/apis/policy/v1",
        "/apis/rbac.authorization.k8s.io/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/networking.k8s.io/v1",
        "/apis/storage.k8s.io/v1",
        "/apis/apiextensions.k8s.io/v1",
        "/apis/scheduling.k8s.io/v1",
        "/apis/discovery.k8s.io/v1",
        "/apis/events.k8s.io/v1",
        "/apis/node.k8s.io/v1",
        "/apis/admissionregistration.k8s.io/v1",
        "/apis/authentication.k8s.io/v1",
        "/apis/authorization.k8s.io/v1",
        "/apis/apiregistration.k8s.io/v1",
        f"/apis/{GROUP}",
        f"/apis/{GROUP}/v1",
        f"/apis/{GROUP}/v1beta1",
    ):
        do("GET", path)
    do.story[0]["body"].pop("serverAddressByClientCIDRs")


@scenario
def aggregated_discovery(do: Run) -> None:
    for path in ("/api", "/apis"):
        reply = do("GET", path, accept=AGGREGATED)
        groups = {
            each["metadata"].get("name", ""): each
            for each in do.story[-1]["body"]["items"]
        }
        wanted = ("", "apps", "batch", "autoscaling", "policy", GROUP)
        do.story[-1]["body"] = {name: groups.get(name) for name in wanted}
        assert reply.status == 200


@scenario
def health_and_version(do: Run) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping"):
        do("GET", path)
        do("HEAD", path)
    do("GET", "/readyz/none")
    do("GET", "/healthz/etcd")
    version = do("GET", "/version")
    kept = ("major", "minor", "gitVersion")
    do.story[-1]["body"] = {key: version.obj[key] for key in kept}


@scenario
def a_deprecated_version_warns(do: Run) -> None:
    path = f"/apis/{GROUP}/v1beta1/namespaces/{do.namespace}/things"
    old = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Thing"}
    do("POST", path, {**old, "metadata": {"name": "a"}})
    do("GET", path)
    do("GET", f"{path}/a")
    do("GET", f"{path}/none")
    do("PUT", f"{path}/a", {**old, "metadata": {"name": "a"}, "spec": {"nope": 1}})
    do.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    do.apply(f"{path}/a", {**old, "metadata": {"name": "a"}, "spec": {"text": "x"}})
    do.get("things/a")
    do("DELETE", f"{path}/a")
    do("GET", "endpoints?labelSelector=none")


@scenario
def deprecated_fields_warn(do: Run) -> None:
    for more in (
        {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        {"hostPID": True, "serviceAccount": "default"},
        {"volumes": [{"name": "v", "gitRepo": {"repository": "x"}}]},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a"}]},
        {"containers": [{"name": "a", "image": "a", "env": [{"name": "A"}] * 2}]},
        {
            "containers": [
                {"name": "a", "image": "a", "ports": [{"containerPort": 1}] * 2}
            ]
        },
    ):
        pod = {"metadata": {"name": "a"}, "spec": {**POD_SPEC, **more}}
        do.create("pods", pod, "?dryRun=All")
    job = sample("cronjobs")
    job["spec"]["schedule"] = "TZ=UTC 0 * * * *"
    do.create("cronjobs", job, "?dryRun=All")
    do.create(
        "ingresses",
        sample("ingresses", annotations={"kubernetes.io/ingress.class": "x"}),
        "?dryRun=All",
    )
    service = sample("services")
    service["spec"]["externalIPs"] = ["1.2.3.4"]
    service["spec"]["sessionAffinity"] = "ClientIP"
    do.create("services", service, "?dryRun=All")


@scenario
def accounts_and_reviews(do: Run) -> None:
    root = "/apis/authorization.k8s.io/v1"
    attributes = {"verb": "get", "resource": "pods", "namespace": do.namespace}
    for plural, spec in (
        ("selfsubjectaccessreviews", {"resourceAttributes": attributes}),
        ("selfsubjectaccessreviews", {}),
        ("selfsubjectaccessreviews", {"nonResourceAttributes": {"path": "/x"}}),
        ("subjectaccessreviews", {"resourceAttributes": attributes, "user": "x"}),
        ("subjectaccessreviews", {"resourceAttributes": attributes}),
    ):
        do("POST", f"{root}/{plural}", {"spec": spec})
    do("GET", f"{root}/selfsubjectaccessreviews")
    do("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    do("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}})


@scenario
def custom_kinds_are_published_in_openapi(do: Run) -> None:
    name = "example.differential.v1.Thing"
    until = time.monotonic() + 10.0
    schemas: Plain = {}
    while name not in schemas and time.monotonic() < until:
        found = do.prepare("GET", f"/openapi/v3/apis/{GROUP}/v1")
        schemas = found.obj["components"]["schemas"] if found.status == 200 else {}
    do.story.append({"asked": "v3", "schema": _published(schemas.get(name))})
    definitions: Plain = {}
    while name not in definitions and time.monotonic() < until:
        definitions = do.prepare("GET", "/openapi/v2").obj["definitions"]
    do.story.append({"asked": "v2", "schema": _published(definitions.get(name))})


def _published(schema: Any) -> Any:
    """A schema without prose, and without the metadata that prose is wrapped around."""
    if isinstance(schema, list):
        return [_published(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"description", *(("metadata",) if "apiVersion" in schema else ())}
    return {k: _published(v) for k, v in schema.items() if k not in left_out}


@scenario
def timeouts_of_requests(do: Run) -> None:
    for plural in ("secrets", "things"):
        for timeout in ("1s", "100ms", "x", "-1s", "0", "0s", "1", "1h", ""):
            do("GET", f"{plural}?labelSelector=none&timeout={timeout}")
            do("POST", f"{plural}?dryRun=All&timeout={timeout}", sample(plural))
