"""Two operators in Go that somebody else wrote reconcile here.

They are the examples of controller-runtime, as they come: one labels ReplicaSets and
has webhooks for Pods, the other keeps a Pod for each object of a kind of its own.
Collected where they are: ``hack/cluster/build.py`` builds them, before the tier of the
real cluster. Each listens on two ports that nobody can choose.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trimtab.embedded.certificates import Authority, Pair
from trimtab.testing import Cluster, assets
from trimtab.testing.waiting import eventually

PROGRAMS = {name: assets.find(name) for name in assets.OPERATORS}
BUILTINS, CUSTOM = assets.OPERATORS
PORTS = (8080, 9443)
GROUP = "chaosapps.metamagical.io"
ANNOTATION = "example-mutating-admission-webhook"

pytestmark = [pytest.mark.cluster("embedded", "real"), pytest.mark.timeout(120)]

Plain = dict[str, Any]


@contextlib.contextmanager
def running(name: str, cluster: Cluster, folder: Path) -> Iterator[None]:
    """An operator at work; what it said is shown if the test fails."""
    program, log = PROGRAMS[name], folder / "operator.log"
    assert program is not None
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "TMPDIR": str(folder),  # where it looks for its certificate
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program)], env=environment, stdout=output, stderr=output
        )
        try:
            yield
        except BaseException:
            print(log.read_text()[-20_000:])
            raise
        finally:
            process.terminate()
            process.wait(40)


@pytest.fixture
async def ports() -> None:
    """Nobody else has the ports; whoever had them last may just be going."""

    def free() -> bool:
        for port in PORTS:
            with socket.socket() as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    tried.bind(("", port))
                except OSError:
                    return False
        return True

    await eventually(free, within=40, describe=f"the ports {PORTS} are free")


@pytest.fixture
def certificate(tmp_path: Path) -> Pair:
    """What the webhooks of an operator show, where it looks for it."""
    now = datetime.now(UTC)
    authority = Authority.make("operator-tests", now=now)
    made = authority.issue_server("operator", names=("127.0.0.1",), now=now)
    folder = tmp_path / "k8s-webhook-server" / "serving-certs"
    folder.mkdir(parents=True)
    (folder / "tls.crt").write_bytes(made.certificate)
    (folder / "tls.key").touch(mode=0o600)
    (folder / "tls.key").write_bytes(made.key)
    return authority.pair


async def put(cluster: Cluster, namespace: str, *objects: Plain) -> None:
    made = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    create = ("create", "--filename=-", f"--namespace={namespace}")
    await cluster.kubectl(*create, stdin=json.dumps(made))


async def got(cluster: Cluster, namespace: str, what: str) -> Plain:
    told = await cluster.kubectl("get", what, f"--namespace={namespace}", "-o=json")
    found: Plain = json.loads(told)
    return found


def template(**labels: str) -> Plain:
    containers = [{"name": "main", "image": "example.com/main:1"}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def replica_set(name: str) -> Plain:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {**spec, "template": template(app=name)},
    }


def pod(name: str, **annotations: str) -> Plain:
    meta = {"name": name, "annotations": annotations}
    spec = template()["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def hook(way: str, namespace: str, certificate: Pair) -> Plain:
    """A webhook of the operator, for the Pods of one namespace."""
    path = f"/{way}--v1-pod"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    return {
        "name": f"{way}.operators.example.com",
        "clientConfig": {
            "url": f"https://127.0.0.1:{PORTS[1]}{path}",
            "caBundle": b64encode(certificate.certificate).decode(),
        },
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": namespace}
        },
    }


@contextlib.asynccontextmanager
async def asked(
    cluster: Cluster, namespace: str, certificate: Pair, *ways: str
) -> AsyncIterator[None]:
    """The operator's webhooks count for the length of the block."""
    kinds = {"mutate": "Mutating", "validate": "Validating"}
    made: list[Plain] = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kinds[way]}WebhookConfiguration",
            "metadata": {"name": f"{way}-{secrets.token_hex(4)}"},
            "webhooks": [hook(way, namespace, certificate)],
        }
        for way in ways
    ]
    await put(cluster, namespace, *made)
    try:
        yield
    finally:
        for each in made:
            name = f"{each['kind'].lower()}/{each['metadata']['name']}"
            await cluster.kubectl("delete", name)


