"""PersistentVolumes and claims to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.builtin_cases.case import GONE, JSON, Case, creates, updates

CLAIM: JSON = {
    "metadata": {"name": "c"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1024Mi"}},
    },
}


CLAIMS: dict[str, dict[str, Any]] = {
    "minimal": {},
    "rich": {
        "spec/storageClassName": "fast",
        "spec/selector": {"matchLabels": {"a": "b"}},
        "spec/volumeMode": "Block",
        "spec/volumeName": "v",
        "status": {"phase": "Bound"},
    },
    "modes": {"spec/accessModes": ["ReadWriteOncePod", "ReadWriteMany", "Nope"]},
    "no modes": {"spec/accessModes": []},
    "no storage": {"spec/resources": {}},
    "zero": {"spec/resources/requests/storage": "0"},
    "class": {"spec/storageClassName": "A"},
    "class empty": {"spec/storageClassName": ""},
    "mode": {"spec/volumeMode": "Nope"},
    "selector": {
        "spec/selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}
    },
    "source": {"spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}},
    "source other": {"spec/dataSource": {"kind": "ConfigMap", "name": "x"}},
    "reference": {
        "spec/dataSourceRef": {"apiGroup": "example.com", "kind": "A", "name": "x"}
    },
    "reference bad": {"spec/dataSourceRef": {"kind": "A", "name": ""}},
    "sources differ": {
        "spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
        "spec/dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "y"},
    },
    "no spec": {"spec": GONE},
}


CLAIM_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "volume": {"spec/volumeName": "v"},
    "grow": {"spec/resources/requests/storage": "2Gi"},
    "shrink": {"spec/resources/requests/storage": "1Mi"},
    "modes": {"spec/accessModes": ["ReadWriteMany"]},
    "mode": {"spec/volumeMode": "Block"},
    "class": {"spec/storageClassName": "a"},
    "labels": {"metadata/labels": {"a": "b"}},
}


BOUND = {"status/phase": "Bound", "status/capacity": {"storage": "1Gi"}}


CLAIM_STATUS: dict[str, dict[str, Any]] = {
    "bound": {
        "status": {
            "phase": "Bound",
            "capacity": {"storage": "1024Mi"},
            "accessModes": ["ReadWriteOnce"],
        }
    },
    "negative": {"status/capacity": {"storage": "-1"}},
}


VOLUME: JSON = {
    "metadata": {"name": "v"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    },
}


VOLUMES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "csi": {
        "spec/hostPath": GONE,
        "spec/csi": {"driver": "d.example.com", "volumeHandle": "h"},
        "spec/storageClassName": "fast",
        "spec/mountOptions": ["ro"],
        "spec/persistentVolumeReclaimPolicy": "Delete",
        "spec/claimRef": {"namespace": "default", "name": "c"},
    },
    "csi bad": {
        "spec/hostPath": GONE,
        "spec/csi": {"driver": "", "volumeHandle": "", "nodePublishSecretRef": {}},
    },
    "local": {
        "spec/hostPath": GONE,
        "spec/local": {"path": "/a/../b"},
    },
    "local good": {
        "spec/hostPath": GONE,
        "spec/local": {"path": "/a"},
        "spec/nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                ]
            }
        },
    },
    "affinity empty": {"spec/nodeAffinity": {}},
    "nfs": {"spec/hostPath": GONE, "spec/nfs": {"server": "s", "path": "/p"}},
    "no source": {"spec/hostPath": GONE},
    "two": {"spec/nfs": {"server": "s", "path": "/p"}},
    "no capacity": {"spec/capacity": GONE},
    "capacity": {"spec/capacity": {"storage": "0", "cpu": "1"}},
    "no modes": {"spec/accessModes": GONE},
    "reclaim": {"spec/persistentVolumeReclaimPolicy": "Nope"},
    "recycle root": {
        "spec/persistentVolumeReclaimPolicy": "Recycle",
        "spec/hostPath/path": "/",
    },
    "class": {"spec/storageClassName": "A"},
    "mode": {"spec/volumeMode": "Nope"},
    "options": {
        "metadata/annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}
    },
    "attributes": {"spec/volumeAttributesClassName": "x"},
}


VOLUME_UPDATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "reclaim": {"spec/persistentVolumeReclaimPolicy": "Delete"},
    "source": {"spec/hostPath/path": "/other"},
    "mode": {"spec/volumeMode": "Block"},
    "claim": {"spec/claimRef": {"namespace": "default", "name": "c"}},
    "capacity": {"spec/capacity/storage": "2Gi"},
}


def cases() -> Iterator[Case]:
    yield from creates("v1/PersistentVolumeClaim", CLAIM, CLAIMS)
    yield from updates("v1/PersistentVolumeClaim", CLAIM, CLAIM_UPDATES)
    yield from updates("v1/PersistentVolumeClaim", CLAIM, CLAIM_UPDATES, status=BOUND)
    yield from updates(
        "v1/PersistentVolumeClaim", CLAIM, CLAIM_STATUS, subresource="status"
    )
    yield from creates("v1/PersistentVolume", VOLUME, VOLUMES)
    yield from updates("v1/PersistentVolume", VOLUME, VOLUME_UPDATES)
