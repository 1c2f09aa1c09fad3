"""Endpoints: the tiny HTTP server for probes, scrapes and the question *why*.

=====================================  ============================================
``/livez``, ``/readyz``                health, with ``?verbose`` check by check
``/metrics``                           for Prometheus
``/debug/why/KIND[/NAMESPACE]/NAME``   why an object was reconciled last, as JSON
``/debug/log``                         what is logged; ``PUT /debug/log/LEVEL`` sets it
=====================================  ============================================

It answers GET, and PUT for the one thing that can be set: a page in a browser cannot
send that to another site without being allowed to. Every answer is made at once from
what is in memory, so a connection is a protocol without a task. All of it is bounded:
connections, the head of a request, the time to send one and to take the answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec

from trimtab.runtime.health import Health, Report
from trimtab.runtime.listening import CannotListen as CannotListen
from trimtab.runtime.listening import Timed, sentence

HEAD_LIMIT: Final = 8 * 1024
CONNECTIONS: Final = 64
READ_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 120.0
TEXT: Final = "text/plain; charset=utf-8"
DEBUG: Final = "/debug/"
LEVELS: Final = "/debug/log/"
OTHER: Final = "port (0 takes any that is free)"
BREAKS: Final = frozenset("\0\r\n")

Render: TypeAlias = Callable[[], tuple[str, bytes]]
Why: TypeAlias = Callable[[str, str, str], Any]
Log: TypeAlias = Callable[[str | None], str]
"""Sets the level of the logs, if one is given; the level then."""

logger = logging.getLogger("trimtab.runtime.endpoints")


class Answer(NamedTuple):
    """What goes back: a status, a type and a body."""

    status: HTTPStatus
    body: bytes
    type: str = TEXT


class Ask(NamedTuple):
    """What a request asks for. A refusal is one that is answered already."""

    method: str
    path: str
    query: str = ""
    host: str = ""
    keep: bool = False
    refusal: HTTPStatus | None = None


def parse(head: bytes) -> Ask:
    """Read the head of a request, without the empty line that ends it.

    Read strictly: what two readers could understand differently is refused, as is a
    body, which no GET here has any use for.
    """
    bad = Ask("", "", refusal=HTTPStatus.BAD_REQUEST)
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        pairs = [line.split(":", 1) for line in lines]
        names = [name.lower() for name, _ in pairs]
        fields = {name.lower(): value.strip() for name, value in pairs}
    except ValueError:
        return bad
    if not first.isprintable() or any(set(line) & BREAKS for line in lines):
        return bad
    if any(name != name.strip() for name in names):
        return bad
    if any(names.count(name) > 1 for name in ("host", "content-length")):
        return bad
    if version not in ("HTTP/1.1", "HTTP/1.0") or not target.startswith("/"):
        return bad
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        return bad
    if version == "HTTP/1.1" and "host" not in fields:
        return bad
    path, _, query = target.partition("?")
    wishes = fields.get("connection", "").lower()
    keep = version == "HTTP/1.1" and "close" not in wishes
    return Ask(method, path, query, fields.get("host", ""), keep)


class Endpoints:
    """Serves health, metrics and *why* for as long as its ``async with`` block runs.

    Guarantees: what is under ``/debug/`` is served only to this machine (in a pod: to
    the pod itself and to ``kubectl port-forward``), unless ``debug`` is True. When the
    block has been left, no connection is left.

    Errors: :class:`CannotListen` when the address cannot be had. A part that raises is
    an answer of 500 and a line in the log.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        health: Health,
        metrics: Render | None = None,
        why: Why | None = None,
        log: Log | None = None,
        debug: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self._health = health
        self._metrics = metrics
        self._why = why
        self._log = log
        self._guarded = not debug
        self._server: asyncio.Server | None = None
        self.connections: dict[Connection, None] = {}
        """Those that are open; the one that was idle the longest is the first."""
        self._empty: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Endpoints:
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self), self.host, self.port
            )
        except (OSError, OverflowError) as error:
            raise CannotListen(
                sentence("The endpoints", self.host, self.port, error, other=OTHER)
            ) from error
        # Port 0 was a wish for any; this is the one that was given.
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        if self.connections:
            self._empty = asyncio.get_running_loop().create_future()
            for connection in list(self.connections):
                connection.abort()
            await self._empty
        await self._server.wait_closed()

    def opened(self, connection: Connection) -> None:
        """There is a new connection; at the limit, the most idle one makes room."""
        if len(self.connections) >= CONNECTIONS:
            oldest = next(iter(self.connections))
            del self.connections[oldest]
            oldest.abort()
        self.connections[connection] = None

    def used(self, connection: Connection) -> None:
        self.connections[connection] = self.connections.pop(connection, None)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if self._empty is not None and not self.connections and not self._empty.done():
            self._empty.set_result(None)

    def answer(self, ask: Ask, *, local: bool = False) -> Answer:
        """The answer to any request, which may be this machine's; it never raises."""
        if ask.refusal is not None:
            return _plain(ask.refusal)
        if ask.method != "GET" and not (
            ask.method == "PUT" and ask.path.startswith(LEVELS)
        ):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return self._found(ask, local) or _plain(HTTPStatus.NOT_FOUND)
        except Exception:
            logger.exception("The answer to GET %r could not be made.", ask.path)
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _found(self, ask: Ask, local: bool) -> Answer | None:
        verbose = "verbose" in (part.split("=")[0] for part in ask.query.split("&"))
        if ask.path == "/livez":
            return _health(self._health.live(verbose=verbose))
        if ask.path == "/readyz":
            return _health(self._health.ready(verbose=verbose))
        if ask.path == "/metrics" and self._metrics is not None:
            type, body = self._metrics()
            return Answer(HTTPStatus.OK, body, type)
        if ask.path.startswith(DEBUG):
            # A page in somebody's browser can have its own name resolve to this
            # machine; the name that it then asks for is not one of this machine.
            ours = local and is_loopback(_name(ask.host))
            return self._debug(ask) if ours or not self._guarded else None
        return None

    def _debug(self, ask: Ask) -> Answer | None:
        found: Any = None
        match [unquote(part) for part in ask.path.removeprefix(DEBUG).split("/")]:
            case ["why", kind, name] if self._why is not None:
                found = self._why(kind, "", name)
            case ["why", kind, namespace, name] if self._why is not None:
                found = self._why(kind, namespace, name)
            case ["log"] if self._log is not None:
                found = {"level": self._log(None)}
            case ["log", level] if self._log is not None and ask.method == "PUT":
                try:
                    found = {"level": self._log(level)}
                except ValueError as error:
                    return Answer(HTTPStatus.BAD_REQUEST, f"{error}\n".encode())
        if found is None:
            return None
        text = msgspec.json.format(msgspec.json.encode(found, enc_hook=str))
        return Answer(HTTPStatus.OK, text + b"\n", "application/json")


