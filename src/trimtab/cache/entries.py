"""Entries: what a store holds of each object, in whichever form is kept of it.

A slice is held as it is. The other forms are ``bytes`` (packed), :class:`Whole` (full)
and :class:`Stub` (key only), so that the common form needs nothing around it.
"""

from __future__ import annotations

from typing import Any, Generic, cast

from trimtab.cache.accounting import Accountant, Clock, Ledger
from trimtab.cache.changes import Key, R
from trimtab.cache.indexes import Buckets
from trimtab.cache.keeping import Form, Keep, Keeper, Stub, Whole


class Entries(Generic[R]):
    """The entries of one store by key, and what they weigh.

    Guarantees: an entry changes its form by itself only when the accountant asks for
    it (down) or somebody reads it (up); only :meth:`pop` removes one.
    """

    __slots__ = (
        "__weakref__",
        "_accountant",
        "_buckets",
        "_clock",
        "_kind",
        "held",
        "keeper",
        "ledger",
        "plain",
    )

    def __init__(
        self,
        kind: type[R],
        *,
        keep: Keep[R] | None,
        accountant: Accountant | None,
        buckets: dict[str, Buckets],
    ) -> None:
        self.held: dict[Key, Any] = {}
        self.keeper = Keeper(kind, keep)
        self.ledger = Ledger()
        self._kind = kind
        self._buckets = buckets
        self._accountant = accountant
        self._clock: Clock | None = None
        if accountant is not None:
            accountant.enter(self)
            self._clock = None if accountant.budget is None else Clock()
        self.plain = keep in (None, "slice") and self._clock is None
        """Every entry is a slice, and nobody asks which of them are cold."""

    def put(self, key: Key, obj: R, *, raw: bytes | None, before: Any) -> None:
        """Hold an object in the form that is wanted of it."""
        self._replace(key, before, self._form_for(obj, raw))
        if self._clock is not None and self._accountant is not None:
            if before is not None:  # what is new is last in the queue anyway
                self._clock.touched.add(key)
            self._accountant.spend(self.ledger.mean)

    def pop(self, key: Key) -> Any:
        """Let go of an entry; None if there is none."""
        held = self.held.pop(key, None)
        if not self.plain and held is not None:
            self.ledger.count(held, -1)
            if self._clock is not None:
                self._clock.touched.discard(key)
        return held

    def slice(self, held: Any) -> R | None:
        """The object of an entry, if more than its key is kept; no form changes."""
        kind = type(held)
        if kind is Whole:
            return cast(R, held.slice)
        if kind is bytes:
            return self.keeper.unpacked(held)
        return None if kind is Stub else cast(R, held)

    def read(self, key: Key) -> R | None:
        """The object under a key; one that was packed is a slice again."""
        held = self.held.get(key)
        if held is None or self.plain:
            return cast("R | None", held)
        obj = self.slice(held)
        if self._clock is None or self._accountant is None or obj is None:
            return obj
        self._clock.touched.add(key)
        if type(held) is bytes:
            self._replace(key, held, self.keeper.promoted(obj, held))
            self._accountant.promoted(self.ledger.mean)
        return obj

    def demote(self, *, packed: bool) -> bool:
        """Make the coldest slice (or packed entry) smaller; False if there is none."""
        if self._clock is None:
            return False
        key = self._clock.next(self.held, packed=packed)
        if key is None:
            return False
        held = self.held[key]
        if packed:
            obj = self.keeper.unpacked(held)
            self._replace(key, held, self._stub(obj))
        else:
            data = held.data if type(held) is Whole else self.keeper.packed(held)
            self._replace(key, held, data)
        return True

    def accounted(self) -> int:
        """The bytes of all entries, their keys and their indexes."""
        indexes = sum(buckets.bytes() for buckets in self._buckets.values())
        return self.ledger.bytes(self.held) + indexes

    def by_form(self) -> dict[Form, int]:
        ledger = self.ledger
        rest = len(self.held) - ledger.full - ledger.packed - ledger.key
        return {
            "full": ledger.full,
            "slice": rest,
            "bytes": ledger.packed,
            "key": ledger.key,
        }

    def _replace(self, key: Key, before: Any, after: Any) -> None:
        self.held[key] = after
        if before is not None:
            self.ledger.count(before, -1)
        self.ledger.count(after, 1)
        if self._clock is not None:
            self._clock.came(key, before, after, self.held)

    def _form_for(self, obj: R, raw: bytes | None) -> Any:
        wanted = self.keeper.wanted(obj)
        if wanted == "key":
            return self._stub(obj)
        # Without its bytes, the slice is all that there is to keep.
        full = wanted == "full" and raw is not None
        return self.keeper.whole(obj, raw) if full and raw is not None else obj

    def _stub(self, obj: R) -> Stub:
        return Stub.of(obj, (each.values(obj) for each in self._buckets.values()))
