"""Quota: how much the objects of a namespace may take together, and do.

What each quota's objects take is a sum that follows every change of the store, so that
a write is held against what is true at that moment: no two writes can take the same
room, and what a failed one would have taken was never taken. The status of a quota is
written soon after its sum has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.api.quantity import Quantity
from trimtab.embedded import status, usages
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import CREATE, UPDATE, Attributes
from trimtab.embedded.kinds import Plain
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store
from trimtab.embedded.usages import ZERO, Amounts
from trimtab.embedded.writes import Write

QUOTAS = "core/resourcequotas/"
MANAGER = "kube-controller-manager"
BOTH = frozenset({usages.SERVICES, usages.VOLUME_CLAIMS, usages.DEVICE_CLAIMS})
"""Resources whose objects can come to take more when they change."""


class Quota:
    """One quota: what it allows, of whom, and what they take."""

    def __init__(self, obj: Plain) -> None:
        spec = obj.get("spec") or {}
        self.name: str = obj["metadata"]["name"]
        self.namespace: str = obj["metadata"]["namespace"]
        self.spec = spec
        self.hard = {
            key: Quantity(value) for key, value in spec.get("hard", {}).items()
        }
        self.scopes = _scopes(spec)
        self.used: Amounts = {}

    def taken(self, resource: str, obj: Plain | None) -> Amounts:
        """What an object takes of it."""
        names = usages.counted(resource, self.hard)
        if obj is None or not names or not usages.is_within(resource, obj, self.scopes):
            return {}
        amounts = usages.usage(resource, obj)
        return {name: amounts[name] for name in names if name in amounts}

    def add(self, taken: Amounts, given_back: Amounts) -> bool:
        """Count a change; False if it makes none."""
        changed = False
        for name in taken.keys() | given_back.keys():
            more, less = taken.get(name, ZERO), given_back.get(name, ZERO)
            if more != less:
                self.used[name] = self.used.get(name, ZERO) + more - less
                changed = True
        return changed


class Quotas:
    """The quotas of a store: a plugin of admission, and a controller of their status.

    Guarantees: no write of a client makes the objects of a namespace take more than
    each of its quotas allows.
    """

    def __init__(self, store: Store, *, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._registry: Registry | None = None
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._due: dict[str, None] = {}
        self._revision = 0

    def follow(self, registry: Registry) -> None:
        """Have the status of quotas written through a registry."""
        self._registry = registry

    def start(self) -> None:
        """Find the quotas of the store, then follow its changes."""
        for row in self._store.range(QUOTAS):
            self._learn(row.key, row.value)
        self._store.subscribe(self._seen)

    @property
    def active(self) -> bool:
        return bool(self._quotas)

    def mutate(self, attributes: Attributes) -> None:
        """Quotas change nothing."""

    def validate(self, attributes: Attributes) -> None:
        """Refuse what would take more than there is."""
        kind, obj = attributes.kind, attributes.obj
        quotas = self._quotas.get(attributes.namespace)
        if not quotas or obj is None or not kind.namespaced or not _handled(attributes):
            return
        resource = kind.prefix
        old = attributes.old if attributes.operation == UPDATE else None
        for name in sorted(quotas):
            try:
                _check(quotas[name], resource, obj, old)
            except _Refused as refused:
                called = obj["metadata"].get("name") or attributes.name
                raise status.forbidden(kind.about, called, str(refused)) from None

    def step(self, limit: int = 20) -> bool:
        """Write the status of quotas whose sums have changed; True if there is more."""
        if self._revision != self._catalog.revision:
            self._revision = self._catalog.revision
            for quota in list(self._all()):
                if quota.hard.keys() - quota.used.keys():  # of a kind that is new
                    self._sum(quota)
        for key in list(self._due)[:limit]:
            del self._due[key]
            with suppress(ApiProblem):  # gone meanwhile
                self._tell(key)
        return bool(self._due)

    def _all(self) -> Iterator[Quota]:
        for quotas in self._quotas.values():
            yield from quotas.values()

    def _seen(self, change: Change) -> None:
        if change.key.startswith(QUOTAS):
            self._learn(change.key, change.value)
        if not self._quotas:
            return
        parts = change.key.split("/")
        quotas = self._quotas.get(parts[2]) if len(parts) == 4 else None
        if not quotas:
            return
        resource = f"{parts[0]}/{parts[1]}/"
        if resource in usages.IGNORED:
            return
        before = None if change.previous is None else _decoded(change.previous)
        after = None if change.value is None else _decoded(change.value)
        for quota in quotas.values():
            fresh = resource == QUOTAS and parts[3] == quota.name and before is None
            if fresh:
                continue  # it has just counted itself
            taken, back = quota.taken(resource, after), quota.taken(resource, before)
            if quota.add(taken, back):
                self._due[_key(quota)] = None

    def _learn(self, key: str, value: bytes | None) -> None:
        """A quota is there, is another, or is gone."""
        namespace, _, name = key.removeprefix(QUOTAS).partition("/")
        quotas = self._quotas.setdefault(namespace, {})
        if value is None:
            quotas.pop(name, None)
        else:
            obj = _decoded(value)
            known = quotas.get(name)
            if known is None or known.spec != (obj.get("spec") or {}):
                quotas[name] = Quota(obj)
                self._sum(quotas[name])
        if not quotas:
            del self._quotas[namespace]

    def _sum(self, quota: Quota) -> None:
        """What the objects that are there take."""
        quota.used = {}
        for kind in self._catalog.stored_kinds():
            resource = kind.prefix
            names = usages.counted(resource, quota.hard) if kind.namespaced else ()
            if not names or resource in usages.IGNORED:
                continue
            quota.used |= {name: quota.used.get(name, ZERO) for name in names}
            for row in self._store.range(kind.within(quota.namespace)):
                quota.add(quota.taken(resource, _decoded(row.value)), {})
        self._due[_key(quota)] = None

    def _tell(self, key: str) -> None:
        namespace, _, name = key.removeprefix(QUOTAS).partition("/")
        quota = self._quotas.get(namespace, {}).get(name)
        kind = self._catalog.by_prefix(QUOTAS)
        if quota is None or kind is None or self._registry is None:
            return
        obj, _ = self._registry.read(kind, namespace, name)
        used = {name: str(quota.used[name]) for name in sorted(quota.used)}
        hard = quota.spec.get("hard") or {}
        told = {"hard": hard, "used": used} if hard else {}
        if obj.get("status") == told:
            return
        write = Write(
            kind=kind,
            namespace=namespace,
            name=name,
            subresource="status",
            manager=MANAGER,
        )
        self._registry.update(write, {**obj, "status": told})


class _Refused(Exception):
    """What does not go with a quota, in the real server's words."""


