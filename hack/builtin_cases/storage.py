"""Storage classes, drivers and attachments."""

from __future__ import annotations

from collections.abc import Iterator

from hack.builtin_cases.case import GONE, JSON, Case, Variants, creates, updates

STORAGE: JSON = {"metadata": {"name": "s"}, "provisioner": "a.com/b"}


STORAGES: Variants = {
    "minimal": {},
    "rich": {
        "parameters": {"a": "b"},
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        "mountOptions": ["ro"],
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
        ],
    },
    "no provisioner": {"provisioner": GONE},
    "provisioner": {"provisioner": "a b"},
    "policy": {"reclaimPolicy": "Recycle"},
    "mode": {"volumeBindingMode": "Nope"},
    "parameter": {"parameters": {"": "x"}},
    "topologies": {
        "allowedTopologies": [
            {
                "matchLabelExpressions": [
                    {"key": "a b", "values": []},
                    {"key": "c", "values": ["x", "x"]},
                    {"key": "c", "values": ["y"]},
                ]
            },
        ]
    },
}


STORAGE_UPDATES: Variants = {
    "expansion": {"allowVolumeExpansion": True},
    "provisioner": {"provisioner": "x"},
    "parameters": {"parameters": {"a": "b"}},
    "policy": {"reclaimPolicy": "Retain"},
    "mode": {"volumeBindingMode": "WaitForFirstConsumer"},
}


DRIVER: JSON = {"metadata": {"name": "d"}, "spec": {}}


DRIVERS: Variants = {
    "minimal": {},
    "bad": {
        "spec": {
            "fsGroupPolicy": "Nope",
            "volumeLifecycleModes": ["Nope"],
            "tokenRequests": [
                {"audience": "a", "expirationSeconds": 5},
                {"audience": "a"},
                {"audience": "b", "expirationSeconds": 2**33},
            ],
            "nodeAllocatableUpdatePeriodSeconds": 5,
        }
    },
    "secrets": {"spec": {"serviceAccountTokenInSecrets": True}},
}


CSI_NODE: JSON = {
    "metadata": {"name": "n"},
    "spec": {"drivers": [{"name": "d", "nodeID": "x", "topologyKeys": ["a"]}]},
}


CSI_NODES: Variants = {
    "minimal": {},
    "empty": {"spec": {"drivers": []}},
    "bad": {
        "spec/drivers": [
            {"name": "", "nodeID": "", "topologyKeys": ["a b", "c", "c"]},
            {"name": "d", "nodeID": "x" * 200},
            {"name": "d", "nodeID": "y", "allocatable": {"count": -1}},
        ]
    },
}


ATTACHMENT: JSON = {
    "metadata": {"name": "a"},
    "spec": {
        "attacher": "d.example.com",
        "nodeName": "n",
        "source": {"persistentVolumeName": "v"},
    },
}


ATTACHMENTS: Variants = {
    "minimal": {},
    "no source": {"spec/source": {}},
    "source empty": {"spec/source": {"persistentVolumeName": ""}},
    "bad": {"spec/attacher": "", "spec/nodeName": "A"},
    "status": {"status": {"attached": True}},
}


CAPACITY: JSON = {
    "metadata": {"name": "c"},
    "storageClassName": "s",
    "capacity": "1024Mi",
}


CAPACITIES: Variants = {
    "minimal": {},
    "negative": {"capacity": "-1"},
    "class": {"storageClassName": ""},
    "topology": {"nodeTopology": {"matchLabels": {"a b": "c"}}},
}


ATTRIBUTES: JSON = {
    "metadata": {"name": "a"},
    "driverName": "d",
    "parameters": {"a": "b"},
}


def cases() -> Iterator[Case]:
    storage = "storage.k8s.io/v1/"
    yield from creates(storage + "StorageClass", STORAGE, STORAGES)
    yield from updates(storage + "StorageClass", STORAGE, STORAGE_UPDATES)
    yield from creates(storage + "CSIDriver", DRIVER, DRIVERS)
    yield from updates(
        storage + "CSIDriver",
        DRIVER,
        {
            "attach": {"spec/attachRequired": False},
            "capacity": {"spec/storageCapacity": True},
        },
    )
    yield from creates(storage + "CSINode", CSI_NODE, CSI_NODES)
    yield from updates(
        storage + "CSINode", CSI_NODE, {"id": {"spec/drivers/0/nodeID": "y"}}
    )
    yield from creates(storage + "VolumeAttachment", ATTACHMENT, ATTACHMENTS)
    yield from updates(
        storage + "VolumeAttachment", ATTACHMENT, {"node": {"spec/nodeName": "m"}}
    )
    yield from updates(
        storage + "VolumeAttachment",
        ATTACHMENT,
        {"attached": {"status/attached": True, "metadata/labels": {"a": "b"}}},
        subresource="status",
    )
    yield from creates(storage + "CSIStorageCapacity", CAPACITY, CAPACITIES)
    yield from updates(
        storage + "CSIStorageCapacity", CAPACITY, {"class": {"storageClassName": "x"}}
    )
    yield from creates(
        storage + "VolumeAttributesClass",
        ATTRIBUTES,
        {"minimal": {}, "bad": {"driverName": "", "parameters": GONE}},
    )
    yield from updates(
        storage + "VolumeAttributesClass", ATTRIBUTES, {"driver": {"driverName": "x"}}
    )
