"""Subresources: status, scale, eviction, binding, tokens and logs of objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from trimtab.api.selectors import Selector
from trimtab.api.times import parse_rfc3339, rfc3339
from trimtab.embedded import bodies, metadata, reading, status
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import CREATE
from trimtab.embedded.deletion import delete_options
from trimtab.embedded.facts import definitions
from trimtab.embedded.kinds import Plain
from trimtab.embedded.managed import after_update
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.scales import Scales
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.writes import Outcome, Write, other_uid

LEAST_TOKEN_SECONDS = 600
TOKEN_SECONDS = 3600
BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
MOST_TOKEN_SECONDS = 2**32


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
        self._scales = Scales(registry)

    def handle(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """Do what a request asks of a subresource that the kind has."""
        name = target.subresource
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
            self._registry.row(write.kind, write.namespace, write.name)
            raise status.method_not_allowed(write.kind.about, request.method.lower())
        return special[name](request, target, write)

    def bind(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """A Binding that is created for itself, rather than below its pod."""
        name = metadata_of(_body(request, "Binding")).get("name", "")
        pod = msgspec.structs.replace(target, name=name)
        return self._bind(request, pod, write)

    def _part(self, request: ApiRequest, write: Write) -> Outcome:
        if request.method == "GET":
            obj, _ = self._registry.read(write.kind, write.namespace, write.name)
            return Outcome(obj=obj)
        content_type = request.headers.get("content-type", bodies.JSON)
        if request.method == "PATCH":
            return self._registry.patch(write, request.body, content_type)
        obj = reading.read(write, request.body, content_type)
        return self._registry.update(write, obj)

    def _admitted(self, write: Write, body: Plain) -> Plain:
        """What is created below an object, after everybody was asked about it."""
        if not self._registry.chain.listens(write):
            return body
        group, _, version = body["apiVersion"].rpartition("/")
        metadata.place(write.kind, body, namespace=write.namespace)
        body = after_update(
            None,
            body,
            type=definitions().of(group, version, body["kind"]),
            api_version=body["apiVersion"],
            manager=write.manager,
            subresource=write.subresource,
            now=self._registry.stamps.time(),
        )
        body = self._registry.chain.mutated(write, CREATE, body, None)
        self._registry.chain.review(write, CREATE, body, None)
        return body

    def _scale(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        return self._scales.handle(request, write)

    def _evict(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        kind = write.kind
        body = _body(request, "Eviction")
        _check_named(body, "Eviction", "policy", write.name)
        body = self._admitted(write, body)
        pod, row = self._registry.read(kind, write.namespace, write.name)
        wished = dict(body.get("deleteOptions") or {})
        if write.dry_run and not wished.get("dryRun"):
            wished["dryRun"] = ["All"]
        options = delete_options(wished)
        if _is_running(pod):
            self._spend_budget(pod, write, dry_run=options.dry_run)
        # Where somebody names what the pod must be, that decides, and comes first.
        if not options.dry_run and options.preconditions is None:
            self._registry.amend(kind, row.key, self._disrupt)
        self._registry.delete(kind, write.namespace, write.name, options)
        done: Plain = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        return Outcome(obj=done, created=True)

    def _disrupt(self, pod: Plain) -> None:
        """Say in a pod's status that it goes because somebody evicted it."""
        conditions = pod.setdefault("status", {}).get("conditions") or []
        pod["status"]["conditions"] = [
            *(each for each in conditions if each["type"] != "DisruptionTarget"),
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": None,
                "lastTransitionTime": rfc3339(self._now()),
            },
        ]

    def _spend_budget(self, pod: Plain, write: Write, *, dry_run: bool) -> None:
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
            raise status.ApiProblem(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction "
                "subresource does not support.",
            )
        for row, budget in found:
            state = budget.get("status") or {}
            if _is_spared(pod, budget):
                continue
            if state.get("disruptionsAllowed", 0) < 1:
                name = metadata_of(budget)["name"]
                raise _budget_forbids(name, state)

            def spend(obj: Plain) -> None:
                obj["status"]["disruptionsAllowed"] -= 1

            if not dry_run:
                self._registry.amend(kind, row.key, spend)

    def _bind(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        kind = self._catalog.find("", "v1", "pods")
        assert kind is not None, "pods are built in"
        body = _body(request, "Binding")
        _check_named(body, "Binding", "core", target.name)
        body = self._admitted(write, body)
        node = _node_of(body)
        pod, row = self._registry.read(kind, target.namespace, target.name)
        uid, given = metadata_of(pod)["uid"], metadata_of(body).get("uid", "")
        if given not in ("", uid):
            named = msgspec.structs.replace(write, kind=kind, name=target.name)
            raise other_uid(named, given, uid)
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
        body = _body(request, "TokenRequest")
        body.setdefault("spec", {}).setdefault("expirationSeconds", TOKEN_SECONDS)
        body = self._admitted(write, body)
        spec = body.get("spec") or {}
        seconds = int(spec.get("expirationSeconds") or TOKEN_SECONDS)
        _check_token(body, seconds, write.name)
        bound = self._bound(spec.get("boundObjectRef"), write.namespace)
        expires = self._now() + timedelta(seconds=seconds)
        audiences = list(spec.get("audiences") or self._tokens.audiences)
        token = self._tokens.issue(
            account,
            audiences=audiences,
            now=self._now(),
            seconds=seconds,
            bound=bound,
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

    def _bound(self, wanted: Plain | None, namespace: str) -> Plain | None:
        """The object that a token lives and dies with, which must be there."""
        if not wanted:
            return None
        name, version = wanted.get("kind", ""), wanted.get("apiVersion", "")
        plural = BINDABLE.get(name) if version == "v1" else None
        kind = self._catalog.find("", "v1", plural) if plural else None
        if kind is None:
            group, _, short = version.rpartition("/")
            raise status.bad_request(
                f"cannot bind token to object of type {group}/{short}, Kind={name}"
            )
        within = namespace if kind.namespaced else ""
        obj, _ = self._registry.read(kind, within, wanted.get("name", ""))
        meta = metadata_of(obj)
        given = wanted.get("uid") or meta["uid"]
        if given != meta["uid"]:
            raise status.conflict(
                kind.named,
                meta["name"],
                f"the UID in the bound object reference ({given}) does not match the "
                "UID in record. The object might have been deleted and then recreated",
            )
        return {"kind": name, "name": meta["name"], "uid": meta["uid"]}

    def _log(self, request: ApiRequest, target: Target, write: Write) -> Outcome:
        """No node runs here; a kubelet that does answers instead."""
        pod, _ = self._registry.read(write.kind, write.namespace, write.name)
        check_log_options(request, write.name)
        check_container(pod, request.query.get("container", ""), write.name)
        if not (pod.get("spec") or {}).get("nodeName"):
            return Outcome(obj={}, text=b"")  # it has never run: nothing was said
        raise status.internal(f"no kubelet serves the logs of pod {write.name}")


def check_log_options(request: ApiRequest, name: str) -> None:
    """That what is asked for of a log makes sense."""
    query = request.query
    problems = []
    since = query.get("sinceTime", "")
    both = bool(since and query.get("sinceSeconds"))
    for field, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        given = request.number(field)
        if given is not None and given < least and not (both and field[0] == "s"):
            detail = f"must be greater than {'or equal to ' * (not least)}0"
            problems.append(status.invalid(field, given, detail))
    if since:
        _check_time(since)
    if both:
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(status.forbidden_value("[]", detail))
    if query.get("stream"):
        problems.append(status.forbidden_value("stream", "may not be specified"))
    if problems:
        named = status.GroupResource("", "PodLogOptions")
        raise status.invalid_object(named, name, problems)


def _check_time(text: str) -> None:
    try:
        parse_rfc3339(text)
    except ValueError:
        raise status.bad_request(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse '
            f'"{text}" as "2006"'
        ) from None


def check_container(pod: Plain, wanted: str, name: str) -> None:
    """That a pod has the container, or only one if none is named."""
    spec = pod.get("spec") or {}
    names = [
        each["name"]
        for key in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(key) or ()
    ]
    if wanted and wanted not in names:
        raise status.bad_request(f"container {wanted} is not valid for pod {name}")
    ordinary = spec.get("containers") or ()
    if not wanted and len(ordinary) != 1:
        raise status.bad_request(
            f"a container name must be specified for pod {name}, choose one of: "
            f"[{' '.join(names)}]"
        )


def _check_named(body: Plain, kind: str, package: str, name: str) -> None:
    """That a body is of the kind, and about the object, that the path says."""
    given = body.get("kind") or kind
    if given != kind:
        short = str(body.get("apiVersion", "")).rpartition("/")[2]
        raise status.bad_request(
            f'{given} in version "{short}" cannot be handled as a {kind}: converting '
            f"({short}.{given}) to ({package}.{kind}): unknown conversion"
        )
    if metadata_of(body).get("name") != name:
        raise status.bad_request(f"name in URL does not match name in {kind} object")


def _node_of(body: Plain) -> str:
    """The node of a binding; its rules are told as plain errors."""
    target = body.get("target") or {}
    if target.get("kind", "") not in ("", "Node"):
        problem = status.not_supported(
            "target.kind", target["kind"], ("Node", "<empty>")
        )
    elif not target.get("name"):
        problem = status.required("target.name")
    else:
        return str(target["name"])
    raise status.ApiProblem(500, "", status.aggregate([problem]))


def _check_token(body: Plain, seconds: int, name: str) -> None:
    named = status.GroupResource("authentication.k8s.io", "TokenRequest")
    field = "spec.expirationSeconds"
    given = metadata_of(body).get("name") or name
    if given != name:
        detail = "must match the service account name if specified"
        problem = status.invalid("metadata.name", given, detail)
        raise status.invalid_object(named, name, [problem])
    if seconds < LEAST_TOKEN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > MOST_TOKEN_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    raise status.invalid_object(named, "", [status.invalid(field, seconds, detail)])


def _body(request: ApiRequest, kind: str) -> Plain:
    content_type = request.headers.get("content-type", bodies.JSON)
    return bodies.decode(request.body, content_type, kind=kind)


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


def _is_spared(pod: Plain, budget: Plain) -> bool:
    """Whether a pod may go for free, as it is not ready and enough others are."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = budget.get("status") or {}
    desired = state.get("desiredHealthy", 0)
    return bool(0 < desired <= state.get("currentHealthy", 0))


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
