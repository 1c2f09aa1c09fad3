"""Order: which events of a watch are news, if some come twice or late."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from trimtab.api.resource import Metadata

Judgement: TypeAlias = Literal["news", "late", "old"]
"""``late``: newer ones of other objects came before it. ``old``: it was taken, or its
object is known to be gone."""

BURIED: Final = 4096
"""Deletions that are remembered; servers say more often how far they have come."""


class Order:
    """Which events are news, if some come twice, late, or in the wrong order.

    Revisions are compared only where they are numbers; others are taken as they come.
    """

    __slots__ = ("_buried", "_floor", "_latest")

    def __init__(self) -> None:
        self._floor = 0
        """Everything up to this revision has been taken."""
        self._latest = 0
        """The newest event's revision: at least the floor."""
        self._buried: dict[str, int] = {}
        """When objects were deleted, by uid, since the floor; the newest of many."""

    def restart(self, revision: str) -> None:
        """All events up to a revision were taken, says the server."""
        self._floor = self._latest = int(revision) if revision.isdecimal() else 0
        self._buried.clear()

    def judge(self, kind: str, metadata: Metadata) -> Judgement:
        """What an event is, as far as other objects' events tell."""
        revision = metadata.resourceVersion
        if not revision.isdecimal():
            return "news"
        number = int(revision)
        if number <= self._floor:
            return "old"
        late = number <= self._latest
        if late and number <= self._buried.get(metadata.uid, 0):
            return "old"
        if kind == "DELETED":
            self._bury(metadata.uid, number)
        if late:
            return "late"
        self._latest = number
        return "news"

    def _bury(self, uid: str, number: int) -> None:
        self._buried[uid] = number
        if len(self._buried) > BURIED:
            del self._buried[next(iter(self._buried))]

    @staticmethod
    def is_older(revision: str, *, than: str) -> bool:
        if revision.isdecimal() and than.isdecimal():
            return int(revision) < int(than)
        return False
