"""The kinds of the scenarios: three custom ones, and samples of built-in ones."""

from __future__ import annotations

import copy
import time
from typing import Any

from tests.differential.scenario import APPLY, GROUP, encode
from tests.differential.wire import JSON, Plain, Wire

_STRING: Plain = {"type": "string"}
_INTEGER: Plain = {"type": "integer"}
_ANYTHING: Plain = {"x-kubernetes-preserve-unknown-fields": True}


def of(**properties: Plain) -> Plain:
    return {"type": "object", "properties": properties}


def many(items: Plain, **more: Any) -> Plain:
    extra = {f"x-kubernetes-{key.replace('_', '-')}": v for key, v in more.items()}
    return {"type": "array", "items": items, **extra}


def mapped(values: Plain, **more: Any) -> Plain:
    return {"type": "object", "additionalProperties": values, **more}


PORT = {
    **of(
        port=_INTEGER,
        protocol={"type": "string", "default": "TCP"},
        name=_STRING,
    ),
    "required": ["port"],
}
ITEM = {
    **of(
        name=_STRING,
        value=_STRING,
        level={"type": "integer", "default": 3},
        tags=many(_STRING, list_type="set"),
        ports=many(PORT, list_type="map", list_map_keys=["port", "protocol"]),
        extra=_ANYTHING,
    ),
    "required": ["name"],
}
SPEC = of(
    text=_STRING,
    number=_INTEGER,
    small={"type": "integer", "format": "int32", "minimum": 0, "maximum": 1000},
    ratio={"type": "number"},
    flag={"type": "boolean"},
    mixed={"x-kubernetes-int-or-string": True},
    maybe={"type": "string", "nullable": True},
    color={"type": "string", "enum": ["red", "green", "blue"]},
    short={"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
    preset={"type": "string", "default": "given"},
    deep={
        **of(
            a={"type": "string", "default": "A"},
            b={**of(c={"type": "integer", "default": 7}), "default": {}},
        ),
        "default": {},
    },
    labels=mapped(_STRING),
    fixed=mapped(_STRING, **{"x-kubernetes-map-type": "atomic"}),
    nested=of(a=_STRING, inner=of(b=_INTEGER, c=many(_STRING), d=mapped(_INTEGER))),
    whole={**of(a=_STRING, b=_INTEGER), "x-kubernetes-map-type": "atomic"},
    items=many(ITEM, list_type="map", list_map_keys=["name"]),
    pairs=many(PORT, list_type="map", list_map_keys=["port", "protocol"]),
    words=many(_STRING, list_type="set"),
    numbers=many(_INTEGER, list_type="set"),
    list=many(_STRING),
    objects=many(of(a=_STRING, b={"type": "string", "default": "B"})),
    any=_ANYTHING,
    open={
        **of(known=_STRING, deep=of(a=_STRING)),
        "x-kubernetes-preserve-unknown-fields": True,
    },
    table=mapped(of(a=_STRING, b={"type": "integer", "default": 2})),
    lists=mapped(many(ITEM, list_type="map", list_map_keys=["name"])),
    anythings=mapped(_ANYTHING),
    template={
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    replicas={"type": "integer", "format": "int32"},
    kept={
        "type": "string",
        "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "kept is kept"}
        ],
    },
)
SPEC["x-kubernetes-validations"] = [
    {
        "rule": "!has(self.number) || self.number < 1000000",
        "message": "number is too large",
    }
]
STATUS = of(
    phase=_STRING,
    replicas=_INTEGER,
    selector=_STRING,
    conditions=many(
        {**of(type=_STRING, status=_STRING), "required": ["type"]},
        list_type="map",
        list_map_keys=["type"],
    ),
)
SCHEMA = of(spec=SPEC, status=STATUS)
# Another one, as the server keeps what all versions share in another place.
OLD_SCHEMA = {**SCHEMA, "description": "The old things."}


def definition(
    plural: str, versions: list[Plain], *, scope: str = "Namespaced", **names: Any
) -> Plain:
    """A CRD in the group of these tests."""
    singular = plural.removesuffix("s")
    named = {"plural": plural, "singular": singular, "kind": singular.capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {**named, **names},
            "scope": scope,
            "versions": versions,
        },
    }


