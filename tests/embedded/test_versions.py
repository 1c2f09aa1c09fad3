"""Laws of built-in versions: one object in all of them, in JSON and in protobuf."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.apis import api_on, asked
from trimtab.embedded.api import Answer, Api
from trimtab.embedded.bodies import PROTOBUF
from trimtab.embedded.builtin.versions import CONVERTER
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.protobuf import decode
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store

Plain = dict[str, Any]
OLD = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {
    "metadata": {"name": "a"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Started",
    "message": "it runs",
    "type": "Normal",
}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def in_protobuf(api: Api, path: str) -> Plain:
    answer = api.handle(
        ApiRequest(
            method="GET",
            path=path,
            query={},
            headers={"accept": PROTOBUF},
            body=b"",
            user=ADMIN,
        )
    )
    assert isinstance(answer, Answer)
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return decode(body)


@pytest.mark.parametrize("where", ["one", "many"])
def test_protobuf_tells_what_json_does(where: str) -> None:
    store = Store(None)
    api = api_on(store)
    assert asked(api, "POST", OLD, EVENT).status == 201
    if where == "one":
        new, old = in_protobuf(api, f"{NEW}/a"), in_protobuf(api, f"{OLD}/a")
    else:
        [new] = in_protobuf(api, NEW)["items"]
        [old] = in_protobuf(api, OLD)["items"]
    assert (new["note"], old["message"]) == ("it runs", "it runs")
    assert new["regarding"] == old["involvedObject"]
    assert new["metadata"]["uid"] == old["metadata"]["uid"]
    store.close()


AMOUNT = st.sampled_from(["1", "500m", "2Gi"])
PERCENT = st.integers(1, 99)
NAME = st.sampled_from(["cpu", "memory"])
IDENTITY = st.fixed_dictionaries(
    {"name": st.sampled_from("ab")},
    optional={"selector": st.just({"matchLabels": {"a": "b"}})},
)


def _mean(amount: str) -> Plain:
    return {"type": "AverageValue", "averageValue": amount}


def _use(percent: int) -> Plain:
    return {"type": "Utilization", "averageUtilization": percent}


MEAN = AMOUNT.map(_mean)
VALUE = AMOUNT.map(lambda amount: {"type": "Value", "value": amount})
USE = st.one_of(PERCENT.map(_use), MEAN)


def _source(kind: str, field: str, **parts: Any) -> st.SearchStrategy[Plain]:
    source = st.fixed_dictionaries(parts)
    return source.map(lambda made: {"type": kind, field: made})


OTHERS = st.one_of(
    _source("Resource", "resource", name=st.just("memory"), target=USE),
    _source("Resource", "resource", name=st.just("cpu"), target=MEAN),
    _source("Pods", "pods", metric=IDENTITY, target=MEAN),
    _source("External", "external", metric=IDENTITY, target=st.one_of(VALUE, MEAN)),
    _source(
        "Object",
        "object",
        metric=IDENTITY,
        describedObject=st.just(TARGET),
        target=st.one_of(VALUE, MEAN),
    ),
    _source(
        "ContainerResource",
        "containerResource",
        name=NAME,
        container=st.just("c"),
        target=USE,
    ),
)
PROCESSOR = _source(
    "Resource", "resource", name=st.just("cpu"), target=PERCENT.map(_use)
)


@given(st.lists(OTHERS, max_size=4), st.lists(PROCESSOR, max_size=1))
def test_an_autoscaler_comes_back_as_it_went(
    others: list[Plain], processors: list[Plain]
) -> None:
    # The use of processors comes last, and one metric there always is.
    metrics = others + processors
    if not metrics:
        return
    second = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": metrics},
    }
    [first] = CONVERTER.convert([second], "autoscaling/v1")
    [again] = CONVERTER.convert([first], "autoscaling/v2")
    assert again["spec"] == second["spec"]
    assert "annotations" not in again["metadata"]
