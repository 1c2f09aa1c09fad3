"""Strategic: patches with all the directives there are, and some that go wrong."""

from __future__ import annotations

from random import Random
from typing import Any

from hack.apply_corpus.kinds import CONFIG_MAP, DEPLOYMENT, POD, SERVICE, Kind
from hack.apply_corpus.parts import JSON

_POD_SPEC: JSON = {
    "containers": [
        {
            "name": name,
            "image": "img:1",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [
                {"containerPort": 80, "protocol": "TCP", "name": "a"},
                {"containerPort": 81, "protocol": "TCP", "name": "b"},
            ],
            "volumeMounts": [{"name": "v1", "mountPath": "/a"}],
        }
        for name in ("one", "two", "three")
    ],
    "volumes": [
        {"name": "v1", "emptyDir": {}},
        {"name": "v2", "hostPath": {"path": "/x", "type": ""}},
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "nodeSelector": {"a": "b", "c": "d"},
    "imagePullSecrets": [{"name": "s1"}, {"name": "s2"}],
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a", "b"]}],
}


def _spec(**fields: Any) -> JSON:
    return {"spec": {"template": {"spec": fields}}}


def _containers(*containers: Any, **more: Any) -> JSON:
    return _spec(containers=list(containers), **more)


_DEPLOYMENT: JSON = {
    "metadata": {
        "labels": {"a": "b", "c": "d"},
        "finalizers": ["a.dev/1", "a.dev/2", "a.dev/3"],
    },
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1},
        },
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": _POD_SPEC},
    },
}
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_DEPLOYMENT_PATCHES: tuple[Any, ...] = (
    {},
    {"metadata": {"labels": {"a": None, "e": "f"}}},
    {"metadata": {"labels": {"$patch": "replace", "x": "y"}}},
    {"metadata": {"labels": {"$patch": "delete"}}},
    {"metadata": {"labels": {"$patch": "merge", "x": "y"}}},
    {"metadata": {"labels": {"$patch": 5}}},
    {"metadata": {"labels": None}},
    {"metadata": {"labels": {"$retainKeys": ["a"], "a": "z"}}},
    {"metadata": {"labels": {"$retainKeys": ["a"], "x": "z"}}},
    {"metadata": {"labels": {"$retainKeys": "a"}}},
    {"metadata": {"annotations": {"new": "x", "gone": None}}},
    {"metadata": {"finalizers": ["a.dev/4"]}},
    {"metadata": {"finalizers": ["a.dev/2", "a.dev/5"]}},
    {"metadata": {"finalizers": ["a.dev/3", "a.dev/3", "a.dev/1"]}},
    {"metadata": {f"{_DELETE}finalizers": ["a.dev/2"]}},
    {"metadata": {f"{_DELETE}finalizers": ["a.dev/9"]}},
    {"metadata": {f"{_DELETE}finalizers": ["a.dev/1"], "finalizers": ["a.dev/7"]}},
    {"metadata": {f"{_DELETE}missing": ["a.dev/2"]}},
    {"metadata": {f"{_DELETE}finalizers": "a.dev/2"}},
    {"metadata": {f"{_DELETE}finalizers": [5]}},
    {"metadata": {"$deleteFromPrimitiveList": ["a"]}},
    {"metadata": {f"{_ORDER}finalizers": ["a.dev/3", "a.dev/1"]}},
    {
        "metadata": {
            f"{_ORDER}finalizers": ["a.dev/4", "a.dev/2"],
            "finalizers": ["a.dev/4"],
        }
    },
    {
        "metadata": {
            f"{_ORDER}finalizers": ["a.dev/2", "a.dev/1"],
            f"{_DELETE}finalizers": ["a.dev/3"],
        }
    },
    {
        "metadata": {
            f"{_ORDER}finalizers": ["a.dev/1"],
            "finalizers": ["a.dev/4"],
        }
    },
    {"metadata": {f"{_ORDER}finalizers": "x"}},
    {"metadata": {f"{_ORDER}missing": ["x"]}},
    {"metadata": {f"{_ORDER}name": ["x"]}},
    {"metadata": {"$setElementOrder": ["x"]}},
    {"metadata": {"finalizers": [5]}},
    {"metadata": {"finalizers": [["a"]]}},
    {"metadata": {"finalizers": ["a.dev/1", 5]}},
    {"metadata": {"finalizers": []}},
    {"metadata": {"finalizers": None}},
    {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}},
    {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
    {"spec": {"replicas": 5}},
    {"spec": {"replicas": None}},
    {"spec": {"replicas": "5"}},
    {"spec": {"selector": {"matchLabels": {"app": "a", "x": None}}}},
    {"spec": "text"},
    {"unknown": {"a": 1}},
    {"spec": {"unknown": [1]}},
    _containers({"name": "one", "image": "img:2"}),
    _containers({"name": "three", "image": "img:2"}),
    _containers({"name": "four", "image": "img:2"}),
    _containers({"name": "four", "image": "img:2", "env": None, "tty": None}),
    _containers({"name": "four", "image": "i"}, {"name": "one", "image": "img:2"}),
    _containers({"name": "two", "image": "i"}, {"name": "one", "image": "i"}),
    _containers({"name": "three", "tty": True}, {"name": "new", "image": "i"}),
    _containers({"name": "one", "$patch": "delete"}),
    _containers({"name": "missing", "$patch": "delete"}),
    _containers({"$patch": "delete"}),
    _containers({"name": "one", "$patch": "replace"}),
    _containers({"name": "one", "$patch": "replace"}, {"name": "x", "image": "i"}),
    _containers({"$patch": "replace"}, {"name": "x", "image": "i"}),
    _containers({"$patch": "merge"}),
    _containers({"$patch": "bogus", "name": "one"}),
    _containers({"image": "img:2"}),
    _containers({"name": None, "image": "img:2"}),
    _containers("text"),
    _containers(),
    _containers({"name": "one", "$patch": "delete"}, {"name": "new", "image": "i"}),
    _containers({"name": "one", "env": [{"name": "A", "value": "9"}]}),
    _containers({"name": "one", "env": [{"name": "C", "value": "9"}]}),
    _containers({"name": "one", "env": [{"name": "B", "$patch": "delete"}]}),
    _containers({"name": "one", "env": [{"$patch": "replace"}]}),
    _containers({"name": "one", "env": None}),
    _containers({"name": "one", "env": [], "ports": []}),
    _containers({"name": "one", "ports": [{"containerPort": 80, "name": "z"}]}),
    _containers({"name": "one", "ports": [{"containerPort": 82}]}),
    _containers({"name": "one", "ports": [{"name": "z"}]}),
    _containers({"name": "one", "args": ["a"], "command": ["x", "y"]}),
    _containers({"name": "one", "volumeMounts": [{"mountPath": "/b", "name": "v2"}]}),
    _containers(
        **{f"{_ORDER}containers": [{"name": n} for n in ("three", "one", "two")]}
    ),
    _containers(
        {"name": "four", "image": "i"},
        **{f"{_ORDER}containers": [{"name": n} for n in ("four", "two", "one")]},
    ),
    _containers(
        {"name": "two", "$patch": "delete"},
        **{f"{_ORDER}containers": [{"name": n} for n in ("three", "one")]},
    ),
    _containers(
        {"name": "two", "image": "i"},
        **{f"{_ORDER}containers": [{"name": "one"}]},
    ),
    _spec(**{f"{_ORDER}containers": [{"name": "three"}, {"name": "one"}]}),
    _spec(**{f"{_ORDER}containers": [{"image": "x"}]}),
    _spec(**{f"{_ORDER}containers": ["x"]}),
    _spec(**{f"{_ORDER}tolerations": [{"key": "a"}]}),
    _spec(**{f"{_ORDER}initContainers": [{"name": "a"}]}),
    _spec(volumes=[{"name": "v1", "hostPath": {"path": "/y", "type": ""}}]),
    _spec(
        volumes=[
            {
                "name": "v1",
                "$retainKeys": ["name", "hostPath"],
                "hostPath": {"path": "/y", "type": ""},
            }
        ]
    ),
    _spec(volumes=[{"name": "v2", "emptyDir": {}, "hostPath": None}]),
    _spec(tolerations=[{"key": "b", "operator": "Exists"}]),
    _spec(tolerations=None),
    _spec(nodeSelector={"a": None, "e": "f"}),
    _spec(nodeSelector={"$patch": "replace", "e": "f"}),
    _spec(imagePullSecrets=[{"name": "s3"}]),
    _spec(imagePullSecrets=[{"name": "s2", "$patch": "delete"}]),
    _spec(hostAliases=[{"ip": "1.1.1.1", "hostnames": ["c"]}]),
    _spec(hostAliases=[{"ip": "2.2.2.2", "hostnames": ["c"]}]),
    _spec(securityContext={"runAsUser": 1, "fsGroup": None}),
    _spec(securityContext={"$patch": "delete"}),
    _spec(affinity={"$patch": "replace", "nodeAffinity": {}}),
    _spec(containers=None),
    _spec(containers={"name": "one"}),
    {"spec": {"template": {"$patch": "delete"}}},
    {"$patch": "delete"},
    {"$patch": "replace"},
    {"$patch": "bogus"},
    [],
    "text",
)