def version(name: str, schema: Plain, **more: Any) -> Plain:
    made = {"name": name, "served": True, "storage": name == "v1"}
    return {**made, "schema": {"openAPIV3Schema": schema}, **more}


_PARTS = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
_COLUMNS = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
    {"name": "Number", "type": "integer", "jsonPath": ".spec.number", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
THINGS = definition(
    "things",
    [
        version(
            "v1",
            SCHEMA,
            subresources=_PARTS,
            additionalPrinterColumns=_COLUMNS,
            selectableFields=[{"jsonPath": ".spec.color"}],
        ),
        version("v1beta1", OLD_SCHEMA, subresources=_PARTS, deprecated=True),
    ],
    shortNames=["th"],
    categories=["all"],
)
_LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
STRANGERS = definition("strangers", [version("v1", _LOOSE)])
WORLDS = definition("worlds", [version("v1", of(spec=of(a=_STRING)))], scope="Cluster")

_LABELS = {"app": "a"}
POD_SPEC: Plain = {
    "containers": [{"name": "main", "image": "img:1"}],
    "automountServiceAccountToken": False,
    "serviceAccountName": "default",
}
TEMPLATE: Plain = {"metadata": {"labels": _LABELS}, "spec": POD_SPEC}
_WORKLOAD: Plain = {"selector": {"matchLabels": _LABELS}, "template": TEMPLATE}
_JOB: Plain = {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}
SAMPLES: dict[str, Plain] = {
    "configmaps": {"data": {"a": "1"}},
    "secrets": {"stringData": {"a": "1"}},
    "serviceaccounts": {},
    "services": {"spec": {"ports": [{"port": 80}], "selector": _LABELS}},
    "pods": {"spec": POD_SPEC},
    "deployments": {"spec": _WORKLOAD},
    "replicasets": {"spec": _WORKLOAD},
    "daemonsets": {"spec": _WORKLOAD},
    "statefulsets": {"spec": {**_WORKLOAD, "serviceName": "s"}},
    "jobs": {"spec": _JOB},
    "cronjobs": {"spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": _JOB}}},
    "leases": {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 5}},
    "poddisruptionbudgets": {
        "spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}
    },
    "networkpolicies": {"spec": {"podSelector": {}}},
    "ingresses": {
        "spec": {
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
        }
    },
    "roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "rolebindings": {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "r",
        },
        "subjects": [{"kind": "User", "name": "u"}],
    },
    "horizontalpodautoscalers": {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "d",
            },
        }
    },
    "limitranges": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}},
    "endpoints": {
        "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 8}]}]
    },
    "things": {"spec": {"text": "a"}},
    "strangers": {"spec": {"text": "a"}, "more": [1]},
}


def sample(plural: str, name: str = "a", **metadata: Any) -> Plain:
    """An object of a kind that every server accepts."""
    made = {**typed(plural), "metadata": {"name": name, **metadata}}
    return {**made, **copy.deepcopy(SAMPLES[plural])}


def typed(plural: str) -> Plain:
    """What a body must say of its type: of custom kinds, everything."""
    if plural not in ("things", "strangers", "worlds"):
        return {}
    kind = plural.removesuffix("s").capitalize()
    return {"apiVersion": f"{GROUP}/v1", "kind": kind}


def install(wire: Wire) -> None:
    """Make the custom kinds, and wait until they are served by their schemas."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in (THINGS, STRANGERS, WORLDS):
        reply = wire.send("POST", path, encode(each), {"Content-Type": JSON})
        assert reply.status == 201, reply.body
    deadline = time.monotonic() + 15.0
    for plural in ("things", "strangers", "worlds"):
        while wire.send("GET", f"/apis/{GROUP}/v1/{plural}").status != 200:
            assert time.monotonic() < deadline, f"{plural} are not served"
            time.sleep(0.05)
    while not _knows_sets(wire):
        assert time.monotonic() < deadline, "things have no schema"
        time.sleep(0.05)


def _knows_sets(wire: Wire) -> bool:
    """Whether an apply is merged by the schema, which comes after the kind itself."""
    thing = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": {"words": ["a"]},
    }
    reply = wire.send(
        "PATCH",
        f"/apis/{GROUP}/v1/namespaces/default/things/a?fieldManager=a&dryRun=All",
        encode(thing),
        {"Content-Type": APPLY},
    )
    return b'v:\\"a\\"' in reply.body
