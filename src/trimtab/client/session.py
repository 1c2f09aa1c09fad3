"""A session: the one pooled way to one API server that all verbs share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from random import Random
from types import TracebackType
from typing import Any, Self

from trimtab.api.resource import Info, Resource
from trimtab.client.budget import budget
from trimtab.client.calls import Calls, Options, Statistics
from trimtab.client.config import Config
from trimtab.client.discovery import Discovery
from trimtab.client.kinds import Kind, Plain, info_of
from trimtab.client.paths import path
from trimtab.client.ratelimit import RateLimit
from trimtab.client.transport import Transport


class Session:
    """Holds the transport, the credentials and what discovery found."""

    def __init__(
        self,
        config: Config,
        *,
        options: Options | None = None,
        transport: Transport | None = None,
        rate_limit: RateLimit | None = None,
        random: Random | None = None,
    ) -> None:
        options = options or Options()
        if transport is None:
            from trimtab.client.http import HttpTransport

            transport = HttpTransport(config, pool=options.pool)
        self.config = config
        self._calls = Calls(
            transport,
            credentials=config.credentials,
            options=options,
            random=random or Random(),
            rate_limit=rate_limit,
            headers=_headers(options),
            impersonation=config.impersonate.headers() if config.impersonate else (),
        )
        self.discovery = Discovery(self._calls)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection; calls under way fail."""
        await self._calls.close()

    def statistics(self) -> Statistics:
        """Requests by verb and outcome, retries, connections, bytes."""
        return self._calls.statistics()

    async def discover(
        self, api_version: str, kind: str, *, deadline: float | None = None
    ) -> Info:
        """The resource of a kind, for dynamic calls; NotFound if there is none."""
        return await self.discovery.find(api_version, kind, deadline=deadline)

    def _within(self, deadline: float | None) -> AbstractContextManager[None]:
        """The time of a call that may have to discover its kind first."""
        return budget(self._calls.seconds(deadline))

    def _path(
        self,
        kind: Kind,
        *,
        namespace: str | None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """A path within one namespace: the one given, else the context's own."""
        namespace = namespace or self.config.namespace
        return path(
            info_of(kind), namespace=namespace, name=name, subresource=subresource
        )

    async def _place(self, obj: Resource | Plain) -> tuple[Info, str, str]:
        """Where an object goes: its resource, its namespace, its name if it has one."""
        if isinstance(obj, Resource):
            metadata = obj.metadata
            namespace = metadata.namespace or self.config.namespace
            return info_of(type(obj)), namespace, metadata.name
        info = await self.discover(_text(obj, "apiVersion"), _text(obj, "kind"))
        plain: dict[str, Any] = obj.get("metadata") or {}
        namespace = plain.get("namespace") or self.config.namespace
        return info, namespace, plain.get("name") or ""


def _text(obj: Plain, key: str) -> str:
    value = obj.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the object has no {key}; a plain dict must name its kind")
    return value


def _headers(options: Options) -> dict[str, str]:
    """What goes with every request; a request's own headers come over it."""
    return {
        "Accept": "application/json",
        "Accept-Encoding": "gzip" if options.compression else "identity",
        "User-Agent": options.user_agent,
    }
