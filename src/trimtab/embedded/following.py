"""Following: what looks again at an object of some kind soon after it was written.

The keys that are due are all that is kept in memory, and they can be found again in the
store: a controller that starts anew looks at everything once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from trimtab.embedded.catalog import Catalog
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.registry import Registry
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store


class Follower(ABC):
    """Follows the objects under one prefix of the store.

    Flow: ``start`` once, then ``step`` between requests for as long as it says True.

    Guarantees: what is written while it is followed is due again, so that a step which
    the write made pointless is made up for.
    """

    prefix: ClassVar[str]
    limit: ClassVar[int] = 20
    """How many are looked at in one step."""

    def __init__(
        self,
        store: Store,
        *,
        catalog: Catalog,
        registry: Registry,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._registry = registry
        self._now = now
        self._due: dict[str, None] = {}

    def start(self) -> None:
        """Look at all that the store has, then follow its changes."""
        for row in self._store.scan(self.prefix):
            self._look(row.key, row.value)
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Do some of what is due; True if there is more."""
        for key in list(self._due)[: self.limit]:
            del self._due[key]
            with suppress(ApiProblem):  # gone or changed meanwhile: that is seen too
                self._follow(key)
        return bool(self._due)

    def _seen(self, change: Change) -> None:
        if change.value is not None and change.key.startswith(self.prefix):
            self._look(change.key, change.value)

    def _look(self, key: str, value: bytes) -> None:
        """Make due what follows from an object as it was written."""
        self._due[key] = None

    @abstractmethod
    def _follow(self, key: str) -> None:
        """Do what is due."""


class ObjectFollower(Follower):
    """One that is due by the key of its object, and reads it to know what to do."""

    def _follow(self, key: str) -> None:
        kind, row = self._catalog.by_prefix(key), self._store.get(key)
        if kind is not None and row is not None:
            self._judge(kind, kind.decode(row.value))

    @abstractmethod
    def _judge(self, kind: Kind, obj: Plain) -> None:
        """Write down what follows from an object as it is now."""
