"""Pods that variants are made of, and ways to write variants down."""

from __future__ import annotations

from typing import Any

C0 = "spec/containers/0/"


MINIMAL: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}


RICH: dict[str, Any] = {
    "metadata": {
        "name": "rich",
        "labels": {"app": "web", "example.com/tier": "front"},
        "annotations": {"example.com/note": "a b c"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "owner",
                "uid": "11111111-2222-3333-4444-555555555555",
            }
        ],
    },
    "spec": {
        "restartPolicy": "OnFailure",
        "serviceAccountName": "web",
        "automountServiceAccountToken": False,
        "hostname": "h",
        "subdomain": "s",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "",
        "imagePullSecrets": [{"name": "pull"}],
        "tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute"},
            {"key": "b", "value": "c", "effect": "NoSchedule"},
        ],
        "securityContext": {"runAsUser": 1000, "fsGroup": 2000},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a"]}
                            ]
                        }
                    ]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 10,
                        "podAffinityTerm": {
                            "topologyKey": "zone",
                            "labelSelector": {"matchLabels": {"app": "web"}},
                        },
                    }
                ]
            },
        },
        "dnsConfig": {"nameservers": ["1.1.1.1"], "options": [{"name": "ndots"}]},
        "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["a.example.com"]}],
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "initContainers": [
            {
                "name": "init",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "true"],
                "resources": {"limits": {"cpu": "0.1", "memory": "1024Mi"}},
            },
            {
                "name": "side",
                "image": "busybox@sha256:" + "0" * 64,
                "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["true"]}},
            },
        ],
        "containers": [
            {
                "name": "web",
                "image": "registry.example.com:5000/web:1.2",
                "args": ["--a"],
                "env": [
                    {"name": "A", "value": "b"},
                    {"name": "EMPTY", "value": ""},
                    {
                        "name": "POD",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                    },
                    {
                        "name": "CPU",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}},
                    },
                    {
                        "name": "KEY",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                    },
                ],
                "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}],
                "ports": [
                    {"containerPort": 8080, "name": "http"},
                    {"containerPort": 53, "protocol": "UDP"},
                ],
                "resources": {
                    "requests": {"cpu": "1000m", "memory": "0.5Gi"},
                    "limits": {"cpu": "2", "memory": "1024Mi", "example.com/gpu": 1},
                },
                "livenessProbe": {"httpGet": {"port": "http"}},
                "readinessProbe": {
                    "tcpSocket": {"port": 8080},
                    "periodSeconds": 3,
                    "initialDelaySeconds": 0,
                },
                "startupProbe": {"grpc": {"port": 9000}},
                "lifecycle": {
                    "preStop": {"httpGet": {"port": 80, "path": "x"}},
                    "postStart": {"exec": {"command": ["a"]}},
                },
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data"},
                    {"name": "conf", "mountPath": "/conf", "subPath": "a/b"},
                ],
                "securityContext": {
                    "capabilities": {"drop": ["ALL"]},
                    "privileged": False,
                },
                "stdin": False,
                "tty": True,
            }
        ],
        "volumes": [
            {"name": "data"},
            {"name": "conf", "configMap": {"name": "c"}},
            {"name": "sec", "secret": {"secretName": "s", "optional": False}},
            {"name": "host", "hostPath": {"path": "/tmp"}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "empty", "emptyDir": {"sizeLimit": "1.5Gi", "medium": ""}},
            {
                "name": "down",
                "downwardAPI": {
                    "items": [
                        {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}
                    ]
                },
            },
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {"configMap": {"name": "c"}},
                        {"secret": {"name": "s"}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {
                                        "path": "n",
                                        "fieldRef": {"fieldPath": "metadata.name"},
                                    }
                                ]
                            }
                        },
                    ]
                },
            },
            {"name": "nfs", "nfs": {"server": "a", "path": "/b"}},
            {"name": "csi", "csi": {"driver": "csi.example.com"}},
            {
                "name": "iscsi",
                "iscsi": {
                    "targetPortal": "p",
                    "iqn": "iqn.2015-02.example.com:t",
                    "lun": 0,
                },
            },
            {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i"}},
            {"name": "img", "image": {"reference": "a/b:latest"}},
            {
                "name": "eph",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            },
        ],
    },
}


TERM = (
    "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
    "nodeSelectorTerms"
)


def probe(**changes: Any) -> dict[str, Any]:
    return {C0 + "livenessProbe": {"exec": {"command": ["a"]}, **changes}}


def volume(**source: Any) -> dict[str, Any]:
    return {"spec/volumes": [{"name": "v", **source}]}


def projected(*sources: Any) -> dict[str, Any]:
    return {
        **volume(projected={"sources": list(sources)}),
        "spec/serviceAccountName": "web",
    }


def resources(requests: Any, limits: Any) -> dict[str, Any]:
    return {C0 + "resources": {"requests": requests, "limits": limits}}


def affinity(term: Any) -> dict[str, Any]:
    return {TERM: [term]}
