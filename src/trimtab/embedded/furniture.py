"""Furniture: what every namespace has comes back when somebody takes it away."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.store import Change, Store

NAMESPACES = "core/namespaces/"
PIECES = {
    "core/configmaps/": "kube-root-ca.crt",
    "core/serviceaccounts/": "default",
}


class Furniture:
    """Which namespaces miss something, or have it changed."""

    def __init__(self, store: Store, *, furnish: Callable[[str], None]) -> None:
        self._store = store
        self._furnish = furnish
        self._due: dict[str, None] = {}

    def start(self) -> None:
        """Follow the changes of the store."""
        self._store.subscribe(self._seen)

    def step(self) -> bool:
        """Give back what is missing; True if there is more to do."""
        for name in list(self._due):
            del self._due[name]
            row = self._store.get(NAMESPACES + name)
            if row is None:
                continue
            if metadata_of(msgspec.json.decode(row.value)).get("deletionTimestamp"):
                continue
            with suppress(ApiProblem):  # it goes just now
                self._furnish(name)
        return bool(self._due)

    def _seen(self, change: Change) -> None:
        if change.previous is None or not change.key.startswith(tuple(PIECES)):
            return
        prefix = next(each for each in PIECES if change.key.startswith(each))
        namespace, _, name = change.key.removeprefix(prefix).partition("/")
        if name == PIECES[prefix]:
            self._due[namespace] = None
