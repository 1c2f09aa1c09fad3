"""Subresources: status, scale, eviction, binding, tokens and logs of objects."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.api.selectors import Selector
from trimtab.api.times import rfc3339
from trimtab.embedded import bodies, status
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import delete_options
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.patches import json_patch, merge_patch
from trimtab.embedded.registry import (
    JSON_PATCH,
    MERGE_PATCH,
    MODIFIED,
    Outcome,
    Registry,
    Write,
)
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.tokens import Tokens

LEAST_TOKEN_SECONDS = 600
SCALE = "autoscaling/v1"


class Subresources:
    """Finds the one that a request names, and does it."""

    def __init__(
        self,
        registry: Registry,
        catalog: Catalog,
        *,
        tokens: Tokens,
        now: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._tokens = tokens
        self._now = now

    def handle(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """Do what a request asks of a subresource; 404 if the kind does not have it."""
        name = target.subresource
        if write.kind.resource.subresource(name) is None:
            if write.kind.custom is not None:
                raise status.not_found(write.kind.about, write.name)
            raise status.no_such_path()
        if name in ("status", "finalize", "approval", "ephemeralcontainers", "resize"):
            return self._part(request, write)
        special: dict[str, Callable[..., Outcome]] = {
            "scale": self._scale,
            "eviction": self._evict,
            "binding": self._bind,
            "token": self._token,
            "log": self._log,
        }
        if name not in special:
            raise status.method_not_allowed(write.kind.about, request.method.lower())
        return special[name](request, target, write)

    def bind(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """A Binding that is created for itself, rather than below its pod."""
        name = metadata_of(_body(request)).get("name", "")
        pod = msgspec.structs.replace(target, name=name)
        return self._bind(request, pod, write)

    def _part(self, request: ApiRequest, write: Write) -> Outcome:
        if request.method == "GET":
            obj, _ = self._registry.read(write.kind, write.namespace, write.name)
            return Outcome(obj=obj)
        content_type = request.headers.get("content-type", bodies.JSON)
        if request.method == "PATCH":
            return self._registry.patch(write, request.body, content_type)
        return self._registry.update(write, _body(request))

    def _scale(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        kind = write.kind
        obj, row = self._registry.read(kind, write.namespace, write.name)
        scale = scale_of(kind, obj)
        if request.method == "GET":
            return Outcome(obj=scale)
        wanted = self._wanted_scale(request, scale)
        meta = metadata_of(wanted)
        given = meta.get("resourceVersion", "")
        if given and given != str(row.revision):
            raise status.conflict(kind.about, write.name, MODIFIED)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            problem = status.invalid(
                "spec.replicas", replicas, "must be greater than or equal to 0"
            )
            named = status.GroupResource("autoscaling", "Scale")
            raise status.invalid_object(named, write.name, [problem])
        changed = deepcopy(obj)
        set_replicas(kind, changed, replicas)
        outcome = self._registry.update(write, changed)
        return Outcome(obj=scale_of(kind, outcome.obj))

    def _wanted_scale(self, request: ApiRequest, scale: Plain) -> Plain:
        if request.method == "PUT":
            return _body(request)
        media = request.headers.get("content-type", "").split(";")[0]
        patch = bodies.decode_any(request.body)
        change: Any = json_patch if media == JSON_PATCH else merge_patch
        if media in (JSON_PATCH, MERGE_PATCH) or "strategic" in media:
            changed: Plain = change(deepcopy(scale), patch)
            return changed
        if "apply-patch" in media:
            merged: Plain = merge_patch(
                deepcopy(scale), bodies.decode(request.body, bodies.YAML)
            )
            return merged
        raise status.unsupported_media_type((JSON_PATCH, MERGE_PATCH))

    def _evict(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        kind = write.kind
        pod, _ = self._registry.read(kind, write.namespace, write.name)
        body = _body(request)
        options = delete_options(request, body.get("deleteOptions") or {})
        if not options.dry_run and _is_running(pod):
            self._spend_budget(pod, write)
        self._registry.delete(kind, write.namespace, write.name, options)
        done: Plain = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        return Outcome(obj=done, created=True)

    def _spend_budget(self, pod: Plain, write: Write) -> None:
        """An eviction needs a disruption that every budget of the pod still allows."""
        kind = self._catalog.find("policy", "v1", "poddisruptionbudgets")
        assert kind is not None, "budgets are built in"
        labels = metadata_of(pod).get("labels") or {}
        found = [
            (row, budget)
            for row in self._registry.store.range(kind.within(write.namespace))
            if _selects((budget := kind.decode(row.value)), labels)
        ]
        if len(found) > 1:
            raise status.internal(
                "This pod has more than one PodDisruptionBudget, which the eviction "
                "subresource does not support."
            )
        for row, budget in found:
            state = budget.get("status") or {}
            if state.get("disruptionsAllowed", 0) < 1:
                name = metadata_of(budget)["name"]
                raise _budget_forbids(name, state)

            def spend(obj: Plain) -> None:
                obj["status"]["disruptionsAllowed"] -= 1

            self._registry.amend(kind, row.key, spend)

    def _bind(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        kind = self._catalog.find("", "v1", "pods")
        assert kind is not None, "pods are built in"
        body = _body(request)
        pod, row = self._registry.read(kind, target.namespace, target.name)
        node = (body.get("target") or {}).get("name", "")
        if not node:
            named = status.GroupResource("", "Binding")
            problem = status.required("target.name")
            raise status.invalid_object(named, target.name, [problem])
        if (pod.get("spec") or {}).get("nodeName"):
            assigned = pod["spec"]["nodeName"]
            raise status.conflict(
                status.GroupResource("", "pods/binding"),
                target.name,
                f'pod {target.name} is already assigned to node "{assigned}"',
            )
        now = rfc3339(self._now())

        def bind(obj: Plain) -> None:
            obj["spec"]["nodeName"] = node
            meta = metadata_of(obj)
            added = metadata_of(body).get("annotations")
            if added:
                meta["annotations"] = {**(meta.get("annotations") or {}), **added}
            conditions = obj.setdefault("status", {}).setdefault("conditions", [])
            kept = [each for each in conditions if each["type"] != "PodScheduled"]
            scheduled = {"type": "PodScheduled", "status": "True"}
            obj["status"]["conditions"] = [
                *kept,
                {**scheduled, "lastProbeTime": None, "lastTransitionTime": now},
            ]

        if not write.dry_run:
            self._registry.amend(kind, row.key, bind)
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
        return Outcome(obj={**done, "status": "Success", "code": 201}, created=True)

    def _token(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        account, _ = self._registry.read(write.kind, write.namespace, write.name)
        body = _body(request)
        spec = body.get("spec") or {}
        seconds = int(spec.get("expirationSeconds") or 3600)
        if seconds < LEAST_TOKEN_SECONDS:
            named = status.GroupResource("authentication.k8s.io", "TokenRequest")
            problem = status.invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration less than 10 minutes",
            )
            raise status.invalid_object(named, "", [problem])
        expires = self._now() + timedelta(seconds=seconds)
        audiences = list(spec.get("audiences") or self._tokens.audiences)
        token = self._tokens.issue(
            account, audiences=audiences, now=self._now(), seconds=seconds
        )
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": write.name,
                "namespace": write.namespace,
                "creationTimestamp": rfc3339(self._now()),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": rfc3339(expires)},
        }
        return Outcome(obj=answer, created=True)

    def _log(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """No node runs here; a kubelet that does answers instead."""
        pod, _ = self._registry.read(write.kind, write.namespace, write.name)
        _check_container(pod, request.query.get("container", ""), write.name)
        if not (pod.get("spec") or {}).get("nodeName"):
            return Outcome(obj={}, text=b"")  # it has never run: nothing was said
        raise status.internal(f"no kubelet serves the logs of pod {write.name}")


def _check_container(pod: Plain, wanted: str, name: str) -> None:
    spec = pod.get("spec") or {}
    names = [
        each["name"]
        for key in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(key) or ()
    ]
    if wanted and wanted not in names:
        raise status.bad_request(f"container {wanted} is not valid for pod {name}")
    ordinary = [each["name"] for each in spec.get("containers") or ()]
    if not wanted and len(ordinary) != 1:
        raise status.bad_request(
            f"a container name must be specified for pod {name}, choose one of: "
            f"[{' '.join(ordinary)}]"
        )


def _body(request: ApiRequest) -> Plain:
    content_type = request.headers.get("content-type", bodies.JSON)
    return bodies.decode(request.body, content_type)


def _is_running(pod: Plain) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    dying = metadata_of(pod).get("deletionTimestamp")
    return phase not in ("Succeeded", "Failed", "Pending", "") and not dying


def _selects(budget: Plain, labels: dict[str, str]) -> bool:
    from trimtab.api.codec import convert
    from trimtab.api.selectors import LabelSelector

    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    return Selector.from_wire(convert(LabelSelector, selector)).matches(labels)


def _budget_forbids(name: str, state: Plain) -> status.ApiProblem:
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {name} needs "
        f"{state.get('desiredHealthy', 0)} healthy pods and has "
        f"{state.get('currentHealthy', 0)} currently",
    }
    return status.ApiProblem(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[cause],
    )


def _at(obj: Plain, path: str) -> Any:
    """What stands at a path such as ``.spec.replicas``; None if it is not there."""
    value: Any = obj
    for step in path.strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def scale_of(kind: Kind, obj: Plain) -> Plain:
    """The scale of an object: how many are wished for, how many there are."""
    if kind.custom is not None:
        wished, present, selector = kind.custom.scale(obj)
    else:
        state = obj.get("status") or {}
        wished = (obj.get("spec") or {}).get("replicas", 0)
        present = state.get("replicas", 0)
        selector = _selector_text((obj.get("spec") or {}).get("selector"))
    meta = metadata_of(obj)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    state_of: Plain = {"replicas": present or 0}
    if selector:
        state_of["selector"] = selector
    spec: Plain = {"replicas": wished} if wished else {}
    return {
        "kind": "Scale",
        "apiVersion": SCALE,
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": spec,
        "status": state_of,
    }


def _selector_text(selector: Any) -> str:
    from trimtab.api.codec import convert
    from trimtab.api.selectors import LabelSelector

    if not isinstance(selector, dict):
        return ""
    if "matchLabels" in selector or "matchExpressions" in selector:
        return str(Selector.from_wire(convert(LabelSelector, selector)))
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def set_replicas(kind: Kind, obj: Plain, replicas: int) -> None:
    if kind.custom is not None:
        kind.custom.set_scale(obj, replicas)
    else:
        obj.setdefault("spec", {})["replicas"] = replicas
