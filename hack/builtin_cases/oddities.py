"""What random objects brought to light, of several kinds."""

from __future__ import annotations

from collections.abc import Iterator

from hack.builtin_cases.access import BUDGET, LEASE, RUNTIME
from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates
from hack.builtin_cases.jobs import JOB
from hack.builtin_cases.networks import INGRESS_CLASS, SLICE
from hack.builtin_cases.nodes import NEW_EVENT, NODE
from hack.builtin_cases.pod_bases import C0, MINIMAL
from hack.builtin_cases.scalers import HOOKS
from hack.builtin_cases.services import SERVICE
from hack.builtin_cases.storage import ATTACHMENT, DRIVER, STORAGE
from hack.builtin_cases.volumes import CLAIM

WINDOWS = C0 + "securityContext/windowsOptions"
FIRST = {"name": "i", "image": "i:1"}
PODS: Variants = {
    "windows names": {
        WINDOWS: {"gmsaCredentialSpecName": "A", "gmsaCredentialSpec": ""},
        "spec/securityContext/windowsOptions": {"runAsUserName": ""},
    },
    "windows users": {
        WINDOWS: {"runAsUserName": "a\\b\\c"},
        "spec/securityContext/windowsOptions": {"runAsUserName": "a\tb"},
    },
    "windows domain": {WINDOWS: {"runAsUserName": ".a_b\\" + "u" * 105}},
    "windows user": {WINDOWS: {"runAsUserName": "a.b\\"}},
    "windows dots": {WINDOWS: {"runAsUserName": " . "}},
    "windows letters": {WINDOWS: {"runAsUserName": "NT/x"}},
    "windows good": {WINDOWS: {"runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    "host process": {WINDOWS: {"hostProcess": True}, "spec/hostNetwork": True},
    "host process alone": {WINDOWS: {"hostProcess": True}},
    "host process of some": {
        WINDOWS: {"hostProcess": False},
        "spec/securityContext/windowsOptions": {"hostProcess": True},
        "spec/initContainers": [FIRST],
    },
    "mount option": {"spec/securityContext/seLinuxChangePolicy": "MountOption"},
    "rules of init container": {
        "spec/initContainers": [FIRST | {"restartPolicyRules": [{"action": "x"}]}]
    },
    "stop signal of init container": {
        "spec/initContainers": [FIRST | {"lifecycle": {"stopSignal": "SIGTERM"}}]
    },
    "claims of pod": {
        "spec/resources": {"claims": [{"name": "c"}]},
        "spec/resourceClaims": [{"name": "d", "resourceClaimName": "r"}],
    },
    "strange image": {C0 + "image": "A*"},
    "image of host": {C0 + "image": "localhost:5000/a/b"},
    "image with digest": {C0 + "image": "a@sha256:" + "0" * 64},
    "quobyte": {
        "spec/volumes": [
            {"name": "a", "quobyte": {"registry": "a:1,b", "volume": ""}},
            {"name": "b", "quobyte": {"registry": "", "volume": "v"}},
        ]
    },
}
POD_STATUS: Variants = {
    "fine amounts": {
        "status/ephemeralContainerStatuses": [
            {
                "name": "e",
                "image": "i",
                "allocatedResources": {"cpu": "100u"},
                "resources": {"limits": {"cpu": "1500u"}},
            }
        ]
    }
}
FINALIZED: Variants = {"plain finalizer": {"metadata/finalizers": ["plain"]}}
INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "v"}}
SOURCE = "spec/source/inlineVolumeSpec"
ATTACHMENTS: Variants = {
    "inline": {SOURCE: INLINE},
    "inline defaults": {SOURCE: INLINE | {"hostPath": {"path": "/a"}}},
    "inline forbidden": {
        SOURCE: {
            "claimRef": {"name": "c"},
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {},
            "local": {"path": "/a"},
            "flexVolume": {"driver": ""},
            "storageClassName": "s",
            "volumeMode": "Block",
            "volumeAttributesClassName": "",
        }
    },
}
TERM = {"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}
CLASSES: Variants = {
    "empty terms": {"allowedTopologies": [{}, TERM, {}]},
    "equal terms": {"allowedTopologies": [TERM, TERM, TERM]},
}
CONDITIONS: Variants = {
    "conditions": {
        "webhooks/0/matchConditions": [
            {"name": "", "expression": ""},
            {"name": "a b", "expression": " "},
            {"name": "c", "expression": "true"},
            {"name": "c", "expression": "true"},
        ]
    }
}
CLAIM_STATUS: Variants = {
    "allocated": {"status/allocatedResources": {"storage": "-1"}},
    "allocated name": {"status/allocatedResources": {"cpu": "1"}},
    "allocated amount": {"status/allocatedResources": {"x.com/y": "100u"}},
    "resizing": {"status/allocatedResourceStatuses": {"a": "x"}},
    "capacity": {"status/capacity": {"storage": "100u"}},
}
BUDGET_STATUS: Variants = {
    "empty condition": {"status/conditions": [{"observedGeneration": -1}]},
    "conditions twice": {
        "status/conditions": [
            {
                "type": "A",
                "status": "True",
                "reason": reason,
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
            for reason in ("R", "r" * 1025)
        ]
    },
}
NODES: Variants = {"ranges": {"spec/podCIDRs": ["10.0.0.0/8", "x"]}}
NODE_UPDATES: Variants = {"external": {"spec/externalID": "x"}}
SECRET: JSON = {
    "metadata": {"name": "s"},
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "AAEC"},
}


def cases() -> Iterator[Case]:
    """Of each kind."""
    yield from creates("v1/Pod", MINIMAL, PODS)
    yield from updates("v1/Pod", MINIMAL, POD_STATUS, subresource="status")
    yield from creates("coordination.k8s.io/v1/Lease", LEASE, FINALIZED)
    yield from updates("coordination.k8s.io/v1/Lease", LEASE, FINALIZED)
    yield from creates("node.k8s.io/v1/RuntimeClass", RUNTIME, FINALIZED)
    hooks = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration"
    yield from creates(hooks, HOOKS, FINALIZED | CONDITIONS)
    yield from updates(hooks, HOOKS, CONDITIONS)
    storage = "storage.k8s.io/v1/"
    bare = ATTACHMENT | {"spec": {"attacher": "d", "nodeName": "n", "source": {}}}
    yield from creates(storage + "VolumeAttachment", bare, ATTACHMENTS)
    yield from creates(storage + "StorageClass", STORAGE, CLASSES)
    prevent = {"spec/preventPodSchedulingIfMissing": True}
    yield from creates(storage + "CSIDriver", DRIVER, {"prevent": prevent})
    claim = "v1/PersistentVolumeClaim"
    yield from updates(claim, CLAIM, CLAIM_STATUS, subresource="status")
    budget = "policy/v1/PodDisruptionBudget"
    yield from updates(budget, BUDGET, BUDGET_STATUS, subresource="status")
    yield from creates("v1/Node", NODE, NODES)
    yield from updates("v1/Node", NODE, NODE_UPDATES)
    yield from updates(
        "events.k8s.io/v1/Event",
        NEW_EVENT,
        {"source": {"deprecatedSource": {"host": "h"}}},
    )
    yield from creates("v1/Secret", SECRET, {"control letter": {}})
    nothing = {"metadata": {"name": "n"}}
    yield from creates("v1/Secret", nothing, {"null datum": {"data/a": None}})
    yield from creates(
        "v1/ConfigMap",
        nothing,
        {"null datum": {"data/a": None}, "null bytes": {"binaryData/a": None}},
    )
    inside = {"spec/type": "ExternalName", "spec/internalTrafficPolicy": "x"}
    named = SERVICE | {"spec": {"type": "ExternalName", "externalName": "a.b"}}
    yield from updates("v1/Service", named, {"inside": inside})
    old = "endpoints/0/deprecatedTopology"
    yield from creates(
        "discovery.k8s.io/v1/EndpointSlice", SLICE, {"topology": {old: {"a": "b"}}}
    )
    parameters = {"kind": "k", "name": "n", "scope": ""}
    yield from creates(
        "networking.k8s.io/v1/IngressClass",
        INGRESS_CLASS,
        {"empty scope": {"spec/parameters": parameters}},
    )
    yield from creates(
        "batch/v1/Job", JOB, {"managed by": {"spec/managedBy": "a.com/b c"}}
    )
    yield from updates(
        "v1/PersistentVolume",
        {
            "metadata": {"name": "v"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/a"},
            },
        },
        {"no time": {"status/lastPhaseTransitionTime": GONE}},
        subresource="status",
    )
    revision = {"metadata": {"name": "r"}, "revision": 1}
    yield from creates(
        "apps/v1/ControllerRevision", revision, {"empty data": {"data": {}}}
    )
