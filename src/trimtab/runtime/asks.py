"""Asks and answers: HTTP/1.1 as a server reads and writes it, without a socket.

Read strictly: what two readers could understand differently is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

JSON: Final = "application/json"
BREAKS: Final = frozenset("\0\r\n")
ONCE: Final = ("host", "content-length", "authorization", "content-type")


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    """Names in small letters."""
    body: bytes = b""

    def __repr__(self) -> str:
        return f"Ask({self.method} {self.path})"  # the headers may hold a token

    @property
    def bearer(self) -> str:
        """The token that it shows; empty if there is none."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back: a body, or pieces of one until there are no more."""

    status: int = 200
    body: bytes = b""
    type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None


def json_answer(value: Any, *, status: int = 200) -> Answer:
    """A value as JSON."""
    return Answer(status=status, body=msgspec.json.encode(value))


def refusal(status: HTTPStatus, code: str, message: str) -> Answer:
    """An error as JSON: a code for programs, a sentence for people."""
    return json_answer({"code": code, "message": message}, status=status)


def unserved(ask: Ask, routes: Iterable[str]) -> Answer:
    """The answer where nobody answers: each route is a verb and a path."""
    verbs = [each.partition(" ") for each in routes]
    allowed = ", ".join(verb for verb, _, path in verbs if path == ask.path)
    if not allowed:
        sentence = f"There is nothing at {ask.path[:200]}."
        return refusal(HTTPStatus.NOT_FOUND, "not-found", sentence)
    sentence = f"{ask.path} is asked with {allowed}."
    answer = refusal(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", sentence)
    return msgspec.structs.replace(answer, headers=(("Allow", allowed),))


class Bad(Exception):
    """A request that cannot be read; it is answered, and the connection ends."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class Head(msgspec.Struct, frozen=True):
    """A request whose body is still to come: how long that is, and what follows."""

    ask: Ask
    length: int
    keep: bool


def parse(head: bytes, *, limit: int) -> Head:
    """Read the head of a request, without the empty line that ends it."""
    bad = Bad(HTTPStatus.BAD_REQUEST)
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        pairs = [line.split(":", 1) for line in lines]
        headers = {name.lower(): value.strip(" \t") for name, value in pairs}
    except ValueError:
        raise bad from None
    names = [name.lower() for name, _ in pairs]
    doubled = len(headers) < len(names) and any(names.count(n) > 1 for n in ONCE)
    if doubled or not first.isprintable() or version != "HTTP/1.1":
        raise bad
    if any(set(line) & BREAKS for line in lines):
        raise bad
    if any(not name or name != name.strip() for name in names):
        raise bad
    if not target.startswith("/") or "host" not in headers:
        raise bad
    if "transfer-encoding" in headers:
        raise Bad(HTTPStatus.LENGTH_REQUIRED)
    length = _length(headers.get("content-length", "0"), limit)
    path, _, query = target.partition("?")
    fields = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
    ask = Ask(method=method, path=unquote(path), query=fields, headers=headers)
    return Head(ask, length, "close" not in headers.get("connection", "").lower())


def _length(text: str, limit: int) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise Bad(HTTPStatus.BAD_REQUEST)
    if int(text) > limit:
        raise Bad(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(text)


def answer_head(answer: Answer, framing: tuple[str, str], *, keep: bool) -> bytes:
    """The head of an answer, its empty line included."""
    phrase = HTTPStatus(answer.status).phrase
    headers = [
        ("Content-Type", answer.type),
        framing,
        ("Cache-Control", "no-store"),
        *answer.headers,
    ]
    if not keep:
        headers.append(("Connection", "close"))
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{k}: {v}" for k, v in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
