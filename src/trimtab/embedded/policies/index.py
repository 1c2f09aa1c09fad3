"""The index: policies with their bindings, as they are in the store, compiled.

It follows the store's changes; a policy is compiled when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.embedded.kinds import Plain
from trimtab.embedded.policies.matching import Match, match_of
from trimtab.embedded.policies.params import ParamKind
from trimtab.embedded.store import Change, Store

GROUP = "admissionregistration.k8s.io/"
T = TypeVar("T")


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a policy is used, and with which parameters."""

    name: str
    policy: str
    match: Match | None
    """What it narrows the policy to; None for nothing."""
    param: Plain | None
    actions: tuple[str, ...]
    """What is done with what a policy denies."""


class Policy(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A policy that is in use."""

    name: str
    match: Match
    fails: bool
    """Whether an error counts as a refusal."""
    param: ParamKind | None
    rules: T
    bindings: tuple[Binding, ...]


class Index(Generic[T]):
    """All policies of one kind that have bindings, in the order of their names."""

    def __init__(self, store: Store, *, kind: str, compile: Callable[[Plain], T]):
        self._policies = f"{GROUP}{kind}admissionpolicies/"
        self._bindings = f"{GROUP}{kind}admissionpolicybindings/"
        self._compile = compile
        self._raw: dict[str, Plain] = {}
        self._bound: dict[str, Binding] = {}
        self._rules: dict[str, T] = {}
        self._used: tuple[Policy[T], ...] | None = None
        self.active = False
        """Whether there is a binding at all."""
        for prefix in (self._policies, self._bindings):
            for row in store.scan(prefix):
                self._put(row.key, row.value)
        store.subscribe(self._seen)

    def used(self) -> tuple[Policy[T], ...]:
        """The policies that have bindings."""
        if self._used is None:
            names = sorted({each.policy for each in self._bound.values()})
            self._used = tuple(map(self._made, filter(self._raw.__contains__, names)))
        return self._used

    def _made(self, name: str) -> Policy[T]:
        spec = self._raw[name]["spec"]
        if name not in self._rules:
            self._rules[name] = self._compile(self._raw[name])
        held = [self._bound[key] for key in sorted(self._bound)]
        kind = spec.get("paramKind")
        return Policy(
            name=name,
            match=match_of(spec.get("matchConstraints") or {}),
            fails=spec.get("failurePolicy") != "Ignore",
            param=ParamKind(kind["apiVersion"], kind["kind"]) if kind else None,
            rules=self._rules[name],
            bindings=tuple(each for each in held if each.policy == name),
        )

    def _seen(self, change: Change) -> None:
        if change.key.startswith((self._policies, self._bindings)):
            self._put(change.key, change.value)

    def _put(self, key: str, value: bytes | None) -> None:
        name = key.rpartition("/")[2]
        obj: Any = None if value is None else msgspec.json.decode(value)
        if key.startswith(self._bindings):
            self._bound.pop(name, None)
            if obj is not None:
                self._bound[name] = _binding(obj)
        else:
            before = self._raw.pop(name, None)
            if obj is not None:
                self._raw[name] = obj
            if obj is None or before is None or obj["spec"] != before["spec"]:
                self._rules.pop(name, None)
        self.active = bool(self._bound)
        self._used = None


def _binding(obj: Plain) -> Binding:
    spec = obj["spec"]
    resources = spec.get("matchResources")
    return Binding(
        name=obj["metadata"]["name"],
        policy=spec["policyName"],
        match=None if resources is None else match_of(resources),
        param=spec.get("paramRef"),
        actions=tuple(spec.get("validationActions") or ()),
    )
