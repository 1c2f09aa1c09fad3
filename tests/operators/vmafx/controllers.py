"""A controller for the tests of remote mode: it answers, refuses, or hangs, as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from trimtab.operators.vmafx.calling import SERVICE
from trimtab.operators.vmafx.wire import controller_pb2 as wire

CODES = grpc.StatusCode
_REQUESTS: dict[str, Any] = {
    "SubmitJob": wire.SubmitJobRequest,
    "GetJob": wire.GetJobRequest,
    "CancelJob": wire.CancelJobRequest,
}


class FakeController:
    """Keeps jobs by their key; ``fails`` has what goes wrong with a method instead."""

    def __init__(self) -> None:
        self.jobs: dict[str, wire.Job] = {}
        self.keys: dict[str, str] = {}
        # By method: a code to refuse with, or None to hang.
        self.fails: dict[str, grpc.StatusCode | None] = {}
        # Of each submission that succeeded and whose answer is not sent.
        self.lost_answers = 0
        self.calls: list[str] = []
        self.peers: set[str] = set()
        self.tokens: list[str] = []

    def job(self) -> wire.Job:
        """The only job."""
        (found,) = self.jobs.values()
        return found

    def handler(self) -> grpc.GenericRpcHandler:
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(name),
                request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, request in _REQUESTS.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE.strip("/"), methods)

    def _answering(self, name: str) -> Callable[[Any, Any], Any]:
        async def answer(request: Any, context: Any) -> Any:
            self.calls.append(name)
            self.peers.add(context.peer())
            headers = dict(context.invocation_metadata())
            self.tokens.append(headers.get("authorization", ""))
            if name in self.fails:
                code = self.fails[name]
                if code is None:
                    await asyncio.Event().wait()
                await context.abort(code, f"{name} is refused here.")
            return await getattr(self, f"_{name}")(request, context)

        return answer

    async def _SubmitJob(self, request: Any, context: Any) -> Any:
        key = request.idempotency_key
        made = self.keys.setdefault(key, f"remote-{len(self.keys)}")
        self.jobs.setdefault(made, wire.Job(id=made, scoring=request.scoring))
        if self.lost_answers:
            self.lost_answers -= 1
            await context.abort(CODES.UNAVAILABLE, "The answer is lost.")
        return wire.SubmitJobResponse(job_id=made)

    async def _GetJob(self, request: Any, context: Any) -> Any:
        if request.job_id not in self.jobs:
            await context.abort(CODES.NOT_FOUND, "There is no such job.")
        return self.jobs[request.job_id]

    async def _CancelJob(self, request: Any, context: Any) -> Any:
        if request.job_id not in self.jobs:
            await context.abort(CODES.NOT_FOUND, "There is no such job.")
        self.jobs[request.job_id].status = wire.CANCELLED
        return wire.CancelJobResponse(ok=True)


@asynccontextmanager
async def controller(made: FakeController, *, port: int = 0) -> AsyncIterator[int]:
    """It serves while the block runs; its port."""
    server = grpc.aio.server(handlers=(made.handler(),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(0)
