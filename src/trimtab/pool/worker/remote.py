"""gRPC for a worker: its activation, for a pool that asks for it in that way.

The call is turned into the request that it is over HTTPS, and the answer back again, so
there is one place that knows what an activation is and who may ask for it.
"""

from __future__ import annotations

from typing import Any, Final

import grpc
import msgspec

from trimtab.pool.worker import activation_pb2 as messages
from trimtab.pool.worker.program import Identity
from trimtab.pool.worker.server import WorkerServer
from trimtab.runtime.asks import Ask
from trimtab.runtime.remote import Remote

SERVICE: Final = "trimtab.pool.v1.Activation"
STATUS: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    503: grpc.StatusCode.UNAVAILABLE,
}
GRACE: Final = 1.0


def remote(worker: WorkerServer, identity: Identity, *, host: str, port: int) -> Remote:
    """What serves the activation."""
    handler = grpc.unary_unary_rpc_method_handler(
        _Activation(worker).activate,
        request_deserializer=messages.ActivateRequest.FromString,
        response_serializer=messages.Activated.SerializeToString,
    )
    served = grpc.method_handlers_generic_handler(SERVICE, {"Activate": handler})
    return Remote(served, host=host, port=port, shown=identity.pair, grace=GRACE)


class _Activation:
    """The one method."""

    def __init__(self, worker: WorkerServer) -> None:
        self._worker = worker

    async def activate(self, message: Any, context: Any) -> Any:
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
