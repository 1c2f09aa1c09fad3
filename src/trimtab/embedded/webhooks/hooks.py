"""Hooks: the webhooks of a store's configurations, in the order they are asked.

The index follows the store's changes, so that a write finds the webhooks ready made. It
remembers nothing else: a change counts from the very next write.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.embedded.kinds import Plain
from trimtab.embedded.policies.conditions import Conditions
from trimtab.embedded.policies.matching import Match, match_of
from trimtab.embedded.store import Change, Store
from trimtab.embedded.webhooks.https import ca_problem

GROUP = "admissionregistration.k8s.io/"
MUTATING = f"{GROUP}mutatingwebhookconfigurations/"
VALIDATING = f"{GROUP}validatingwebhookconfigurations/"
SECONDS = 10


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where a webhook is, and whose certificates are trusted there."""

    url: str = ""
    service: tuple[str, str] | None = None
    """Namespace and name."""
    port: int = 443
    path: str = ""
    ca: bytes = b""
    problem: str = ""
    """Why the certificates are of no use."""


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook of one configuration."""

    uid: str
    """Configuration, name and place: what tells it from all others."""
    name: str
    client: ClientConfig
    match: Match
    """Which requests it is asked about; without rules, none."""
    fails: bool
    """Whether a webhook that cannot be asked is one that says no."""
    effects: bool
    """Whether asking it for nothing does something."""
    seconds: float
    reviews: tuple[str, ...]
    """The versions of reviews that it reads."""
    again: bool = False
    """Whether it is asked again if others change the object after it."""
    conditions: Conditions | None = None
    """What must hold for it to be asked."""


class Hooks:
    """All webhooks of a store."""

    def __init__(self, store: Store) -> None:
        self.mutating: tuple[Hook, ...] = ()
        self.validating: tuple[Hook, ...] = ()
        self._held: dict[str, dict[str, tuple[Hook, ...]]] = {
            MUTATING: {},
            VALIDATING: {},
        }
        for prefix in self._held:
            for row in store.scan(prefix):
                self._put(prefix, row.key, row.value)
        store.subscribe(self._seen)

    def _seen(self, change: Change) -> None:
        if not change.key.startswith(GROUP):
            return
        for prefix in self._held:
            if change.key.startswith(prefix):
                self._put(prefix, change.key, change.value)

    def _put(self, prefix: str, key: str, value: bytes | None) -> None:
        held = self._held[prefix]
        held.pop(key, None)
        if value is not None:
            held[key] = hooks_of(msgspec.json.decode(value))
        ordered = tuple(hook for each in sorted(held) for hook in held[each])
        if prefix == MUTATING:
            self.mutating = ordered
        else:
            self.validating = ordered


def hooks_of(configuration: Plain) -> tuple[Hook, ...]:
    """The webhooks of a configuration that was accepted, so it has its defaults."""
    owner = configuration["metadata"]["name"]
    raw = configuration.get("webhooks") or ()
    return tuple(_hook(each, f"{owner}/{i}") for i, each in enumerate(raw))


def _hook(raw: Plain, uid: str) -> Hook:
    return Hook(
        uid=f"{uid}/{raw['name']}",
        name=raw["name"],
        client=client_of(raw["clientConfig"]),
        match=match_of({**raw, "resourceRules": raw.get("rules")}),
        fails=raw.get("failurePolicy") != "Ignore",
        effects=raw.get("sideEffects") not in ("None", "NoneOnDryRun"),
        seconds=raw.get("timeoutSeconds", SECONDS),
        reviews=tuple(raw.get("admissionReviewVersions") or ()),
        again=raw.get("reinvocationPolicy") == "IfNeeded",
        conditions=_conditions(raw.get("matchConditions") or ()),
    )


def client_of(raw: Mapping[str, Any]) -> ClientConfig:
    """Where a ``clientConfig`` leads, also that of a conversion."""
    ca = b64decode(raw.get("caBundle") or "")
    problem = ca_problem(ca)
    service = raw.get("service")
    if service is None:
        return ClientConfig(url=raw.get("url") or "", ca=ca, problem=problem)
    return ClientConfig(
        problem=problem,
        service=(service["namespace"], service["name"]),
        port=service.get("port", 443),
        path=service.get("path") or "",
        ca=ca,
    )


def _conditions(raw: Sequence[Plain]) -> Conditions | None:
    return Conditions([each["expression"] for each in raw]) if raw else None
