"""gRPC: the gateway's verbs once more, for those who speak that.

Each call is turned into the request that it is over HTTP, and the answer back again, so
there is one place that knows what a verb does and who may.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
import msgspec
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from trimtab.pool.gateway import pool_pb2 as messages
from trimtab.pool.gateway.api import Api
from trimtab.pool.gateway.wire import Code
from trimtab.pool.secrets import Pair
from trimtab.runtime.asks import Answer, Ask
from trimtab.runtime.remote import Remote

SERVICE: Final = "trimtab.pool.v1.Pool"
STATUS: Final = {
    Code.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    Code.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    Code.DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Code.FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.NEVER: grpc.StatusCode.FAILED_PRECONDITION,
    Code.NOT_NOW: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.NOT_YOURS: grpc.StatusCode.ABORTED,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.INTERNAL: grpc.StatusCode.INTERNAL,
}
GRACE: Final = 10.0

Context = Any
"""A grpc.aio.ServicerContext; its stubs say less than it has."""


def remote(api: Api, *, host: str, port: int, pair: Callable[[], Pair]) -> Remote:
    """What serves the verbs, with the guarantees that they have over HTTP."""

    def shown() -> tuple[bytes, bytes]:
        now = pair()
        return now.private, now.certificate

    return Remote(_Verbs(api).handler(), host=host, port=port, shown=shown, grace=GRACE)


class _Verbs:
    """The verbs, each of which asks the API."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def handler(self) -> Any:
        verbs: dict[str, Any] = {
            "Acquire": self._verb(messages.AcquireRequest, messages.Granted),
            "Release": self._verb(messages.ReleaseRequest, messages.Done),
            "Renew": self._verb(messages.RenewRequest, messages.Renewed),
            "Drain": self._verb(messages.DrainRequest, messages.Done),
            "List": self._verb(messages.ListRequest, messages.Workers),
            "Watch": grpc.unary_stream_rpc_method_handler(
                self._watch,
                request_deserializer=messages.ListRequest.FromString,
                response_serializer=messages.Worker.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler(SERVICE, verbs)

    def _verb(self, into: Any, out: Any) -> Any:
        async def carried_out(message: Message, context: Context) -> Message:
            ask = asked(message, dict(context.invocation_metadata()))
            answer = await self._api.handle(ask)
            found = msgspec.json.decode(answer.body)
            if answer.status != 200:
                await _refuse(context, found)
            reply: Message = ParseDict(found, out(), ignore_unknown_fields=True)
            return reply

        return grpc.unary_unary_rpc_method_handler(
            carried_out,
            request_deserializer=into.FromString,
            response_serializer=out.SerializeToString,
        )

    async def _watch(
        self, message: Message, context: Context
    ) -> AsyncIterator[Message]:
        metadata = dict(context.invocation_metadata())
        ask = msgspec.structs.replace(asked(message, metadata), query={"watch": "1"})
        answer: Answer = await self._api.handle(ask)
        if answer.stream is None:
            await _refuse(context, msgspec.json.decode(answer.body))
            return
        async for line in answer.stream:
            if line.strip():
                row = msgspec.json.decode(line)
                yield ParseDict(row, messages.Worker(), ignore_unknown_fields=True)


VERBS: Final = {
    "AcquireRequest": "acquire",
    "ReleaseRequest": "release",
    "DrainRequest": "drain",
    "ListRequest": "workers",
}


def asked(message: Message, metadata: dict[str, Any]) -> Ask:
    """The request that a message is over HTTP."""
    fields: dict[str, Any] = MessageToDict(message)
    kind = message.DESCRIPTOR.name
    if kind == "RenewRequest":
        path = f"/v1/holders/{fields.pop('holder', '')}/renew"
        fields.setdefault("checkouts", [])
    else:
        namespace, pool = fields.pop("namespace", ""), fields.pop("pool", "")
        path = f"/v1/pools/{namespace}/{pool}/{VERBS[kind]}"
    return Ask(
        method="GET" if kind == "ListRequest" else "POST",
        path=path,
        headers={"authorization": str(metadata.get("authorization", ""))},
        body=msgspec.json.encode(fields),
    )


async def _refuse(context: Context, problem: dict[str, Any]) -> None:
    code = Code(problem["code"])
    trailing = [("trimtab-code", code.value)]
    if problem.get("retryAfter") is not None:
        trailing.append(("retry-after", f"{problem['retryAfter']:g}"))
    await context.abort(STATUS[code], problem["message"], tuple(trailing))
