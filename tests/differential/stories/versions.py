"""Versions: built-in objects that are written in one version and read in another."""

from __future__ import annotations

from typing import Any

from tests.differential.kinds import SAMPLES
from tests.differential.scenario import STRATEGIC, Run, scenario
from tests.differential.wire import Plain

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PREFIX = "autoscaling.alpha.kubernetes.io"
SPEC: Plain = SAMPLES["horizontalpodautoscalers"]["spec"]
REFERENCE: Plain = SPEC["scaleTargetRef"]
LONG_AGO = "2020-01-01T00:00:00Z"


def _resource(name: str, **target: Any) -> Plain:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _metric(name: str) -> Plain:
    return {"name": name, "selector": {"matchLabels": {"a": "b"}}}


METRICS: list[Plain] = [
    _resource("cpu", type="Utilization", averageUtilization=70),
    _resource("memory", type="AverageValue", averageValue="1Gi"),
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "p"},
            "target": {"type": "AverageValue", "averageValue": "5"},
        },
    },
    {
        "type": "Object",
        "object": {
            "metric": _metric("o"),
            "describedObject": REFERENCE,
            "target": {"type": "Value", "value": "7"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": _metric("e"),
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 70},
        },
    },
]
BEHAVIOUR: Plain = {
    "scaleDown": {
        "stabilizationWindowSeconds": 10,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
    }
}
STATUS: Plain = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "conditions": [
        {"type": "AbleToScale", "status": "True", "reason": "r", "message": "m"}
    ],
    "currentMetrics": [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "current": {"averageUtilization": 33, "averageValue": "3m"},
            },
        },
        {
            "type": "Pods",
            "pods": {"metric": {"name": "p"}, "current": {"averageValue": "4"}},
        },
    ],
}


def _scalers(do: Run) -> tuple[str, str]:
    path = f"namespaces/{do.namespace}/horizontalpodautoscalers"
    return f"/apis/autoscaling/v1/{path}", f"/apis/autoscaling/v2/{path}"


def _named(name: str, spec: Plain, **notes: str) -> Plain:
    made = {f"{PREFIX}/{key}": value for key, value in notes.items()}
    meta = {"name": name, **({"annotations": made} if made else {})}
    return {"metadata": meta, "spec": spec}


@scenario
def autoscalers_in_the_first_version(do: Run) -> None:
    first, second = _scalers(do)
    percent = {**SPEC, "targetCPUUtilizationPercentage": 50}
    pods = '[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"9"}}]'
    do("POST", first, _named("a", percent))
    do("POST", first, _named("b", SPEC))
    do("POST", first, _named("c", SPEC, metrics=pods))
    do("POST", first, _named("d", SPEC, metrics="nonsense"))
    bad = {"maxReplicas": 0, "targetCPUUtilizationPercentage": -1}
    do("POST", first, _named("e", {**bad, "scaleTargetRef": {}}))
    for name in "abcd":
        do("GET", f"{second}/{name}")
        do("PUT", f"{first}/{name}", do("GET", f"{first}/{name}").obj)
    head = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    do.apply(f"{first}/f", {**head, **_named("f", percent)})
    head["apiVersion"] = "autoscaling/v2"
    spec = {**SPEC, "maxReplicas": 4, "metrics": METRICS[:1]}
    do.apply(f"{second}/f", {**head, **_named("f", spec)}, "bob", force=True)
    do("GET", f"{first}/f")
    do("GET", f"{second}/f")


@scenario
def autoscalers_in_the_second_version(do: Run) -> None:
    first, second = _scalers(do)
    spec = {**SPEC, "minReplicas": 2, "metrics": METRICS, "behavior": BEHAVIOUR}
    do("POST", second, _named("a", spec, metrics="gone"))
    seen = do("GET", f"{first}/a").obj
    labels = {**seen["metadata"], "labels": {"x": "y"}}
    do("PUT", f"{first}/a", {**seen, "metadata": labels})
    now = do("GET", f"{second}/a").obj
    do("PUT", f"{second}/a/status", {**now, "status": STATUS})
    do("GET", first)
    do("GET", second)
    do("GET", first, accept=TABLE)
    do("PUT", f"{first}/a/status", do("GET", f"{first}/a").obj)
    do("GET", f"{second}/a")
    for media in ("application/merge-patch+json", STRATEGIC):
        do.patch(f"{first}/a", {"spec": {"targetCPUUtilizationPercentage": 20}}, media)
        do("GET", f"{second}/a")
    do.patch(f"{first}/a", {"metadata": {"annotations": None}})
    do("GET", f"{second}/a")
    do.watch(f"{first}?watch=1", last="a")
    do("DELETE", f"{first}/a")


def _events(do: Run) -> tuple[str, str]:
    path = f"namespaces/{do.namespace}/events"
    return f"/api/v1/{path}", f"/apis/events.k8s.io/v1/{path}"


@scenario
def events_of_either_group_are_the_same_ones(do: Run) -> None:
    old, new = _events(do)
    about = {"namespace": do.namespace, "kind": "Pod", "name": "x"}
    body: Plain = {
        "metadata": {"name": "a"},
        "involvedObject": about,
        "reason": "r",
        "message": "m",
        "type": "Normal",
        "count": 3,
        "firstTimestamp": LONG_AGO,
        "lastTimestamp": LONG_AGO,
        "source": {"component": "c", "host": "h"},
    }
    do("POST", old, body)
    do("POST", new, {**body, "metadata": {"name": "b"}})
    moment = "2020-01-01T00:00:00.000000Z"
    newer = {
        "metadata": {"name": "c"},
        "eventTime": moment,
        "reportingController": "x/y",
        "reportingInstance": "i",
        "action": "act",
        "reason": "r",
        "regarding": about,
        "note": "n",
        "type": "Normal",
        "series": {"count": 2, "lastObservedTime": moment},
    }
    do("POST", new, newer)
    do("POST", new, newer)
    do("POST", old, {**newer, "metadata": {"name": "d"}})
    for path in (old, new):
        do("GET", path)
        do("GET", f"{path}/a")
        do("GET", f"{path}/c")
    do("GET", f"{old}?fieldSelector=involvedObject.name=x,reportingComponent=x/y")
    do("GET", f"{new}?fieldSelector=regarding.name=x,reportingController=x/y")
    do("GET", f"{new}?fieldSelector=involvedObject.name=x")
    do.watch(f"{new}?watch=1", last="c")
    do.watch(f"{old}?watch=1", last="c")
    do("PUT", f"{new}/a", do("GET", f"{new}/a").obj)
    do("PUT", f"{old}/a", do("GET", f"{old}/a").obj)
    do.patch(f"{old}/c", {"message": "other"})
    do.patch(f"{new}/c", {"note": "another"})
    do("DELETE", f"{new}/a")
    do("GET", f"{old}/a")
    do("DELETE", old)
    do("GET", new)
