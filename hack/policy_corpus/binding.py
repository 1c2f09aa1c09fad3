"""Binding: what validating policies are used for, and with which parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hack.policy_corpus.bodies import (
    JSON,
    check,
    config,
    path_of,
    rule,
    validating,
    validating_binding,
)
from hack.policy_corpus.scenarios import CRDS, NAME, NAMESPACES, Request, Scenario

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def binding() -> Iterator[Callable[[Scenario], None]]:
    """Every scenario, in a fixed order."""
    yield from (parameters, missing, selected, matches, deletions, subresources)
    yield from (custom, access)


def parameters(it: Scenario) -> None:
    it.make(it.path(), config("limits", {"most": "2"}, labels={"use": "yes"}))
    it.make(it.path(), config("more", {"most": "1"}, labels={"use": "yes"}))
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    told = "'more than ' + params.data.most + ' of ' + params.metadata.name"
    within = "size(object.data) <= int(params.data.most)"
    for part, ref in (
        ("named", {"name": "limits", "parameterNotFoundAction": "Deny"}),
        (
            "placed",
            {
                "name": "limits",
                "namespace": it.namespace,
                "parameterNotFoundAction": "Deny",
            },
        ),
        (
            "chosen",
            {
                "selector": {"matchLabels": {"use": "yes"}},
                "parameterNotFoundAction": "Deny",
            },
        ),
        ("absent", {"name": "nothing", "parameterNotFoundAction": "Deny"}),
        ("allowed", {"name": "nothing", "parameterNotFoundAction": "Allow"}),
        (
            "nobody",
            {
                "selector": {"matchLabels": {"use": "no"}},
                "parameterNotFoundAction": "Deny",
            },
        ),
    ):
        it.validating(
            check(within, messageExpression=told),
            part=part,
            paramKind=kind,
            binding={"paramRef": ref},
            matchConditions=[{"name": "it", "expression": f"{NAME} == '{part}'"}]
            if part not in ("absent", "nobody")
            else [],
            match={"objectSelector": {"matchLabels": {"part": part}}},
        )
        it.config(part, {"a": "1"}, labels={"part": part})
        # Too many for one of those that are chosen, and for the only one elsewhere.
        many = "ab" if part == "chosen" else "abc"
        it.config(part, dict.fromkeys(many, "1"), labels={"part": part})
    it.validating(
        check("params == null", message="there are some"),
        check(f"{NAME} != 'unbound' || params.data.x == 'y'"),
        part="unbound",
        paramKind=kind,
        match={"objectSelector": {"matchLabels": {"part": "unbound"}}},
    )
    it.config("unbound", labels={"part": "unbound"})


def missing(it: Scenario) -> None:
    it.validating(
        check("true"),
        paramKind={"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"},
        binding={"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}},
    )
    it.config("one")


def selected(it: Scenario) -> None:
    """Cluster-scoped parameters, and those of requests that have no namespace."""
    it.make(CRDS, definition("Limit", "limits", "policies.example.com", "Cluster"))
    kind = {"apiVersion": "policies.example.com/v1", "kind": "Limit"}
    limit = {"most": 1}
    body = {
        "apiVersion": "policies.example.com/v1",
        "kind": "Limit",
        "metadata": {"name": "one"},
        "spec": limit,
    }
    it.make("/apis/policies.example.com/v1/limits", body)
    for part, ref in (
        ("fits", {"name": "one", "parameterNotFoundAction": "Deny"}),
        (
            "placed",
            {
                "name": "one",
                "namespace": it.namespace,
                "parameterNotFoundAction": "Deny",
            },
        ),
    ):
        it.validating(
            check("size(object.data) <= params.spec.most", message="too many"),
            part=part,
            paramKind=kind,
            binding={"paramRef": ref},
            match={"objectSelector": {"matchLabels": {"part": part}}},
        )
        data = {"a": "1", "b": "2"}
        it.config(part, data, labels={"part": part})
    it.validating(
        check("true"),
        part="outside",
        rules=[rule("namespaces")],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": {"name": "one", "parameterNotFoundAction": "Deny"}},
        match={
            "namespaceSelector": {},
            "objectSelector": {"matchLabels": {"scenario": "selected"}},
        },
    )
    labels = {"scenario": "selected"}
    metadata = {"name": "policy-selected-two", "labels": labels}
    it.ask("POST", NAMESPACES, {"metadata": metadata})


def definition(kind: str, plural: str, group: str, scope: str) -> JSON:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "most": {"type": "integer", "default": 5},
                    "name": {"type": "string"},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                },
            }
        },
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
        }
        for name in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": versions,
        },
    }


def matches(it: Scenario) -> None:
    no = check("false", message="no")
    it.validating(no, part="names", rules=[rule(resourceNames=["called", "other"])])
    it.validating(
        no,
        part="excluded",
        match={
            "objectSelector": {"matchLabels": {"part": "excluded"}},
            "excludeResourceRules": [rule(resourceNames=["spared"])],
        },
    )
    it.validating(
        no,
        part="bound",
        match={"objectSelector": {"matchLabels": {"part": "bound"}}},
        binding={
            "matchResources": {
                "objectSelector": {
                    "matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]
                },
                "resourceRules": [rule(operations=["CREATE"])],
            }
        },
    )
    it.validating(
        no,
        part="scoped",
        rules=[rule(scope="Cluster", resources=["*"])],
        match={"objectSelector": {"matchLabels": {"part": "scoped"}}},
    )
    it.config("called")
    it.config("uncalled")
    for name, labels in (
        ("excluded", {"part": "excluded"}),
        ("spared", {"part": "excluded"}),
        ("bound", {"part": "bound"}),
        ("free", {"part": "bound", "free": "yes"}),
        ("scoped", {"part": "scoped"}),
    ):
        it.config(name, labels=labels)


def deletions(it: Scenario) -> None:
    it.validating(
        check("oldObject.metadata.name != 'kept'", message="it is kept"),
        check("object == null", message="there is a new one"),
        check("!has(oldObject.metadata.labels.keep)", messageExpression="request.name"),
        rules=[rule(operations=["DELETE"])],
    )
    for name in ("kept", "gone"):
        it.make(it.path(), config(name))
    it.make(it.path(), config("labelled", labels={"keep": "yes"}))
    for name in ("kept", "gone", "labelled"):
        it.ask("DELETE", f"{it.path()}/{name}")


def subresources(it: Scenario) -> None:
    root = "/apis/apps/v1"
    labels = {"app": "one"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "one"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "x"}]},
            },
        },
    }
    it.make(it.path("deployments", root), deployment)
    rules = rule("deployments/scale", "deployments/status", apiGroups=["apps"])
    it.validating(
        check(
            "request.subResource != 'scale' || object.spec.replicas < 4",
            messageExpression="object.kind + ' ' + request.kind.kind + ' ' + "
            "request.resource.resource + ' ' + string(oldObject.spec.replicas)",
        ),
        check("request.subResource != 'status' || object.status.replicas != 7"),
        rules=[rules],
    )
    where = f"{it.path('deployments', root)}/one"
    for count in (3, 4):
        it.ask("PATCH", f"{where}/scale", {"spec": {"replicas": count}})
        it.ask("PATCH", where, {"spec": {"replicas": count}})
    it.ask("PATCH", f"{where}/status", {"status": {"replicas": 7}})


def custom(it: Scenario) -> None:
    group = "customs.example.com"
    it.make(CRDS, definition("Thing", "things", group, "Namespaced"))
    for part, more in (("equal", {}), ("exact", {"matchPolicy": "Exact"})):
        it.validating(
            check(
                "object.spec.most < 9",
                messageExpression="object.apiVersion + ' ' + request.kind.version + "
                "request.requestKind.version + string(object.spec.most)",
            ),
            part=part,
            rules=[rule("things", apiGroups=[group], apiVersions=["v2"])],
            match={"objectSelector": {"matchLabels": {"part": part}}, **more},
        )
        for version in ("v1", "v2"):
            body = {
                "apiVersion": f"{group}/{version}",
                "kind": "Thing",
                "metadata": {"name": f"{part}-{version}", "labels": {"part": part}},
                "spec": {"most": 9},
            }
            it.create(body, "things", f"/apis/{group}/{version}")


def _person(it: Scenario, name: str, *rules: JSON) -> None:
    """Somebody who may write policies, and what these rules allow."""
    writes = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["*"],
        "verbs": ["create"],
    }
    role = {"metadata": {"name": name}, "rules": [writes, *rules]}
    it.make(f"{RBAC}/clusterroles", role)
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }
    it.make(f"{RBAC}/clusterrolebindings", binding)


def access(it: Scenario) -> None:
    """Parameters that whoever writes a policy must be able to read."""
    reading = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    _person(it, "policy-writer")
    _person(it, "policy-reader", reading)
    known = {"apiVersion": "v1", "kind": "ConfigMap"}
    unknown = {"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"}
    it.validating(check("true"), part="known", paramKind=known)
    it.validating(check("true"), part="unknown", paramKind=unknown)
    named = {"name": "a", "parameterNotFoundAction": "Allow"}
    placed = {**named, "namespace": it.namespace}
    chosen = {"selector": {}, "parameterNotFoundAction": "Allow"}
    made = [
        validating("tried.example.com", check("true"), paramKind=known),
        validating("tried.example.com", check("true"), paramKind=unknown),
        validating("tried.example.com", check("true +"), paramKind=known),
        validating("tried.example.com", check("true")),
    ]
    for policy, ref in (
        *(("known", named), ("known", placed), ("known", chosen)),
        *(("unknown", named), ("absent", named)),
    ):
        name = it.named(policy)
        body = validating_binding("tried.example.com", policyName=name, paramRef=ref)
        made.append(body)
    for body in made:
        for user in ("policy-writer", "policy-reader"):
            it.requests.append(
                Request(
                    method="POST",
                    path=path_of(body),
                    body=body,
                    query={"dryRun": "All"},
                    user=user,
                )
            )