def _decoded(value: bytes) -> Plain:
    obj: Plain = msgspec.json.decode(value)
    return obj


def _key(quota: Quota) -> str:
    return f"{QUOTAS}{quota.namespace}/{quota.name}"


def _scopes(spec: Plain) -> list[dict[str, Any]]:
    named = [
        {"scopeName": each, "operator": "Exists"} for each in spec.get("scopes") or ()
    ]
    selector = spec.get("scopeSelector") or {}
    return [*named, *(selector.get("matchExpressions") or ())]


def _handled(attributes: Attributes) -> bool:
    """Whether a write can take more of a quota."""
    resource, part = attributes.kind.prefix, attributes.subresource
    if resource in usages.IGNORED or attributes.operation not in (CREATE, UPDATE):
        return False
    if resource == usages.PODS and part == "resize":
        return True
    if part:
        return False
    if attributes.operation == CREATE or resource in BOTH:
        return True
    if resource != usages.PODS or attributes.old is None or attributes.obj is None:
        return False
    before, after = attributes.old, attributes.obj
    return usages.is_terminating(before) != usages.is_terminating(after)


def _check(quota: Quota, resource: str, obj: Plain, old: Plain | None) -> None:
    """That there is room for an object in a quota."""
    names = usages.counted(resource, quota.hard)
    if not names or not usages.is_within(resource, obj, quota.scopes):
        return
    if resource == usages.PODS and (problem := usages.demand(obj, names)):
        raise _Refused(f"failed quota: {quota.name}: {problem}")
    before = quota.taken(resource, old)
    wanted = {
        name: amount - before.get(name, ZERO)
        for name, amount in quota.taken(resource, obj).items()
        if amount > before.get(name, ZERO)
    }
    over = [
        name
        for name, amount in wanted.items()
        if quota.used.get(name, ZERO) + amount > quota.hard[name]
    ]
    if over:
        raise _Refused(
            f"exceeded quota: {quota.name}, requested: {_listed(wanted, over)}, "
            f"used: {_listed(quota.used, over)}, limited: {_listed(quota.hard, over)}"
        )


def _listed(amounts: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in sorted(names))