if PROGRAMS[BUILTINS] is not None:

    @pytest.mark.usefixtures("ports")
    async def test_an_operator_of_built_in_kinds_reconciles_and_admits(
        cluster: Cluster, namespace: str, tmp_path: Path, certificate: Pair
    ) -> None:
        await put(cluster, namespace, replica_set("before"))
        with running(BUILTINS, cluster, tmp_path):

            async def labelled() -> bool:
                sets = await got(cluster, namespace, "replicasets")
                labels = [each["metadata"].get("labels") for each in sets["items"]]
                return labels == [{"hello": "world"}] * len(labels) and bool(labels)

            await eventually(labelled, within=40, every=0.3)
            await put(cluster, namespace, replica_set("while"))
            await eventually(labelled, within=20, every=0.3)
            async with asked(cluster, namespace, certificate, "mutate", "validate"):
                await check_admission(cluster, namespace)


async def check_admission(cluster: Cluster, namespace: str) -> None:
    """A Pod is annotated by one webhook, so that the other lets it in."""
    count = iter(range(1000))

    async def annotated() -> bool:
        name = f"pod-{next(count)}"
        await put(cluster, namespace, pod(name))
        meta = (await got(cluster, namespace, f"pods/{name}"))["metadata"]
        return bool(meta.get("annotations") == {ANNOTATION: "foo"})

    await eventually(annotated, within=30, every=0.2)


def definition() -> Plain:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"chaospods.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "chaospods", "kind": "ChaosPod"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
async def chaos(cluster: Cluster, namespace: str) -> AsyncIterator[str]:
    """The kind of the operator, and an object of it."""
    await put(cluster, namespace, definition())
    name = f"crd/chaospods.{GROUP}"
    await cluster.kubectl("wait", "--for=condition=Established", name)
    yield "one"
    await cluster.kubectl("delete", name, "--wait=false")


if PROGRAMS[CUSTOM] is not None:

    @pytest.mark.usefixtures("ports", "certificate")
    async def test_an_operator_of_a_kind_of_its_own_keeps_a_pod_for_each_object(
        cluster: Cluster, namespace: str, tmp_path: Path, chaos: str
    ) -> None:
        made = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ChaosPod",
            "metadata": {"name": chaos},
            "spec": {"template": template(app=chaos)},
        }
        await put(cluster, namespace, made)
        uids: list[str] = []

        async def another_pod() -> bool:
            pods = (await got(cluster, namespace, "pods"))["items"]
            if not pods:
                return False
            meta = pods[0]["metadata"]
            [owner] = meta["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("ChaosPod", chaos)
            assert owner["controller"] is True
            if meta["uid"] in uids:
                return False
            uids.append(meta["uid"])
            return True

        async def is_due_later() -> bool:
            spec = (await got(cluster, namespace, f"chaospods/{chaos}"))["spec"]
            moment = datetime.fromisoformat(spec.get("nextStop") or "1970-01-01T00:00Z")
            return moment > datetime.now(UTC)

        with running(CUSTOM, cluster, tmp_path):
            await eventually(another_pod, within=40, every=0.3)
            await eventually(is_due_later, within=20, every=0.3)
            past = json.dumps({"spec": {"nextStop": "2000-01-01T00:00:00Z"}})
            patch = ("patch", f"chaospod/{chaos}", "--type=merge", f"--patch={past}")
            await cluster.kubectl(*patch, f"--namespace={namespace}")
            await eventually(another_pod, within=30, every=0.3)
