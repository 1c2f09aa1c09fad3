"""Pods to create: metadata, images, ports and environments."""

from __future__ import annotations

from typing import Any

from hack.builtin_cases.case import GONE
from hack.builtin_cases.pod_bases import C0

VARIANTS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "nothing in it": {"spec": {"containers": None}},
    "no spec": {"spec": GONE},
    "no containers": {"spec/containers": []},
    "nulls and empties": {
        "metadata/labels": {},
        "metadata/annotations": None,
        "metadata/finalizers": [],
        "spec/volumes": [],
        "spec/nodeSelector": {},
        "spec/hostNetwork": False,
        "spec/nodeName": "",
        "spec/securityContext": None,
        "spec/affinity": {},
        "spec/priority": None,
        C0 + "env": [],
        C0 + "resources": {"limits": {}, "requests": None},
        C0 + "command": None,
        C0 + "securityContext": {},
        C0 + "stdin": False,
        "status": {},
    },
    "status is dropped": {
        "status": {"phase": "Running", "podIP": "1.2.3.4"},
        "metadata/generation": 7,
    },
    "unknown fields": {"spec/nope": 1, C0 + "what": {"a": 1}},
    "generated name": {"metadata/name": GONE, "metadata/generateName": "Bad_"},
    "name upper case": {"metadata/name": "Web"},
    "name with slash": {"metadata/name": "a/b"},
    "name too long": {"metadata/name": "a" * 254},
    "no name": {"metadata/name": GONE},
    "label key": {"metadata/labels": {"a b": "c"}},
    "label value": {"metadata/labels": {"a": "b c"}},
    "label prefix": {"metadata/labels": {"/a": "b"}},
    "label value too long": {"metadata/labels": {"a": "b" * 64}},
    "annotation key": {"metadata/annotations": {"a b": "c"}},
    "annotation capital": {"metadata/annotations": {"Example.com/A": "c"}},
    "annotations too big": {"metadata/annotations": {"a": "b" * 262145}},
    "finalizer unqualified": {"metadata/finalizers": ["hold"]},
    "finalizer bad": {"metadata/finalizers": ["a b/c"]},
    "finalizers both": {"metadata/finalizers": ["orphan", "foregroundDeletion"]},
    "owner without uid": {
        "metadata/ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
        ]
    },
    "owner empty": {"metadata/ownerReferences": [{}]},
    "owner is an event": {
        "metadata/ownerReferences": [
            {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}
        ]
    },
    "two controllers": {
        "metadata/ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "A",
                "name": "a",
                "uid": "1",
                "controller": True,
            },
            {
                "apiVersion": "v1",
                "kind": "B",
                "name": "b",
                "uid": "2",
                "controller": True,
            },
        ]
    },
    "owner ref bad version": {
        "metadata/ownerReferences": [
            {"apiVersion": "a/b/c", "kind": "A", "name": "a", "uid": "1"}
        ]
    },
    "image is latest": {C0 + "image": "a/b:latest"},
    "image with a port": {C0 + "image": "host:5000/a"},
    "image with digest": {C0 + "image": "a@sha256:" + "a" * 64},
    "image nonsense": {C0 + "image": "A B"},
    "no image": {C0 + "image": GONE},
    "image padded": {C0 + "image": " nginx "},
    "pull policy": {C0 + "imagePullPolicy": "Sometimes"},
    "container name": {C0 + "name": "Bad_Name"},
    "container without name": {C0 + "name": GONE},
    "container name long": {C0 + "name": "a" * 64},
    "container name dotted": {C0 + "name": "a.b"},
    "duplicate container": {"spec/containers/-": {"name": "web", "image": "a"}},
    "termination message policy": {C0 + "terminationMessagePolicy": "Nope"},
    "port zero": {C0 + "ports": [{"containerPort": 0}]},
    "port missing": {C0 + "ports": [{}]},
    "port large": {C0 + "ports": [{"containerPort": 70000, "hostPort": -1}]},
    "port protocol": {C0 + "ports": [{"containerPort": 1, "protocol": "ICMP"}]},
    "port name": {C0 + "ports": [{"containerPort": 1, "name": "Not_A_Name"}]},
    "port name long": {
        C0 + "ports": [{"containerPort": 1, "name": "a-very-long-name"}]
    },
    "port name digits": {C0 + "ports": [{"containerPort": 1, "name": "123"}]},
    "port name dashes": {C0 + "ports": [{"containerPort": 1, "name": "a--b"}]},
    "port name edge": {C0 + "ports": [{"containerPort": 1, "name": "-a"}]},
    "port name twice": {
        C0 + "ports": [
            {"containerPort": 1, "name": "a"},
            {"containerPort": 2, "name": "a"},
        ]
    },
    "host port twice": {
        C0 + "ports": [
            {"containerPort": 1, "hostPort": 5},
            {"containerPort": 2, "hostPort": 5},
        ]
    },
    "host network": {
        "spec/hostNetwork": True,
        C0 + "ports": [{"containerPort": 80}],
    },
    "host network port differs": {
        "spec/hostNetwork": True,
        C0 + "ports": [{"containerPort": 80, "hostPort": 81}],
    },
    "env without name": {C0 + "env": [{"value": "a"}]},
    "env name": {C0 + "env": [{"name": "a=b", "value": "a"}]},
    "env name relaxed": {C0 + "env": [{"name": "1 a.b", "value": "a"}]},
    "env both": {
        C0 + "env": [
            {
                "name": "A",
                "value": "b",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
            }
        ]
    },
    "env from nothing": {C0 + "env": [{"name": "A", "valueFrom": {}}]},
    "env from two": {
        C0 + "env": [
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.name"},
                    "secretKeyRef": {"name": "a", "key": "b"},
                },
            }
        ]
    },
    "env field": {
        C0 + "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}
        ]
    },
    "env field labels": {
        C0 + "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}
        ]
    },
    "env field label key": {
        C0 + "env": [
            {
                "name": "A",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}},
            },
            {
                "name": "B",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}},
            },
        ]
    },
    "env field empty": {C0 + "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
    "env field version": {
        C0 + "env": [
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}
                },
            }
        ]
    },
    "env resource": {
        C0 + "env": [
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.x"}}},
            {"name": "B", "valueFrom": {"resourceFieldRef": {}}},
            {
                "name": "C",
                "valueFrom": {
                    "resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}
                },
            },
            {
                "name": "D",
                "valueFrom": {
                    "resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}
                },
            },
            {
                "name": "E",
                "valueFrom": {
                    "resourceFieldRef": {
                        "resource": "limits.ephemeral-storage",
                        "divisor": "3",
                    }
                },
            },
        ]
    },
    "env secret": {
        C0 + "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "A", "key": "a b"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "b"}}},
        ]
    },
    "env from empty": {C0 + "envFrom": [{"prefix": "a=b"}]},
    "env from both": {
        C0 + "envFrom": [{"configMapRef": {"name": "A"}, "secretRef": {}}]
    },
}
