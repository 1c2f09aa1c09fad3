"""Answers: from what an API server sent back to an object or to a named error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from trimtab.api import codec
from trimtab.client import errors
from trimtab.client.errors import (
    ApiError,
    BodyTooLarge,
    Details,
    Malformed,
    StatusBody,
)
from trimtab.client.transport import Request, Response

T = TypeVar("T")

# What decoding can raise: msgspec's own, what value classes make of a value that is
# none (msgspec wraps some of it), and Python's limit on nesting.
UNREADABLE = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    ArithmeticError,
    RecursionError,
)
MESSAGE_LIMIT = 2000
NO_SUCH_PATH = "404 page not found"
"""What an API server answers for a path below which it serves nothing."""

_BY_STATUS: dict[int, type[ApiError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    406: errors.NotAcceptable,
    409: errors.Conflict,
    410: errors.Gone,
    413: errors.TooLarge,
    415: errors.UnsupportedMediaType,
    422: errors.Invalid,
    429: errors.TooManyRequests,
    503: errors.Unavailable,
    504: errors.ServerTimeout,
}
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": errors.AlreadyExists,
    "Expired": errors.Gone,
    "Gone": errors.Gone,
    "ServerTimeout": errors.ServerTimeout,
    "Timeout": errors.ServerTimeout,
}


def decode(kind: type[T], body: bytes | bytearray | memoryview, *, about: object) -> T:
    """The object in a body; :class:`Malformed` says where it is not one."""
    try:
        return codec.decoder(kind).decode(body)
    except UNREADABLE as error:
        raise malformed(kind, error, about=about) from error


def malformed(kind: Any, error: Exception, *, about: object) -> Malformed:
    """What is said of an answer that is not the JSON of a ``kind``."""
    return Malformed(f"{about}: the answer cannot be read as {_name(kind)} ({error}).")


def too_large(about: object, *, seen: int, limit: int) -> BodyTooLarge:
    """What is said of an answer that is longer than anybody wants to hold."""
    return BodyTooLarge(
        f"{about}: the answer is longer than {limit} bytes ({seen} seen); ask for less "
        "or raise the cap.",
        seen=seen,
        limit=limit,
    )


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def error_from(status: StatusBody, *, about: object) -> ApiError:
    """The error that a ``Status`` object stands for."""
    code = status.code or 500
    details = status.details or Details()
    seconds = details.retryAfterSeconds
    text = status.message or status.reason or f"the server answered {code}"
    return _type_of(code, status.reason)(
        f"{about}: {_line(text)}",
        status=code,
        reason=status.reason,
        details=details,
        retry_after=None if seconds is None else float(seconds),
    )


def _line(text: str) -> str:
    """A message as one line of bounded length; ``causes`` has what is cut off."""
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_LIMIT else line[:MESSAGE_LIMIT] + "…"


def _type_of(code: int, reason: str) -> type[ApiError]:
    fallback = errors.ServerError if code >= 500 else ApiError
    return _BY_REASON.get(reason) or _BY_STATUS.get(code, fallback)


async def error_of(request: Request, response: Response, *, limit: int) -> ApiError:
    """The error of an answer with a bad status; reads at most ``limit`` of its body."""
    note = ""
    body: bytes | bytearray = b""
    try:
        body = await response.read(limit=limit)
    except errors.BodyTooLarge:
        note = f" (its text is longer than {limit} bytes and was left out)"
    except errors.TransportError:
        note = " (its text was cut off)"
    found = error_from(_status_of(body, response.status, note), about=request)
    seconds = _seconds(response.headers("Retry-After"))
    if seconds is not None:
        found.retry_after = seconds
    return found


def _status_of(body: bytes | bytearray, code: int, note: str) -> StatusBody:
    try:
        status = msgspec.json.decode(body, type=StatusBody)
    except UNREADABLE:
        status = StatusBody()
    text = status.message or _excerpt(body) or f"the server answered {code}"
    return msgspec.structs.replace(status, code=code, message=text + note)


def _excerpt(body: bytes | bytearray) -> str:
    """The start of an answer that is no object (a proxy's page, say)."""
    text = " ".join(body[:300].decode("utf-8", "replace").split())
    if text == NO_SUCH_PATH:
        return "the server has no such kind: install its CRD"
    return f"the server answered {text!r}" if text else ""


def _seconds(headers: Sequence[str]) -> float | None:
    """``Retry-After`` in seconds; its date form would need a shared clock: ignored."""
    if not headers or not headers[0].strip().isdecimal():
        return None
    return float(headers[0])