def _random_patches(count: int) -> list[JSON]:
    """Lists of containers in random order, some new, some deleted, some ordered."""
    random = Random(7)
    made = []
    names = ("one", "two", "three", "four", "five")
    for _ in range(count):
        chosen = random.sample(names, random.randint(1, 4))
        items: list[JSON] = [{"name": name, "image": "img:9"} for name in chosen]
        for item in items:
            if random.random() < 0.25:
                del item["image"]
                item["$patch"] = "delete"
        patch = _containers(*items)
        if random.random() < 0.5:
            kept = [item["name"] for item in items if "$patch" not in item]
            others = [name for name in names[:3] if name not in chosen]
            order = kept + random.sample(others, random.randint(0, len(others)))
            ordering = [{"name": name} for name in order]
            patch["spec"]["template"]["spec"][f"{_ORDER}containers"] = ordering
        made.append(patch)
        finalizers = [
            f"a.dev/{random.randint(1, 6)}" for _ in range(random.randint(1, 5))
        ]
        made.append({"metadata": {"finalizers": finalizers}})
    return made


def cases() -> list[tuple[Kind, JSON, list[Any]]]:
    """Kinds, what an object of each has, and the patches to try on it."""
    ports = [
        {"name": "a", "port": 80, "targetPort": 80, "protocol": "TCP"},
        {"name": "b", "port": 81, "targetPort": 81, "protocol": "TCP"},
    ]
    spec = {"ports": ports, "selector": {"a": "b"}, "clusterIP": "10.0.0.9"}
    service = {"spec": spec}
    service_patches: list[Any] = [
        {"spec": {"ports": [{"port": 80, "targetPort": 90}]}},
        {"spec": {"ports": [{"port": 80.0, "targetPort": 90}]}},
        {"spec": {"ports": [{"name": "c", "port": 82}]}},
        {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}},
        {"spec": {"ports": [{"$patch": "replace"}, {"name": "c", "port": 82}]}},
        {"spec": {"selector": {"a": None, "c": "d"}}},
        {"spec": {f"{_ORDER}ports": [{"port": 81}, {"port": 80}]}},
        {"spec": {"publishNotReadyAddresses": True}},
    ]
    config = {"data": {"a": "1", "b": "2"}}
    config_patches: list[Any] = [
        {"data": {"a": None, "c": "3"}},
        {"data": {"$patch": "replace", "c": "3"}},
        {"data": None},
        {"data": {"a": 5}},
        {"binaryData": {"x": "AA=="}},
    ]
    pod_patches: list[Any] = [
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"containers": [{"name": "one", "image": "img:5"}]}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
    ]
    return [
        (DEPLOYMENT, _DEPLOYMENT, [*_DEPLOYMENT_PATCHES, *_random_patches(60)]),
        (SERVICE, service, service_patches),
        (CONFIG_MAP, config, config_patches),
        (POD, {"spec": _POD_SPEC}, pod_patches),
    ]
