"""Kinds: the kinds of object that are written to, and what can be written into each."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from hack.apply_corpus.parts import (
    JSON,
    Parts,
    one_of,
    several,
    some_of,
)

GROUP = "facts.trimtab.dev"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind: where it is served and what its objects are made of."""

    name: str
    api_version: str
    path: str
    """Of the collection."""
    base: JSON
    """What an object must have."""
    parts: Parts
    status: Parts = {}
    """Empty if it has no status subresource."""
    strategic: bool = True
    defaults: bool = True
    """Whether the server fills in what is left out."""

    def named(self, name: str) -> JSON:
        metadata = {"name": name, "namespace": "default"}
        return {"apiVersion": self.api_version, "kind": self.name, "metadata": metadata}


_WORDS = one_of("red", "green", "blue")
_NUMBERS = one_of(1, 2, 3)
_META: Parts = {
    ("metadata", "labels"): some_of({"a": _WORDS, "b": _WORDS}),
    ("metadata", "labels", "a"): _WORDS,
    ("metadata", "annotations"): some_of({"x/y": _WORDS, "z": _WORDS}),
    ("metadata", "annotations", "z"): _WORDS,
    ("metadata", "finalizers"): several(one_of("a.dev/one"), one_of("a.dev/two")),
}

CONFIG_MAP = Kind(
    name="ConfigMap",
    api_version="v1",
    path="/api/v1/namespaces/default/configmaps",
    base={"data": {"k": "v"}},
    parts={
        **_META,
        ("data",): some_of({"k": _WORDS, "l": _WORDS, "m": _WORDS}),
        ("data", "k"): _WORDS,
        ("data", "l"): _WORDS,
        ("data", "m"): _WORDS,
        ("binaryData",): some_of({"p": one_of("AA==", "AQ==")}, least=1),
        ("immutable",): one_of(False),
        ("metadata", "ownerReferences"): several(
            *(
                some_of(
                    {
                        "apiVersion": one_of("v1"),
                        "kind": one_of("Node", "Pod"),
                        "name": _WORDS,
                        "uid": one_of(uid),
                    },
                    least=4,
                )
                for uid in ("u1", "u2")
            )
        ),
    },
)


def _container(name: str) -> Any:
    def make(random: Random) -> JSON:
        made = {
            "name": name,
            "image": f"img:{random.randint(1, 2)}",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {},
        }
        for field, maker in _CONTAINER.items():
            if random.random() < 0.35:
                made[field] = maker(random)
        return made

    return make


def _port(number: int, protocol: str | None) -> Any:
    def make(random: Random) -> JSON:
        made: JSON = {"containerPort": number}
        if protocol:
            made["protocol"] = protocol
        if random.random() < 0.5:
            made["name"] = f"p{number}{(protocol or 'TCP').lower()}"
        return made

    return make


def _env(name: str) -> Any:
    return lambda random: {"name": name, "value": random.choice(("1", "2"))}


_CONTAINER: dict[str, Any] = {
    "args": several(_WORDS, _WORDS, least=1),
    "env": several(_env("A"), _env("B"), _env("C"), _env("A"), least=1),
    "ports": several(
        _port(80, None), _port(443, "TCP"), _port(53, "UDP"), _port(53, "TCP"), least=1
    ),
    "resources": one_of(
        {},
        {"limits": {"cpu": "1"}},
        {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    ),
    "securityContext": one_of({"runAsUser": 1}, {"runAsNonRoot": True}),
    "tty": one_of(True),
}
_VOLUMES = several(
    one_of({"name": "v1", "emptyDir": {}}),
    one_of(
        {"name": "v2", "emptyDir": {"medium": "Memory"}},
        {"name": "v2", "hostPath": {"path": "/x", "type": ""}},
    ),
    least=1,
)
_TOLERATIONS = one_of(
    [{"operator": "Exists"}], [{"key": "a", "operator": "Exists"}], []
)
_TEMPLATE: JSON = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [_container("one")(Random(1))]},
}

