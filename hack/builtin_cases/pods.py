"""Pods: what may be in one, what is filled in, and what may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases import pod_metadata, pod_rules, pod_volumes
from hack.builtin_cases.case import GONE, Case, creates, updates
from hack.builtin_cases.pod_bases import C0, MINIMAL, RICH, TERM

POD = "v1/Pod"


UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "labels": {"metadata/labels": {"a": "b"}},
    "bad label": {"metadata/labels": {"a b": "c"}},
    "image": {C0 + "image": "nginx:2"},
    "image empty": {C0 + "image": ""},
    "image padded": {C0 + "image": "a "},
    "command": {C0 + "command": ["a"]},
    "node": {"spec/nodeName": "n"},
    "resources": {C0 + "resources": {"requests": {"cpu": "1"}}},
    "env and hostname": {
        C0 + "env": [{"name": "A", "value": "<b>"}],
        "spec/hostname": "h",
    },
    "host network": {"spec/hostNetwork": True},
    "volume": {"spec/volumes": [{"name": "v", "configMap": {"name": "c"}}]},
    "add container": {"spec/containers/-": {"name": "b", "image": "a"}},
    "add init container": {"spec/initContainers": [{"name": "b", "image": "a"}]},
    "deadline": {"spec/activeDeadlineSeconds": 10},
    "deadline negative": {"spec/activeDeadlineSeconds": -1},
    "tolerate": {"spec/tolerations": [{"key": "a", "operator": "Exists"}]},
    "grace": {"spec/terminationGracePeriodSeconds": 5},
    "service account": {"spec/serviceAccountName": "b"},
    "gate": {"spec/schedulingGates": [{"name": "a"}]},
    "status is kept": {"status": {"phase": "Running"}},
    "no status": {"status": GONE},
    "created": {"metadata/creationTimestamp": "2020-01-01T00:00:00Z"},
    "generation": {"metadata/generation": 17},
    "deletion": {"metadata/deletionTimestamp": "2020-01-01T00:00:00Z"},
    "no version": {"metadata/resourceVersion": GONE},
    "no uid": {"metadata/uid": GONE},
    "ephemeral": {"spec/ephemeralContainers": [{"name": "e", "image": "a"}]},
    "mirror": {"metadata/annotations": {"kubernetes.io/config.mirror": "a"}},
    "finalizer": {"metadata/finalizers": ["example.com/a"]},
    "finalizer bad": {"metadata/finalizers": ["a"]},
    "owner bad": {"metadata/ownerReferences": [{"kind": "A"}]},
}


RICH_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "toleration removed": {"spec/tolerations/0": GONE},
    "toleration seconds": {"spec/tolerations/0/tolerationSeconds": 5},
    "mount": {C0 + "volumeMounts/0/readOnly": True},
    "probe": {C0 + "livenessProbe/periodSeconds": 7},
    "affinity": {TERM + "/0/matchExpressions/0/values": ["b"]},
    "volume gone": {"spec/volumes/13": GONE},
    "init image": {"spec/initContainers/0/image": "busybox:2"},
    "limits": {C0 + "resources/limits/cpu": "3"},
    "token": {"spec/volumes/7/projected/sources/0/serviceAccountToken/path": "t"},
}


GATED: dict[str, Any] = {
    "metadata": {"name": "gated"},
    "spec": {
        "schedulingGates": [{"name": "a"}, {"name": "b"}],
        "activeDeadlineSeconds": 100,
        "containers": [{"name": "web", "image": "nginx"}],
        "nodeSelector": {"a": "b"},
    },
}


GATED_UPDATES: dict[str, dict[str, Any]] = {
    "gate gone": {"spec/schedulingGates/0": GONE},
    "gate new": {"spec/schedulingGates/-": {"name": "c"}},
    "selector more": {"spec/nodeSelector/c": "d"},
    "selector changed": {"spec/nodeSelector/a": "d"},
    "affinity": {
        TERM: [
            {
                "matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["a"]}
                ]
            }
        ]
    },
    "deadline longer": {"spec/activeDeadlineSeconds": 200},
    "deadline shorter": {"spec/activeDeadlineSeconds": 50},
    "deadline gone": {"spec/activeDeadlineSeconds": GONE},
    "bind": {"spec/nodeName": "n"},
}


STATUS: dict[str, dict[str, Any]] = {
    "running": {
        "status/phase": "Running",
        "status/podIP": "10.1.1.1",
        "status/podIPs": [{"ip": "10.1.1.1"}],
        "status/conditions": [{"type": "Ready", "status": "True"}],
        "status/startTime": "2026-01-02T03:04:05.678+01:00",
        "status/containerStatuses": [
            {
                "name": "web",
                "ready": True,
                "restartCount": 2,
                "image": "a",
                "imageID": "b",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            }
        ],
    },
    "spec is kept": {C0 + "image": "other", "status/phase": "Failed"},
    "labels too": {"metadata/labels": {"a": "b"}},
    "pod ip only": {"status/podIP": "10.1.1.1"},
    "bad ip": {"status/podIPs": [{"ip": "x"}]},
    "two ips": {"status/podIPs": [{"ip": "10.1.1.1"}, {"ip": "10.1.1.2"}]},
    "host ips": {"status/hostIP": "1.1.1.1", "status/hostIPs": [{"ip": "2.2.2.2"}]},
    "qos": {"status/qosClass": "Guaranteed"},
    "condition": {"status/conditions": [{"type": "a b", "status": "True"}]},
    "nominated": {"status/nominatedNodeName": "A B"},
    "empty": {"status": {}},
}


TERMINATED = {
    "status/phase": "Failed",
    "status/containerStatuses": [
        {
            "name": "web",
            "ready": False,
            "restartCount": 0,
            "image": "a",
            "imageID": "b",
            "state": {"terminated": {"exitCode": 1}},
        }
    ],
}


NEVER = {
    "metadata": {"name": "never"},
    "spec": {**MINIMAL["spec"], "restartPolicy": "Never"},
}


EPHEMERAL: dict[str, dict[str, Any]] = {
    "debug": {"spec/ephemeralContainers": [{"name": "d", "image": "busybox"}]},
    "debug target": {
        "spec/ephemeralContainers": [
            {"name": "d", "image": "busybox", "targetContainerName": "nope"},
            {"name": "web", "image": "a", "ports": [{"containerPort": 1}]},
        ]
    },
}


RESIZE: dict[str, dict[str, Any]] = {
    "more": {C0 + "resources": {"requests": {"cpu": "200m"}}},
    "removed": {C0 + "resources": {}},
    "image": {C0 + "image": "other"},
    "other class": {
        C0 + "resources": {
            "requests": {"cpu": "100m", "memory": "1Gi"},
            "limits": {"cpu": "100m", "memory": "1Gi"},
        }
    },
}


SIZED = {
    "metadata": {"name": "sized"},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "resources": {"requests": {"cpu": "100m"}},
            }
        ]
    },
}


def cases() -> Iterator[Case]:
    for module in (pod_metadata, pod_volumes, pod_rules):
        yield from creates(POD, MINIMAL, module.VARIANTS)
    yield from creates(POD, RICH, {"rich": {}})
    yield from updates(POD, MINIMAL, UPDATES)
    yield from updates(POD, RICH, RICH_UPDATES)
    yield from updates(POD, GATED, GATED_UPDATES)
    yield from updates(POD, MINIMAL, STATUS, subresource="status")
    yield from updates(
        POD,
        NEVER,
        {"restarted": {"status/containerStatuses/0/state": {"running": {}}}},
        subresource="status",
        status=TERMINATED,
    )
    yield from updates(POD, MINIMAL, EPHEMERAL, subresource="ephemeralcontainers")
    yield from updates(POD, SIZED, RESIZE, subresource="resize")
