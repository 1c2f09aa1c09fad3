"""HTTP/1.1 as text: requests into bytes, the heads and bodies of answers out of them.

All that an API server needs of a client and nothing else, read strictly: whatever two
readers could understand differently is refused. No sockets and no waiting here.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

import msgspec

HEAD_LIMIT = 1 << 16
LINE_LIMIT = 1 << 12
"""The longest size of a chunk, with its extensions, or line of a trailer."""
INFLATED = 1 << 18
"""How much compressed bytes may grow to in one piece."""

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n\0]*)?")
_HEADER = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\r\n\0]*)")
_LENGTH = re.compile(r"[0-9]{1,18}")
# The line before a chunk; before all but the first, with the end of the last chunk.
_FIRST = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r\n")
_NEXT = re.compile(rb"\r\n" + _FIRST.pattern)
_NO_BODY = frozenset({204, 304})


class Broken(Exception):
    """The connection ended before the answer did."""


class Garbled(Exception):
    """What came is not HTTP."""


class Head(msgspec.Struct, frozen=True):
    """The start of an answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in small letters."""
    persistent: bool
    """Whether the connection may be used again once the body has been read."""

    def all(self, name: str) -> list[str]:
        name = name.lower()
        return [value for key, value in self.headers if key == name]


def parse_head(data: bytes) -> Head:
    """The head that stands in ``data``, without its empty line."""
    first, *lines = data.decode("latin-1").split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise Garbled("its first line is not that of an answer")
    head = Head(int(status[2]), tuple(map(_header, lines)), persistent=False)
    words = [
        word.strip(" \t").lower()
        for value in head.all("connection")
        for word in value.split(",")
    ]
    if status[1] == "1":
        persistent = "close" not in words
    else:  # an old server does not know chunks: what says so is not to be trusted
        persistent = "keep-alive" in words and not head.all("transfer-encoding")
    return msgspec.structs.replace(head, persistent=persistent)


def _header(line: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(line)  # a line that is folded into the next one is none
    if found is None:
        raise Garbled("one of its headers is none")
    return found[1].lower(), found[2].strip(" \t")


def starts_well(data: bytearray) -> bool:
    """Whether the part of a head that has come can still become one."""
    start = bytes(data[:5])
    newline = data.find(b"\n")
    return b"HTTP/".startswith(start) and (newline < 0 or data[newline - 1] == 0x0D)


class Body:
    """How far into the body of an answer a reader is; takes it out of a buffer."""

    __slots__ = ("_left", "_line", "_trailer", "chunked", "done")

    def __init__(self, head: Head, *, method: str) -> None:
        self._left: int | None = None
        """Bytes that remain of the body, or of the present chunk, if that is known."""
        self._line = _FIRST
        """What comes next, when nothing remains of the present chunk."""
        self._trailer = False
        """The last chunk has come, and lines that nobody reads may follow."""
        encodings = [value.lower() for value in head.all("transfer-encoding")]
        lengths = set(head.all("content-length"))
        self.chunked = bool(encodings)
        if encodings and (encodings != ["chunked"] or lengths):
            raise Garbled("nobody can tell where it ends")
        if method == "HEAD" or head.status < 200 or head.status in _NO_BODY:
            self.chunked, self._left = False, 0
        elif self.chunked:
            self._left = 0
        elif lengths:
            self._left = _length(lengths)
        self.done = self._left == 0 and not self.chunked

    @property
    def bounded(self) -> bool:
        """Whether it says where it ends; else the end of the connection is its own."""
        return self._left is not None

    def take(self, data: bytearray) -> bytes:
        """What of the body stands in ``data``; it is removed from there."""
        if self.chunked:
            return self._take_chunks(data)
        with memoryview(data) as view:
            taken = bytes(view[: self._left])
        del data[: len(taken)]
        if self._left is not None:
            self._left -= len(taken)
            self.done = self._left == 0
        return taken

    def _take_chunks(self, data: bytearray) -> bytes:
        at, end, left = 0, len(data), self._left or 0
        spans: list[tuple[int, int]] = []
        while at < end and not self._trailer:
            if left:
                stop = min(at + left, end)
                spans.append((at, stop))
                left -= stop - at
                at = stop
            elif end - at <= 2 and self._line is _NEXT:
                break  # the end of the chunk before, at most; more must follow
            elif (line := self._line.match(data, at, at + LINE_LIMIT)) is not None:
                left, at = int(line[1], 16), line.end()
                self._line = _NEXT
                self._trailer = left == 0
            else:
                self._check_line(data, at)
                break
        self._left = left
        with memoryview(data) as view:
            taken = b"".join([view[start:stop] for start, stop in spans])
        del data[:at]
        if self._trailer:
            self._skip_trailer(data)
        return taken

    def _check_line(self, data: bytearray, at: int) -> None:
        """What is not the line before a chunk may become it, or it never will."""
        if self._line is _NEXT and not b"\r\n".startswith(data[at : at + 2]):
            raise Garbled("one of its chunks is longer than it says")
        if data.find(b"\n", at + 2) >= 0 or len(data) - at >= LINE_LIMIT:
            raise Garbled("one of its chunks has no size")

    def _skip_trailer(self, data: bytearray) -> None:
        while not self.done and (stop := data.find(b"\r\n", 0, LINE_LIMIT)) >= 0:
            self.done = stop == 0
            del data[: stop + 2]
        if not self.done and len(data) >= LINE_LIMIT:
            raise Garbled("its last lines do not end")


def _length(lengths: set[str]) -> int:
    text = lengths.pop()
    if lengths or not _LENGTH.fullmatch(text):
        raise Garbled("nobody can tell how long it is")
    return int(text)


class Inflater:
    """Undoes gzip, a bounded piece at a time."""

    __slots__ = ("_began", "_stream", "_waiting")

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._waiting = b""
        self._began = False

    @property
    def waiting(self) -> bool:
        """Whether there is more to come out of what went in."""
        return bool(self._waiting)

    def inflate(self, data: bytes = b"") -> bytes:
        self._began = True
        try:
            out = self._stream.decompress(self._waiting + data, INFLATED)
        except zlib.error as error:
            raise Garbled("it is not the gzip that it says it is") from error
        if self._stream.unused_data:
            raise Garbled("something stands behind its gzip")
        self._waiting = self._stream.unconsumed_tail
        return out

    def end(self) -> None:
        """No more comes: what came must have been all of it."""
        if self._began and not self._stream.eof:
            raise Garbled("its gzip has no end")


def request_bytes(
    method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None
) -> bytes:
    """The head of a request, its empty line included."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers)]
    if body is not None or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body or b'')}")
    for line in lines:
        if "\r" in line or "\n" in line or "\0" in line:
            raise ValueError("a header must not hold a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
