"""Nodes and Events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, changed, creates, updates

NODE: JSON = {"metadata": {"name": "n"}}


NODES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich": {
        "spec": {
            "podCIDR": "10.1.0.0/24",
            "taints": [{"key": "a", "effect": "NoSchedule"}],
            "unschedulable": True,
            "providerID": "x://y",
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "1048576Ki", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    },
    "taint": {
        "spec": {
            "taints": [
                {"key": "a b", "effect": "NoSchedule"},
                {"key": "a", "effect": "Nope", "value": "b c"},
                {"key": "a"},
                {"key": "c", "effect": "NoExecute"},
                {"key": "c", "effect": "NoExecute", "value": "d"},
            ]
        }
    },
    "ranges": {"spec": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}},
    "range": {"spec": {"podCIDRs": ["10.1.0.1/24"]}},
    "range nonsense": {"spec": {"podCIDRs": ["x"]}},
    "capacity": {"status": {"capacity": {"pods": "1.5", "cpu": "-1"}}},
    "name": {"metadata/name": "A"},
}


NODE_UPDATES: dict[str, dict[str, Any]] = {
    "labels": {"metadata/labels": {"a": "b"}},
    "unschedulable": {"spec/unschedulable": True},
    "taints": {"spec/taints": [{"key": "a", "effect": "NoSchedule"}]},
    "range": {"spec/podCIDR": "10.9.0.0/24", "spec/podCIDRs": ["10.9.0.0/24"]},
    "provider": {"spec/providerID": "other"},
    "status": {"status/capacity": {"cpu": "1"}},
}


NODE_STATUS: dict[str, dict[str, Any]] = {
    "capacity": {"status/capacity": {"cpu": "8"}, "spec/unschedulable": True},
    "addresses": {
        "status/addresses": [
            {"type": "InternalIP", "address": "1.2.3.4"},
            {"type": "InternalIP", "address": "1.2.3.4"},
        ]
    },
}


EVENT: JSON = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "R",
    "message": "m",
    "type": "Normal",
}


EVENTS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich": {
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 3,
        "source": {"component": "c", "host": "h"},
    },
    "nothing": {
        "involvedObject": {},
        "reason": GONE,
        "message": GONE,
        "type": GONE,
    },
    "other namespace": {"involvedObject/namespace": "other"},
    "cluster": {"involvedObject": {"kind": "Node", "name": "n"}},
    "newer": {
        "eventTime": "2026-01-02T03:04:05.500000Z",
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
    },
    "newer imprecise": {"eventTime": "2026-01-02T03:04:05.5Z"},
    "newer incomplete": {"eventTime": "2026-01-02T03:04:05.123456Z", "reason": ""},
    "newer long": {
        "eventTime": "2026-01-02T03:04:05.123456Z",
        "reportingComponent": "a b",
        "reportingInstance": "i" * 129,
        "action": "a" * 129,
        "reason": "r" * 129,
        "message": "m" * 1025,
    },
    "name": {"metadata/name": "A_B"},
}


NEW_EVENT: JSON = {
    "metadata": {"name": "e"},
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "eventTime": "2026-01-02T03:04:05.123456Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "note": "n",
    "type": "Normal",
}


NEW_EVENTS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "no time": {"eventTime": GONE},
    "type": {"type": "Nope"},
    "series": {
        "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.123456Z"}
    },
    "series bad": {"series": {"count": 1}},
    "old fields": {"deprecatedCount": 3, "deprecatedSource": {"component": "c"}},
    "missing": {"reportingController": GONE, "reportingInstance": GONE, "action": GONE},
    "name": {"metadata/name": "A"},
}


NEW_EVENT_UPDATES: dict[str, dict[str, Any]] = {
    "series": {
        "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.123456Z"}
    },
    "note": {"note": "other", "reason": "Other"},
    "regarding": {"regarding/name": "q"},
}


def cases() -> Iterator[Case]:
    yield from creates("v1/Node", NODE, NODES)
    rich = changed(NODE, NODES["rich"])
    yield from updates("v1/Node", rich, NODE_UPDATES)
    yield from updates("v1/Node", rich, NODE_STATUS, subresource="status")
    yield from creates("v1/Event", EVENT, EVENTS)
    yield from updates(
        "v1/Event",
        EVENT,
        {"count": {"count": 2}, "namespace": {"involvedObject/namespace": "x"}},
    )
    yield from creates("events.k8s.io/v1/Event", NEW_EVENT, NEW_EVENTS)
    yield from updates("events.k8s.io/v1/Event", NEW_EVENT, NEW_EVENT_UPDATES)
