"""Services and Endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, Case, changed, creates, updates

JSON = dict[str, Any]
P0 = "spec/ports/0/"

SERVICE: JSON = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
CREATES: dict[str, dict[str, Any]] = {
    "minimal": {"spec/selector": {"a": "b"}},
    "no selector": {},
    "node port": {"spec/type": "NodePort"},
    "node port chosen": {"spec/type": "NodePort", P0 + "nodePort": 30123},
    "node port low": {"spec/type": "NodePort", P0 + "nodePort": 80},
    "node port on cluster": {P0 + "nodePort": 30124},
    "node port protocols": {
        "spec/type": "NodePort",
        "spec/ports": [
            {"name": "a", "port": 53, "protocol": "UDP", "nodePort": 30125},
            {"name": "b", "port": 53, "protocol": "TCP"},
        ],
    },
    "balanced": {"spec/type": "LoadBalancer"},
    "balanced without ports": {
        "spec/type": "LoadBalancer",
        "spec/allocateLoadBalancerNodePorts": False,
    },
    "balanced local": {
        "spec/type": "LoadBalancer",
        "spec/externalTrafficPolicy": "Local",
        "spec/loadBalancerClass": "example.com/a",
        "spec/loadBalancerSourceRanges": ["10.0.0.0/8"],
    },
    "class": {"spec/loadBalancerClass": "a"},
    "source ranges": {"spec/loadBalancerSourceRanges": ["x", "10.0.0.1/8"]},
    "external name": {
        "spec": {"type": "ExternalName", "externalName": "a.example.com."}
    },
    "external name missing": {"spec": {"type": "ExternalName"}},
    "external name bad": {"spec": {"type": "ExternalName", "externalName": "A B"}},
    "external name address": {
        "spec": {"type": "ExternalName", "externalName": "a", "clusterIP": "10.0.0.5"}
    },
    "headless": {"spec/clusterIP": "None", "spec/selector": {"a": "b"}},
    "headless alone": {"spec/clusterIP": "None"},
    "headless without ports": {"spec": {"clusterIP": "None"}},
    "headless node port": {"spec/clusterIP": "None", "spec/type": "NodePort"},
    "no ports": {"spec": {}},
    "address": {"spec/clusterIP": "10.0.0.77"},
    "address outside": {"spec/clusterIP": "192.168.1.1"},
    "address taken": {"spec/clusterIP": "10.0.0.1"},
    "address nonsense": {"spec/clusterIP": "x"},
    "address six": {"spec/clusterIP": "fd00::1"},
    "addresses": {"spec/clusterIPs": ["10.0.0.78"]},
    "addresses differ": {
        "spec/clusterIP": "10.0.0.78",
        "spec/clusterIPs": ["10.0.0.79"],
    },
    "families": {"spec/ipFamilies": ["IPv4"], "spec/ipFamilyPolicy": "SingleStack"},
    "family six": {"spec/ipFamilies": ["IPv6"]},
    "families both": {"spec/ipFamilies": ["IPv4", "IPv6"]},
    "family nonsense": {"spec/ipFamilies": ["IPv5"]},
    "dual": {"spec/ipFamilyPolicy": "RequireDualStack"},
    "dual preferred": {"spec/ipFamilyPolicy": "PreferDualStack"},
    "policy": {"spec/ipFamilyPolicy": "Nope"},
    "type": {"spec/type": "Nope"},
    "port": {P0 + "port": 0},
    "port large": {P0 + "port": 70000},
    "protocol": {P0 + "protocol": "ICMP"},
    "target": {P0 + "targetPort": "http"},
    "target bad": {P0 + "targetPort": "Not A Port"},
    "target large": {P0 + "targetPort": 70000},
    "app protocol": {P0 + "appProtocol": "a b"},
    "two unnamed": {"spec/ports": [{"port": 1}, {"port": 2}]},
    "names": {
        "spec/ports": [
            {"port": 1, "name": "a"},
            {"port": 2, "name": "a"},
            {"port": 3, "name": "B_"},
        ]
    },
    "ports twice": {"spec/ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
    "node ports twice": {
        "spec/type": "NodePort",
        "spec/ports": [
            {"port": 1, "name": "a", "nodePort": 30300},
            {"port": 2, "name": "b", "nodePort": 30300},
        ],
    },
    "selector": {"spec/selector": {"a b": "c"}},
    "affinity": {"spec/sessionAffinity": "ClientIP"},
    "affinity time": {
        "spec/sessionAffinity": "ClientIP",
        "spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 90000}},
    },
    "affinity nonsense": {"spec/sessionAffinity": "Nope"},
    "affinity unasked": {
        "spec/sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}
    },
    "external": {"spec/externalIPs": ["1.2.3.4"]},
    "external bad": {
        "spec/externalIPs": [
            "x",
            "127.0.0.1",
            "0.0.0.0",
            "169.254.1.1",
            "224.0.0.1",
            "01.2.3.4",
        ]
    },
    "traffic": {"spec/externalTrafficPolicy": "Local"},
    "traffic nonsense": {"spec/type": "NodePort", "spec/externalTrafficPolicy": "Nope"},
    "internal nonsense": {"spec/internalTrafficPolicy": "Nope"},
    "distribution": {"spec/trafficDistribution": "Nope"},
    "distribution good": {"spec/trafficDistribution": "PreferClose"},
    "health port": {"spec/healthCheckNodePort": 30500},
    "allocate": {"spec/allocateLoadBalancerNodePorts": True},
    "name digits": {"metadata/name": "1a"},
    "name upper": {"metadata/name": "A"},
    "status": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
}
SELECTED = changed(SERVICE, {"spec/selector": {"a": "b"}})
UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no address": {"spec/clusterIP": GONE, "spec/clusterIPs": GONE},
    "address": {"spec/clusterIP": "10.0.0.99"},
    "addresses": {"spec/clusterIP": "10.0.0.99", "spec/clusterIPs": ["10.0.0.99"]},
    "headless": {"spec/clusterIP": "None", "spec/clusterIPs": ["None"]},
    "node port": {"spec/type": "NodePort"},
    "balanced": {"spec/type": "LoadBalancer"},
    "external name": {"spec/type": "ExternalName", "spec/externalName": "a"},
    "port": {P0 + "port": 81},
    "selector": {"spec/selector": {"c": "d"}},
    "families": {"spec/ipFamilies": ["IPv6"]},
    "status": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
}
ON_NODES = changed(SERVICE, {"spec/type": "NodePort", P0 + "nodePort": 30600})
NODE_UPDATES: dict[str, dict[str, Any]] = {
    "cluster": {"spec/type": "ClusterIP"},
    "cluster without": {"spec/type": "ClusterIP", P0 + "nodePort": GONE},
    "kept": {P0 + "nodePort": GONE},
    "other": {P0 + "nodePort": 30601},
    "external name": {"spec/type": "ExternalName", "spec/externalName": "a"},
}
BALANCED = changed(
    SERVICE,
    {
        "spec/type": "LoadBalancer",
        "spec/externalTrafficPolicy": "Local",
        "spec/loadBalancerClass": "example.com/a",
    },
)
BALANCED_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "cluster": {"spec/type": "ClusterIP"},
    "class": {"spec/loadBalancerClass": "example.com/b"},
    "policy": {"spec/externalTrafficPolicy": "Cluster"},
    "health": {"spec/healthCheckNodePort": 30700},
    "health gone": {"spec/healthCheckNodePort": GONE},
}
BALANCED_STATUS: dict[str, dict[str, Any]] = {
    "address": {"status/loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    "bad": {
        "status/loadBalancer": {
            "ingress": [
                {"ip": "x"},
                {"hostname": "A B"},
                {"hostname": "1.2.3.4"},
                {"ip": "1.2.3.4", "ipMode": "Nope"},
                {"hostname": "a", "ipMode": "VIP"},
            ]
        }
    },
}
ENDPOINTS: JSON = {
    "metadata": {"name": "e"},
    "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}],
}
S0 = "subsets/0/"
ENDPOINT_CREATES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "empty": {"subsets": GONE},
    "no addresses": {S0 + "addresses": []},
    "address": {S0 + "addresses": [{"ip": "x"}, {"ip": "127.0.0.1"}]},
    "address names": {
        S0 + "addresses": [{"ip": "10.1.1.1", "hostname": "A", "nodeName": "B"}]
    },
    "ports": {S0 + "ports": [{"port": 0}, {"port": 1, "name": "A_", "protocol": "X"}]},
    "target": {
        S0 + "addresses": [
            {"ip": "10.1.1.1", "targetRef": {"kind": "Pod", "name": "p"}}
        ]
    },
    "unsorted": {
        "subsets": [
            {
                "addresses": [{"ip": "10.1.1.2"}, {"ip": "10.1.1.1"}],
                "ports": [{"port": 2}],
            },
            {"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 2}]},
        ]
    },
}


def cases() -> Iterator[Case]:
    yield from creates("v1/Service", SERVICE, CREATES)
    yield from updates("v1/Service", SELECTED, UPDATES)
    yield from updates("v1/Service", ON_NODES, NODE_UPDATES)
    yield from updates("v1/Service", BALANCED, BALANCED_UPDATES)
    yield from updates("v1/Service", BALANCED, BALANCED_STATUS, subresource="status")
    status = {"status": {"status/loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    yield from updates("v1/Service", SELECTED, status, subresource="status")
    yield from creates("v1/Endpoints", ENDPOINTS, ENDPOINT_CREATES)
    yield from updates(
        "v1/Endpoints",
        ENDPOINTS,
        {
            "address": {S0 + "addresses": [{"ip": "10.1.1.9"}]},
            "bad": {S0 + "addresses": []},
        },
    )
