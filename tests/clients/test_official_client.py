"""The official Python client, typed and dynamic, finds here what it finds anywhere."""

# mypy: disable-error-code="import-untyped, no-untyped-call, union-attr"
from __future__ import annotations

import threading
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes import dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from tests.definitions import definition, structure

GROUP = "official.example.com"
CRD = definition(
    "gadgets",
    "Gadget",
    group=GROUP,
    schema=structure(
        spec=structure(size={"type": "integer", "minimum": 1}),
        status=structure(seen={"type": "boolean"}),
    ),
    subresources={"status": {}},
)


def config_map(name: str, **data: str) -> Any:
    return official.V1ConfigMap(
        metadata=official.V1ObjectMeta(name=name, labels={"made": "here"}), data=data
    )


def test_typed_objects_live_through_their_life(api: Any, namespace: str) -> None:
    core = official.CoreV1Api(api)
    made = core.create_namespaced_config_map(namespace, config_map("one", a="1"))
    assert made.metadata.uid
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_config_map(namespace, config_map("one"))
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    core.patch_namespaced_config_map("one", namespace, {"data": {"b": "2"}})
    read = core.read_namespaced_config_map("one", namespace)
    assert read.data == {"a": "1", "b": "2"}
    read.data = {"c": "3"}
    core.replace_namespaced_config_map("one", namespace, read)
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("one", namespace, read)
    assert stale.value.status == 409
    core.delete_namespaced_config_map("one", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("one", namespace)
    assert gone.value.status == 404


def test_lists_come_in_pages_of_one_revision(api: Any, namespace: str) -> None:
    core = official.CoreV1Api(api)
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"m{number}"))
    first = core.list_namespaced_config_map(namespace, limit=3, label_selector="made")
    second = core.list_namespaced_config_map(
        namespace, limit=9, label_selector="made", _continue=first.metadata._continue
    )
    names = [each.metadata.name for each in (*first.items, *second.items)]
    assert names == [f"m{number}" for number in range(7)]
    assert first.metadata.resource_version == second.metadata.resource_version


def test_a_watch_tells_what_changes(api: Any, namespace: str) -> None:
    core = official.CoreV1Api(api)
    start = core.list_namespaced_config_map(namespace).metadata.resource_version

    def change() -> None:
        core.create_namespaced_config_map(namespace, config_map("seen"))
        core.patch_namespaced_config_map("seen", namespace, {"data": {"x": "1"}})
        core.delete_namespaced_config_map("seen", namespace)

    writer = threading.Thread(target=change)
    writer.start()
    seen = []
    for event in watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=start,
        label_selector="made",
        timeout_seconds=20,
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break
    writer.join()
    assert seen == [("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "seen")]


def test_typed_workloads_are_taken_and_scaled(api: Any, namespace: str) -> None:
    apps = official.AppsV1Api(api)
    labels = {"app": "web"}
    container = official.V1Container(name="web", image="example.com/web:1")
    made = apps.create_namespaced_deployment(
        namespace,
        official.V1Deployment(
            metadata=official.V1ObjectMeta(name="web"),
            spec=official.V1DeploymentSpec(
                replicas=1,
                selector=official.V1LabelSelector(match_labels=labels),
                template=official.V1PodTemplateSpec(
                    metadata=official.V1ObjectMeta(labels=labels),
                    spec=official.V1PodSpec(containers=[container]),
                ),
            ),
        ),
    )
    assert made.spec.strategy.type == "RollingUpdate"
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 4
    assert apps.read_namespaced_deployment("web", namespace).metadata.generation == 2


def test_custom_kinds_are_found_dynamically(api: Any, namespace: str) -> None:
    dynamic_client = dynamic.DynamicClient(api)
    crds = dynamic_client.resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    crds.create(body=CRD)
    try:
        for event in crds.watch(name=CRD["metadata"]["name"], timeout=20):
            conditions = (event["raw_object"].get("status") or {}).get("conditions")
            if any(
                each["type"] == "Established" and each["status"] == "True"
                for each in conditions or ()
            ):
                break
        _use_gadgets(dynamic_client, namespace)
    finally:
        crds.delete(name=CRD["metadata"]["name"])


def _use_gadgets(dynamic_client: Any, namespace: str) -> None:
    dynamic_client.resources.invalidate_cache()
    gadgets = dynamic_client.resources.get(api_version=f"{GROUP}/v1", kind="Gadget")
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": "one"},
        "spec": {"size": 2},
    }
    gadgets.create(body=body, namespace=namespace)
    with pytest.raises(ConflictError):
        gadgets.create(body=body, namespace=namespace)
    gadgets.status.patch(
        body={"status": {"seen": True}},
        name="one",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    found = gadgets.get(name="one", namespace=namespace)
    assert (found.spec.size, found.status.seen) == (2, True)
    applied = dynamic_client.server_side_apply(
        resource=gadgets,
        body={**body, "spec": {"size": 5}},
        name="one",
        namespace=namespace,
        field_manager="official",
        force_conflicts=True,
    )
    assert applied.spec.size == 5
    gadgets.delete(name="one", namespace=namespace)
    with pytest.raises(NotFoundError):
        gadgets.get(name="one", namespace=namespace)
