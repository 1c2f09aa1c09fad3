"""Relists: a list that lands in a living store without anything going meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from trimtab.cache.changes import Change, Key, R

if TYPE_CHECKING:
    from trimtab.cache.store import Store


class Relist(Generic[R]):
    """A list in progress: it knows which keys of its namespace it has not seen yet.

    Flow: :meth:`put` each object, then :meth:`finish` once the list is complete, or
    :meth:`abandon` when it broke off; what was put by then stays, and nothing else
    changes.
    Guarantees: an object that the list has is there all the time. What the list does
    not have goes in :meth:`finish`, with its last known state. Changes of the first
    list that a namespace completes are ``initial``.
    Assumptions: the watch of the same namespace does not run at the same time.
    """

    __slots__ = ("_initial", "_namespace", "_rest", "_store", "rewound")

    def __init__(
        self, store: Store[R], namespace: str | None, *, rewound: bool = False
    ) -> None:
        self._store = store
        self._namespace = namespace
        self.rewound = rewound
        self._initial = not store.is_listed(namespace)
        self._rest: set[Key] | None = set(store.held_in(namespace))

    def put(self, obj: R, *, raw: bytes | None = None) -> Change[R] | None:
        """Take one object of the list; None where the store has it already."""
        rest = self._rest
        assert rest is not None, "a finished or abandoned list takes no more objects"
        if rest:
            rest.discard((obj.metadata.namespace, obj.metadata.name))
        change = self._store.put(obj, raw=raw, relist=self)
        if change is not None:
            change.initial = self._initial
        return change

    def keep(self, key: Key) -> None:
        """The list has this object but it cannot be read; what is there stays."""
        if self._rest is not None:
            self._rest.discard(key)

    def finish(self) -> list[Change[R]]:
        """The list is complete: remove what it did not have, and say what that was."""
        rest, self._rest = self._rest, None
        assert rest is not None, "a list ends once"
        return self._store.listed(self._namespace, without=rest)

    def abandon(self) -> None:
        """The list broke off: remove nothing. After :meth:`finish` it does nothing."""
        self._rest = None
