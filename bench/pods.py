"""The Pods that are read: as a ReplicaSet and a kubelet leave them, 6 to 7 KB each.

Nothing here is random: the same number makes the same Pods, so that the checksum which
every peer must print is known before any of them has run.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

from bench.peers.probe import MODULUS, checksum
from trimtab.client import Client

NAMESPACES = 20
WRITERS = 32
"""Pods that are being created at once; more do not make the server faster."""

APPS = ("cart", "checkout", "frontend", "inventory", "payments", "search", "users")
WHEN = "2026-01-01T00:00:00Z"


def phase_of(number: int) -> str:
    """Most run; some are done, some wait, some have failed."""
    return {7: "Succeeded", 13: "Pending", 17: "Failed"}.get(number % 20, "Running")


def namespace_of(number: int) -> str:
    return f"team-{number % NAMESPACES:02}"


def digest(*words: object) -> str:
    """Forty hexadecimal digits that look random and are not."""
    return hashlib.sha1(repr(words).encode(), usedforsecurity=False).hexdigest()


def uid(*words: object) -> str:
    text = digest(*words)
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:32])
    return "-".join(parts)


def labels_of(number: int) -> dict[str, str]:
    app = APPS[number % len(APPS)]
    return {
        "app.kubernetes.io/component": "server",
        "app.kubernetes.io/instance": f"{app}-{namespace_of(number)}",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/version": f"1.{number % 40}.{number % 7}",
        "pod-template-hash": digest(app, number // 50)[:10],
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
    }


def name_of(number: int) -> str:
    labels = labels_of(number)
    app, template = labels["app.kubernetes.io/name"], labels["pod-template-hash"]
    return f"{app}-{template}-{number:05}"


def expected_checksum(count: int) -> int:
    """What every peer must find."""
    total = sum(
        checksum(namespace_of(n), name_of(n), labels_of(n), phase_of(n))
        for n in range(count)
    )
    return total % MODULUS


def pod(number: int) -> dict[str, Any]:
    """What the ReplicaSet's controller creates, already placed on a node."""
    app = APPS[number % len(APPS)]
    owner = name_of(number).rpartition("-")[0]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(number),
            "namespace": namespace_of(number),
            "labels": labels_of(number),
            "annotations": annotations_of(number),
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": owner,
                    "uid": uid("ReplicaSet", owner),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec(number, app),
    }


def annotations_of(number: int) -> dict[str, str]:
    return {
        "checksum/config": digest("config", number // 50) + digest("more", number)[:24],
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": "9090",
        "prometheus.io/scrape": "true",
    }


def spec(number: int, app: str) -> dict[str, Any]:
    access = f"kube-api-access-{digest('access', number)[:5]}"
    return {
        "serviceAccountName": app,
        "nodeName": f"node-{number % 100:03}",
        "priority": 0,
        "enableServiceLinks": True,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        "containers": [server(app, access)],
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for taint in ("not-ready", "unreachable")
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config"}},
            {"name": access, "projected": {"defaultMode": 420, "sources": sources()}},
        ],
    }


def sources() -> list[dict[str, Any]]:
    """What the ServiceAccount admission plugin puts into every Pod."""
    certificate = {"key": "ca.crt", "path": "ca.crt"}
    namespace = {"fieldPath": "metadata.namespace", "apiVersion": "v1"}
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [certificate]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]


def mount(access: str) -> dict[str, Any]:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {"name": access, "mountPath": path, "readOnly": True}


def server(app: str, access: str) -> dict[str, Any]:
    database = {"secretKeyRef": {"name": f"{app}-database", "key": "password"}}
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5}
    return {
        "name": "server",
        "image": f"registry.example.com/shop/{app}:1.12.4",
        "args": ["--listen=:8080", "--metrics=:9090", "--config=/etc/app/config.yaml"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "DATABASE_PASSWORD", "valueFrom": database},
            {"name": "POD_NAME", "valueFrom": field("metadata.name")},
        ],
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"memory": "512Mi"},
        },
        "readinessProbe": probe,
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            mount(access),
        ],
    }


def field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": path}}


def status(number: int) -> dict[str, Any]:
    """What the kubelet reports."""
    phase, app = phase_of(number), APPS[number % len(APPS)]
    ready = "True" if phase == "Running" else "False"
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    types = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": phase,
        "conditions": [
            {
                "type": kind,
                "status": ready if "Ready" in kind else "True",
                "lastTransitionTime": WHEN,
            }
            for kind in types
        ],
        "hostIP": f"10.200.0.{number % 100}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": WHEN,
        "qosClass": "Burstable",
        "containerStatuses": [container_status(number, app, ready == "True")],
    }


def container_status(number: int, app: str, running: bool) -> dict[str, Any]:
    ended = {"exitCode": 0, "startedAt": WHEN, "finishedAt": WHEN}
    image = digest("image", app) + digest(app)[:24]
    return {
        "name": "server",
        "image": f"registry.example.com/shop/{app}:1.12.4",
        "imageID": f"registry.example.com/shop/{app}@sha256:{image}",
        "containerID": f"containerd://{digest(app, number)}{digest(number)[:24]}",
        "ready": running,
        "started": running,
        "restartCount": 0,
        "lastState": {},
        "state": {"running": {"startedAt": WHEN}} if running else {"terminated": ended},
    }


async def load(client: Client, count: int) -> None:
    """Create the Pods and report their status: two writes each."""
    for number in range(NAMESPACES):
        name = {"name": namespace_of(number)}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": name}
        await client.create(namespace)
    numbers = iter(range(count))
    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(_write(client, numbers))


async def _write(client: Client, numbers: Iterator[int]) -> None:
    """Take the next number until there is none."""
    info = await client.discover("v1", "Pod")
    for number in numbers:
        await client.create(pod(number), manager="kube-controller-manager")
        await client.patch(
            info,
            name_of(number),
            {"status": status(number)},
            namespace=namespace_of(number),
            subresource="status",
            manager="kubelet",
        )
