"""Laws of scoring while the caller waits: files by name, and frames by the wire."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.operators.vmafx import clips
from trimtab.api import Resource
from trimtab.operators.vmafx import roles, tools
from trimtab.operators.vmafx.direct import SERVICE, Scoring
from trimtab.operators.vmafx.guarding import Guard
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.scores import Score
from trimtab.operators.vmafx.scoring import MODEL, score
from trimtab.operators.vmafx.tenancy.registry import Registry
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.wire import scoring_pb2 as wire

WIDTH, HEIGHT = 160, 90


class Everybody:
    """A judge who lets everybody do everything: rights are tested elsewhere."""

    async def allows(
        self, token: str, verb: str, kind: type[Resource], *, namespace: str
    ) -> bool:
        return True


@pytest.fixture
async def channel(ffmpeg: Ffmpeg, reference: Path) -> AsyncIterator[grpc.aio.Channel]:
    async def scorer(
        reference: str,
        distorted: str,
        *,
        model: str,
        progress: Any,
        segment: Any = None,
    ) -> Score:
        return await score(reference, distorted, ffmpeg=ffmpeg, model=model or MODEL)

    guard = Guard(Everybody(), namespace="n")
    registry = Registry(home="n", roots=Roots((str(reference.parent),)))
    scoring = Scoring(scorer, guard=guard, registry=registry)
    server = grpc.aio.server(handlers=(scoring.handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as made:
        yield made
    await server.stop(0)


def frames(clip: Path) -> Iterator[bytes]:
    """The decoded frames of a clip, as raw planes."""
    command = (tools.where(), "-loglevel", "error", "-nostdin", "-i", str(clip))
    raw = ("-f", "rawvideo", "-pix_fmt", "yuv420p", "-")
    content = subprocess.run((*command, *raw), check=True, stdout=-1).stdout
    size = WIDTH * HEIGHT * 3 // 2
    for start in range(0, len(content), size):
        yield content[start : start + size]


def requests(
    one: Path, other: Path, *, first: int = 0
) -> Iterator[wire.ScoreStreamRequest]:
    config = wire.StreamConfig(
        width=WIDTH, height=HEIGHT, pixel_format=wire.PIXEL_FORMAT_YUV420P
    )
    yield wire.ScoreStreamRequest(config=config)
    pairs = zip(frames(one), frames(other), strict=True)
    for number, (reference, distorted) in enumerate(pairs, first):
        pair = wire.FramePair(
            frame_index=number, raw_reference=reference, raw_distorted=distorted
        )
        yield wire.ScoreStreamRequest(frame_pair=pair)


Stream = Iterable[wire.ScoreStreamRequest]


def begun(channel: grpc.aio.Channel, sent: Stream = ()) -> Any:
    method = channel.stream_stream(
        f"/{SERVICE}/ScoreStream",
        request_serializer=wire.ScoreStreamRequest.SerializeToString,
        response_deserializer=wire.ScoreStreamResponse.FromString,
    )
    return method(iter(sent)) if sent else method()


async def refused(
    channel: grpc.aio.Channel, sent: Stream
) -> tuple[grpc.StatusCode, str]:
    """How a stream ends, of which the server may not want to hear the rest."""
    call = begun(channel)
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        for each in sent:
            await call.write(each)
        await call.done_writing()
    return await call.code(), await call.details()


async def test_frames_by_the_wire_have_the_score_of_their_files(
    channel: grpc.aio.Channel, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    expected = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    sent = list(requests(reference, distorted))
    answers = [answer async for answer in begun(channel, sent)]
    assert len(answers) == clips.FRAMES + 1
    assert [each.frame_score.frame_index for each in answers[:-1]] == list(
        range(clips.FRAMES)
    )
    assert [each.frame_score.score for each in answers[:-1]] == list(expected.frames)
    assert answers[-1].aggregate.score == expected.vmaf
    assert answers[-1].aggregate.frames_processed == clips.FRAMES


async def test_a_stream_that_makes_no_sense_is_refused(
    channel: grpc.aio.Channel, reference: Path
) -> None:
    good = list(requests(reference, reference))
    odd = wire.StreamConfig(width=3, height=3, pixel_format=99)  # type: ignore[arg-type]
    short = wire.FramePair(frame_index=0, raw_reference=b"x", raw_distorted=b"x")
    for sent, why in (
        (good[1:], "must be its config"),
        (good[:1], "without frames"),
        ([good[0], good[2]], "Frame 0 was expected"),
        ([good[0], good[0]], "only frames"),
        ([good[0], wire.ScoreStreamRequest(frame_pair=short)], "were expected"),
        ([wire.ScoreStreamRequest(config=odd)], "is not known"),
        ([], "must be its config"),
    ):
        code, details = await refused(channel, sent)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert why in details


async def test_a_pair_by_name_is_scored_below_the_roots_only(
    channel: grpc.aio.Channel, ffmpeg: Ffmpeg, reference: Path, distorted: Path
) -> None:
    method = channel.unary_unary(
        f"/{SERVICE}/Score",
        request_serializer=wire.ScoreRequest.SerializeToString,
        response_deserializer=wire.ScoreResponse.FromString,
    )
    expected = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    request = wire.ScoreRequest(reference=str(reference), distorted=str(distorted))
    answer = await method(request)
    assert answer.score == expected.vmaf
    assert dict(answer.features) == dict(expected.features)
    outside = wire.ScoreRequest(reference=str(reference), distorted="/etc/fstab")
    with pytest.raises(grpc.aio.AioRpcError) as denied:
        await method(outside)
    assert denied.value.code() is grpc.StatusCode.PERMISSION_DENIED
    missing = wire.ScoreRequest(
        reference=str(reference), distorted=str(reference.parent / "no.mp4")
    )
    with pytest.raises(grpc.aio.AioRpcError, match="no such file") as wrong:
        await method(missing)
    assert wrong.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_every_method_has_a_role() -> None:
    served = wire.DESCRIPTOR.services_by_name["VmafxScoring"].methods_by_name
    assert {f"/{SERVICE}/{name}" for name in served} <= set(roles.METHODS)
