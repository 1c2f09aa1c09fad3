"""Laws of external metrics: what an autoscaler is told, and that it can ask."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.operators.vmafx.platform import Platform, platform
from tests.operators.vmafx.test_queue import START, job
from tests.operators.vmafx.test_scaling import nodes
from tests.operators.vmafx.test_shares import RUNS, changed
from trimtab.kinds import ConfigMap
from trimtab.operators.vmafx.gateway import GatewayOptions
from trimtab.operators.vmafx.kinds import GATEWAY_NAME, VmafxJob
from trimtab.operators.vmafx.scaling.demand import demand_of
from trimtab.operators.vmafx.scaling.external import METRICS, ROOT, External
from trimtab.operators.vmafx.scaling.kinds import VmafxNodeSet
from trimtab.runtime.asks import Ask
from trimtab.testing import Cluster, Options, eventually
from trimtab.testing import cluster as started
from trimtab.testing.errors import KubectlFailed

NOW = START + timedelta(seconds=100)
TENANTS = {"team-a": "acme", "team-b": "acme", "home": ""}
JOBS = st.lists(
    st.tuples(
        st.sampled_from(sorted(TENANTS)),
        st.sampled_from([None, "cpu", "cuda"]),
        st.integers(0, 500),
        st.sampled_from(["waits", "runs", "over"]),
    ),
    max_size=20,
)


def made(
    place: str, backend: Any = None, age: int = 0, state: str = "waits"
) -> VmafxJob:
    found = job("j", backend=backend, age=age)
    found = replace(found, metadata=replace(found.metadata, namespace=place))
    if state == "waits":
        return found
    outcome: Any = "completed" if state == "over" else ""
    return changed(found, replace(RUNS, outcome=outcome))


def external(*jobs: VmafxJob, problem: str = "") -> External:
    return External(
        lambda: demand_of(jobs, tenant_of=lambda place: TENANTS[place]),
        home="home",
        now=lambda: NOW,
        problem=lambda: problem,
    )


def told(served: External, path: str, **query: str) -> tuple[int, Any]:
    answer = served.answer(Ask(method="GET", path=f"{ROOT}{path}", query=query))
    return answer.status, json.loads(answer.body)


def value(served: External, place: str, name: str, labels: str = "") -> int:
    path = f"/v1beta1/namespaces/{place}/vmafx_queue_{name}"
    status, found = told(served, path, labelSelector=labels)
    assert status == 200, found
    (item,) = found["items"]
    return int(item["value"])


@given(jobs=JOBS)
@settings(max_examples=50)
def test_figures_are_those_of_the_jobs_that_are_selected(
    jobs: list[tuple[str, Any, int, str]],
) -> None:
    served = external(*(made(*each) for each in jobs))
    for place in TENANTS:
        mine = [each for each in jobs if place in ("home", each[0])]
        waiting = [each for each in mine if each[3] == "waits"]
        active = [each for each in mine if each[3] != "over"]
        assert value(served, place, "depth") == len(waiting)
        assert value(served, place, "demand") == len(active)
        oldest = max((each[2] for each in waiting), default=-100)
        assert value(served, place, "age_seconds") == oldest + 100
        cuda = [each for each in waiting if each[1] == "cuda"]
        assert value(served, place, "depth", "backend=cuda") == len(cuda)
        acme = [each for each in waiting if TENANTS[each[0]] == "acme"]
        assert value(served, place, "depth", "tenant=acme") == len(acme)
        free = [each for each in waiting if each[1] in (None, "cuda")]
        chosen = "backend in (any,cuda)"
        assert value(served, place, "depth", chosen) == len(free)


def test_nobody_is_told_that_nothing_waits_while_the_jobs_are_not_known() -> None:
    served = external(problem="This gateway has not read the jobs yet: ask again.")
    status, found = told(served, "/v1beta1/namespaces/home/vmafx_queue_depth")
    assert (status, found["kind"], found["code"]) == (503, "Status", 503)
    assert "not read the jobs" in found["message"]


DEPTH = "/v1beta1/namespaces/home/vmafx_queue_depth"
WRONG: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/v1beta1/namespaces/home/cpu", {}, 404),
    ("GET", "/v1beta1/namespaces/home", {}, 404),
    ("GET", "/v2", {}, 404),
    ("GET", DEPTH, {"labelSelector": "a in (b"}, 400),
    ("DELETE", DEPTH, {}, 405),
]


@pytest.mark.parametrize(("method", "path", "query", "status"), WRONG)
def test_what_makes_no_sense_is_refused_as_kubernetes_does(
    method: str, path: str, query: dict[str, str], status: int
) -> None:
    ask = Ask(method=method, path=f"{ROOT}{path}", query=query)
    answer = external().answer(ask)
    assert answer.status == status
    assert json.loads(answer.body)["status"] == "Failure"


def test_discovery_names_every_metric() -> None:
    status, found = told(external(), "/v1beta1")
    assert status == 200
    assert {each["name"] for each in found["resources"]} == set(METRICS)
    status, group = told(external(), "")
    assert group["preferredVersion"]["groupVersion"] == found["groupVersion"]


def outside(options: GatewayOptions) -> GatewayOptions:
    """A gateway that makes its own certificate, as the chart has it."""
    names = (f"vmafx-gateway.{options.namespace}.svc",)
    return replace(options, external_metrics=True, names=names)


HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: nodes}
spec:
  scaleTargetRef: {apiVersion: vmafx.dev/v1, kind: VmafxNodeSet, name: nodes}
  minReplicas: 1
  maxReplicas: 20
  metrics:
    - type: External
      external:
        metric:
          name: vmafx_queue_demand
          selector: {matchLabels: {backend: any}}
        target: {type: AverageValue, averageValue: "1"}
"""


