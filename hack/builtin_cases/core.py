"""ConfigMaps, Secrets, ServiceAccounts, Namespaces, limits and quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, changed, creates, updates

CONFIG: JSON = {"metadata": {"name": "c"}, "data": {"a": "b"}}


CONFIGS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "empty": {"data": GONE},
    "empty data": {"data": {}},
    "binary": {"binaryData": {"x": "AAEC"}, "immutable": True},
    "binary wrapped": {"binaryData": {"x": "AA\nEC"}},
    "binary wrong": {"binaryData": {"x": "A?EC"}},
    "binary short": {"binaryData": {"x": "AAE"}},
    "key": {"data": {"a b": "c"}},
    "key dots": {"data": {"..": "c"}},
    "key dots more": {"data": {"..a": "c"}},
    "key long": {"data": {"a" * 254: "c"}},
    "both": {"binaryData": {"a": "AAEC"}},
    "too big": {"data": {"a": "b" * (1024 * 1024 + 1)}},
    "number": {"data": {"a": 1}},
    "null": {"data": {"a": None}},
    "name": {"metadata/name": "A"},
    "name generated": {"metadata": {"generateName": "c-"}},
    "no metadata": {"metadata": GONE},
    "label three parts": {"metadata/labels": {"a/b/c": "d"}},
    "label name long": {"metadata/labels": {"a" * 64: "d"}},
    "label empty": {"metadata/labels": {"": "d"}},
    "namespace field": {"metadata/namespace": "default"},
    "unknown": {"nope": 1},
}


CONFIG_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "data": {"data": {"c": "d"}},
    "immutable": {"immutable": True},
    "key": {"data": {"a b": "c"}},
}


FROZEN: dict[str, dict[str, Any]] = {
    "data": {"data": {"a": "x"}},
    "binary": {"binaryData": {"x": "AAEC"}},
    "thawed": {"immutable": False},
    "thawed null": {"immutable": GONE},
    "labels": {"metadata/labels": {"a": "b"}},
}


SECRET: JSON = {"metadata": {"name": "s"}, "data": {"a": "Yg=="}}


SECRETS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "empty": {"data": GONE},
    "text": {"stringData": {"x": "hällo", "a": "over"}},
    "text only": {"data": GONE, "stringData": {"x": "y"}},
    "key": {"data": {"a b": "Yg=="}},
    "wrong": {"data": {"a": "not base64"}},
    "type": {"type": "example.com/mine"},
    "token": {"type": "kubernetes.io/service-account-token"},
    "docker": {"type": "kubernetes.io/dockercfg"},
    "docker json": {"type": "kubernetes.io/dockerconfigjson"},
    "docker json bad": {
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "nope"},
    },
    "docker json list": {
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "[]"},
    },
    "docker json good": {
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{}"},
    },
    "basic": {"type": "kubernetes.io/basic-auth"},
    "ssh": {"type": "kubernetes.io/ssh-auth"},
    "tls": {"type": "kubernetes.io/tls"},
    "tls half": {"type": "kubernetes.io/tls", "stringData": {"tls.crt": ""}},
    "too big": {"stringData": {"a": "b" * (1024 * 1024 + 1)}},
}


SECRET_UPDATES: dict[str, dict[str, Any]] = {
    "data": {"data": {"c": "ZA=="}},
    "type": {"type": "example.com/other"},
    "type gone": {"type": GONE},
    "text": {"stringData": {"n": "m"}},
}


ACCOUNT: JSON = {"metadata": {"name": "a"}}


ACCOUNTS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich": {
        "secrets": [{"name": "s", "namespace": "x", "kind": "Secret"}],
        "imagePullSecrets": [{"name": "p"}],
        "automountServiceAccountToken": False,
    },
    "name": {"metadata/name": "A"},
}


NAMESPACE: JSON = {"metadata": {"name": "ns"}}


NAMESPACES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "labels": {"metadata/labels": {"a": "b", "kubernetes.io/metadata.name": "x"}},
    "finalizers": {"spec": {"finalizers": ["example.com/a"]}},
    "finalizer bad": {"spec": {"finalizers": ["a"]}},
    "name dotted": {"metadata/name": "a.b"},
    "name long": {"metadata/name": "a" * 64},
    "generated": {"metadata": {"generateName": "ns-"}},
    "status": {"status": {"phase": "Terminating"}},
}


NAMESPACE_UPDATES: dict[str, dict[str, Any]] = {
    "labels": {"metadata/labels": {"a": "b"}},
    "finalizers": {"spec/finalizers": ["example.com/a"]},
    "status": {"status": {"phase": "Terminating"}},
}
LIMITS: JSON = {
    "metadata": {"name": "l"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "max": {"cpu": "2", "memory": "2Gi"},
                "min": {"cpu": "100m"},
                "default": {"cpu": "1"},
            }
        ]
    },
}


L0 = "spec/limits/0/"


LIMIT_RANGES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "pod": {
        "spec/limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "0.0001"}}]
    },
    "pod default": {
        "spec/limits": [
            {"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}
        ]
    },
    "claim": {
        "spec/limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]
    },
    "claim without": {"spec/limits": [{"type": "PersistentVolumeClaim"}]},
    "type": {L0 + "type": "Nope"},
    "type empty": {L0 + "type": ""},
    "type qualified": {L0 + "type": "example.com/A"},
    "twice": {"spec/limits/-": {"type": "Container"}},
    "resource": {L0 + "max": {"nope": "1"}},
    "min above max": {L0 + "min/cpu": "3"},
    "default above max": {L0 + "default/cpu": "5"},
    "default below min": {L0 + "default/cpu": "50m"},
    "request above default": {L0 + "defaultRequest": {"cpu": "1500m"}},
    "ratio": {L0 + "maxLimitRequestRatio": {"cpu": "0.5"}},
    "ratio large": {L0 + "maxLimitRequestRatio": {"cpu": "50"}},
    "extended": {
        "spec/limits": [
            {
                "type": "Container",
                "default": {"example.com/a": "1"},
                "defaultRequest": {"example.com/a": "0"},
            }
        ]
    },
    "no limits": {"spec": {}},
}


QUOTA: JSON = {
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "5", "requests.cpu": "1000m"}},
}


QUOTAS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "empty": {"spec": {}},
    "status": {"status": {"used": {"pods": "1"}}},
    "negative": {"spec/hard/pods": "-1"},
    "fraction": {"spec/hard/pods": "1.5"},
    "resource": {"spec/hard": {"nope": "1"}},
    "counted": {"spec/hard": {"count/deployments.apps": "4"}},
    "huge": {"spec/hard": {"requests.hugepages-2Mi": "4Mi"}},
    "scope": {"spec/scopes": ["Nope"]},
    "scopes": {
        "spec/scopes": ["BestEffort", "NotBestEffort"],
        "spec/hard": {"pods": "1"},
    },
    "scope misfit": {"spec/scopes": ["BestEffort"]},
    "selector": {
        "spec/scopeSelector": {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]},
                {"scopeName": "PriorityClass", "operator": "In"},
                {"scopeName": "Terminating", "operator": "NotIn", "values": ["a"]},
                {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]},
                {"scopeName": "Nope", "operator": "Is"},
            ]
        }
    },
    "selector misfit": {
        "spec/scopeSelector": {
            "matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]
        }
    },
}


QUOTA_UPDATES: dict[str, dict[str, Any]] = {
    "hard": {"spec/hard/pods": "7"},
    "scopes": {"spec/scopes": ["NotTerminating"]},
}


QUOTA_STATUS: dict[str, dict[str, Any]] = {
    "used": {"status": {"hard": {"pods": "5"}, "used": {"pods": "2"}}},
    "bad": {"status": {"used": {"nope": "2"}}},
}


def cases() -> Iterator[Case]:
    yield from creates("v1/ConfigMap", CONFIG, CONFIGS)
    yield from updates("v1/ConfigMap", CONFIG, CONFIG_UPDATES)
    yield from updates("v1/ConfigMap", changed(CONFIG, {"immutable": True}), FROZEN)
    yield from creates("v1/Secret", SECRET, SECRETS)
    yield from updates("v1/Secret", SECRET, SECRET_UPDATES)
    yield from updates("v1/Secret", changed(SECRET, {"immutable": True}), FROZEN)
    yield from creates("v1/ServiceAccount", ACCOUNT, ACCOUNTS)
    yield from updates(
        "v1/ServiceAccount",
        ACCOUNT,
        {"secrets": {"secrets": [{"name": "x", "uid": "y"}]}},
    )
    yield from creates("v1/Namespace", NAMESPACE, NAMESPACES)
    # A namespace does not go away without its controller, so each has its own name.
    for index, (name, changes) in enumerate(NAMESPACE_UPDATES.items()):
        base = {"metadata": {"name": f"ns{index}"}}
        yield from updates("v1/Namespace", base, {name: changes})
    base = {"metadata": {"name": "ns-status"}}
    terminating = {"terminating": {"status": {"phase": "Terminating"}}}
    yield from updates("v1/Namespace", base, terminating, subresource="status")
    base = {"metadata": {"name": "ns-finalize"}}
    finalizers = {"finalize": {"spec/finalizers": ["example.com/a", "b"]}}
    yield from updates("v1/Namespace", base, finalizers, subresource="finalize")
    yield from creates("v1/LimitRange", LIMITS, LIMIT_RANGES)
    yield from updates("v1/LimitRange", LIMITS, {"max": {L0 + "max/cpu": "4"}})
    yield from creates("v1/ResourceQuota", QUOTA, QUOTAS)
    yield from updates("v1/ResourceQuota", QUOTA, QUOTA_UPDATES)
    yield from updates("v1/ResourceQuota", QUOTA, QUOTA_STATUS, subresource="status")
