"""gRPC over TLS: a server whose certificate may change while it serves.

Whoever imports this needs ``grpcio``; nothing of the runtime does by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import grpc

from trimtab.runtime.listening import CannotListen

LARGEST: Final = 64 * 1024
"""Bytes of a message, as of the body of a request over HTTP."""

Shown: TypeAlias = Callable[[], tuple[bytes, bytes]]
"""The private key and the certificate as they are now, in PEM."""


def credentials(shown: Shown) -> grpc.ServerCredentials:
    """What a server shows, asked for with every connection."""

    def now() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([shown()])

    return grpc.dynamic_ssl_server_credentials(
        now(), now, require_client_authentication=False
    )


class Remote:
    """Serves gRPC for as long as its ``async with`` block runs.

    Guarantees: a caller that goes away has its call cancelled; at the end, calls have
    ``grace`` seconds to come to theirs.

    Errors: :class:`CannotListen` for an address that cannot be had.
    """

    def __init__(
        self,
        handler: grpc.GenericRpcHandler,
        *,
        host: str,
        port: int,
        shown: Shown,
        grace: float,
    ) -> None:
        self._handler = handler
        self._host = host
        self.port = port
        self._shown = shown
        self._grace = grace
        self._server: Any = None

    async def __aenter__(self) -> Self:
        options = [("grpc.max_receive_message_length", LARGEST)]
        self._server = grpc.aio.server(handlers=(self._handler,), options=options)
        address = f"{self._host}:{self.port}"
        try:
            self.port = self._server.add_secure_port(address, credentials(self._shown))
        except RuntimeError as error:
            raise CannotListen(
                f"gRPC cannot be served on {address} ({error}); choose an address of "
                "this machine and a port that is free."
            ) from error
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.stop(self._grace)