DEPLOYMENT = Kind(
    name="Deployment",
    api_version="apps/v1",
    path="/apis/apps/v1/namespaces/default/deployments",
    base={"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}},
    parts={
        **_META,
        ("spec", "replicas"): _NUMBERS,
        ("spec", "paused"): one_of(True),
        ("spec", "minReadySeconds"): _NUMBERS,
        ("spec", "template", "spec", "containers"): several(
            _container("one"), _container("two"), _container("three"), least=1
        ),
        ("spec", "template", "spec", "volumes"): _VOLUMES,
        ("spec", "template", "spec", "nodeSelector"): some_of(
            {"disk": _WORDS, "zone": _WORDS}
        ),
        ("spec", "template", "spec", "tolerations"): _TOLERATIONS,
        ("spec", "template", "metadata", "annotations"): some_of(
            {"x": _WORDS, "y": _WORDS}
        ),
        ("spec", "strategy"): one_of(
            {"type": "Recreate"},
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"},
            },
        ),
        ("spec", "template", "spec", "hostAliases"): several(
            one_of({"ip": "1.1.1.1", "hostnames": ["a"]}),
            one_of({"ip": "2.2.2.2", "hostnames": ["b", "c"]}),
        ),
    },
    status={
        ("status", "replicas"): _NUMBERS,
        ("status", "observedGeneration"): _NUMBERS,
        ("status", "conditions"): several(
            one_of({"type": "Available", "status": "True"}),
            one_of(
                {"type": "Progressing", "status": "True", "reason": "A"},
                {"type": "Progressing", "status": "False", "reason": "B"},
            ),
        ),
    },
)

POD = Kind(
    name="Pod",
    api_version="v1",
    path="/api/v1/namespaces/default/pods",
    base={"spec": _TEMPLATE["spec"]},
    parts={
        **_META,
        ("spec", "activeDeadlineSeconds"): one_of(10),
    },
    status={
        ("status", "phase"): one_of("Pending", "Running"),
        ("status", "message"): _WORDS,
        ("status", "podIP"): one_of("10.0.0.1"),
        ("status", "podIPs"): one_of([{"ip": "10.0.0.1"}]),
        ("status", "conditions"): several(
            one_of({"type": "Ready", "status": "True"}),
            one_of(
                {"type": "Initialized", "status": "True"},
                {"type": "Initialized", "status": "False", "reason": "R"},
            ),
            one_of({"type": "PodScheduled", "status": "True"}),
        ),
        ("status", "containerStatuses"): one_of(
            [
                {
                    "name": "one",
                    "image": "img:1",
                    "imageID": "",
                    "lastState": {},
                    "state": {"waiting": {"reason": "X"}},
                    "ready": False,
                    "restartCount": 0,
                }
            ]
        ),
    },
)


def _service_port(number: int, protocol: str | None) -> Any:
    def make(random: Random) -> JSON:
        made: JSON = {"name": f"n{number}{(protocol or 'TCP').lower()}", "port": number}
        if protocol:
            made["protocol"] = protocol
        if random.random() < 0.6:
            made["targetPort"] = random.choice((80, "http"))
        return made

    return make


SERVICE = Kind(
    name="Service",
    api_version="v1",
    path="/api/v1/namespaces/default/services",
    base={"spec": {"ports": [{"name": "n80tcp", "port": 80}]}},
    parts={
        **_META,
        ("spec", "ports"): several(
            _service_port(80, None),
            _service_port(80, "UDP"),
            _service_port(443, "TCP"),
            least=1,
        ),
        ("spec", "selector"): some_of({"app": _WORDS, "tier": _WORDS}),
        ("spec", "sessionAffinity"): one_of("None", "None"),
        ("spec", "publishNotReadyAddresses"): one_of(True),
    },
    status={
        ("status", "conditions"): several(
            one_of(
                {
                    "type": "A",
                    "status": "True",
                    "reason": "R",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            )
        ),
        ("status", "loadBalancer"): one_of(
            {"ingress": [{"ip": "9.9.9.9", "ipMode": "VIP"}]}, {}
        ),
    },
)
