"""Claims, classes and slices of devices."""

from __future__ import annotations

from collections.abc import Iterator

from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates

GROUP = "resource.k8s.io/v1"
EXACT: JSON = {"deviceClassName": "c"}
CLAIM: JSON = {
    "metadata": {"name": "c"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": EXACT}]}},
}
REQUEST = "spec/devices/requests/0"
CONFIG: JSON = {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}


def cel(*expressions: str) -> list[JSON]:
    return [{"cel": {"expression": each}} for each in expressions]


CLAIMS: Variants = {
    "minimal": {},
    "nothing": {"spec": {}},
    "status": {"status": {"reservedFor": [{"resource": "pods"}]}},
    "all": {f"{REQUEST}/exactly/allocationMode": "All"},
    "all of some": {
        f"{REQUEST}/exactly/allocationMode": "All",
        f"{REQUEST}/exactly/count": 2,
    },
    "count": {f"{REQUEST}/exactly/count": -1},
    "mode": {f"{REQUEST}/exactly/allocationMode": "Nope"},
    "neither": {f"{REQUEST}/exactly": GONE},
    "both": {f"{REQUEST}/firstAvailable": [{"name": "s", **EXACT}]},
    "first": {
        f"{REQUEST}/exactly": GONE,
        f"{REQUEST}/firstAvailable": [
            {"name": "s", **EXACT},
            {"name": "t", **EXACT, "allocationMode": "All"},
        ],
    },
    "first wrong": {
        f"{REQUEST}/exactly": GONE,
        f"{REQUEST}/firstAvailable": [
            {"name": "A_", "deviceClassName": ""},
            {"name": "s", "deviceClassName": "A_"},
            {"name": "s", **EXACT, "count": -1},
        ],
    },
    "names": {
        "spec/devices/requests": [
            {"name": "A_", "exactly": EXACT},
            {"name": "r", "exactly": {"deviceClassName": ""}},
            {"name": "r", "exactly": {"deviceClassName": "A_"}},
        ]
    },
    "selectors": {
        f"{REQUEST}/exactly/selectors": cel(
            "device.driver == 'a'",
            "device.attributes['a.example.com'].size > 3",
            "device.attributes['a.example.com'].flag",
            "device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0",
        )
    },
    "selectors wrong": {
        f"{REQUEST}/exactly/selectors": [{}, *cel("nope", "device.driver", "1 +")]
    },
    "tolerations": {
        f"{REQUEST}/exactly/tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "A b", "operator": "Exists", "value": "v"},
            {"key": "a", "operator": "Equal", "value": "b c", "effect": "Nope"},
            {"key": "a", "operator": "Nope"},
            {"key": "a"},
        ]
    },
    "constraints": {
        "spec/devices/constraints": [
            {"requests": ["r"], "matchAttribute": "a.example.com/b"},
            {"requests": ["nope", "r", "r"], "matchAttribute": "b"},
            {"requests": ["r/s", "a/b/c"], "matchAttribute": "/"},
            {"matchAttribute": "A_/9"},
            {"distinctAttribute": "a.example.com/b"},
            {},
        ]
    },
    "config": {"spec/devices/config": [{"requests": ["r"], **CONFIG}]},
    "config wrong": {
        "spec/devices/config": [
            {"requests": ["nope"]},
            {"opaque": {"driver": "A_", "parameters": {}}},
            {"opaque": {"driver": "", "parameters": "a"}},
            {"opaque": {"driver": "a", "parameters": {"a": "b" * 11000}}},
        ]
    },
    "name": {"metadata/name": "A_"},
    "many": {
        "spec/devices/requests": [
            {"name": f"r{index}", "exactly": EXACT} for index in range(33)
        ]
    },
}
CLAIM_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "spec": {f"{REQUEST}/exactly/count": 2},
    "status is kept": {"status": {"reservedFor": [{"resource": "pods"}]}},
}
RESULT: JSON = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "v"}
ALLOCATION: JSON = {"devices": {"results": [RESULT]}}
POD: JSON = {"resource": "pods", "name": "p", "uid": "u"}
CLAIM_STATUS: Variants = {
    "allocated": {"status": {"allocation": ALLOCATION, "reservedFor": [POD]}},
    "reserved only": {"status": {"reservedFor": [POD]}},
    "reserved wrong": {
        "status": {"allocation": ALLOCATION, "reservedFor": [POD, POD, {"uid": "x"}]}
    },
    "results": {
        "status/allocation": {
            "devices": {
                "results": [
                    {"request": "n", "driver": "A_", "pool": "", "device": "B_"},
                    {**RESULT, "pool": "a/B_"},
                    {**RESULT, "bindingConditions": ["a", "a"]},
                    {
                        **RESULT,
                        "bindingConditions": ["a"],
                        "bindingFailureConditions": ["a"],
                    },
                    {**RESULT, "shareID": "nope"},
                ],
                "config": [
                    {"source": "FromClaim", **CONFIG},
                    {"source": "Nope", **CONFIG},
                    {"source": "", "requests": ["n"]},
                ],
            }
        }
    },
    "devices": {
        "status": {
            "allocation": ALLOCATION,
            "devices": [
                {
                    "driver": "d.example.com",
                    "pool": "p",
                    "device": "v",
                    "networkData": {"interfaceName": "eth0", "ips": ["10.1.1.1/24"]},
                    "data": {"a": 1},
                }
            ],
        }
    },
    "devices wrong": {
        "status": {
            "allocation": ALLOCATION,
            "devices": [
                {
                    "driver": "d.example.com",
                    "pool": "p",
                    "device": "x",
                    "networkData": {
                        "interfaceName": "e" * 300,
                        "ips": ["a", "10.1.1.1"],
                    },
                    "data": "a",
                }
            ],
        }
    },
    "spec is kept": {f"{REQUEST}/exactly/count": 2, "metadata/labels": {"a": "b"}},
}
AGAIN: Variants = {
    "another": {"status/allocation/devices/results/0/device": "w"},
    "none": {"status": {}},
}
TEMPLATE: JSON = {
    "metadata": {"name": "t"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM["spec"]},
}
TEMPLATES: Variants = {
    "minimal": {},
    "labels": {"spec/metadata/labels": {"a b": "c d"}},
    "request": {"spec/spec/devices/requests/0/exactly/deviceClassName": ""},
}
TEMPLATE_UPDATES: Variants = {
    "labels": {"metadata/labels": {"a": "b"}},
    "spec": {"spec/metadata/labels/a": "c"},
}
CLASS: JSON = {"metadata": {"name": "c"}, "spec": {}}
CLASSES: Variants = {
    "minimal": {},
    "rich": {
        "spec": {
            "selectors": cel("device.driver == 'a'"),
            "config": [CONFIG],
            "extendedResourceName": "example.com/gpu",
        }
    },
    "wrong": {
        "spec": {
            "selectors": cel("nope"),
            "config": [{}],
            "extendedResourceName": "gpu",
        }
    },
    "name": {"metadata/name": "A_"},
}
CLASS_UPDATES: Variants = {
    "selectors": {"spec/selectors": cel("true")},
    "wrong": {"spec/selectors": cel("nope")},
    "labels": {"metadata/labels": {"a": "b"}},
}
POOL: JSON = {"name": "p", "generation": 1, "resourceSliceCount": 1}
SLICE: JSON = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d.example.com",
        "pool": POOL,
        "nodeName": "n",
        "devices": [{"name": "v"}],
    },
}
DEVICE = "spec/devices/0"
TERM: JSON = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}


