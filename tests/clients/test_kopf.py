"""An operator written with kopf works here as it does anywhere."""

# mypy: disable-error-code="import-untyped, no-untyped-call"
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as official
from kubernetes.client.exceptions import ApiException

from tests.definitions import FREE, definition, structure
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

OPERATOR = Path(__file__).with_name("kopf_operator.py")
GROUP = "kopf.example.com"
PLACE = (GROUP, "v1")
FINALIZER = f"{GROUP}/finalizer"
CRD = definition(
    "bakeries",
    "Bakery",
    group=GROUP,
    schema=structure(spec=structure(loaves={"type": "integer"}), status=FREE),
    subresources={"status": {}},
)


class Bakeries:
    """The custom objects of one namespace, through the official client."""

    def __init__(self, api: Any, namespace: str) -> None:
        self.core: Any = official.CoreV1Api(api)
        self.objects: Any = official.CustomObjectsApi(api)
        self.place = (*PLACE, namespace, "bakeries")
        self.namespace = namespace

    def create(self, name: str, loaves: int) -> None:
        made = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Bakery",
            "metadata": {"name": name},
            "spec": {"loaves": loaves},
        }
        self.objects.create_namespaced_custom_object(*self.place, made)

    def change(self, name: str, loaves: int) -> None:
        patch = {"spec": {"loaves": loaves}}
        self.objects.patch_namespaced_custom_object(*self.place, name, patch)

    def get(self, name: str) -> dict[str, Any] | None:
        """The object, if it is there."""
        try:
            found = self.objects.get_namespaced_custom_object(*self.place, name)
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return dict(found)

    def baked(self, name: str) -> int | None:
        found = self.get(name) or {}
        return (found.get("status") or {}).get("baked")

    def loaves(self) -> dict[str, Any]:
        """The ConfigMaps of the namespace by name, without Kubernetes' own."""
        listed = self.core.list_namespaced_config_map(self.namespace).items
        names = {each.metadata.name: each for each in listed}
        return {n: each for n, each in names.items() if n != "kube-root-ca.crt"}

    def reasons(self) -> set[tuple[str, str]]:
        """What its events say happened to what."""
        listed = self.core.list_namespaced_event(self.namespace).items
        return {(each.involved_object.name, each.reason) for each in listed}


@pytest.fixture
def bakeries(api: Any, namespace: str) -> Iterator[Bakeries]:
    """The kind, and its operator at work in the namespace."""
    definitions: Any = official.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(CRD)
    yield Bakeries(api, namespace)
    definitions.delete_custom_resource_definition(CRD["metadata"]["name"])


@pytest.fixture
def operator(
    bakeries: Bakeries, cluster: Cluster, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--verbose"]
    command += [f"--namespace={bakeries.namespace}", str(OPERATOR)]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        yield process
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            print(log.read_text())  # pytest shows it if the test failed


async def test_an_operator_handles_creation_change_and_deletion(
    bakeries: Bakeries, operator: subprocess.Popen[bytes], cluster: Cluster
) -> None:
    bakeries.create("corner", 2)
    await eventually(lambda: bakeries.baked("corner") == 2, within=30, every=0.1)
    made = bakeries.get("corner")
    assert made is not None
    assert made["metadata"]["finalizers"] == [FINALIZER]
    assert made["status"]["created"] == {"message": "baked 2"}
    loaves = bakeries.loaves()
    assert set(loaves) == {"corner-0", "corner-1"}
    owner = loaves["corner-0"].metadata.owner_references[0]
    assert (owner.uid, owner.controller) == (made["metadata"]["uid"], True)

    bakeries.change("corner", 3)
    await eventually(lambda: bakeries.baked("corner") == 3, within=30, every=0.1)
    assert "corner-2" in bakeries.loaves()
    told = {("corner", "Baked"), ("corner", "Logging")}
    await eventually(lambda: told <= bakeries.reasons(), within=30, every=0.1)

    bakeries.objects.delete_namespaced_custom_object(*bakeries.place, "corner")
    await eventually(lambda: bakeries.get("corner") is None, within=30, every=0.1)
    assert "corner-closed" in bakeries.loaves()
    if cluster.controllers:
        alone = {"corner-closed"}
        await eventually(lambda: set(bakeries.loaves()) == alone, within=30, every=0.1)
    assert operator.poll() is None
