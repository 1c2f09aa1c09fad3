"""Subresources: scale, logs, eviction, tokens, reviews, and any other by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack

from trimtab.api import codec
from trimtab.api.objects import Object
from trimtab.api.resource import Info
from trimtab.client.calls import Stream
from trimtab.client.errors import BodyTooLarge, Stalled
from trimtab.client.kinds import Kind, Plain, info_of
from trimtab.client.options import Timed
from trimtab.client.paths import query
from trimtab.client.session import Session
from trimtab.client.transport import JSON, JSON_BODY, Request
from trimtab.client.watch import IDLE

X = TypeVar("X")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

POD = Info(version="v1", kind="Pod", plural="pods")
SERVICE_ACCOUNT = Info(version="v1", kind="ServiceAccount", plural="serviceaccounts")
MAX_LOG_LINE = 1 << 20


class _Replicas(Object):
    replicas: int = 0


class _Scale(Object):
    spec: _Replicas = _Replicas()


class Token(Object):
    """A service account's token and when it ends. Its repr does not show it."""

    token: str
    expirationTimestamp: datetime

    def __repr__(self) -> str:
        return f"Token(token=…, expirationTimestamp={self.expirationTimestamp})"


class _TokenRequest(Object):
    status: Token


class Access(Object):
    """What an access review answered."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluationError: str = ""


class _Review(Object):
    status: Access = Access()


class Subresources(Session):
    """The verbs of particular kinds."""

    async def subresource(
        self,
        kind: Kind,
        name: str,
        subresource: str,
        *,
        into: type[X],
        method: Method = "GET",
        body: Any = None,
        namespace: str | None = None,
        parameters: Mapping[str, object] | None = None,
        content_type: str = JSON,
        **options: Unpack[Timed],
    ) -> X:
        """Any subresource by its name, read as ``into`` (``dict`` for plain)."""
        request = Request(
            method=method,
            path=self._path(
                kind, namespace=namespace, name=name, subresource=subresource
            ),
            query=query((parameters or {}).items()),
            headers=(("Content-Type", content_type),) if body is not None else (),
            body=None if body is None else codec.encode(body),
        )
        return await self._calls.call(
            request,
            verb=subresource.partition("/")[0],  # a proxy's path is not for statistics
            into=into,
            deadline=options.get("deadline"),
        )

    async def replicas(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        **options: Unpack[Timed],
    ) -> int:
        """How many replicas are wished for, by the scale subresource."""
        scale = await self.subresource(
            kind, name, "scale", into=_Scale, namespace=namespace, **options
        )
        return scale.spec.replicas

    async def scale(
        self,
        kind: Kind,
        name: str,
        replicas: int,
        *,
        namespace: str | None = None,
        **options: Unpack[Timed],
    ) -> int:
        """Wish for so many replicas; answers with what the server then says."""
        scale = await self.subresource(
            kind,
            name,
            "scale",
            into=_Scale,
            method="PATCH",
            body={"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
            namespace=namespace,
            **options,
        )
        return scale.spec.replicas

    async def evict(
        self,
        pod: str,
        *,
        namespace: str | None = None,
        grace: int | None = None,
        uid: str | None = None,
        dry_run: bool = False,
        **options: Unpack[Timed],
    ) -> None:
        """Ask a pod to leave; TooManyRequests while a disruption budget forbids it."""
        delete = {
            "gracePeriodSeconds": grace,
            "preconditions": {"uid": uid} if uid else None,
            "dryRun": ["All"] if dry_run else None,
        }
        kept = {key: value for key, value in delete.items() if value is not None}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod},
            "deleteOptions": kept,
        }
        request = Request(
            method="POST",
            path=self._path(POD, namespace=namespace, name=pod, subresource="eviction"),
            headers=JSON_BODY,
            body=codec.encode(body),
        )
        # Not tried again: a budget that forbids it now is an answer, not a fault.
        await self._calls.call(
            request,
            verb="evict",
            into=bytes,
            deadline=options.get("deadline"),
            retry=False,
        )

    async def token(
        self,
        service_account: str,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
        **options: Unpack[Timed],
    ) -> Token:
        """A new token for a service account, by TokenRequest."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds},
        }
        answer = await self.subresource(
            SERVICE_ACCOUNT,
            service_account,
            "token",
            into=_TokenRequest,
            method="POST",
            body=body,
            namespace=namespace,
            **options,
        )
        return answer.status

    async def may_i(
        self,
        verb: str,
        kind: Kind,
        *,
        namespace: str | None = None,
        name: str = "",
        subresource: str = "",
        **options: Unpack[Timed],
    ) -> Access:
        """Whether this client may do something, as ``kubectl auth can-i`` asks.

        Without a namespace: in all of them.
        """
        spec = {
            "resourceAttributes": _attributes(verb, kind, namespace, name, subresource)
        }
        return await self._review("SelfSubjectAccessReview", spec, options)

    async def may(
        self,
        user: str,
        verb: str,
        kind: Kind,
        *,
        groups: Sequence[str] = (),
        namespace: str | None = None,
        name: str = "",
        subresource: str = "",
        **options: Unpack[Timed],
    ) -> Access:
        """Whether somebody else may do something, by SubjectAccessReview."""
        spec = {
            "user": user,
            "groups": list(groups),
            "resourceAttributes": _attributes(verb, kind, namespace, name, subresource),
        }
        return await self._review("SubjectAccessReview", spec, options)

    async def _review(self, kind: str, spec: Plain, options: Timed) -> Access:
        group = "authorization.k8s.io"
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        request = Request(
            method="POST",
            path=f"/apis/{group}/v1/{kind.lower()}s",
            headers=JSON_BODY,
            body=codec.encode(body),
        )
        review = await self._calls.call(
            request,
            verb="review",
            into=_Review,
            deadline=options.get("deadline"),
            safe=True,
        )
        return review.status

    @asynccontextmanager
    async def logs(
        self,
        pod: str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since: int | None = None,
        limit: int | None = None,
        idle: float | None = None,
        **options: Unpack[Timed],
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A container's log, line by line: ``async with client.logs("web") as lines``.

        ``tail`` is how many lines from the end, ``since`` how many seconds back,
        ``limit`` how many bytes at most, ``idle`` after how many silent seconds to
        give up (default: never while following, a quiet container is not a dead one).
        """
        request = Request(
            method="GET",
            path=self._path(POD, namespace=namespace, name=pod, subresource="log"),
            query=query(
                (
                    ("container", container),
                    ("follow", follow or None),
                    ("previous", previous or None),
                    ("timestamps", timestamps or None),
                    ("tailLines", tail),
                    ("sinceSeconds", since),
                    ("limitBytes", limit),
                )
            ),
            headers=(("Accept", "*/*"),),
            stream=True,
        )
        stream = await self._calls.stream(
            request, verb="log", deadline=options.get("deadline")
        )
        if idle is None and not follow:
            idle = IDLE
        try:
            yield _lines(stream, idle)
        finally:
            stream.close()


async def _lines(stream: Stream, idle: float | None) -> AsyncIterator[bytes]:
    """Whole lines without their newline; the last one may lack it."""
    tail = b""
    while data := await _piece(stream, idle):
        *lines, tail = (tail + data).split(b"\n")
        for line in lines:
            yield line
        if len(tail) > MAX_LOG_LINE:
            raise BodyTooLarge(
                f"{stream.request}: one line is longer than {MAX_LOG_LINE} bytes.",
                seen=len(tail),
                limit=MAX_LOG_LINE,
            )
    if tail:
        yield tail


async def _piece(stream: Stream, idle: float | None) -> bytes:
    try:
        async with asyncio.timeout(idle):
            return await stream.chunk()
    except TimeoutError as error:
        raise Stalled(f"{stream.request}: no line for {idle} s.") from error


def _attributes(
    verb: str, kind: Kind, namespace: str | None, name: str, subresource: str
) -> Plain:
    info = info_of(kind)
    asked = {
        "verb": verb,
        "group": info.group,
        "version": info.version,
        "resource": info.plural,
        "namespace": namespace or "",
        "name": name,
        "subresource": subresource,
    }
    return {key: value for key, value in asked.items() if value}
