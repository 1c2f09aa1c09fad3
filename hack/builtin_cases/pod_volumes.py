"""Pods to create: mounts, devices, volumes and resources."""

from __future__ import annotations

from typing import Any

from hack.builtin_cases.pod_bases import C0, projected, resources, volume

VARIANTS: dict[str, dict[str, Any]] = {
    "mount unknown": {C0 + "volumeMounts": [{"name": "v", "mountPath": "/a"}]},
    "mount empty": {C0 + "volumeMounts": [{}]},
    "mount twice": {
        **volume(emptyDir={}),
        C0 + "volumeMounts": [
            {"name": "v", "mountPath": "/a"},
            {"name": "v", "mountPath": "/a"},
        ],
    },
    "mount sub path": {
        **volume(emptyDir={}),
        C0 + "volumeMounts": [
            {"name": "v", "mountPath": "/a", "subPath": "/abs"},
            {"name": "v", "mountPath": "/b", "subPath": "a/../b"},
            {"name": "v", "mountPath": "/c", "subPath": "a", "subPathExpr": "$(A)"},
        ],
    },
    "mount propagation": {
        **volume(emptyDir={}),
        C0 + "volumeMounts": [
            {"name": "v", "mountPath": "/a", "mountPropagation": "Nope"},
            {"name": "v", "mountPath": "/b", "mountPropagation": "Bidirectional"},
        ],
    },
    "mount recursive read only": {
        **volume(emptyDir={}),
        C0 + "volumeMounts": [
            {"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"},
            {"name": "v", "mountPath": "/b", "recursiveReadOnly": "Nope"},
            {
                "name": "v",
                "mountPath": "/c",
                "readOnly": True,
                "mountPropagation": "HostToContainer",
                "recursiveReadOnly": "IfPossible",
            },
        ],
    },
    "devices": {
        "spec/volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
        ],
        C0 + "volumeDevices": [
            {"name": "v", "devicePath": "/a"},
            {"name": "p", "devicePath": "/a"},
            {"name": "p", "devicePath": "/../b"},
            {"name": "none"},
            {},
        ],
        C0 + "volumeMounts": [{"name": "p", "mountPath": "/a"}],
    },
    "volume name": volume(emptyDir={}) | {"spec/volumes/0/name": "Bad_"},
    "volume without name": {"spec/volumes": [{"emptyDir": {}}]},
    "volume twice": {"spec/volumes": [{"name": "a"}, {"name": "a"}]},
    "volume two sources": volume(emptyDir={}, hostPath={"path": "/a"}),
    "volume host path": volume(hostPath={"path": "", "type": "Nope"}),
    "volume host path steps": volume(hostPath={"path": "/a/../b"}),
    "volume secret": volume(secret={}),
    "volume secret mode": volume(secret={"secretName": "a", "defaultMode": 512}),
    "volume secret items": volume(
        secret={
            "secretName": "a",
            "items": [{}, {"key": "a", "path": "../x", "mode": 1000}],
        }
    ),
    "volume config map": volume(configMap={}),
    "volume config map items": volume(
        configMap={
            "name": "a",
            "items": [{"key": "k", "path": "/abs"}, {"key": "k", "path": "..x"}],
        }
    ),
    "volume claim": volume(persistentVolumeClaim={}),
    "volume nfs": volume(nfs={"path": "rel"}),
    "volume empty dir": volume(emptyDir={"sizeLimit": "-1"}),
    "volume git": volume(gitRepo={"repository": "", "directory": "/a"}),
    "volume csi": volume(csi={}),
    "volume csi driver": volume(csi={"driver": "Bad_", "nodePublishSecretRef": {}}),
    "volume image": volume(image={"reference": "", "pullPolicy": "Nope"}),
    "volume iscsi": volume(iscsi={"lun": 300}),
    "volume glusterfs": volume(glusterfs={}),
    "volume rbd": volume(rbd={}),
    "volume fc": volume(fc={}),
    "volume cephfs": volume(cephfs={}),
    "volume downward": volume(
        downwardAPI={
            "items": [
                {"path": "", "fieldRef": {"fieldPath": "status.podIP"}},
                {"path": "/a"},
                {
                    "path": "b",
                    "resourceFieldRef": {"resource": "limits.cpu"},
                    "mode": -1,
                },
            ]
        }
    ),
    "volume ephemeral": volume(ephemeral={}),
    "volume ephemeral spec": volume(
        ephemeral={"volumeClaimTemplate": {"metadata": {"name": "a"}, "spec": {}}}
    ),
    "projected token": projected(
        {"serviceAccountToken": {"path": "", "expirationSeconds": 1}}
    ),
    "projected token path": projected(
        {"serviceAccountToken": {"path": "../a", "expirationSeconds": 2**33}}
    ),
    "projected twice": projected(
        {"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}},
        {"configMap": {"name": "c", "items": [{"key": "a", "path": "p"}]}},
    ),
    "projected two sources": projected({"secret": {"name": "s"}, "configMap": {}}),
    "projected without account": volume(
        projected={"sources": [{"serviceAccountToken": {"path": "a"}}]}
    ),
    "projected trust bundle": projected({"clusterTrustBundle": {"path": ""}}),
    "requests above limits": resources({"cpu": "2", "memory": "2Gi"}, {"cpu": "1"}),
    "requests from limits": resources(None, {"cpu": "1500m", "memory": "1.5Gi"}),
    "requests rounded": resources({"cpu": "0.0001"}, {"cpu": "0.0005"}),
    "resources negative": resources({"cpu": "-1"}, None),
    "resources unknown": resources({"nope": "1"}, None),
    "resources unqualified": resources({"requests.example.com/a": "1"}, None),
    "resources name": resources({"a b": "1"}, None),
    "resources pods": resources({"pods": "1"}, None),
    "extended request only": resources({"example.com/a": "1"}, None),
    "extended differs": resources({"example.com/a": "1"}, {"example.com/a": "2"}),
    "extended fraction": resources({"example.com/a": "1.5"}, {"example.com/a": "1.5"}),
    "huge pages alone": resources({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}),
    "huge pages odd": resources({"cpu": "1"}, {"cpu": "1", "hugepages-2Mi": "3Mi"}),
    "resource claim unknown": {C0 + "resources": {"claims": [{"name": "a"}, {}]}},
    "pod resources": {
        "spec/resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        C0 + "resources": {"requests": {"cpu": "500m"}},
    },
    "pod resources small": {
        "spec/resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}},
        C0 + "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}},
    },
    "pod resources name": {"spec/resources": {"requests": {"ephemeral-storage": "1"}}},
    "resize policy": {
        C0 + "resizePolicy": [
            {"resourceName": "cpu", "restartPolicy": "Nope"},
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "disk", "restartPolicy": "NotRequired"},
        ]
    },
}
