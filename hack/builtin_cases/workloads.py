"""Workloads: Deployments and their relatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, changed, creates, updates

TEMPLATE: JSON = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
}


RICH_TEMPLATE: JSON = {
    "metadata": {"labels": {"app": "web", "x": "y"}, "annotations": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"port": 80}},
                "resources": {"limits": {"cpu": "1000m"}},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def workload(name: str, **spec: Any) -> JSON:
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": TEMPLATE,
            **spec,
        },
    }


COMMON: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich template": {"spec/template": RICH_TEMPLATE, "metadata/labels": {"a": "b"}},
    "status is dropped": {"status": {"observedGeneration": 5}},
    "no selector": {"spec/selector": GONE},
    "empty selector": {"spec/selector": {}},
    "selector mismatch": {"spec/selector/matchLabels": {"app": "other"}},
    "selector bad key": {"spec/selector/matchLabels": {"a b": "c"}},
    "selector expression": {
        "spec/selector": {
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["web", "b"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ]
        }
    },
    "selector operator": {
        "spec/selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}
    },
    "selector no values": {
        "spec/selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}
    },
    "no labels": {"spec/template/metadata": {}},
    "no template": {"spec/template": GONE},
    "no spec": {"spec": GONE},
    "no containers": {"spec/template/spec/containers": []},
    "restart never": {"spec/template/spec/restartPolicy": "Never"},
    "deadline": {"spec/template/spec/activeDeadlineSeconds": 5},
    "template label": {"spec/template/metadata/labels/a": "b c"},
    "template annotation": {"spec/template/metadata/annotations": {"a b": "c"}},
    "template ephemeral": {
        "spec/template/spec/ephemeralContainers": [{"name": "e", "image": "a"}]
    },
    "image padded": {"spec/template/spec/containers/0/image": " a"},
    "min ready": {"spec/minReadySeconds": -1},
    "name": {"metadata/name": "A_b"},
    "name dotted": {"metadata/name": "a.b"},
    "grace negative": {"spec/template/spec/terminationGracePeriodSeconds": -3},
    "host network": {
        "spec/template/spec/hostNetwork": True,
        "spec/template/spec/containers/0/ports": [{"containerPort": 80}],
    },
    "limits only": {
        "spec/template/spec/containers/0/resources": {"limits": {"cpu": "0.5"}}
    },
    "mount": {
        "spec/template/spec/containers/0/volumeMounts": [
            {"name": "x", "mountPath": "/x"}
        ]
    },
    "wrong replicas": {"spec/replicas": "3"},
}


DEPLOYMENT: dict[str, dict[str, Any]] = {
    "replicas": {"spec/replicas": -1},
    "zero replicas": {"spec/replicas": 0},
    "recreate": {"spec/strategy": {"type": "Recreate"}},
    "recreate rolling": {"spec/strategy": {"type": "Recreate", "rollingUpdate": {}}},
    "strategy": {"spec/strategy": {"type": "Nope"}},
    "rolling zero": {
        "spec/strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}
    },
    "rolling percent": {
        "spec/strategy": {"rollingUpdate": {"maxSurge": "5", "maxUnavailable": "150%"}}
    },
    "rolling negative": {
        "spec/strategy": {"rollingUpdate": {"maxSurge": -1, "maxUnavailable": "x"}}
    },
    "progress": {"spec/progressDeadlineSeconds": 5, "spec/minReadySeconds": 5},
    "history": {"spec/revisionHistoryLimit": -1},
    "paused": {"spec/paused": True},
}


SCALED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "replicas": {"spec/replicas": 3},
    "selector": {
        "spec/selector/matchLabels": {"app": "b"},
        "spec/template/metadata/labels": {"app": "b"},
    },
    "image": {"spec/template/spec/containers/0/image": "other:2"},
    "labels": {"metadata/labels": {"a": "b"}},
    "annotations": {"metadata/annotations": {"a": "b"}},
    "status is kept": {"status": {"replicas": 4}},
    "bad replicas": {"spec/replicas": -1},
    "bad label": {"metadata/labels": {"a": "b c"}},
}


STATUS: dict[str, dict[str, Any]] = {
    "status": {
        "status/replicas": 3,
        "status/readyReplicas": 2,
        "status/observedGeneration": 1,
    },
    "status and spec": {
        "status/replicas": 1,
        "spec/replicas": 5,
        "metadata/labels": {"x": "y"},
    },
    "more ready": {
        "status/replicas": 1,
        "status/readyReplicas": 2,
        "status/availableReplicas": 3,
    },
    "negative": {"status/replicas": -1},
    "conditions": {
        "status/conditions": [{"type": "Available", "status": "True"}],
    },
}


STATEFUL: dict[str, dict[str, Any]] = {
    "rich": {
        "spec/volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        ],
        "spec/template/spec/containers/0/volumeMounts": [
            {"name": "data", "mountPath": "/data"}
        ],
        "spec/serviceName": "web",
        "spec/template/spec/hostname": "Not Valid",
    },
    "claim bad": {
        "spec/volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]
    },
    "management": {"spec/podManagementPolicy": "Nope"},
    "strategy": {"spec/updateStrategy": {"type": "Nope"}},
    "on delete": {"spec/updateStrategy": {"type": "OnDelete"}},
    "on delete rolling": {
        "spec/updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}
    },
    "partition": {
        "spec/updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": -1},
        }
    },
    "rolling without": {"spec/updateStrategy": {"type": "RollingUpdate"}},
    "retention": {"spec/persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Nope"}},
    "service name": {"spec/serviceName": "A"},
    "ordinals": {"spec/ordinals": {"start": -1}},
    "max unavailable": {
        "spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}
    },
    "replicas negative": {"spec/replicas": -1},
}


STATEFUL_UPDATES: dict[str, dict[str, Any]] = {
    **SCALED,
    "service": {"spec/serviceName": "other"},
    "management": {"spec/podManagementPolicy": "Parallel"},
    "update strategy": {"spec/updateStrategy": {"type": "OnDelete"}},
    "history": {"spec/revisionHistoryLimit": 3},
}


DAEMON: dict[str, dict[str, Any]] = {
    "strategy": {"spec/updateStrategy": {"type": "Nope"}},
    "on delete": {"spec/updateStrategy": {"type": "OnDelete"}},
    "rolling both": {
        "spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    },
    "rolling none": {
        "spec/updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}
    },
    "rolling percent": {
        "spec/updateStrategy": {
            "rollingUpdate": {"maxUnavailable": "120%", "maxSurge": "x"}
        }
    },
}


DAEMON_STATUS: dict[str, dict[str, Any]] = {
    "status": {"status/numberReady": 3, "status/desiredNumberScheduled": 3},
    "negative": {"status/numberReady": -1, "status/numberAvailable": -2},
}


DAEMON_UPDATES = {k: v for k, v in SCALED.items() if "replicas" not in k}


CONTROLLER: JSON = {
    "metadata": {"name": "rc"},
    "spec": {"template": TEMPLATE},
}


CONTROLLERS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "no template": {"spec/template": GONE},
    "selector": {"spec/selector": {"app": "other"}},
    "replicas": {"spec/replicas": -1, "spec/minReadySeconds": -1},
    "no labels": {"spec/template/metadata": {}},
    "restart": {"spec/template/spec/restartPolicy": "Never"},
    "name": {"metadata/name": "A"},
}


REVISION: JSON = {"metadata": {"name": "rev"}, "revision": 1, "data": {"a": 1}}


def cases() -> Iterator[Case]:
    for kind, base, more in (
        ("apps/v1/Deployment", workload("web"), DEPLOYMENT),
        ("apps/v1/ReplicaSet", workload("web"), {"replicas": {"spec/replicas": -1}}),
        ("apps/v1/StatefulSet", workload("web", serviceName="web"), STATEFUL),
        ("apps/v1/DaemonSet", workload("web"), DAEMON),
    ):
        common = {
            name: each
            for name, each in COMMON.items()
            if kind != "apps/v1/DaemonSet" or "replicas" not in name
        }
        yield from creates(kind, base, {**common, **more})
    base = workload("web")
    yield from updates("apps/v1/Deployment", base, SCALED)
    yield from updates("apps/v1/Deployment", base, STATUS, subresource="status")
    yield from updates("apps/v1/ReplicaSet", base, SCALED)
    yield from updates("apps/v1/ReplicaSet", base, STATUS, subresource="status")
    stateful = changed(workload("web", serviceName="web"), {})
    yield from updates("apps/v1/StatefulSet", stateful, STATEFUL_UPDATES)
    yield from updates("apps/v1/StatefulSet", stateful, STATUS, subresource="status")
    yield from updates("apps/v1/DaemonSet", base, DAEMON_UPDATES)
    yield from updates("apps/v1/DaemonSet", base, DAEMON_STATUS, subresource="status")
    yield from creates("v1/ReplicationController", CONTROLLER, CONTROLLERS)
    yield from updates(
        "v1/ReplicationController",
        CONTROLLER,
        {"replicas": {"spec/replicas": 4}, "selector": {"spec/selector": {"x": "y"}}},
    )
    template = {"metadata": {"name": "t"}, "template": TEMPLATE}
    yield from creates(
        "v1/PodTemplate",
        template,
        {"minimal": {}, "no containers": {"template/spec/containers": []}},
    )
    yield from creates(
        "apps/v1/ControllerRevision",
        REVISION,
        {
            "minimal": {},
            "negative": {"revision": -1},
            "no data": {"data": GONE},
            "data": {"data": 5},
        },
    )
    yield from updates(
        "apps/v1/ControllerRevision",
        REVISION,
        {"revision": {"revision": 2}, "data": {"data": {"b": 2}}},
    )
