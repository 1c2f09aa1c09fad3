"""Network policies, Ingresses and EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator

from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates

POLICY: JSON = {"metadata": {"name": "n"}, "spec": {"podSelector": {}}}


POLICIES: Variants = {
    "minimal": {},
    "no spec": {"spec": GONE},
    "rich": {
        "spec": {
            "podSelector": {"matchLabels": {"a": "b"}},
            "ingress": [
                {
                    "ports": [{"port": 80}, {"port": "http", "protocol": "UDP"}],
                    "from": [
                        {"podSelector": {}},
                        {"namespaceSelector": {}, "podSelector": {}},
                        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                    ],
                }
            ],
            "egress": [{}],
        }
    },
    "types": {"spec/policyTypes": ["Ingress", "Nope"]},
    "types many": {"spec/policyTypes": ["Ingress", "Egress", "Ingress"]},
    "selector": {"spec/podSelector": {"matchLabels": {"a b": "c"}}},
    "ports": {
        "spec/ingress": [
            {
                "ports": [
                    {"port": 0},
                    {"port": "Not"},
                    {"protocol": "ICMP"},
                    {"endPort": 5},
                    {"port": 10, "endPort": 5},
                    {"port": "a", "endPort": 5},
                    {"port": 5, "endPort": 70000},
                ]
            }
        ]
    },
    "peers": {
        "spec/egress": [
            {
                "to": [
                    {},
                    {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
                    {"ipBlock": {"cidr": ""}},
                    {"ipBlock": {"cidr": "x"}},
                    {"ipBlock": {"cidr": "10.0.0.1/8"}},
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8", "y"]}},
                ]
            }
        ]
    },
}


INGRESS: JSON = {
    "metadata": {"name": "i"},
    "spec": {
        "rules": [
            {
                "host": "a.example.com",
                "http": {
                    "paths": [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {
                                "service": {"name": "s", "port": {"number": 80}}
                            },
                        }
                    ]
                },
            }
        ]
    },
}


I0 = "spec/rules/0/"


PATH = I0 + "http/paths/0/"


INGRESSES: Variants = {
    "minimal": {},
    "rich": {
        "spec/ingressClassName": "nginx",
        "spec/tls": [{"hosts": ["a.example.com", "*.b.com"], "secretName": "s"}],
        "spec/defaultBackend": {"service": {"name": "d", "port": {"name": "http"}}},
    },
    "empty": {"spec": {}},
    "host": {I0 + "host": "A B"},
    "host address": {I0 + "host": "1.2.3.4"},
    "host wild": {I0 + "host": "*.a.com"},
    "host wild bad": {I0 + "host": "a.*.com"},
    "no paths": {I0 + "http/paths": []},
    "path type": {PATH + "pathType": "Nope"},
    "path type missing": {PATH + "pathType": GONE},
    "path": {PATH + "path": "a//b/.."},
    "path free": {PATH + "path": "x", PATH + "pathType": "ImplementationSpecific"},
    "backend": {PATH + "backend": {}},
    "backend both": {
        PATH + "backend/resource": {"kind": "A", "name": "b"},
    },
    "backend resource": {
        PATH + "backend": {"resource": {"apiGroup": "A", "kind": "", "name": "a/b"}}
    },
    "backend service": {PATH + "backend/service": {"name": "A", "port": {}}},
    "backend ports": {PATH + "backend/service/port": {"name": "a", "number": 1}},
    "backend port": {PATH + "backend/service/port": {"number": 70000}},
    "backend port name": {PATH + "backend/service/port": {"name": "A_"}},
    "backend nameless": {PATH + "backend/service/name": ""},
    "tls": {"spec/tls": [{"hosts": ["A"], "secretName": "B"}]},
    "class": {"spec/ingressClassName": "A"},
    "class twice": {
        "spec/ingressClassName": "a",
        "metadata/annotations": {"kubernetes.io/ingress.class": "b"},
    },
    "status": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
}


INGRESS_STATUS: Variants = {
    "address": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
    "bad": {
        "status": {"loadBalancer": {"ingress": [{"ip": "x"}, {"hostname": "1.2.3.4"}]}}
    },
}


INGRESS_CLASS: JSON = {"metadata": {"name": "c"}, "spec": {"controller": "a.com/b"}}


INGRESS_CLASSES: Variants = {
    "minimal": {},
    "parameters": {"spec/parameters": {"kind": "K", "name": "n"}},
    "parameters bad": {"spec/parameters": {"kind": "", "name": "a/b", "scope": "Nope"}},
    "parameters namespace": {
        "spec/parameters": {"kind": "K", "name": "n", "scope": "Namespace"}
    },
    "parameters cluster": {
        "spec/parameters": {"kind": "K", "name": "n", "namespace": "x"}
    },
    "controller": {"spec/controller": "x"},
    "controller missing": {"spec": {}},
}


SLICE: JSON = {
    "metadata": {"name": "s"},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["10.1.1.1"]}],
    "ports": [{"port": 80}],
}


SLICES: Variants = {
    "minimal": {},
    "empty": {"endpoints": [], "ports": []},
    "bare": {"endpoints": GONE, "ports": GONE},
    "rich": {
        "endpoints": [
            {
                "addresses": ["10.1.1.1"],
                "conditions": {"ready": True},
                "hostname": "h",
                "nodeName": "n",
                "zone": "z",
                "hints": {"forZones": [{"name": "z"}]},
                "targetRef": {"kind": "Pod", "name": "p"},
            }
        ]
    },
    "type": {"addressType": "Nope"},
    "type missing": {"addressType": GONE},
    "addresses": {
        "endpoints": [
            {"addresses": []},
            {"addresses": ["x", "fd00::1", "127.0.0.1"]},
            {"addresses": ["10.1.1.1"], "hostname": "A", "nodeName": "B"},
            {
                "addresses": ["10.1.1.1"],
                "hints": {"forZones": [{"name": "a"}, {"name": "a"}]},
            },
        ]
    },
    "six": {
        "addressType": "IPv6",
        "endpoints": [{"addresses": ["fd00::1", "10.1.1.1"]}],
    },
    "names": {
        "addressType": "FQDN",
        "endpoints": [{"addresses": ["a.example.com", "A", ""]}],
    },
    "ports": {
        "ports": [
            {"name": "A"},
            {"name": "b", "protocol": "X"},
            {"name": "b", "port": 1},
        ]
    },
}


def cases() -> Iterator[Case]:
    policy = "networking.k8s.io/v1/NetworkPolicy"
    yield from creates(policy, POLICY, POLICIES)
    yield from updates(
        policy,
        POLICY,
        {"types": {"spec/policyTypes": ["Egress"]}, "bad": POLICIES["ports"]},
    )
    ingress = "networking.k8s.io/v1/Ingress"
    yield from creates(ingress, INGRESS, INGRESSES)
    yield from updates(
        ingress, INGRESS, {"host": {I0 + "host": "b.com"}, "bad": {I0 + "host": "A"}}
    )
    yield from updates(ingress, INGRESS, INGRESS_STATUS, subresource="status")
    kind = "networking.k8s.io/v1/IngressClass"
    yield from creates(kind, INGRESS_CLASS, INGRESS_CLASSES)
    yield from updates(
        kind, INGRESS_CLASS, {"controller": {"spec/controller": "b.com/c"}}
    )
    kind = "discovery.k8s.io/v1/EndpointSlice"
    yield from creates(kind, SLICE, SLICES)
    yield from updates(
        kind,
        SLICE,
        {
            "type": {"addressType": "IPv6", "endpoints": []},
            "more": {"endpoints": [{"addresses": ["10.1.1.2"]}]},
        },
    )
