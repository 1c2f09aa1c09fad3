"""One gRPC call: the health check of a server, on as little HTTP/2 as it takes.

Only literal header fields are sent, and the headers of the answer are not read: the
message that comes back says all there is to know.
"""

from __future__ import annotations

import asyncio
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACKNOWLEDGED = 1, 4, 1
STREAM = 1
MOST = 1 << 16
UNKNOWN, SERVING, NOT_SERVING, NO_SERVICE = range(4)
WORDS = {
    UNKNOWN: "UNKNOWN",
    SERVING: "SERVING",
    NOT_SERVING: "NOT_SERVING",
    NO_SERVICE: "SERVICE_UNKNOWN",
}


async def health(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    address: str,
    service: str,
) -> int:
    """What ``grpc.health.v1.Health/Check`` answers; the connection is closed then.

    Errors: ``OSError`` or ``EOFError`` if nobody speaks there, ``ValueError`` if the
    server answers without a message, which it does for an error.
    """
    try:
        writer.write(PREFACE + frame(SETTINGS, 0, 0, b"") + asked(address, service))
        return await _answer(reader, writer)
    finally:
        writer.close()


def asked(address: str, service: str) -> bytes:
    """The request: its headers and its only message."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": address,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.36",
    }
    block = b"".join(_literal(name, value) for name, value in fields.items())
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    body = struct.pack(">BI", 0, len(message)) + message
    head = frame(HEADERS, END_HEADERS, STREAM, block)
    return head + frame(DATA, END_STREAM, STREAM, body)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    size = len(payload).to_bytes(3, "big")
    return size + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name: str, value: str) -> bytes:
    """A header field that is not indexed; names and values are short here."""
    return b"\0" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    return b"\x7f" + _varint(len(data) - 127) + data


def _varint(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    message = b""
    while True:
        head = await reader.readexactly(9)
        size = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        if size > MOST:
            raise ValueError("the answer is too long for a health check")
        payload = await reader.readexactly(size)
        if kind == SETTINGS and not flags & ACKNOWLEDGED:
            writer.write(frame(SETTINGS, ACKNOWLEDGED, 0, b""))
        elif kind == PING and not flags & ACKNOWLEDGED:
            writer.write(frame(PING, ACKNOWLEDGED, 0, payload))
        elif kind in (RESET, GOAWAY):
            raise ValueError("the server refused the call")
        if stream != STREAM:
            continue
        if kind == DATA:
            message += payload
        if len(message) >= 5 and len(message) >= 5 + int.from_bytes(message[1:5]):
            return _status(message[5:])
        if flags & END_STREAM:
            raise ValueError("the server answered with an error")


def _status(message: bytes) -> int:
    """Field 1 of the answer, which is left out where it is zero."""
    return message[1] if message[:1] == b"\x08" and len(message) > 1 else UNKNOWN
