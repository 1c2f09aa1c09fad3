"""Messages: stored objects in protobuf, the latest used of them kept.

To encode an object takes far longer than to send it, and a list asks again for what the
last list had. Stored bytes never change their meaning, so they are the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trimtab.embedded import protobuf_parts

LIMIT = 16 << 20
"""So many bytes are kept, those that were stored included."""


class Messages:
    """What has been encoded, in bounded memory."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        # In the order of their use: the first is dropped first.
        self._kept: dict[tuple[str, bytes], bytes] = {}

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    def of(self, name: str, value: bytes) -> bytes:
        """A stored object as the message of that name."""
        key = (name, value)
        found = self._kept.pop(key, None)
        if found is None:
            found = protobuf_parts.message(name, value)
            self._size += len(value) + len(found)
        self._kept[key] = found
        while self._size > self._limit:
            self._drop()
        return found

    def each(self, name: str, values: Iterable[bytes]) -> Iterator[bytes]:
        """Many stored objects as messages of that name.

        Of more than can be kept only the first are looked for: the last ones would
        drop them again, and the next list would find nothing.
        """
        left = self._limit
        for value in values:
            if left > 0:
                found = self.of(name, value)
                left -= len(value) + len(found)
                yield found
            else:
                yield protobuf_parts.message(name, value)

    def _drop(self) -> None:
        oldest = next(iter(self._kept))
        self._size -= len(oldest[1]) + len(self._kept.pop(oldest))
