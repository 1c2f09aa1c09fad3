"""Aggregation: cluster roles whose rules are those of others, chosen by labels.

What the real cluster has a controller for is done here soon after the write that it
follows from, in the same order and under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from trimtab.api.selectors import LabelSelector, Selector
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Plain
from trimtab.embedded.rbac.index import CLUSTER_ROLES, GROUP
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store
from trimtab.embedded.writes import Write

MANAGER = "clusterrole-aggregation-controller"
API_VERSION = f"{GROUP}/v1"


class Aggregation:
    """Whether a cluster role has changed since the last look at all of them."""

    def __init__(self, store: Store, *, catalog: Catalog, registry: Registry) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._due = True

    def start(self) -> None:
        """Follow the changes of the store."""
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Bring the roles that are made of others up to date; True if one changed."""
        if not self._due:
            return False
        self._due = False
        rows = self._store.range(CLUSTER_ROLES)
        roles = [msgspec.json.decode(row.value) for row in rows]
        for role in roles:
            if role.get("aggregationRule") is not None:
                # One that is gone meanwhile, or that cannot be read, waits for a write.
                with suppress(ApiProblem, ValueError):
                    self._follow(role, roles)
        return self._due

    def _seen(self, change: Change) -> None:
        if change.key.startswith(CLUSTER_ROLES):
            self._due = True

    def _follow(self, role: Plain, roles: Iterable[Plain]) -> None:
        rules = aggregated(role, roles)
        if rules == (role.get("rules") or []):
            return
        kind = self._catalog.by_kind(API_VERSION, "ClusterRole")
        assert kind is not None, "cluster roles are always served"
        name = role["metadata"]["name"]
        intent = {
            "apiVersion": API_VERSION,
            "kind": "ClusterRole",
            "metadata": {"name": name},
        }
        write = Write(kind=kind, name=name, manager=MANAGER, force=True)
        self._registry.apply(write, {**intent, "rules": rules} if rules else intent)


def aggregated(role: Plain, roles: Iterable[Plain]) -> list[Plain]:
    """The rules that a role gets from the others, in the order of their names.

    Errors: ``ValueError`` for a selector that makes no sense.
    """
    others = sorted(
        (
            each
            for each in roles
            if each["metadata"]["name"] != role["metadata"]["name"]
        ),
        key=lambda each: str(each["metadata"]["name"]),
    )
    found: list[Plain] = []
    for wanted in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = Selector.from_wire(msgspec.convert(wanted, LabelSelector))
        for each in others:
            if selector.matches(each["metadata"].get("labels") or {}):
                rules = each.get("rules") or ()
                found += [rule for rule in rules if rule not in found]
    return found
