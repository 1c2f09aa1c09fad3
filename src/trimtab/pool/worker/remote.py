"""gRPC for a worker: its activation, for a pool that asks for it in that way.

The call is turned into the request that it is over HTTPS, and the answer back again, so
there is one place that knows what an activation is and who may ask for it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

import grpc
import msgspec

from trimtab.pool.worker import activation_pb2 as messages
from trimtab.pool.worker.program import Identity
from trimtab.pool.worker.server import WorkerServer
from trimtab.runtime.asks import Ask
from trimtab.runtime.serving import CannotListen

SERVICE: Final = "trimtab.pool.v1.Activation"
STATUS: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    503: grpc.StatusCode.UNAVAILABLE,
}
LARGEST: Final = 64 * 1024
GRACE: Final = 1.0


class Remote:
    """Serves the activation for as long as its ``async with`` block runs."""

    def __init__(
        self, worker: WorkerServer, identity: Identity, *, host: str, port: int
    ) -> None:
        self._worker = worker
        self._identity = identity
        self._host = host
        self.port = port
        self._server: Any = None

    async def __aenter__(self) -> Self:
        options = [("grpc.max_receive_message_length", LARGEST)]
        self._server = grpc.aio.server(options=options)
        handler = grpc.unary_unary_rpc_method_handler(
            self._activate,
            request_deserializer=messages.ActivateRequest.FromString,
            response_serializer=messages.Activated.SerializeToString,
        )
        served = grpc.method_handlers_generic_handler(SERVICE, {"Activate": handler})
        self._server.add_generic_rpc_handlers((served,))
        credentials = grpc.dynamic_ssl_server_credentials(
            self._shown(), self._shown, require_client_authentication=False
        )
        address = f"{self._host}:{self.port}"
        try:
            self.port = self._server.add_secure_port(address, credentials)
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
        await self._server.stop(GRACE)

    def _shown(self) -> Any:
        """The certificate as it is now; asked for with every connection."""
        return grpc.ssl_server_certificate_configuration([self._identity.pair()])

    async def _activate(self, message: Any, context: Any) -> Any:
        metadata = dict(context.invocation_metadata())
        body = {"epoch": message.epoch, "tenant": message.tenant}
        ask = Ask(
            method="POST",
            path=self._worker.activation,
            headers={"authorization": str(metadata.get("authorization", ""))},
            body=msgspec.json.encode(body),
        )
        answer = await self._worker.asked(ask)
        if answer.status != 200:
            found = msgspec.json.decode(answer.body)
            code = STATUS.get(int(answer.status), grpc.StatusCode.INTERNAL)
            await context.abort(code, found.get("message", ""))
        return messages.Activated()
