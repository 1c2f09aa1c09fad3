"""Calling a gateway: one channel for all calls, with a deadline and a token on each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from trimtab.client import ConfigError
from trimtab.operators.vmafx.wire import controller_pb2 as wire

SERVICE = "/vmafx.controller.v1.VmafxController"
DEADLINE = 10.0

M = TypeVar("M", bound=Message)


class Caller:
    """The methods of a gateway.

    Guarantees: calls share one channel, which nothing here waits for; a call and the
    connecting for it have one deadline together. The file of the token is read for each
    call, because tokens are renewed in place.

    Errors: ``grpc.aio.AioRpcError``; :class:`ConfigError` without its token.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        token: Path | Callable[[], str] | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self._channel = channel
        self._token = token
        self._deadline = deadline

    async def register(
        self, request: wire.RegisterNodeRequest
    ) -> wire.RegisterNodeResponse:
        return await self._call("RegisterNode", request, wire.RegisterNodeResponse)

    async def heartbeat(self, request: wire.HeartbeatRequest) -> wire.HeartbeatResponse:
        wait = request.wait_seconds
        return await self._call("Heartbeat", request, wire.HeartbeatResponse, wait=wait)

    async def pull(self, request: wire.PullWorkRequest) -> wire.PullWorkResponse:
        wait = request.wait_seconds
        return await self._call("PullWork", request, wire.PullWorkResponse, wait=wait)

    async def report(
        self, request: wire.ReportResultRequest
    ) -> wire.ReportResultResponse:
        return await self._call("ReportResult", request, wire.ReportResultResponse)

    async def submit(self, request: wire.SubmitJobRequest) -> wire.SubmitJobResponse:
        return await self._call("SubmitJob", request, wire.SubmitJobResponse)

    async def get(self, request: wire.GetJobRequest) -> wire.Job:
        return await self._call("GetJob", request, wire.Job)

    async def cancel(self, request: wire.CancelJobRequest) -> wire.CancelJobResponse:
        return await self._call("CancelJob", request, wire.CancelJobResponse)

    async def stream(self, request: wire.StreamJobsRequest) -> AsyncIterator[wire.Job]:
        """Jobs as they are; with ``watch``, as they become."""
        method = self._channel.unary_stream(
            f"{SERVICE}/StreamJobs",
            request_serializer=wire.StreamJobsRequest.SerializeToString,
            response_deserializer=wire.Job.FromString,
        )
        async for job in method(request, metadata=self._metadata()):
            yield job

    async def _call(
        self, name: str, request: Message, answer: type[M], *, wait: float = 0.0
    ) -> M:
        method: grpc.aio.UnaryUnaryMultiCallable[Any, M] = self._channel.unary_unary(
            f"{SERVICE}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        timeout = wait + self._deadline
        return await method(request, timeout=timeout, metadata=self._metadata())

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._token is None:
            return ()
        token = read(self._token) if isinstance(self._token, Path) else self._token()
        return (("authorization", f"Bearer {token}"),) if token else ()


def read(file: Path) -> str:
    """The token in a file, as it is now. Errors: :class:`ConfigError`."""
    try:
        return file.read_text().strip()
    except OSError as error:
        reason = (error.strerror or "no reason given").lower()
        raise ConfigError(f"The token in {file} cannot be read: {reason}.") from error
