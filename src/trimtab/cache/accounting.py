"""Accounting: how many bytes the stores hold, and who goes when that is too much.

Sizes are sampled: the deep size of one object in 64 or more, and for each store the
running mean. Past the budget the clock goes round: what was read or changed since it
last came by is spared once, the rest is packed; when no slice is left, packed objects
become keys. CPython does not give memory back to the system, so these are accounted
bytes.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from trimtab.cache.changes import Key
from trimtab.cache.keeping import Stub, Whole

if TYPE_CHECKING:
    from trimtab.cache.entries import Entries

SAMPLED: Final = 64
"""One object in so many is measured: of the first ones each, of many fewer."""
_FIRST: Final = 16
_WINDOW: Final = 64
_KEY: Final = 64  # a tuple of two, as the allocator rounds it
# The parent, whoever works with a part of it just now, an index, and this module.
_SHARED: Final = 7
_STRING: Final = sys.getsizeof("")


class AccountantStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What all stores hold, and how often something had to go."""

    budget: int | None
    bytes: int
    packed: int
    """How many slices became bytes since the start."""
    dropped: int
    """How many packed objects became keys since the start."""
    promoted: int
    """How many packed objects became slices because somebody read them."""


def deep_size(obj: Any) -> int:
    """The bytes of an object and of all that it refers to.

    What many refer to (defaults, names of labels, values that a decoder hands out
    again and again) is shared, and counts for nothing.
    """
    total = 0
    stack = [obj]
    while stack:
        value = stack.pop()
        if sys.getrefcount(value) <= _SHARED or value is obj:
            total += _rounded(sys.getsizeof(value))
            stack.extend(_parts(value))
    return total


def _parts(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind is str or kind is int:
        return ()
    if kind is dict:
        return (*value.keys(), *value.values())
    if kind is list or kind is tuple:
        return cast(Iterable[Any], value)
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in kind.__struct_fields__]
    return [getattr(value, name, None) for name in _slots(kind)]


def _slots(kind: type) -> tuple[str, ...]:
    return tuple(
        name
        for each in kind.__mro__
        for name in getattr(each, "__slots__", ())
        if not name.startswith("__")
    )


def _rounded(size: int) -> int:
    return size + 15 & ~15


class Ledger:
    """What one store holds, in numbers."""

    __slots__ = (
        "_samples",
        "bytes_held",
        "full",
        "key",
        "mean",
        "packed",
        "unmeasured",
    )

    def __init__(self) -> None:
        self.full = self.packed = self.key = 0
        """Entries in these forms; all others are slices."""
        self.bytes_held = 0
        """The exact size of everything that is not a slice."""
        self.mean = 0.0
        """The size of a slice, as far as it is known."""
        self.unmeasured = 0
        """How many more objects may come before one is measured."""
        self._samples = 0

    def measure(self, obj: Any) -> None:
        """Let this object stand for those that come with it."""
        self._samples += 1
        if self._samples >= _FIRST:
            self.unmeasured = (SAMPLED if self._samples < _WINDOW else 8 * SAMPLED) - 1
        self.mean += (deep_size(obj) - self.mean) / min(self._samples, _WINDOW)

    def count(self, entry: Any, sign: Literal[1, -1]) -> None:
        """An entry that is not a plain slice came (1) or went (-1)."""
        kind = type(entry)
        if kind is bytes:
            self.packed += sign
            self.bytes_held += sign * _rounded(sys.getsizeof(entry))
        elif kind is Whole:
            self.full += sign
            own = _rounded(sys.getsizeof(entry)) + _rounded(sys.getsizeof(entry.data))
            self.bytes_held += sign * own
        elif kind is Stub:
            self.key += sign
            self.bytes_held += sign * deep_size(entry)

    def bytes(self, entries: dict[Key, Any]) -> int:
        """What a store holds in all but its indexes."""
        count = len(entries)
        slices = count - self.packed - self.key
        table = sys.getsizeof(entries) + _KEY * count
        # A key outlives the object that it came with, and then holds the name alone.
        names = (count - slices) * _rounded(_STRING + 24)
        return int(slices * self.mean) + self.bytes_held + table + names


