"""The gateway itself: its verbs behind TLS, and how it stops."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from trimtab.pool.gateway.api import Api
from trimtab.pool.secrets import Pair
from trimtab.runtime.serving import Limits, Server

DRAIN_SECONDS: Final = 10.0
LIMITS: Final = Limits(connections=4096, body=64 * 1024)


class Gateway:
    """Serves the verbs for as long as its ``async with`` block runs.

    Guarantees: when the block is left, requests that are under way have been answered,
    or were cancelled after ``DRAIN_SECONDS``, and no connection is left.
    """

    def __init__(
        self, api: Api, *, host: str, port: int, pair: Pair, limits: Limits = LIMITS
    ) -> None:
        self._api = api
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.show(pair)
        self._server = Server(
            host, port, handle=api.handle, context=self._context, limits=limits
        )

    def show(self, pair: Pair) -> None:
        """Show this certificate to whoever connects from now on."""
        # OpenSSL reads files only. The folder is this user's alone, and gone at once.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(pair.certificate + pair.private)
            self._context.load_cert_chain(path)

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def connections(self) -> int:
        return len(self._server.connections)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._api.stopping = True
        try:
            await self._server.drain(DRAIN_SECONDS)
        finally:
            await self._server.__aexit__(kind, error, trace)
