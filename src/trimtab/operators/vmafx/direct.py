"""Scoring without a job: the gRPC service that answers while the caller waits.

Frames that are sent one by one are put into two Y4M files first: temporal features are
known only when the last frame is there, so nothing could be said before.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from trimtab.operators.vmafx.guarding import BadRequest, Guard, NotHere, serialized
from trimtab.operators.vmafx.node import Scorer
from trimtab.operators.vmafx.problems import BadInput
from trimtab.operators.vmafx.roles import Denied
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.wire import scoring_pb2 as wire

SERVICE = "vmafx.v1.VmafxScoring"
# What one stream may put on the disk: a minute of 1080p, or so.
MOST_BYTES = 8 << 30
_LARGEST = 16384
_PATIENCE = 5.0
# By the format: its name in Y4M, bytes for a sample, and how often chroma is sampled.
_FORMATS: dict[int, tuple[str, int, int, int]] = {
    wire.PIXEL_FORMAT_YUV420P: ("420jpeg", 1, 2, 2),
    wire.PIXEL_FORMAT_YUV422P: ("422", 1, 2, 1),
    wire.PIXEL_FORMAT_YUV444P: ("444", 1, 1, 1),
    wire.PIXEL_FORMAT_YUV420P10LE: ("420p10", 2, 2, 2),
    wire.PIXEL_FORMAT_YUV422P10LE: ("422p10", 2, 2, 1),
    wire.PIXEL_FORMAT_YUV444P10LE: ("444p10", 2, 1, 1),
}


class Scoring:
    """What each method does; ``handler`` is what a gRPC server is given."""

    def __init__(
        self, scorer: Scorer | None, *, guard: Guard, registry: Registry
    ) -> None:
        self._scorer = scorer
        self._guard = guard
        self._registry = registry

    def handler(self) -> grpc.GenericRpcHandler:
        """All methods, each behind its role."""
        unary, stream = grpc.unary_unary_rpc_method_handler, self._guard.stream
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Score": unary(
                self._guard.unary(f"/{SERVICE}/Score", self.score),
                request_deserializer=wire.ScoreRequest.FromString,
                response_serializer=serialized,
            ),
            "Health": unary(
                self._guard.unary(f"/{SERVICE}/Health", self.health),
                request_deserializer=wire.HealthRequest.FromString,
                response_serializer=serialized,
            ),
            "ScoreStream": grpc.stream_stream_rpc_method_handler(
                stream(f"/{SERVICE}/ScoreStream", self.stream),
                request_deserializer=wire.ScoreStreamRequest.FromString,
                response_serializer=serialized,
            ),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def health(self, request: wire.HealthRequest) -> wire.HealthResponse:
        """Whether it answers: it does."""
        message = "It scores." if self._scorer else "It does not score."
        return wire.HealthResponse(ok=True, message=message)

    async def score(self, request: wire.ScoreRequest) -> wire.ScoreResponse:
        """Score a pair; a caller that hangs up ends the measurement."""
        if not request.reference or not request.distorted:
            raise BadRequest("A score needs a reference and a distorted clip.")
        roots = self._registry.roots(self._guard.identity.tenant)
        for clip in (request.reference, request.distorted):
            try:
                roots.check(clip)
            except BadInput as error:
                raise Denied(str(error)) from None
        found = await self._scored(request.reference, request.distorted, request.model)
        return wire.ScoreResponse(score=found.vmaf, features=found.features)

    async def stream(
        self, requests: AsyncIterator[wire.ScoreStreamRequest]
    ) -> AsyncIterator[wire.ScoreStreamResponse]:
        """Score frames that are sent one by one, when the last has come."""
        clock = asyncio.get_running_loop().time
        began = clock()
        with tempfile.TemporaryDirectory(prefix="trimtab-vmafx-") as name:
            try:
                film, model = await _received(requests, Path(name))
            except BadRequest:
                await _rest(requests)
                raise
            found = await self._scored(*film.paths, model)
        for index, value in enumerate(found.frames):
            frame = wire.FrameScore(frame_index=index, score=value)
            yield wire.ScoreStreamResponse(frame_score=frame)
        yield wire.ScoreStreamResponse(
            aggregate=wire.AggregateScore(
                frames_processed=len(found.frames),
                score=found.vmaf,
                features=found.features,
                elapsed_ms=int((clock() - began) * 1000),
            )
        )

    async def _scored(self, reference: str, distorted: str, model: str) -> Score:
        if self._scorer is None:
            raise NotHere("This gateway does not score: submit a job, or ask a node.")
        return await self._scorer(
            reference, distorted, model=model, progress=lambda done, expected: None
        )


async def _received(
    requests: AsyncIterator[wire.ScoreStreamRequest], folder: Path
) -> tuple[Film, str]:
    config = await _config(requests)
    with Film(folder, config) as film:
        async for request in requests:
            film.add(_pair(request))
    return film, config.model


async def _rest(requests: AsyncIterator[wire.ScoreStreamRequest]) -> None:
    """Hear out who sends nonsense, for a while: some clients hear nothing till then."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            async for _ in requests:
                pass


async def _config(
    requests: AsyncIterator[wire.ScoreStreamRequest],
) -> wire.StreamConfig:
    async for request in requests:
        if request.HasField("config"):
            return request.config
        break
    raise BadRequest("The first message of a stream must be its config.")


def _pair(request: wire.ScoreStreamRequest) -> wire.FramePair:
    if not request.HasField("frame_pair"):
        raise BadRequest("After the config there are only frames.")
    return request.frame_pair


class Film:
    """Two Y4M files that grow by a frame each.

    Errors: :class:`BadRequest` for a format, size or number that does not fit.
    """

    def __init__(self, folder: Path, config: wire.StreamConfig) -> None:
        if not (0 < config.width <= _LARGEST and 0 < config.height <= _LARGEST):
            size = f"{config.width}x{config.height}"
            raise BadRequest(f"Frames of {size} cannot be scored.")
        if config.pixel_format not in _FORMATS:
            raise BadRequest(f"The pixel format {config.pixel_format} is not known.")
        name, depth, across, down = _FORMATS[config.pixel_format]
        chroma = -(-config.width // across) * -(-config.height // down)
        self._size = depth * (config.width * config.height + 2 * chroma)
        head = f"YUV4MPEG2 W{config.width} H{config.height} F25:1 Ip A1:1 C{name}\n"
        self._head = head.encode()
        self._frames = 0
        places = [folder / "reference.y4m", folder / "distorted.y4m"]
        self._files = [place.open("wb") for place in places]
        self.paths = (str(places[0]), str(places[1]))

    def __enter__(self) -> Self:
        for file in self._files:
            file.write(self._head)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()
        if error is None and not self._frames:
            raise BadRequest("A stream without frames has no score.")

    def add(self, pair: wire.FramePair) -> None:
        """Take the next pair."""
        if pair.frame_index != self._frames:
            raise BadRequest(
                f"Frame {self._frames} was expected, and {pair.frame_index} came."
            )
        self._frames += 1
        if 2 * self._frames * self._size > MOST_BYTES:
            raise BadRequest(f"A stream has {MOST_BYTES >> 30} GiB at most.")
        for file, planes in zip(
            self._files, (pair.raw_reference, pair.raw_distorted), strict=True
        ):
            if len(planes) != self._size:
                raise BadRequest(
                    f"Frame {pair.frame_index} has {len(planes)} bytes, and "
                    f"{self._size} were expected."
                )
            file.write(b"FRAME\n")
            file.write(planes)
