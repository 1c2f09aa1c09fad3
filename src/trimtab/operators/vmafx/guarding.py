"""The guard of every gRPC method: roles first, and errors by their promised codes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from trimtab.client import NotFound, TrimtabError
from trimtab.operators.vmafx import claims, roles
from trimtab.operators.vmafx.nodes import NoSession
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.runtime.access import Unauthenticated

_BEARER = "bearer "

Context = grpc.aio.ServicerContext


class BadRequest(TrimtabError):
    """What was asked makes no sense."""


class NoJob(TrimtabError):
    """There is no such job."""


class NotHere(TrimtabError):
    """This one cannot do it; another may."""


_CODES: tuple[tuple[type[TrimtabError], grpc.StatusCode], ...] = (
    (BadRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (BadInput, grpc.StatusCode.INVALID_ARGUMENT),
    (NoJob, grpc.StatusCode.NOT_FOUND),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (NotHere, grpc.StatusCode.FAILED_PRECONDITION),
    (ToolFailed, grpc.StatusCode.INTERNAL),
    (Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (roles.Denied, grpc.StatusCode.PERMISSION_DENIED),
    (NoSession, grpc.StatusCode.PERMISSION_DENIED),
    (claims.NotYours, grpc.StatusCode.PERMISSION_DENIED),
)


class Guard:
    """Lets through who has a role for a method, and answers errors with their code."""

    def __init__(self, judge: roles.Judge, *, namespace: str) -> None:
        self._judge = judge
        self._namespace = namespace

    def unary(
        self, method: str, call: Callable[[Any], Awaitable[Any]]
    ) -> Callable[[Any, Context[Any, Any]], Awaitable[Any]]:
        """A method with one answer."""

        async def guarded(request: Any, context: Context[Any, Any]) -> Any:
            try:
                await self._check(method, context)
                return await call(request)
            except TrimtabError as error:
                await context.abort(_code(error), str(error))

        return guarded

    def stream(
        self, method: str, call: Callable[[Any], AsyncIterator[Any]]
    ) -> Callable[[Any, Context[Any, Any]], AsyncIterator[Any]]:
        """A method with many answers; its request may be a stream as well."""

        async def guarded(request: Any, context: Context[Any, Any]) -> Any:
            try:
                await self._check(method, context)
                async for answer in call(request):
                    yield answer
            except TrimtabError as error:
                await context.abort(_code(error), str(error))

        return guarded

    async def _check(self, method: str, context: Context[Any, Any]) -> None:
        token = ""
        for key, value in context.invocation_metadata() or ():
            text = value if isinstance(value, str) else value.decode(errors="replace")
            if key == "authorization" and text.lower().startswith(_BEARER):
                token = text[len(_BEARER) :]
        await roles.check(self._judge, token, method, namespace=self._namespace)


def serialized(message: Any) -> bytes:
    """A message as it goes over the wire."""
    return bytes(message.SerializeToString())


def _code(error: TrimtabError) -> grpc.StatusCode:
    found = (code for kind, code in _CODES if isinstance(error, kind))
    return next(found, grpc.StatusCode.INTERNAL)
