"""Scenarios: policies in use, and requests that they have something to say about.

Each has a namespace of its own, and its policies look at nothing else. Policies that
are made at the same time are asked in any order, so no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hack.policy_corpus.bodies import (
    JSON,
    config,
    mutating,
    mutating_binding,
    path_of,
    rule,
    validating,
    validating_binding,
)

MERGE = "application/merge-patch+json"
LABEL = "kubernetes.io/metadata.name"
NAME = "object.metadata.name"
NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    body: JSON | None = None
    media: str = "application/json"
    query: dict[str, str] = {}
    user: str = ""
    """As whom it is made; as the administrator, if that is nobody."""


class Scenario:
    """What is set up, in order, and what is then asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace = f"policy-{name}"
        self.setup: list[tuple[str, JSON]] = []
        self.requests: list[Request] = []
        metadata = {"name": self.namespace, "labels": {"for": "policies"}}
        self.make(NAMESPACES, {"metadata": metadata})

    def make(self, path: str, body: JSON) -> None:
        self.setup.append((path, body))

    def _constraints(self, rules: list[JSON], more: JSON) -> JSON:
        here = {"matchLabels": {LABEL: self.namespace}}
        return {"resourceRules": rules, "namespaceSelector": here, **more}

    def named(self, part: str) -> str:
        return f"{self.name}-{part}.example.com"

    def validating(
        self,
        *checks: JSON,
        part: str = "it",
        rules: list[JSON] | None = None,
        match: JSON | None = None,
        binding: JSON | None = None,
        **spec: Any,
    ) -> None:
        """A validating policy and its binding."""
        constraints = self._constraints(rules or [rule()], match or {})
        name = self.named(part)
        made = validating(name, *checks, matchConstraints=constraints, **spec)
        self.make(path_of(made), made)
        bound = validating_binding(name, **(binding or {}))
        self.make(path_of(bound), bound)

    def mutating(
        self,
        *changes: JSON,
        part: str = "it",
        rules: list[JSON] | None = None,
        match: JSON | None = None,
        binding: JSON | None = None,
        **spec: Any,
    ) -> None:
        """A mutating policy and its binding."""
        constraints = self._constraints(rules or [rule()], match or {})
        name = self.named(part)
        made = mutating(name, *changes, matchConstraints=constraints, **spec)
        self.make(path_of(made), made)
        bound = mutating_binding(name, **(binding or {}))
        self.make(path_of(bound), bound)

    def path(self, plural: str = "configmaps", root: str = "/api/v1") -> str:
        return f"{root}/namespaces/{self.namespace}/{plural}"

    def create(
        self, body: JSON, plural: str = "configmaps", root: str = "/api/v1", **q: str
    ) -> None:
        path = self.path(plural, root)
        self.requests.append(Request(method="POST", path=path, body=body, query=q))

    def config(self, name: str, data: JSON | None = None, **metadata: Any) -> None:
        self.create(config(name, data, **metadata))

    def ask(self, method: str, path: str, body: JSON | None = None) -> None:
        media = MERGE if method == "PATCH" else "application/json"
        made = Request(method=method, path=path, body=body, media=media)
        self.requests.append(made)


def scenarios() -> Iterator[Scenario]:
    """Every scenario, in a fixed order."""
    from hack.policy_corpus.binding import binding
    from hack.policy_corpus.changing import changing
    from hack.policy_corpus.refusing import refusing

    for fill in (*refusing(), *binding(), *changing()):
        scenario = Scenario(fill.__name__)
        fill(scenario)
        yield scenario
