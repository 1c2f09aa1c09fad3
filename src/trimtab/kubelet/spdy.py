"""SPDY/3.1 frames, as far as kubectl's port-forward needs them: a pure core.

kubectl carries them in WebSocket messages. Streams are opened by the client only, and
there is no flow control, since its library has none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

DICTIONARY = Path(__file__).parent / "data" / "spdy3.dictionary"
VERSION = 0x8003
OPEN, OPENED, RESET, SETTINGS, PING, GONE = 1, 2, 3, 4, 6, 7
FINISH = 1
MOST = 1 << 20
CANCELLED = 5


class Malformed(Exception):
    """What came is no SPDY."""


class Opened(msgspec.Struct, frozen=True):
    """The client opened a stream."""

    stream: int
    headers: Mapping[str, str]
    finished: bool


class Data(msgspec.Struct, frozen=True):
    """Something came on a stream; ``finished``: nothing more will."""

    stream: int
    content: bytes
    finished: bool


class Dropped(msgspec.Struct, frozen=True):
    """The client gave up a stream."""

    stream: int


class Echo(msgspec.Struct, frozen=True):
    """A ping that is to be sent back."""

    frame: bytes


Event = Opened | Data | Dropped | Echo


class Framing:
    """Both directions of one connection: bytes in, events out, and frames to send."""

    def __init__(self) -> None:
        dictionary = DICTIONARY.read_bytes()
        self._inflate = zlib.decompressobj(zdict=dictionary)
        self._deflate = zlib.compressobj(
            9, zlib.DEFLATED, zlib.MAX_WBITS, 8, zlib.Z_DEFAULT_STRATEGY, dictionary
        )
        self._rest = b""

    def receive(self, data: bytes) -> Iterator[Event]:
        """What the client says with some more bytes.

        Errors: :class:`Malformed`.
        """
        self._rest += data
        while len(self._rest) >= 8:
            head, last = struct.unpack(">II", self._rest[:8])
            flags, size = last >> 24, last & 0xFFFFFF
            if size > MOST:
                raise Malformed(f"a frame of {size} bytes is too long")
            if len(self._rest) < 8 + size:
                return
            payload = self._rest[8 : 8 + size]
            whole, self._rest = self._rest[: 8 + size], self._rest[8 + size :]
            if head >> 31:
                yield from self._control(head, flags, payload, whole)
            else:
                yield Data(head, payload, bool(flags & FINISH))

    def _control(
        self, head: int, flags: int, payload: bytes, whole: bytes
    ) -> Iterator[Event]:
        if head >> 16 != VERSION:
            raise Malformed(f"version {head >> 16 & 0x7FFF} is not spoken here")
        kind = head & 0xFFFF
        if kind == OPEN:
            [stream] = struct.unpack(">I", payload[:4])
            yield Opened(stream, self._headers(payload[10:]), bool(flags & FINISH))
        elif kind == RESET:
            yield Dropped(struct.unpack(">I", payload[:4])[0])
        elif kind == PING:
            yield Echo(whole)

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, MOST)
            [count] = struct.unpack(">I", plain[:4])
            position, found = 4, []
            for _ in range(2 * count):
                [size] = struct.unpack(">I", plain[position : position + 4])
                position += 4
                found.append(plain[position : position + size].decode())
                position += size
        except (zlib.error, struct.error, UnicodeDecodeError) as error:
            raise Malformed(
                f"the headers of a stream cannot be read: {error}"
            ) from None
        return dict(zip(found[::2], found[1::2], strict=True))

    def opened(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack(">I", 0))
        block += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(OPENED, struct.pack(">I", stream) + block)

    def data(self, stream: int, content: bytes, *, finish: bool = False) -> bytes:
        flags = FINISH << 24 if finish else 0
        return struct.pack(">II", stream, flags | len(content)) + content

    def dropped(self, stream: int) -> bytes:
        return _control(RESET, struct.pack(">II", stream, CANCELLED))


def _control(kind: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", VERSION, kind, len(payload)) + payload