@asynccontextmanager
async def aggregated(cluster: Cluster, here: Platform) -> AsyncIterator[None]:
    """A gateway that the API server asks for external metrics while the block runs.

    A Service with an external name stands for the network that is not there.
    """
    await here.gateway(change=outside)
    where = here.namespace
    trusted = await here.client.get(ConfigMap, GATEWAY_NAME, namespace=where)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "vmafx-gateway", "namespace": where},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    registered = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(trusted.data["ca.crt"].encode()).decode(),
            "service": {
                "name": "vmafx-gateway",
                "namespace": where,
                "port": here.http[0],
            },
        },
    }
    documents = {"apiVersion": "v1", "kind": "List", "items": [service, registered]}
    await cluster.kubectl("apply", "-f", "-", stdin=json.dumps(documents))
    try:
        yield
    finally:
        name = "v1beta1.external.metrics.k8s.io"
        await cluster.kubectl("delete", "apiservice", name)


@pytest.mark.cluster("real")
async def test_kube_apiserver_asks_a_gateway_for_what_waits(
    cluster: Cluster, namespace: str, reference: Path
) -> None:
    async with (
        platform(cluster, namespace, reference.parent) as here,
        aggregated(cluster, here),
    ):
        await here.submit("waits", reference, reference)
        path = f"{ROOT}/v1beta1/namespaces/{namespace}/vmafx_queue_depth"

        async def is_told() -> bool:
            try:
                said = await cluster.kubectl("get", "--raw", path)
            except KubectlFailed:
                return False  # it has not looked at the APIService yet
            return str(json.loads(said)["items"][0]["value"]) == "1"

        await eventually(is_told, within=30.0, every=0.5)
        chosen = f"{path}?labelSelector=backend%3Dcuda"
        none = json.loads(await cluster.kubectl("get", "--raw", chosen))
        assert none["items"][0]["value"] == "0"


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_autoscaler_of_kubernetes_scales_a_set_by_what_waits(
    tmp_path: Path,
) -> None:
    options = Options(controllers=True)
    async with (
        started("real", options=options) as real,
        platform(real, "default", tmp_path) as here,
        aggregated(real, here),
    ):
        container = {"name": "node", "image": "example.com/node"}
        template = {"spec": {"containers": [container]}}
        await here.client.create(nodes(namespace="default", template=template))
        for number in range(4):
            clip = tmp_path / "a.mp4"
            await here.submit(f"job-{number}", clip, clip)
        await real.kubectl("apply", "--namespace=default", "-f", "-", stdin=HPA)

        async def is_scaled() -> bool:
            found = await here.client.get(VmafxNodeSet, "nodes", namespace="default")
            return (found.spec.replicas, found.status.replicas) == (4, 4)

        # It looks every quarter of a minute.
        await eventually(is_scaled, within=120.0, every=1.0)
