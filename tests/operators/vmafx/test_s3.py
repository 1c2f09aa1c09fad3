"""Objects of S3 are read with signatures of our own, which a real server verifies.

The store below computes each signature again from the request that came over the wire,
by the rules that AWS publishes, and with none of our code.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, unquote

import aiohttp
import pytest
from aiohttp import web

from tests.operators.vmafx import clips
from trimtab.operators.vmafx.problems import BadInput, ToolFailed
from trimtab.operators.vmafx.relay import Way
from trimtab.operators.vmafx.roots import Roots
from trimtab.operators.vmafx.s3 import S3, Keys, located, presigned
from trimtab.operators.vmafx.scoring import score
from trimtab.operators.vmafx.sources import source
from trimtab.operators.vmafx.tools import Ffmpeg

# Of AWS's own documentation: "Authenticating Requests: Using Query Parameters".
EXAMPLE = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
SIGNATURE = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
REGION = "eu-central-1"


def test_a_signature_is_the_one_that_aws_publishes() -> None:
    url = presigned(
        "https://examplebucket.s3.amazonaws.com/test.txt",
        keys=EXAMPLE,
        region="us-east-1",
        now=datetime(2013, 5, 24, tzinfo=UTC),
        seconds=86400,
    )
    assert url == (
        "https://examplebucket.s3.amazonaws.com/test.txt"
        "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE"
        "%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z"
        f"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature={SIGNATURE}"
    )


def test_an_object_is_found_by_its_bucket_region_or_endpoint() -> None:
    near = located("s3://clips/a b/ü+?.mp4", region=REGION)
    assert near == (
        "https://clips.s3.eu-central-1.amazonaws.com/a%20b/%C3%BC%2B%3F.mp4"
    )
    dotted = located("s3://clips.example/a.mp4", region=REGION)
    assert dotted == "https://s3.eu-central-1.amazonaws.com/clips.example/a.mp4"
    other = located("s3://clips/a.mp4", region=REGION, endpoint="http://minio:9000/")
    assert other == "http://minio:9000/clips/a.mp4"


@pytest.mark.parametrize("text", ["s3://", "s3://clips", "s3://clips/", "s3://c/../b"])
def test_an_object_without_a_name_is_no_input(text: str) -> None:
    with pytest.raises(BadInput, match="s3://BUCKET/KEY"):
        source(text)


def test_a_bucket_can_be_a_root() -> None:
    roots = Roots(("s3://clips/public",))
    roots.check("s3://clips/public/a.mp4")
    for text in ("s3://clips/private/a.mp4", "s3://other/public/a.mp4"):
        with pytest.raises(BadInput, match="outside of the scoring roots"):
            roots.check(text)


class Store:
    """A server of objects that trusts nobody: it verifies what each request shows."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        self.folder = folder
        self.keys = keys
        self.served: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        given = dict(each.split("=", 1) for each in query.split("&"))
        if not self.is_genuine(request, path, given):
            return web.Response(status=403)
        if self.is_late(given):
            return web.Response(status=403)
        name = unquote(path).removeprefix("/clips/")
        self.served.append(name)
        return web.FileResponse(self.folder / name)

    def is_late(self, given: dict[str, str]) -> bool:
        began = datetime.strptime(given["X-Amz-Date"], "%Y%m%dT%H%M%S%z")
        lasts = timedelta(seconds=int(given["X-Amz-Expires"]))
        return not began - timedelta(minutes=15) < datetime.now(UTC) < began + lasts

    def is_genuine(
        self, request: web.Request, path: str, given: dict[str, str]
    ) -> bool:
        shown = given.pop("X-Amz-Signature", "")
        scope = unquote(given["X-Amz-Credential"]).partition("/")[2]
        if unquote(given.get("X-Amz-Security-Token", "")) != self.keys.token:
            return False
        canonical = "\n".join(
            [
                request.method,
                quote(unquote(path), safe="/-_.~"),
                "&".join(f"{name}={given[name]}" for name in sorted(given)),
                f"host:{request.headers['Host']}\n",
                "host",
                "UNSIGNED-PAYLOAD",
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{given['X-Amz-Date']}\n{scope}\n{digest}"
        key = f"AWS4{self.keys.secret}".encode()
        for part in [*scope.split("/"), text]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(key.hex(), shown)


@asynccontextmanager
async def serving(store: Store) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{path:.*}", store.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def store(reference: Path) -> AsyncIterator[tuple[Store, dict[str, str]]]:
    made = Store(reference.parent, EXAMPLE)
    async with serving(made) as url:
        yield (
            made,
            {
                "AWS_ACCESS_KEY_ID": EXAMPLE.id,
                "AWS_SECRET_ACCESS_KEY": EXAMPLE.secret,
                "AWS_REGION": REGION,
                "AWS_ENDPOINT_URL_S3": url,
            },
        )


@asynccontextmanager
async def way(environment: dict[str, str]) -> AsyncIterator[Way]:
    objects = S3(environment, now=lambda: datetime.now(UTC))
    async with aiohttp.ClientSession() as session:
        yield Way(session, random.SystemRandom(), objects)


async def test_clips_in_a_bucket_are_scored_as_those_on_the_disk(
    store: tuple[Store, dict[str, str]], ffmpeg: Ffmpeg, reference: Path
) -> None:
    made, environment = store
    odd = clips.picture(reference.with_name("odd name +ü.mp4"), crf=40)
    async with way(environment) as network:
        there = await score(
            "s3://clips/reference.mp4",
            f"s3://clips/{odd.name}",
            ffmpeg=ffmpeg,
            way=network,
        )
    here = await score(str(reference), str(odd), ffmpeg=ffmpeg)
    assert there.vmaf == here.vmaf
    assert {reference.name, odd.name} <= set(made.served)


async def test_keys_of_a_mounted_secret_are_read_when_they_are_used(
    store: tuple[Store, dict[str, str]], ffmpeg: Ffmpeg, tmp_path: Path
) -> None:
    made, environment = store
    made.keys = Keys("AKIANEW", "another/secret+key", "session//token==")
    folder = {"VMAFX_S3_KEYS": str(tmp_path)}
    pair = ("s3://clips/reference.mp4", "s3://clips/reference.mp4")
    async with way({**environment, **folder}) as network:
        with pytest.raises(BadInput, match="its server answered 403") as refused:
            await score(*pair, ffmpeg=ffmpeg, way=network)
        (tmp_path / "AWS_ACCESS_KEY_ID").write_text(f"{made.keys.id}\n")
        (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text(made.keys.secret)
        (tmp_path / "AWS_SESSION_TOKEN").write_text(made.keys.token)
        found = await score(*pair, ffmpeg=ffmpeg, way=network)
    assert found.vmaf > 90
    assert "Signature" not in str(refused.value)
    assert EXAMPLE.secret not in repr(EXAMPLE)


async def test_without_keys_nothing_is_asked_for(
    store: tuple[Store, dict[str, str]], ffmpeg: Ffmpeg
) -> None:
    made, _ = store
    async with way({}) as network:
        with pytest.raises(ToolFailed, match="AWS_SECRET_ACCESS_KEY are not set here"):
            await score("s3://clips/a", "s3://clips/b", ffmpeg=ffmpeg, way=network)
    assert not made.served
