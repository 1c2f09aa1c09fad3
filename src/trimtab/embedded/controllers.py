"""Controllers: those of a real control plane that clients wait for, in this server.

What the controllers of a real control plane do and clients wait for is done here, in
small steps between requests, soon after the write that it follows from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from trimtab.embedded.apiservices import ApiServices
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.flows import Flows
from trimtab.embedded.furniture import Furniture
from trimtab.embedded.kinds import Plain
from trimtab.embedded.policies.typechecking import TypeChecking
from trimtab.embedded.protection import Protection
from trimtab.embedded.quota import Quotas
from trimtab.embedded.rbac.aggregation import Aggregation
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.registry import Registry
from trimtab.embedded.service_addresses import ServiceAddresses
from trimtab.embedded.signers import Issue, Signers
from trimtab.embedded.store import Store
from trimtab.embedded.suspended import SuspendedJobs


class Controller(Protocol):
    """One who follows the store."""

    def start(self) -> None:
        """Find in the store what there is to do, then follow its changes."""

    def step(self) -> bool:
        """Do some of what is due; True if there is more."""


class Controllers:
    """Every one of them, each with what it follows."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        authorizer: Authorizer,
        quotas: Quotas,
        flows: Iterable[Plain],
        furnish: Callable[[str], None],
        issue: Issue | None,
        now: Callable[[], datetime],
    ) -> None:
        self._flows = Flows(
            store, catalog=catalog, registry=registry, own=flows, now=now
        )
        self._all: tuple[Controller, ...] = (
            SuspendedJobs(store, catalog=catalog, registry=registry, now=now),
            TypeChecking(store, catalog=catalog, registry=registry, now=now),
            Aggregation(store, catalog=catalog, registry=registry),
            ServiceAddresses(store, catalog=catalog, registry=registry, now=now),
            Protection(store, catalog=catalog, registry=registry),
            ApiServices(store, catalog=catalog, registry=registry, now=now),
            Signers(
                store,
                catalog=catalog,
                registry=registry,
                authorizer=authorizer,
                issue=issue,
                now=now,
            ),
            Furniture(store, furnish=furnish),
            self._flows,
            quotas,
        )
        quotas.follow(registry)

    def start(self) -> None:
        for each in self._all:
            each.start()

    def step(self) -> bool:
        """Do some of what is due; True if there is more."""
        more = False
        for each in self._all:
            more = each.step() or more
        return more

    def maintain(self) -> None:
        """Do what is due with time."""
        self._flows.maintain()
