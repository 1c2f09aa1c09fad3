"""Owners: who names whom as an owner, and whose deletion has to wait for that.

Dependents are found by the uid of their owner, without a look at anything else, and
whether an owner is blocked is a number that is kept: letting one dependent go costs the
same whether there are ten others or ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

Names = tuple[tuple[str, bool], ...]
"""Uids of owners, and whether they wait for the one who names them."""


class Owners:
    """The index of owner references of all objects in a store."""

    def __init__(self) -> None:
        self._named: dict[str, Names] = {}
        self._dependents: dict[str, set[str]] = {}
        self._blocking: dict[str, int] = {}

    def name(self, key: str, references: Iterable[tuple[str, bool]]) -> list[str]:
        """Note whom an object names from now on; a gone one names nobody.

        Returns the owners that no longer wait for this object.
        """
        before = self._named.pop(key, ())
        after = tuple(dict(references).items())
        for uid, blocks in before:
            self._drop(key, uid, blocks)
        for uid, blocks in after:
            self._dependents.setdefault(uid, set()).add(key)
            self._blocking[uid] = self._blocking.get(uid, 0) + blocks
        if after:
            self._named[key] = after
        waited = {uid for uid, blocks in after if blocks}
        return [uid for uid, blocks in before if blocks and uid not in waited]

    def _drop(self, key: str, uid: str, blocks: bool) -> None:
        dependents = self._dependents[uid]
        dependents.discard(key)
        self._blocking[uid] -= blocks
        if not dependents:
            del self._dependents[uid], self._blocking[uid]

    def dependents(self, uid: str) -> tuple[str, ...]:
        """The keys of those who name an owner; in no order."""
        return tuple(self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def is_blocked(self, uid: str) -> bool:
        """Whether somebody names it as an owner that has to wait."""
        return self._blocking.get(uid, 0) > 0
