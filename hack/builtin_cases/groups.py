"""Flow control, certificate signing requests, ranges of Services, APIServices."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from hack.builtin_cases.case import (
    GONE,
    JSON,
    Case,
    Variants,
    changed,
    creates,
    updates,
)

FLOW = "flowcontrol.apiserver.k8s.io/v1"
REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWU1IOENBUUF3SFRFTU1Bb0dB"
    "MVVFQ2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6"
    "ajBEQVFjRFFnQUVrdmljVW51ak1BOGMra1owVzNoZkdQd29EdmE1Y1lQdXlRS1lXSk1nCmUrRkZk"
    "ZlFydm5ZVXdoN2xyNWVVbzZGYTVHK1Zqd2NaMzdLaW1RcDQ4RThzRmFBQU1Bb0dDQ3FHU000OUJB"
    "TUMKQTBrQU1FWUNJUURDejQ1TlhYRWFiaEc5dU14YTRmWUhnTDIxaVBzeTM1NnNjK3hYT1MvQWhn"
    "SWhBTDl0L0pJVQp5Vm9MRDRqZ1ZhTGxHSUJiY3JSbWx4dE9WN0hVdm9KbzJ2Y2IKLS0tLS1FTkQg"
    "Q0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
)
"""Asks for a certificate of the user jane of the group dev."""
CERTIFICATE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJCakNCcmFBREFnRUNBZ0VITUFvR0NDcUdT"
    "TTQ5QkFNQ01Bd3hDakFJQmdOVkJBTU1BV013SUJjTk1qWXcKTVRBeE1EQXdNREF3V2hnUE1qRXlO"
    "VEV5TURnd01EQXdNREJhTUF3eENqQUlCZ05WQkFNTUFXTXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Fo"
    "a2pPUFFNQkJ3TkNBQVNTK0p4U2U2TXdEeHo2Um5SYmVGOFkvQ2dPOXJseGcrN0pBcGhZCmt5Qjc0"
    "VVYxOUN1K2RoVENIdVd2bDVTam9WcmtiNVdQQnhuZnNxS1pDbmp3VHl3Vk1Bb0dDQ3FHU000OUJB"
    "TUMKQTBnQU1FVUNJUURVamZGUWxWUktIRVBYeERZbHZPTGd3amVqZUdvWEovTmZYVDN1SjVuS09R"
    "SWdkZG5hWXN3OApKMnJQVzJ2alZ3RE03SElpc0sxalNoMXd5azlPZGFVMDNkOD0KLS0tLS1FTkQg"
    "Q0VSVElGSUNBVEUtLS0tLQo="
)


def text(given: str) -> str:
    return base64.b64encode(given.encode()).decode()


RULE: JSON = {
    "subjects": [{"kind": "User", "user": {"name": "jane"}}],
    "resourceRules": [
        {
            "verbs": ["get"],
            "apiGroups": [""],
            "resources": ["pods"],
            "namespaces": ["a"],
        }
    ],
}
SCHEMA: JSON = {
    "metadata": {"name": "s"},
    "spec": {"priorityLevelConfiguration": {"name": "l"}, "rules": [RULE]},
}
SCHEMAS: Variants = {
    "minimal": {},
    "no rules": {"spec/rules": GONE},
    "no spec": {"spec": {}},
    "status": {"status": {"conditions": [{"type": "Dangling", "status": "True"}]}},
    "precedence": {"spec/matchingPrecedence": -1},
    "late": {"spec/matchingPrecedence": 10001},
    "first": {"spec/matchingPrecedence": 1},
    "method": {"spec/distinguisherMethod": {"type": "ByUser"}},
    "methods": {"spec/distinguisherMethod": {"type": "Nope"}},
    "no method": {"spec/distinguisherMethod": {}},
    "level": {"spec/priorityLevelConfiguration/name": "A_"},
    "name": {"metadata/name": "A_"},
    "no subjects": {"spec/rules/0/subjects": []},
    "no rule": {"spec/rules/0/resourceRules": GONE},
    "subjects": {
        "spec/rules/0/subjects": [
            {"kind": "User"},
            {"kind": "User", "user": {"name": ""}, "group": {"name": "g"}},
            {"kind": "Group", "group": {"name": ""}, "user": {"name": "u"}},
            {"kind": "Group", "serviceAccount": {"name": "*", "namespace": "n"}},
            {"kind": "ServiceAccount"},
            {"kind": "ServiceAccount", "serviceAccount": {"name": "", "namespace": ""}},
            {
                "kind": "ServiceAccount",
                "serviceAccount": {"name": "A_", "namespace": "B_"},
                "user": {"name": "u"},
                "group": {"name": "g"},
            },
            {
                "kind": "ServiceAccount",
                "serviceAccount": {"name": "*", "namespace": "n"},
            },
            {"kind": "Nope"},
            {"kind": ""},
        ]
    },
    "resources": {
        "spec/rules/0/resourceRules": [
            {"verbs": [], "apiGroups": [], "resources": []},
            {
                "verbs": ["*", "get"],
                "apiGroups": ["*", ""],
                "resources": ["*", "pods"],
                "namespaces": ["*", "a"],
            },
            {
                "verbs": ["get", "nope"],
                "apiGroups": [""],
                "resources": ["pods"],
                "namespaces": ["a", "B_"],
            },
            {
                "verbs": ["*"],
                "apiGroups": ["*"],
                "resources": ["*"],
                "clusterScope": True,
                "namespaces": ["*"],
            },
        ]
    },
    "paths": {
        "spec/rules/0/nonResourceRules": [
            {"verbs": [], "nonResourceURLs": []},
            {"verbs": ["nope"], "nonResourceURLs": ["*", "/a"]},
            {
                "verbs": ["*"],
                "nonResourceURLs": [
                    *("/", "", "a", "/a b", "/a//b", "/a*", "/*/b", "/a/*", "/*/*"),
                ],
            },
        ]
    },
    "exempt": {"metadata/name": "exempt"},
    "catch-all": {"metadata/name": "catch-all", "spec/matchingPrecedence": 10000},
}
# The server itself writes a condition into each, at any moment.
ANY: JSON = {"metadata/resourceVersion": GONE}
SCHEMA_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "status is kept": {"status": {"conditions": [{"type": "X", "status": "True"}]}},
    "level": {"spec/priorityLevelConfiguration/name": ""},
}
FLOW_STATUS: Variants = {
    "condition": {
        "metadata/labels": {"a": "b"},
        "status": {"conditions": [{"type": "Dangling", "status": "True"}]},
    },
    "twice": {"status": {"conditions": [{"type": "X"}, {"type": "X"}, {"type": ""}]}},
}
LEVEL: JSON = {
    "metadata": {"name": "l"},
    "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
}
RESPONSE = "spec/limited/limitResponse"
QUEUE: JSON = {"type": "Queue", "queuing": {}}
LEVELS: Variants = {
    "minimal": {},
    "queue": {RESPONSE: QUEUE},
    "zero": {"spec/limited/nominalConcurrencyShares": 0},
    "percent": {
        "spec/limited/nominalConcurrencyShares": -1,
        "spec/limited/lendablePercent": 101,
        "spec/limited/borrowingLimitPercent": -1,
    },
    "borrowing": {"spec/limited/borrowingLimitPercent": 30},
    "no queue": {RESPONSE: {"type": "Queue"}},
    "reject and queue": {RESPONSE: {"type": "Reject", "queuing": {}}},
    "response": {RESPONSE: {"type": "Nope"}},
    "no response": {"spec/limited": {}},
    "queues": {
        RESPONSE: {
            "type": "Queue",
            "queuing": {"queues": -1, "handSize": -1, "queueLengthLimit": -1},
        }
    },
    "many queues": {
        RESPONSE: {"type": "Queue", "queuing": {"queues": 10000001, "handSize": 1}}
    },
    "hand": {RESPONSE: {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}},
    "bits": {RESPONSE: {"type": "Queue", "queuing": {"queues": 512, "handSize": 8}}},
    "type": {"spec/type": "Nope"},
    "no type": {"spec": {}},
    "exempt": {"spec": {"type": "Exempt", "exempt": {}}},
    "both": {"spec/exempt": {}},
    "nothing": {"spec": {"type": "Limited"}},
    "exempt and limited": {"spec/type": "Exempt"},
    "name": {"metadata/name": "A_"},
    "annotation": {
        "metadata/annotations": {
            "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""
        }
    },
    "the exempt one": {"metadata/name": "exempt"},
    "the exempt one with shares": {
        "metadata/name": "exempt",
        "spec": {
            "type": "Exempt",
            "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": -1},
        },
    },
    "the last one": {"metadata/name": "catch-all"},
}
LEVEL_UPDATES: Variants = {
    "shares": {"spec/limited/nominalConcurrencyShares": 7},
    "response": {RESPONSE: {"type": "Nope"}},
}
ASKED: JSON = {
    "metadata": {"name": "r"},
    "spec": {
        "request": REQUEST,
        "signerName": "example.com/signer",
        "usages": ["client auth"],
    },
}
SIGNERS = {
    "none": "",
    "no domain": "signer",
    "two slashes": "a.b/c/d",
    "label": "A_.b/c",
    "short": "b/c",
    "path": "a.b/C_",
    "long": "a.b/" + "c" * 600,
    "legacy": "kubernetes.io/legacy-unknown",
    "client": "kubernetes.io/kube-apiserver-client",
}
ASKS: Variants = {
    "minimal": {},
    "odd name": {"metadata/name": "A_:b"},
    "usage": {"spec/usages": ["nope", "client auth", "client auth"]},
    "no usages": {"spec/usages": []},
    "seconds": {"spec/expirationSeconds": 599},
    "enough seconds": {"spec/expirationSeconds": 600},
    "request": {"spec/request": text("nope")},
    "no request": {"spec/request": GONE},
    "another block": {"spec/request": CERTIFICATE},
    "status": {
        "status": {
            "conditions": [{"type": "Approved", "status": "True"}],
            "certificate": CERTIFICATE,
        }
    },
    **{f"signer {name}": {"spec/signerName": each} for name, each in SIGNERS.items()},
}
WHEN = "2026-01-01T00:00:00Z"


def said(kind: str, value: str = "True", **more: str) -> JSON:
    times = {"lastUpdateTime": WHEN, "lastTransitionTime": WHEN}
    return {"type": kind, "status": value, "reason": "r", **times, **more}


ASK_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "spec is kept": {"spec/usages": ["any"], "spec/username": "me"},
    "status is kept": {"status": {"conditions": [said("Approved")]}},
}
DECISIONS: Variants = {
    "approve": {"status": {"conditions": [said("Approved")]}},
    "deny": {"status": {"conditions": [said("Denied")]}},
    "both": {"status": {"conditions": [said("Approved"), said("Denied")]}},
    "twice": {"status": {"conditions": [said("Approved"), said("Approved")]}},
    "false": {"status": {"conditions": [said("Approved", "False")]}},
    "empty": {"status": {"conditions": [said("", ""), said("X", "Nope")]}},
    "sign too": {
        "status": {"conditions": [said("Approved")], "certificate": CERTIFICATE}
    },
    "spec": {"spec/usages": ["any"], "status": {"conditions": [said("Failed")]}},
}
SIGNATURES: Variants = {
    "sign": {"status": {"certificate": CERTIFICATE}},
    "nonsense": {"status": {"certificate": text("nope")}},
    "another block": {"status": {"certificate": REQUEST}},
    "approve": {"status": {"conditions": [said("Approved")]}},
    "fail": {"status": {"conditions": [said("Failed", message="m")]}},
    "spec": {"spec/usages": ["any"]},
}
FAILED: JSON = {"status": {"conditions": [said("Failed")], "certificate": CERTIFICATE}}
AGAIN: Variants = {
    "another certificate": {"status/certificate": CERTIFICATE[:-4]},
    "none": {"status/certificate": GONE},
    "no conditions": {"status/conditions": []},
}
ADDRESS: JSON = {
    "metadata": {"name": "10.9.8.7"},
    "spec": {"parentRef": {"resource": "things", "name": "a", "namespace": "n"}},
}
ADDRESSES: Variants = {
    "minimal": {},
    "v6": {"metadata/name": "2001:db8::1"},
    "not canonical": {"metadata/name": "2001:DB8::1"},
    "zeros": {"metadata/name": "10.09.8.7"},
    "name": {"metadata/name": "a"},
    "mapped": {"metadata/name": "::ffff:1.2.3.4"},
    "no parent": {"spec": {}},
    "empty parent": {"spec/parentRef": {}},
    "parent": {
        "spec/parentRef": {
            "group": "A_",
            "resource": "a/b",
            "name": "%",
            "namespace": "..",
        }
    },
}
ADDRESS_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "parent": {"spec/parentRef/name": "b"},
    "no parent": {"spec/parentRef": GONE},
}
RANGE: JSON = {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.77.0.0/24"]}}
RANGES: Variants = {
    "minimal": {},
    "both": {"spec/cidrs": ["10.77.0.0/24", "2001:db8::/64"]},
    "status": {"status": {"conditions": [said("Ready")]}},
    "none": {"spec/cidrs": []},
    "no spec": {"spec": {}},
    "three": {"spec/cidrs": ["10.77.0.0/24", "2001:db8::/64", "10.78.0.0/24"]},
    "same": {"spec/cidrs": ["10.77.0.0/24", "10.78.0.0/24"]},
    "bits": {"spec/cidrs": ["10.77.0.1/24"]},
    "nonsense": {"spec/cidrs": ["a", "10.077.0.0/24"]},
    "not canonical": {"spec/cidrs": ["2001:DB8::/64"]},
    "name": {"metadata/name": "A_"},
}
RANGE_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "another": {"spec/cidrs": ["10.78.0.0/24"]},
    "one more": {"spec/cidrs/-": "2001:db8::/64"},
    "one more of the same": {"spec/cidrs": ["10.78.0.0/24", "10.79.0.0/24"]},
    "none": {"spec/cidrs": []},
    "status is kept": {"status": {"conditions": [said("Ready")]}},
}
RANGE_STATUS: Variants = {
    "ready": {
        "metadata/labels": {"a": "b"},
        "spec/cidrs": ["10.78.0.0/24"],
        "status": {"conditions": [said("Ready", message="")]},
    },
}
SERVICE: JSON = {
    "metadata": {"name": "v1.things.example.com"},
    "spec": {
        "group": "things.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": "a", "name": "b"},
        "insecureSkipTLSVerify": True,
    },
}
LOCAL = changed(SERVICE, {"spec/service": GONE, "spec/insecureSkipTLSVerify": GONE})
SERVICES: Variants = {
    "minimal": {},
    "local": {"spec/service": GONE, "spec/insecureSkipTLSVerify": GONE},
    "local with secrets": {"spec/service": GONE, "spec/caBundle": text("nope")},
    "bundle": {"spec/caBundle": text("nope")},
    "name": {"metadata/name": "a"},
    "slash": {"metadata/name": "a/b"},
    "priorities": {"spec/groupPriorityMinimum": 0, "spec/versionPriority": 1001},
    "no service": {"spec/service": {}},
    "port": {"spec/service/port": 70000},
    "group": {"spec/group": "A_", "spec/version": "B_"},
    "no group": {"spec/group": GONE},
    "no spec": {"spec": {}},
}
SERVICE_UPDATES: Variants = {
    "priority": {"spec/versionPriority": 11},
    "version": {"spec/version": "v2"},
    "status is kept": {"status": {"conditions": [said("Available")]}},
}
SERVICE_STATUS: Variants = {
    "available": {
        "metadata/labels": {"a": "b"},
        "status": {"conditions": [said("Available"), said("X", "Nope")]},
    },
    "good": {"status": {"conditions": [said("Available")]}},
}


def anyhow(variants: Variants) -> Variants:
    return {name: {**ANY, **changes} for name, changes in variants.items()}


def cases() -> Iterator[Case]:
    """All there is to ask."""
    kind = f"{FLOW}/FlowSchema"
    yield from creates(kind, SCHEMA, SCHEMAS)
    yield from updates(kind, SCHEMA, anyhow(SCHEMA_UPDATES))
    yield from updates(kind, SCHEMA, anyhow(FLOW_STATUS), subresource="status")
    kind = f"{FLOW}/PriorityLevelConfiguration"
    yield from creates(kind, LEVEL, LEVELS)
    yield from updates(kind, LEVEL, LEVEL_UPDATES)
    yield from updates(kind, LEVEL, FLOW_STATUS, subresource="status")
    kind = "networking.k8s.io/v1/IPAddress"
    yield from creates(kind, ADDRESS, ADDRESSES)
    yield from updates(kind, ADDRESS, ADDRESS_UPDATES)
    kind = "networking.k8s.io/v1/ServiceCIDR"
    yield from creates(kind, RANGE, RANGES)
    yield from updates(kind, RANGE, RANGE_UPDATES)
    yield from updates(kind, RANGE, RANGE_STATUS, subresource="status")
    yield from requests()
    kind = "apiregistration.k8s.io/v1/APIService"
    yield from creates(kind, SERVICE, SERVICES)
    yield from updates(kind, LOCAL, SERVICE_UPDATES)
    yield from updates(kind, LOCAL, SERVICE_STATUS, subresource="status")


def requests() -> Iterator[Case]:
    kind = "certificates.k8s.io/v1/CertificateSigningRequest"
    yield from creates(kind, ASKED, ASKS)
    yield from updates(kind, ASKED, ASK_UPDATES)
    yield from updates(kind, ASKED, DECISIONS, subresource="approval")
    yield from updates(kind, ASKED, SIGNATURES, subresource="status")
    yield from updates(kind, ASKED, AGAIN, subresource="status", status=FAILED)