def capacity(**policy: object) -> JSON:
    return {
        f"{DEVICE}/allowMultipleAllocations": True,
        f"{DEVICE}/capacity": {"m": {"value": "10", "requestPolicy": policy}},
    }


SLICES: Variants = {
    "minimal": {},
    "empty": {"spec": {"driver": "", "pool": {}}},
    "pool": {"spec/pool": {"name": "a/B_", "generation": -1, "resourceSliceCount": 0}},
    "driver": {"spec/driver": "A_"},
    "nowhere": {"spec/nodeName": GONE},
    "empty node": {"spec/nodeName": ""},
    "everywhere": {"spec/nodeName": GONE, "spec/allNodes": True},
    "not everywhere": {"spec/nodeName": GONE, "spec/allNodes": False},
    "twice": {"spec/allNodes": True},
    "selector": {
        "spec/nodeName": GONE,
        "spec/nodeSelector": {"nodeSelectorTerms": [TERM]},
    },
    "two terms": {
        "spec/nodeName": GONE,
        "spec/nodeSelector": {"nodeSelectorTerms": [TERM, TERM]},
    },
    "each": {
        "spec/nodeName": GONE,
        "spec/perDeviceNodeSelection": True,
        "spec/devices": [
            {"name": "a", "nodeName": "n"},
            {"name": "b", "allNodes": True},
            {"name": "c"},
            {"name": "d", "nodeName": "n", "allNodes": True},
            {"name": "e", "nodeName": ""},
            {"name": "f", "allNodes": False},
        ],
    },
    "each without": {f"{DEVICE}/nodeName": "n"},
    "names": {"spec/devices": [{"name": "A_"}, {"name": "v"}, {"name": "v"}]},
    "attributes": {
        f"{DEVICE}/attributes": {
            "a": {"int": 1},
            "b.example.com/c": {"string": "s"},
            "d": {"bool": True},
            "e": {"version": "1.2.3-a.1+b"},
        },
        f"{DEVICE}/capacity": {"m": {"value": "1Gi"}},
    },
    "no attribute": {f"{DEVICE}/attributes": {"a": {}}},
    "two attributes": {f"{DEVICE}/attributes": {"a": {"int": 1, "bool": True}}},
    "version": {f"{DEVICE}/attributes": {"a": {"version": "1.2"}}},
    "long": {f"{DEVICE}/attributes": {"a": {"string": "a" * 65}}},
    "attribute name": {f"{DEVICE}/attributes": {"9a": {"int": 1}}},
    "attribute domain": {f"{DEVICE}/attributes": {"A_/b": {"int": 1}}},
    "many attributes": {
        f"{DEVICE}/attributes": {f"a{index}": {"int": 1} for index in range(33)}
    },
    "policy alone": {
        f"{DEVICE}/capacity": {"m": {"value": "1", "requestPolicy": {"default": "1"}}}
    },
    "values": capacity(default="2", validValues=["1", "2"]),
    "values wrong": capacity(default="3", validValues=["2", "1", "20"]),
    "no default": capacity(validValues=["2"]),
    "range": capacity(default="2", validRange={"min": "1", "max": "5", "step": "1"}),
    "range wrong": capacity(
        default="7", validRange={"min": "20", "max": "12", "step": "3"}
    ),
    "no least": capacity(default="7", validRange={}),
    "both": capacity(default="2", validValues=["2"], validRange={"min": "1"}),
    "taints": {
        f"{DEVICE}/taints": [
            {
                "key": "a",
                "effect": "NoSchedule",
                "timeAdded": "2026-01-01T00:00:00Z",
            },
            {
                "key": "A b",
                "value": "c d",
                "effect": "Nope",
                "timeAdded": "2026-01-01T00:00:00Z",
            },
            {"key": "a", "effect": "", "timeAdded": "2026-01-01T00:00:00Z"},
        ]
    },
    "counters": {
        "spec/devices": GONE,
        "spec/sharedCounters": [{"name": "c", "counters": {"m": {"value": "1"}}}],
    },
    "counters wrong": {
        "spec/devices": GONE,
        "spec/sharedCounters": [
            {"name": "", "counters": {}},
            {"name": "c", "counters": {"A_": {"value": "1"}}},
            {"name": "c", "counters": {"m": {"value": "1"}}},
        ],
    },
    "counters and devices": {
        "spec/sharedCounters": [{"name": "c", "counters": {"m": {"value": "1"}}}],
    },
    "consumption": {
        f"{DEVICE}/consumesCounters": [
            {"counterSet": "c", "counters": {"m": {"value": "1"}}},
            {"counterSet": "", "counters": {}},
        ]
    },
    "binding": {
        f"{DEVICE}/bindingConditions": ["a"],
        f"{DEVICE}/bindingFailureConditions": ["b"],
        f"{DEVICE}/bindsToNode": True,
    },
    "binding wrong": {f"{DEVICE}/bindingFailureConditions": ["b c"]},
    "off": {f"{DEVICE}/attributes": {"a": {"int": 1, "ints": [1]}}},
    "name": {"metadata/name": "A_"},
}
SLICE_UPDATES: Variants = {
    "devices": {"spec/devices/-": {"name": "w"}},
    "generation": {"spec/pool/generation": 2},
    "driver": {"spec/driver": "e.example.com"},
    "pool": {"spec/pool/name": "q"},
    "node": {"spec/nodeName": "m"},
}


def cases() -> Iterator[Case]:
    """All there is to ask."""
    kind = f"{GROUP}/ResourceClaim"
    yield from creates(kind, CLAIM, CLAIMS)
    yield from updates(kind, CLAIM, CLAIM_UPDATES)
    yield from updates(kind, CLAIM, CLAIM_STATUS, subresource="status")
    allocated = CLAIM_STATUS["allocated"]
    yield from updates(kind, CLAIM, AGAIN, subresource="status", status=allocated)
    yield from creates(f"{GROUP}/ResourceClaimTemplate", TEMPLATE, TEMPLATES)
    yield from updates(f"{GROUP}/ResourceClaimTemplate", TEMPLATE, TEMPLATE_UPDATES)
    yield from creates(f"{GROUP}/DeviceClass", CLASS, CLASSES)
    yield from updates(f"{GROUP}/DeviceClass", CLASS, CLASS_UPDATES)
    yield from creates(f"{GROUP}/ResourceSlice", SLICE, SLICES)
    yield from updates(f"{GROUP}/ResourceSlice", SLICE, SLICE_UPDATES)
