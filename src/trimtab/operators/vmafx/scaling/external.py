"""External metrics: what waits, as a HorizontalPodAutoscaler asks for it.

====================================  ==========================================
``vmafx_queue_depth``                 jobs that wait
``vmafx_queue_demand``                jobs that wait or run: what nodes are needed for
``vmafx_queue_age_seconds``           how long the oldest has waited
====================================  ==========================================

Asked in the namespace of the gateway, they are about all jobs that it serves; in any
other, about those of that namespace. The labels ``tenant``, ``backend`` and
``namespace`` select among them; the backend of a job that takes any is ``any``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from trimtab.api.selectors import Selector
from trimtab.api.times import rfc3339
from trimtab.operators.vmafx.scaling.demand import Demand, Kind
from trimtab.runtime.asks import Answer, Ask, json_answer

GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = f"{GROUP}/v1beta1"
ROOT: Final = f"/apis/{GROUP}"
ANY: Final = "any"

METRICS: Final[dict[str, Callable[[Demand, datetime], int]]] = {
    "vmafx_queue_depth": lambda found, now: found.waiting,
    "vmafx_queue_demand": lambda found, now: found.waiting + found.running,
    "vmafx_queue_age_seconds": lambda found, now: int(found.age(now)),
}


class External:
    """Answers below :data:`ROOT`.

    Guarantees: there is a value, if only 0, or an error: while the jobs are not known,
    nobody is told that none wait.

    Assumptions: who may ask was decided before; the figures are those of ``/metrics``.
    """

    def __init__(
        self,
        demand: Callable[[], Mapping[Kind, Demand]],
        *,
        home: str,
        now: Callable[[], datetime],
        problem: Callable[[], str],
    ) -> None:
        self._demand = demand
        self._home = home
        self._now = now
        self._problem = problem

    def answer(self, ask: Ask) -> Answer:
        """The answer to any request below the root."""
        if ask.method != "GET":
            sentence = "Metrics can only be asked for."
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, sentence)
        parts = ask.path.removeprefix(ROOT).strip("/").split("/")
        match parts:
            case [""]:
                return json_answer(_group())
            case ["v1beta1"]:
                return json_answer(_resources())
            case ["v1beta1", "namespaces", namespace, name] if name in METRICS:
                return self._value(namespace, name, ask.query.get("labelSelector", ""))
        return _refused(HTTPStatus.NOT_FOUND, f"There is nothing at {ask.path}.")

    def _value(self, namespace: str, name: str, wanted: str) -> Answer:
        if problem := self._problem():
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
        try:
            selector = Selector.from_string(wanted)
        except ValueError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        found, now = Demand(), self._now()
        for kind, each in self._demand().items():
            here = namespace in (self._home, kind.namespace)
            if here and selector.matches(_labels(kind)):
                found.add(each)
        item = {
            "metricName": name,
            "metricLabels": {},
            "timestamp": rfc3339(now),
            "value": str(METRICS[name](found, now)),
        }
        kind_of_list = {"kind": "ExternalMetricValueList", "apiVersion": VERSION}
        return json_answer({**kind_of_list, "metadata": {}, "items": [item]})


def _labels(kind: Kind) -> dict[str, str]:
    return {
        "namespace": kind.namespace,
        "tenant": kind.tenant,
        "backend": kind.backend or ANY,
    }


def _group() -> dict[str, Any]:
    version = {"groupVersion": VERSION, "version": "v1beta1"}
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": GROUP,
        "versions": [version],
        "preferredVersion": version,
    }


def _resources() -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": VERSION,
        "resources": [
            {
                "name": name,
                "singularName": "",
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
            for name in METRICS
        ],
    }


def _refused(status: HTTPStatus, sentence: str) -> Answer:
    """An error, as Kubernetes tells them."""
    return json_answer(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": sentence,
            "reason": status.phrase.replace(" ", ""),
            "code": int(status),
        },
        status=status,
    )
