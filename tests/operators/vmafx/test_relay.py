"""A clip on the network is read as one on the disk; what its server does is told."""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.operators.vmafx import clips
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.relay import Way
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.testing import pki


class Origin:
    """A server of clips that does what its paths say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.url = ""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/whole/{name}", self.whole)
        made.router.add_get("/gone/{name}", self.gone)
        made.router.add_get("/cut/{name}", self.cut)
        made.router.add_get("/busy/{name}", self.busy)
        made.router.add_get("/moved/{name}", self.moved)
        made.router.add_get("/round/{name}", self.round)
        made.router.add_get("/stubborn/{name}", self.stubborn)
        return made

    async def whole(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers.get("Range", ""))
        return web.FileResponse(self.folder / request.match_info["name"])

    async def gone(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    async def busy(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPServiceUnavailable

    async def moved(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"/whole/{request.match_info['name']}")

    async def round(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(str(request.rel_url))

    async def stubborn(self, request: web.Request) -> web.StreamResponse:
        content = (self.folder / request.match_info["name"]).read_bytes()
        return web.Response(body=content)

    async def cut(self, request: web.Request) -> web.StreamResponse:
        content = (self.folder / request.match_info["name"]).read_bytes()
        response = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        assert request.transport is not None
        request.transport.abort()
        return response


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    async with aiohttp.ClientSession() as session:
        yield Way(session, random.SystemRandom())


@pytest.fixture
async def origin(reference: Path) -> AsyncIterator[Origin]:
    made = Origin(reference.parent)
    async with Serving(made) as url:
        made.url = url
        yield made


class Serving:
    """An origin on a port of its own."""

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None = None) -> None:
        self._runner = web.AppRunner(origin.application(), shutdown_timeout=0.1)
        self._tls = tls

    async def __aenter__(self) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        scheme = "https" if self._tls else "http"
        return f"{scheme}://localhost:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *problem: object) -> None:
        await self._runner.cleanup()


async def test_a_clip_behind_an_address_has_the_score_of_the_file(
    ffmpeg: Ffmpeg, way: Way, origin: Origin, reference: Path, distorted: Path
) -> None:
    here = await score(str(reference), str(distorted), ffmpeg=ffmpeg)
    there = await score(
        f"{origin.url}/whole/{reference.name}",
        f"{origin.url}/moved/{distorted.name}",
        ffmpeg=ffmpeg,
        way=way,
    )
    assert there.vmaf == here.vmaf


async def test_a_clip_whose_index_is_at_its_end_is_read_by_parts(
    ffmpeg: Ffmpeg, way: Way, origin: Origin, reference: Path
) -> None:
    name = "late.mp4"  # and large, or its end is read along with its start
    noise = ("-vf", "noise=alls=90", "-c:v", "libx264", "-crf", "1")
    clips.made(reference.with_name(name), "-i", str(reference), *noise)
    found = await score(
        str(reference), f"{origin.url}/whole/{name}", ffmpeg=ffmpeg, way=way
    )
    assert len(found.frames) == clips.FRAMES
    assert any(asked not in ("", "bytes=0-") for asked in origin.asked)
    with pytest.raises(BadInput, match="serve it with ranges"):
        await score(
            str(reference), f"{origin.url}/stubborn/{name}", ffmpeg=ffmpeg, way=way
        )


@pytest.mark.parametrize(
    ("path", "kind", "why"),
    [
        ("gone", BadInput, "answered 404"),
        ("busy", ToolFailed, "answered 503"),
        ("cut", ToolFailed, "was cut off"),
        ("round", BadInput, "leads on and on"),
    ],
)
async def test_what_a_server_does_is_told_and_its_secrets_are_not(
    ffmpeg: Ffmpeg,
    way: Way,
    origin: Origin,
    reference: Path,
    path: str,
    kind: type[Exception],
    why: str,
) -> None:
    address = f"{origin.url}/{path}/{reference.name}?signature=hidden"
    with pytest.raises(kind, match=why) as refused:
        await score(str(reference), address, ffmpeg=ffmpeg, way=way)
    assert f"/{path}/{reference.name}?…" in str(refused.value)
    assert "hidden" not in str(refused.value)


async def test_a_server_that_nobody_vouches_for_is_not_read(
    ffmpeg: Ffmpeg, way: Way, reference: Path, tmp_path: Path
) -> None:
    origin = Origin(reference.parent)
    pki.make(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    async with Serving(origin, tls) as url:
        with pytest.raises(ToolFailed, match="certificate is not trusted"):
            await score(
                str(reference), f"{url}/whole/{reference.name}", ffmpeg=ffmpeg, way=way
            )
    assert origin.asked == []


async def test_a_server_that_is_not_there_may_be_asked_again(
    ffmpeg: Ffmpeg, way: Way, reference: Path
) -> None:
    with pytest.raises(ToolFailed, match="Connection refused"):
        await score(str(reference), "http://127.0.0.1:1/a.mp4", ffmpeg=ffmpeg, way=way)
