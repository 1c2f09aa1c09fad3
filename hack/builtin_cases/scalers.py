"""Autoscalers and webhook configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates

SCALER: JSON = {
    "metadata": {"name": "h"},
    "spec": {
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    },
}


def metric(**source: Any) -> dict[str, Any]:
    return {"spec/metrics": [source]}


SCALERS: Variants = {
    "minimal": {},
    "rich": {
        "spec/minReplicas": 2,
        "spec/metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "memory",
                    "target": {"type": "AverageValue", "averageValue": "1024Mi"},
                },
            },
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "m"},
                    "target": {"type": "AverageValue", "averageValue": "1k"},
                },
            },
        ],
        "spec/behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        "status": {"currentReplicas": 3},
    },
    "min": {"spec/minReplicas": 0},
    "max": {"spec/maxReplicas": 0},
    "max negative": {"spec/maxReplicas": -1},
    "min above max": {"spec/minReplicas": 9},
    "target": {
        "spec/scaleTargetRef": {"apiVersion": "v1", "kind": "Pod", "name": "a/b"}
    },
    "target empty": {"spec/scaleTargetRef": {}},
    "target version": {"spec/scaleTargetRef/apiVersion": "a/b/c"},
    "target controller": {
        "spec/scaleTargetRef": {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "name": "r",
        }
    },
    "metric type": metric(type="Nope"),
    "metric empty": metric(type=""),
    "metric missing": metric(type="Resource"),
    "metric both": metric(
        type="Resource",
        resource={
            "name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 5},
        },
        pods={"metric": {"name": "m"}, "target": {"type": "Value"}},
    ),
    "metric resource": metric(
        type="Resource", resource={"name": "", "target": {"type": "Nope"}}
    ),
    "metric share": metric(
        type="Resource",
        resource={
            "name": "cpu",
            "target": {
                "type": "Utilization",
                "averageUtilization": 0,
                "averageValue": "0",
            },
        },
    ),
    "metric container": metric(
        type="ContainerResource",
        containerResource={
            "name": "nope",
            "container": "A",
            "target": {"type": "Utilization", "averageUtilization": 5},
        },
    ),
    "metric object": metric(
        type="Object",
        object={
            "metric": {"name": "a/b"},
            "target": {"type": "Value"},
            "describedObject": {"kind": "K", "name": "n"},
        },
    ),
    "metric external": metric(
        type="External",
        external={
            "metric": {"name": ""},
            "target": {"type": "Value", "value": "1", "averageValue": "1"},
        },
    ),
    "behavior": {
        "spec/behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 4000,
                "selectPolicy": "Nope",
                "policies": [{"type": "Nope", "value": 0, "periodSeconds": 2000}],
            },
            "scaleDown": {"stabilizationWindowSeconds": -1},
        }
    },
    "behavior empty": {"spec/behavior": {}},
}


OLD_SCALERS: Variants = {
    "minimal": {},
    "percentage": {"spec/targetCPUUtilizationPercentage": 50},
}


HOOK: JSON = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"namespace": "default", "name": "s"}},
    "rules": [
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "resources": ["deployments"],
            "operations": ["CREATE"],
        }
    ],
}


HOOKS: JSON = {"metadata": {"name": "w"}, "webhooks": [HOOK]}


W0 = "webhooks/0/"


WEBHOOKS: Variants = {
    "minimal": {},
    "none": {"webhooks": GONE},
    "rich": {
        W0 + "clientConfig": {"url": "https://a.example.com/b", "caBundle": "AAEC"},
        W0 + "failurePolicy": "Ignore",
        W0 + "timeoutSeconds": 5,
        W0 + "namespaceSelector": {"matchLabels": {"a": "b"}},
    },
    "name": {W0 + "name": "short"},
    "name bad": {W0 + "name": "A.b.c"},
    "name missing": {W0 + "name": ""},
    "twice": {"webhooks/-": HOOK},
    "versions": {W0 + "admissionReviewVersions": ["v2", "v2", "A"]},
    "versions missing": {W0 + "admissionReviewVersions": []},
    "effects": {W0 + "sideEffects": "Some"},
    "effects missing": {W0 + "sideEffects": GONE},
    "policy": {W0 + "failurePolicy": "Nope", W0 + "matchPolicy": "Nope"},
    "timeout": {W0 + "timeoutSeconds": 31},
    "client": {W0 + "clientConfig": {}},
    "client both": {W0 + "clientConfig/url": "https://a"},
    "client url": {W0 + "clientConfig": {"url": "http://u:p@a/b?c=d#e"}},
    "client url bare": {W0 + "clientConfig": {"url": "x"}},
    "client service": {
        W0 + "clientConfig": {
            "service": {"namespace": "", "name": "", "path": "a//B", "port": 0}
        }
    },
    "rule": {W0 + "rules": [{}]},
    "rule wild": {
        W0 + "rules": [
            {
                "apiGroups": ["*", "a"],
                "apiVersions": ["*", ""],
                "resources": ["*/*", "pods/*", "pods/status", "", "*/a", "b/a"],
                "operations": ["*", "CREATE", "NOPE"],
                "scope": "Nope",
            }
        ]
    },
    "rule star": {
        W0 + "rules/0/resources": ["*", "pods"],
    },
    "selector": {W0 + "objectSelector": {"matchLabels": {"a b": "c"}}},
}


def cases() -> Iterator[Case]:
    scaler = "autoscaling/v2/HorizontalPodAutoscaler"
    yield from creates(scaler, SCALER, SCALERS)
    yield from updates(
        scaler, SCALER, {"max": {"spec/maxReplicas": 9}, "bad": {"spec/maxReplicas": 0}}
    )
    yield from updates(
        scaler,
        SCALER,
        {
            "status": {"status/currentReplicas": 2},
            "negative": {"status/desiredReplicas": -1},
        },
        subresource="status",
    )
    yield from creates("autoscaling/v1/HorizontalPodAutoscaler", SCALER, OLD_SCALERS)
    for name in ("Validating", "Mutating"):
        kind = f"admissionregistration.k8s.io/v1/{name}WebhookConfiguration"
        yield from creates(kind, HOOKS, WEBHOOKS)
        yield from updates(
            kind,
            HOOKS,
            {"timeout": {W0 + "timeoutSeconds": 3}, "bad": {W0 + "name": "x"}},
        )
