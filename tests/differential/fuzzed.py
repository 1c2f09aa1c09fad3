"""The fuzzed kinds: which of their fields are written, and to what."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.differential import kinds
from tests.differential.kinds import many, mapped, of
from tests.differential.scenario import GROUP
from tests.differential.wire import Plain


def one(*values: Any) -> Plain:
    return {"enum": list(values)}


class Fuzzed(msgspec.Struct, frozen=True, kw_only=True):
    """A kind, what an object of it must have, and what may be written into it."""

    plural: str
    api_version: str
    kind: str
    schema: Plain
    status: Plain = {}
    base: Plain = {}
    """What every object is created with."""
    strategic: bool = True

    def named(self, name: str) -> Plain:
        head = {"apiVersion": self.api_version, "kind": self.kind}
        return {**head, "metadata": {"name": name}}


LABELS = mapped({"type": "string"})
_OWNER = {
    **of(
        apiVersion=one("nowhere.example/v1"),
        kind=one("Nothing"),
        name=one("o", "p"),
        uid=one("u1", "u2"),
        controller=one(True, False),
    ),
    "required": ["apiVersion", "kind", "name", "uid"],
}
META = of(
    labels=LABELS,
    annotations=LABELS,
    finalizers=many(one("a.b/c", "a.b/d", "a.b/e"), list_type="set"),
    ownerReferences=many(_OWNER, list_type="map", list_map_keys=["uid"]),
)
_ENV = {
    **of(
        name=one("A", "B", "C"),
        value=one("1", "2"),
        valueFrom=of(fieldRef={**of(fieldPath=one("metadata.name")), "required": []}),
    ),
    "required": ["name"],
}
_PORT = {
    **of(
        name=one("web", "dns"),
        containerPort=one(80, 443),
        protocol=one("TCP", "UDP"),
        hostPort=one(80),
    ),
    "required": ["containerPort"],
}
_QUANTITY = one("1", "500m", "1Gi", 1)
_CONTAINER = {
    **of(
        name=one("main", "side", "third"),
        image=one("i:1", "i:2"),
        args=many(one("x", "y")),
        env=many(_ENV, list_type="map", list_map_keys=["name"]),
        ports=many(_PORT, list_type="map", list_map_keys=["containerPort", "protocol"]),
        resources=of(limits=mapped(_QUANTITY), requests=mapped(_QUANTITY)),
        imagePullPolicy=one("Always", "Never"),
        tty={"type": "boolean"},
        volumeMounts=many(
            {
                **of(name=one("v", "w"), mountPath=one("/m", "/n")),
                "required": ["name", "mountPath"],
            },
            list_type="map",
            list_map_keys=["mountPath"],
        ),
    ),
    "required": ["name"],
}
_VOLUME = {
    **of(
        name=one("v", "w"),
        emptyDir=of(medium=one("Memory")),
        configMap=of(name=one("c", "d"), optional={"type": "boolean"}),
    ),
    "required": ["name"],
}
_TOLERATION = of(key=one("k", "l"), operator=one("Exists"), effect=one("NoSchedule"))
_POD = of(
    containers=many(_CONTAINER, list_type="map", list_map_keys=["name"]),
    initContainers=many(_CONTAINER, list_type="map", list_map_keys=["name"]),
    volumes=many(_VOLUME, list_type="map", list_map_keys=["name"]),
    tolerations=many(_TOLERATION),
    nodeSelector=LABELS,
    hostNetwork={"type": "boolean"},
    restartPolicy=one("Always"),
    terminationGracePeriodSeconds=one(0, 30, 5),
    imagePullSecrets=many(
        {**of(name=one("s", "t")), "required": ["name"]},
        list_type="map",
        list_map_keys=["name"],
    ),
    securityContext=of(
        runAsUser=one(1000, 0), sysctls=many(of(name=one("a.b"), value=one("1")))
    ),
)
CONDITION = {
    **of(
        type=one("Available", "Progressing"),
        status=one("True", "False"),
        reason=one("r", "s"),
        message=one("m"),
    ),
    "required": ["type", "status"],
}
_CONDITIONS = many(CONDITION, list_type="map", list_map_keys=["type"])

DEPLOYMENT = Fuzzed(
    plural="deployments",
    api_version="apps/v1",
    kind="Deployment",
    base={"spec": kinds.SAMPLES["deployments"]["spec"]},
    schema=of(
        metadata=META,
        spec=of(
            replicas=one(0, 1, 2, 3000000000),
            paused={"type": "boolean"},
            minReadySeconds=one(0, 5),
            revisionHistoryLimit=one(0, 5),
            strategy=of(
                type=one("Recreate", "RollingUpdate"),
                rollingUpdate=of(maxSurge=one(1, "50%"), maxUnavailable=one(1, "10%")),
            ),
            template=of(metadata=of(labels=LABELS, annotations=LABELS), spec=_POD),
        ),
    ),
    status=of(
        replicas=one(1, 2),
        observedGeneration=one(1, 2),
        conditions=_CONDITIONS,
    ),
)
POD = Fuzzed(
    plural="pods",
    api_version="v1",
    kind="Pod",
    base={"spec": kinds.POD_SPEC},
    schema=of(
        metadata=META,
        spec=of(
            containers=many(
                of(name=one("main"), image=one("i:1", "i:2")),
                list_type="map",
                list_map_keys=["name"],
            ),
            tolerations=many(_TOLERATION),
            activeDeadlineSeconds=one(5, 10),
            terminationGracePeriodSeconds=one(30, 1),
        ),
    ),
    status=of(
        phase=one("Running", "Pending"),
        podIPs=many(
            {**of(ip=one("10.1.1.1", "10.1.1.2")), "required": ["ip"]},
            list_type="map",
            list_map_keys=["ip"],
        ),
        message=one("m", "n"),
        conditions=many(
            {
                **of(type=one("Ready", "Extra"), status=one("True", "False")),
                "required": ["type", "status"],
            },
            list_type="map",
            list_map_keys=["type"],
        ),
    ),
)
SERVICE = Fuzzed(
    plural="services",
    api_version="v1",
    kind="Service",
    base={"spec": {"ports": [{"port": 80, "name": "web"}]}},
    schema=of(
        metadata=META,
        spec=of(
            ports=many(
                {
                    **of(
                        name=one("web", "dns", "x"),
                        port=one(80, 443, 53),
                        protocol=one("TCP", "UDP"),
                        targetPort=one(80, "web"),
                        appProtocol=one("http"),
                    ),
                    "required": ["port", "name"],
                },
                list_type="map",
                list_map_keys=["port", "protocol"],
            ),
            selector=LABELS,
            sessionAffinity=one("None", "ClientIP"),
            publishNotReadyAddresses={"type": "boolean"},
            externalIPs=many(one("1.2.3.4", "1.2.3.5")),
            internalTrafficPolicy=one("Cluster", "Local"),
        ),
    ),
    status=of(loadBalancer=of(ingress=many(of(ip=one("9.9.9.9"), hostname=one("h"))))),
)
CONFIG_MAP = Fuzzed(
    plural="configmaps",
    api_version="v1",
    kind="ConfigMap",
    schema=of(
        metadata=META,
        data=mapped({"type": "string"}),
        binaryData=mapped({**one("AAA=", "AQ==", ""), "odd": False}),
        immutable=one(False),
    ),
)
THING = Fuzzed(
    plural="things",
    api_version=f"{GROUP}/v1",
    kind="Thing",
    schema=of(
        metadata=META,
        spec={
            **kinds.SPEC,
            "properties": {
                **kinds.SPEC["properties"],
                "short": one("a", "bcd", "TOOLONG"),
                "small": one(1, 1000, 2000),
                "template": one(
                    {"apiVersion": "v1", "kind": "Pod"},
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}},
                    {"apiVersion": "v1", "kind": "Pod", "spec": {"x": [1]}},
                ),
            },
        },
        unknown={"type": "string"},
    ),
    status=kinds.STATUS,
    strategic=False,
)
ALL = (THING, CONFIG_MAP, DEPLOYMENT, POD, SERVICE)
