"""The connections of remote mode: one channel and one HTTP client, for all handlers.

Both are opened once, when the operator starts, and neither is waited for: a controller
that is not there is noticed by the call that needs it, within that call's budget.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import urlsplit

import grpc

from trimtab.client import calling as http
from trimtab.client.calling import NoReply, Place, Reply
from trimtab.operators.vmafx.calling import Caller
from trimtab.operators.vmafx.settings import Settings, token_of

BUDGET = 5.0
"""Seconds for a call as a whole, connecting included."""
_MOST = 4096
_OPTIONS: list[tuple[str, int]] = [
    # A controller that comes back is found by the next poll.
    ("grpc.initial_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    # A connection whose other end vanished is noticed, while calls are under way.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]


class Links:
    """The way to a controller, for as long as :meth:`open` lasts."""

    def __init__(self, settings: Settings, *, budget: float = BUDGET) -> None:
        self.settings = settings
        self._budget = budget
        self._caller: Caller | None = None
        self._http: http.Caller | None = None

    def caller(self, now: datetime) -> Caller:
        """Who calls the controller.

        Errors: :class:`ConfigError` for a token that is not there or has expired.
        """
        assert self._caller is not None, "it is open while the operator runs"
        token_of(self.settings, now=now)
        return self._caller

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Have both connections, while the block runs."""
        settings, asking = self.settings, http.Caller()
        token = settings.token_file or (lambda: settings.token)
        async with _channel(settings) as channel:
            self._caller = Caller(channel, token=token, deadline=self._budget)
            self._http = asking
            try:
                yield
            finally:
                self._caller = self._http = None
                await asking.close()

    async def is_alive(self, namespace: str) -> bool:
        """Whether the controller of a namespace says that it is well."""
        base = self.settings.web.format(namespace=namespace)
        try:
            return (await self._get(f"{base}/healthz")).status == 200
        except NoReply:
            return False

    async def training(self, name: str, namespace: str) -> bytes | None:
        """What a trainer says of itself; None if it says nothing."""
        base = self.settings.trainer.format(name=name, namespace=namespace)
        try:
            reply = await self._get(f"{base}/status")
        except NoReply:
            return None
        return reply.body if reply.status == 200 else None

    async def _get(self, url: str) -> Reply:
        assert self._http is not None, "it is open while the operator runs"
        parts = urlsplit(url)
        tls, host = parts.scheme == "https", parts.hostname or ""
        port = parts.port or (443 if tls else 80)
        place = Place(
            host=host, port=port, name=host, tls=tls, ca=self.settings.authority
        )
        path = parts.path or "/"
        return await self._http.call(
            place, "GET", path, within=self._budget, limit=_MOST
        )


def _channel(settings: Settings) -> grpc.aio.Channel:
    if not settings.tls:
        return grpc.aio.insecure_channel(settings.address, options=_OPTIONS)
    options: list[tuple[str, int | str]] = [*_OPTIONS]
    if name := settings.server_name:
        options.append(("grpc.ssl_target_name_override", name))
    credentials = grpc.ssl_channel_credentials(settings.authority)
    return grpc.aio.secure_channel(settings.address, credentials, options=options)