class Clock:
    """Who is next in one store: the order in which entries came, and who is spared.

    The queues may name entries that have gone or changed form since; they are passed
    over, and swept out when they outnumber the rest.
    """

    __slots__ = ("_queues", "touched")

    def __init__(self) -> None:
        self.touched: set[Key] = set()
        self._queues: tuple[deque[Key], deque[Key]] = (deque(), deque())

    def came(self, key: Key, before: Any, after: Any, held: dict[Key, Any]) -> None:
        """An entry took a form; what is in a queue already stays where it is."""
        level = _level(after)
        if level is None or (before is not None and _level(before) == level):
            return
        queue = self._queues[level]
        queue.append(key)
        if len(queue) > 2 * len(held) + SAMPLED:
            kept = dict.fromkeys(each for each in queue if each in held)
            queue.clear()
            queue.extend(kept)

    def next(self, held: dict[Key, Any], *, packed: bool) -> Key | None:
        """Take the coldest entry of this form off its queue; None if there is none."""
        queue = self._queues[packed]
        while queue:
            key = queue.popleft()
            if key not in held or _level(held[key]) != packed:
                continue
            if key not in self.touched:
                return key
            self.touched.discard(key)
            queue.append(key)
        return None


def _level(entry: Any) -> bool | None:
    """False for what can be packed, True for what is packed, None for a key."""
    return None if type(entry) is Stub else type(entry) is bytes


class Accountant:
    """Keeps all stores together within a budget of accounted bytes.

    Flow: each store enters; each put takes from what is spare, and when nothing is,
    :meth:`settle` demotes the coldest entries: slice to bytes, bytes to key.
    Guarantees: after settling, the accounted bytes are within the budget, or every
    entry is a key. No entry is lost.
    """

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and budget <= 0:
            raise ValueError(f"A budget of {budget} bytes holds nothing; give it more.")
        self.budget = budget
        self._stores: list[weakref.ref[Entries[Any]]] = []
        self._spare = 0.0
        self._turn = 0
        self._packed = self._dropped = self._promoted = 0

    def enter(self, store: Entries[Any]) -> None:
        """Account for a store as long as somebody holds it."""
        self._stores = [each for each in self._stores if each() is not None]
        self._stores.append(weakref.ref(store))

    @property
    def bytes(self) -> int:
        return sum(store.accounted() for store in self._living())

    def statistics(self) -> AccountantStatistics:
        return AccountantStatistics(
            budget=self.budget,
            bytes=self.bytes,
            packed=self._packed,
            dropped=self._dropped,
            promoted=self._promoted,
        )

    def spend(self, size: float) -> None:
        """So many bytes more are held, as far as anybody knows."""
        self._spare -= size
        if self._spare < 0:
            self.settle()

    def promoted(self, size: float) -> None:
        """Somebody read a packed entry, so it is a slice again."""
        self._promoted += 1
        self.spend(size)

    def settle(self) -> None:
        """Demote until what is held is within the budget."""
        if self.budget is None:
            return
        stores = self._living()
        while (over := sum(each.accounted() for each in stores) - self.budget) > 0:
            if not any(self._step(stores, packed=each) for each in (False, True)):
                break
        self._spare = max(0, -over)

    def _step(self, stores: list[Entries[Any]], *, packed: bool) -> bool:
        """Demote one entry of this form, from the store whose turn it is."""
        for _ in stores:
            self._turn = (self._turn + 1) % len(stores)
            if stores[self._turn].demote(packed=packed):
                if packed:
                    self._dropped += 1
                else:
                    self._packed += 1
                return True
        return False

    def _living(self) -> list[Entries[Any]]:
        return [store for each in self._stores if (store := each()) is not None]
