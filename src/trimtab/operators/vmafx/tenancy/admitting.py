"""Admitting jobs: whether a tenant may have another one wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trimtab.client import TrimtabError
from trimtab.operators.vmafx.tenancy.registry import Registry


class TooMany(TrimtabError):
    """The caller has as much as it may have."""


class Admitting:
    """Counts what waits, and what is being made to.

    ``waiting`` says how many jobs of a tenant this gateway knows to wait.

    Guarantees: of callers of one gateway, however many at once, none gets beyond the
    quota. Of what another gateway admits this one learns by its watch.
    """

    def __init__(self, registry: Registry, waiting: Callable[[str], int]) -> None:
        self._registry = registry
        self._waiting = waiting
        # Jobs that are being created, by tenant; empty when nobody submits.
        self._coming: Counter[str] = Counter()

    def has_room(self, tenant: str) -> bool:
        """Whether another job may wait."""
        most = self._registry.most_pending(tenant)
        return most is None or self._waiting(tenant) + self._coming[tenant] < most

    @contextmanager
    def one(self, tenant: str) -> Iterator[None]:
        """Create a job in the block. Errors: :class:`TooMany`."""
        if not self.has_room(tenant):
            most = self._registry.most_pending(tenant)
            raise TooMany(
                f"{most} jobs of the caller may wait, and as many do: submit it again "
                "when some are done."
            )
        self._coming[tenant] += 1
        try:
            yield
        finally:
            self._coming[tenant] -= 1
            if not self._coming[tenant]:
                del self._coming[tenant]
