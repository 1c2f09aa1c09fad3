"""A small HTTP proxy on loopback: CONNECT, plain requests, and how to refuse them."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from tests.client import certificates
from tests.client.faults import HOST

_LOGIN = re.compile(rb"Proxy-Authorization: [^\r]*\r\n")


class Proxy:
    """Use it as ``async with Proxy() as proxy``; ``login`` is ``user:password``.

    With an ``answer`` it says that and nothing more. With ``tls`` it speaks TLS itself,
    with a certificate that has that flaw.
    """

    def __init__(
        self,
        *,
        login: str | None = None,
        answer: bytes | None = None,
        tls: certificates.Flaw | None = None,
    ) -> None:
        self.targets: list[str] = []
        """Where clients asked to be connected to."""
        self.heads: list[bytes] = []
        """What they said, as they said it."""
        self.open = 0
        self._login = login
        self._answer = answer
        self._tls: certificates.Flaw | None = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        context = certificates.server_context(self._tls) if self._tls else None
        self._server = await asyncio.start_server(self._connected, HOST, 0, ssl=context)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, login: str = "") -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{login + '@' if login else ''}{HOST}:{self.port}"

    def hang_up(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._serve(reader, writer)
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        target = head.split(b" ", 2)[1].decode()
        self.targets.append(target)
        refusal = self._unknown(head) if self._answer is None else self._answer
        if refusal is not None:
            writer.write(refusal)
            await writer.drain()
            await reader.read()
            return
        tunnel = head.startswith(b"CONNECT ")
        host, _, port = (target if tunnel else urlsplit(target).netloc).rpartition(":")
        there_reader, there = await asyncio.open_connection(host, int(port))
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            there.write(_LOGIN.sub(b"", head))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, there))
                group.create_task(_copy(there_reader, writer))
        finally:
            there.transport.abort()

    def _unknown(self, head: bytes) -> bytes | None:
        if self._login is None:
            return None
        word = base64.b64encode(self._login.encode())
        known = b"Proxy-Authorization: Basic " + word in head
        return None if known else b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