class Connection(Timed, asyncio.Protocol):
    """One connection: heads in, answers out, and one timer for whatever may hang."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._buffer = bytearray()
        self._paused = False
        self._local = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._local = bool(peer) and is_loopback(str(peer[0]))
        self._endpoints.opened(self)
        self._limit(READ_SECONDS)

    def connection_lost(self, error: Exception | None) -> None:
        self._limit(None)
        self._transport = None
        self._endpoints.closed(self)

    def data_received(self, data: bytes) -> None:
        if not self._buffer:
            self._limit(READ_SECONDS)
        self._buffer += data
        self._endpoints.used(self)
        self._serve()

    def pause_writing(self) -> None:
        """The other side takes no more: it gets no more answers and is not heard."""
        self._paused = True
        if self._transport is not None:
            self._transport.pause_reading()
        self._limit(READ_SECONDS)

    def resume_writing(self) -> None:
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._limit(READ_SECONDS if self._buffer else IDLE_SECONDS)
            self._serve()

    def _serve(self) -> None:
        """Answer every request that has come as a whole."""
        while not self._paused and self._transport is not None:
            if self._transport.is_closing():
                return
            end = self._buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
            if end >= 0:
                ask = parse(bytes(self._buffer[:end]))
                del self._buffer[: end + 4]
            elif len(self._buffer) >= HEAD_LIMIT:
                ask = Ask("", "", refusal=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            else:
                return
            self._limit(READ_SECONDS if self._buffer else IDLE_SECONDS)
            self._send(ask, self._endpoints.answer(ask, local=self._local))

    def _send(self, ask: Ask, answer: Answer) -> None:
        assert self._transport is not None
        head = [
            f"HTTP/1.1 {answer.status} {answer.status.phrase}",
            f"Content-Type: {answer.type}",
            f"Content-Length: {len(answer.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
        ]
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            only = "PUT" if ask.path.startswith(LEVELS) else "GET"
            head.append(f"Allow: {only}")
        # A body may follow a method that is not GET: nothing behind it is readable.
        keep = ask.keep and ask.method == "GET"
        if not keep:
            head.append("Connection: close")
        self._transport.write("\r\n".join([*head, "", ""]).encode() + answer.body)
        if not keep:
            self._transport.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name(host: str) -> str:
    """The name in a ``Host`` field, without the port and the brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _plain(status: HTTPStatus) -> Answer:
    return Answer(status, f"{status} {status.phrase}\n".encode())


def _health(report: Report) -> Answer:
    bad = HTTPStatus.INTERNAL_SERVER_ERROR
    return Answer(HTTPStatus.OK if report.healthy else bad, report.text.encode())
