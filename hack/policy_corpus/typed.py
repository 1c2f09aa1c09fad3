"""Typed: policies whose expressions are checked against the kinds that they are for.

The check is done by a controller, which writes what it finds into their status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.policy_corpus.bodies import JSON, check, rule, validating

DEPLOYMENTS = rule("deployments", apiGroups=["apps"])
THINGS = rule("things", apiGroups=["customs.example.com"])


def typed() -> Iterator[JSON]:
    """Every policy, in a fixed order."""
    given = list(_given())
    for number, (checks, more) in enumerate(given):
        yield validating(f"typed-{number:02d}.example.com", *checks, **more)


def probe(number: int) -> JSON:
    """A policy that is wrong about a custom kind, for who knows that kind."""
    wrong = check("object.spec.most == 'a'")
    return validating(f"probe-{number:02d}.example.com", wrong, **_of(THINGS))


def _of(*rules: JSON, **more: Any) -> JSON:
    return {"matchConstraints": {"resourceRules": list(rules)}, **more}


def _given() -> Iterator[tuple[list[JSON], JSON]]:
    for text in _DEPLOYED:
        yield [check(text)], _of(DEPLOYMENTS)
    yield from _several()
    yield from _composed()


_DEPLOYED = (
    *("object.spec.replicas > 5", "object.spec.replicasX > 5", "object.x == 1"),
    *("object.spec.replicas > '5'", "oldObject.spec.paused == 1"),
    *("object.spec.template.spec.containers.all(c, c.imag == 'x')", "object == 1"),
    "object.spec.template.spec.containers[0].ports[0].containerPort == 'a'",
    *("object.metadata.labels.app == 1", "object.metadata.creationTimestamp == 1"),
    "object.metadata.creationTimestamp > timestamp('2024-01-01T00:00:00Z')",
    *("object.spec.strategy.rollingUpdate.maxSurge == 1", "object.status.x == 1"),
    "has(object.spec.template.spec.nodeNam)",
    "object.spec.selector.matchLabels['a'] == 1",
    "object.metadata.ownerReferences[0].uid == 1",
    *("object.metadata.managedFields[0].fieldsV1 == 1", "object.kind == 1"),
    "object.spec.template.spec.containers[0].resources.limits['cpu'] == 1",
    "object.spec.template.spec.volumes[0].emptyDir.sizeLimit == 1",
    "object.spec.template.spec.containers[0].livenessProbe.httpGet.port == 1",
    "object.spec.replicas > 'a' &&\n  object.nothing == 1",
    "authorizer.requestResource.check('get').allowed()",
)
"""For Deployments."""


def _several() -> Iterator[tuple[list[JSON], JSON]]:
    message = "object.spec.nothing + string(object.spec.replicas)"
    yield [check("true", messageExpression=f"string({message})")], _of(DEPLOYMENTS)
    both = rule("deployments", "statefulsets", apiGroups=["apps"])
    yield [check("object.spec.serviceName == 'x'")], _of(both)
    yield [check("object.spec.nothing == 'x'")], _of(both, rule("pods", "secrets"))
    yield [check("object.data.x == 1"), check("object.type == 1")], _of(rule("secrets"))
    for part in (
        rule("*"),
        rule("deployments", apiGroups=["*"]),
        rule("deployments", apiGroups=["apps"], apiVersions=["*"]),
        rule("deployments/scale", apiGroups=["apps"]),
        rule("nothings", apiGroups=["nowhere.example.com"]),
    ):
        yield [check("object.nothing == 1")], _of(part)


def _composed() -> Iterator[tuple[list[JSON], JSON]]:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    for text in ("params.data.x == 1", "params.nothing == 1", "params.data.x == 'a'"):
        yield [check(text)], _of(DEPLOYMENTS, paramKind=kind)
    unknown = {"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"}
    yield [check("params.nothing == 1")], _of(DEPLOYMENTS, paramKind=unknown)
    variables = [
        {"name": "pod", "expression": "object.spec.template.spec"},
        {"name": "names", "expression": "variables.pod.containers.map(c, c.name)"},
        {"name": "bad", "expression": "object.spec.nothing"},
    ]
    for text in (
        "variables.pod.nothing == 1",
        "variables.names[0] == 1",
        "variables.bad == 1",
        "variables.names.all(n, n.startsWith('a'))",
    ):
        yield [check(text)], _of(DEPLOYMENTS, variables=variables)
    for text in (
        "object.spec.most == 'a'",
        "object.spec.nothing == 1",
        "object.metadata.labels == 1",
        "object.metadata.name == 1",
        "object.spec.tags[0] == 1",
        "object.metadata.uid == 1",
    ):
        yield [check(text)], _of(THINGS)
