"""The guard of every method: roles first, and errors by their promised codes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import grpc

from trimtab.client import NotFound, TrimtabError
from trimtab.operators.vmafx import claims, roles
from trimtab.operators.vmafx.nodes import NoSession
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.tenancy.admitting import TooMany
from trimtab.operators.vmafx.tenancy.identities import Identity, Unavailable
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.runtime.access import Unauthenticated

_BEARER = "bearer "


class _Call(NamedTuple):
    """A method, the token that it was called with, and whom that stands for."""

    method: str
    token: str
    identity: Identity


# What is carried out in this task.
_CALL: ContextVar[_Call] = ContextVar("call")

Context = grpc.aio.ServicerContext


class BadRequest(TrimtabError):
    """What was asked makes no sense."""


class NoJob(TrimtabError):
    """There is no such job."""


class NotHere(TrimtabError):
    """This one cannot do it; another may."""


class Tenants(Protocol):
    """Who knows whose token it is, and what belongs to whom."""

    registry: Registry

    async def identity(self, token: str) -> Identity: ...


_CODES: tuple[tuple[type[TrimtabError], grpc.StatusCode], ...] = (
    (BadRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (BadInput, grpc.StatusCode.INVALID_ARGUMENT),
    (NoJob, grpc.StatusCode.NOT_FOUND),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (NotHere, grpc.StatusCode.FAILED_PRECONDITION),
    (TooMany, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
    (ToolFailed, grpc.StatusCode.INTERNAL),
    (Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (roles.Denied, grpc.StatusCode.PERMISSION_DENIED),
    (NoSession, grpc.StatusCode.PERMISSION_DENIED),
    (claims.NotYours, grpc.StatusCode.PERMISSION_DENIED),
)


class Guard:
    """Lets through who has a role for a method, and answers errors with their code.

    Rights are those of RBAC, asked of a ``judge``; or, with ``tenants``, the roles of
    a token of theirs, and nothing else.

    Guarantees: a caller has its role where the gateway is; what is in another namespace
    it only ``reaches`` with the same role there. With tenants, it reaches what is its
    tenant's, wherever that is, and nothing else.

    ``count`` hears of each call, by its method and the name of its code.
    """

    def __init__(
        self,
        judge: roles.Judge,
        *,
        namespace: str,
        count: Callable[[str, str], None] = lambda method, code: None,
        tenants: Tenants | None = None,
    ) -> None:
        self._judge = judge
        self._namespace = namespace
        self._count = count
        self._tenants = tenants
        self._anybody = Identity("", namespace=namespace)

    def unary(
        self, method: str, call: Callable[[Any], Awaitable[Any]]
    ) -> Callable[[Any, Context[Any, Any]], Awaitable[Any]]:
        """A method with one answer."""

        async def guarded(request: Any, context: Context[Any, Any]) -> Any:
            try:
                with self.counted(method):
                    await self.check(method, _token(context))
                    return await call(request)
            except TrimtabError as error:
                await context.abort(code_of(error), str(error))

        return guarded

    def stream(
        self, method: str, call: Callable[[Any], AsyncIterator[Any]]
    ) -> Callable[[Any, Context[Any, Any]], AsyncIterator[Any]]:
        """A method with many answers; its request may be a stream as well."""

        async def guarded(request: Any, context: Context[Any, Any]) -> Any:
            try:
                with self.counted(method):
                    await self.check(method, _token(context))
                    async for answer in call(request):
                        yield answer
            except TrimtabError as error:
                await context.abort(code_of(error), str(error))

        return guarded

    async def check(self, method: str, token: str) -> None:
        """Let a call pass. Errors: those of :func:`roles.check` and of the tenants."""
        if self._tenants is None:
            await roles.check(self._judge, token, method, namespace=self._namespace)
            _CALL.set(_Call(method, token, self._anybody))
        else:
            identity = await self._tenants.identity(token)
            roles.check_names(identity.roles, method)
            _CALL.set(_Call(method, token, identity))

    async def recheck(self) -> None:
        """Let the call that is carried out go on, if it would pass now as well."""
        call = _CALL.get()
        await self.check(call.method, call.token)

    @property
    def identity(self) -> Identity:
        """Who makes the call that is carried out; without tenants, nobody's tenant."""
        if self._tenants is None:
            return self._anybody
        return _CALL.get().identity

    async def reaches(self, namespace: str) -> bool:
        """Whether the call that is carried out may be about another namespace."""
        if self._tenants is not None:
            return self._tenants.registry.tenant_of(namespace) == self.identity.tenant
        if namespace == self._namespace:
            return True
        method, token, _ = _CALL.get()
        return await roles.allows(self._judge, token, method, namespace=namespace)

    @contextmanager
    def counted(self, method: str) -> Iterator[None]:
        """Count a call by how it ends."""
        code = grpc.StatusCode.OK
        try:
            yield
        except TrimtabError as error:
            code = code_of(error)
            raise
        except Exception:
            code = grpc.StatusCode.UNKNOWN
            raise
        except BaseException:
            code = grpc.StatusCode.CANCELLED
            raise
        finally:
            self._count(method, code.name.lower())


def _token(context: Context[Any, Any]) -> str:
    """The token that a caller shows; empty if there is none."""
    token = ""
    for key, value in context.invocation_metadata() or ():
        text = value if isinstance(value, str) else value.decode(errors="replace")
        if key == "authorization" and text.lower().startswith(_BEARER):
            token = text[len(_BEARER) :]
    return token


def serialized(message: Any) -> bytes:
    """A message as it goes over the wire."""
    return bytes(message.SerializeToString())


def code_of(error: TrimtabError) -> grpc.StatusCode:
    """The code of an error, for whoever called."""
    found = (code for kind, code in _CODES if isinstance(error, kind))
    return next(found, grpc.StatusCode.INTERNAL)
