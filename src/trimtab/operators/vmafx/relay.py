"""The relay: a loopback address through which ffmpeg reads from the network.

An ffmpeg that is linked statically cannot look up names, and none checks certificates
unless it is told how. So it never leaves this machine: it asks this relay, which asks
the real server, verified, passes ranges on, and notices when an answer was cut off.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urljoin

import aiohttp
from aiohttp import web
from yarl import URL

from trimtab.operators.vmafx import s3
from trimtab.operators.vmafx.problems import BadInput, ScoringError, ToolFailed
from trimtab.operators.vmafx.sources import Source

_CHUNK = 1 << 18
_HOPS = 5
# Connecting and each silence are bounded; a long clip takes as long as it takes.
_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=15)
_PASSED_ON = ("Content-Length", "Content-Range", "Content-Type", "Accept-Ranges")
# These say that somebody is busy, not that the clip is wrong.
_PASSING = frozenset({408, 425, 429})


class Way(NamedTuple):
    """How the network is reached: one session for all scores of a process.

    ``random`` is a ``SystemRandom``: whoever can foresee it can ask the relay.
    """

    session: aiohttp.ClientSession
    random: Random
    # Who signs for objects of S3; without, none is read.
    objects: s3.S3 | None = None

    def address(self, clip: Source) -> URL:
        """Where a clip is read from now.

        Errors: :class:`ToolFailed` for an object of S3 that nobody can sign for.
        """
        if not clip.opened.startswith(s3.SCHEME):
            return URL(clip.opened)
        if self.objects is None:
            raise ToolFailed(f"{clip.name} cannot be read: there are no keys for S3.")
        # As it was signed, to the letter.
        return URL(self.objects.presigned(clip.opened), encoded=True)


class Relay:
    """Serves some sources on 127.0.0.1, for as long as it is open.

    Guarantees: only who was told an address can ask for it. No redirect leads from
    https to http. ``problem`` of a source is what first went wrong with it.
    """

    def __init__(self, sources: Sequence[Source], *, way: Way) -> None:
        self._way = way
        self._sources = {f"{way.random.getrandbits(128):x}": each for each in sources}
        self._problems: dict[str, ScoringError] = {}
        self._whole_only: set[str] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_get("/{key}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def address(self, clip: Source) -> str:
        """Where ffmpeg finds it."""
        key = next(key for key, each in self._sources.items() if each is clip)
        return f"http://127.0.0.1:{self._port}/{key}"

    def problem(self, clip: Source) -> ScoringError | None:
        """What first went wrong with it, if something did."""
        return self._problems.get(clip.name)

    def is_whole_only(self, clip: Source) -> bool:
        """Whether its server was asked for a part and sent all of it."""
        return clip.name in self._whole_only

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        clip = self._sources.get(request.match_info["key"])
        if clip is None:
            raise web.HTTPNotFound
        wanted = {"Accept-Encoding": "identity"}
        if "Range" in request.headers:
            wanted["Range"] = request.headers["Range"]
        try:
            async with await _followed(self._way, clip, wanted) as answer:
                if answer.status >= 300:
                    raise _refused(clip, answer.status)
                if answer.status == 200 and "Range" in wanted:
                    self._whole_only.add(clip.name)
                return await self._passed_on(request, clip, answer)
        except (aiohttp.ClientError, TimeoutError, ScoringError) as error:
            self._problems.setdefault(clip.name, _told(clip, error))
            raise web.HTTPBadGateway from error

    async def _passed_on(
        self, request: web.Request, clip: Source, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        for name in _PASSED_ON:
            if name in answer.headers:
                response.headers[name] = answer.headers[name]
        await response.prepare(request)
        try:
            async for chunk in answer.content.iter_chunked(_CHUNK):
                try:
                    await response.write(chunk)
                except ConnectionError:
                    return response  # ffmpeg has read enough: it seeks, or it ends
        except (aiohttp.ClientError, TimeoutError):
            early = ToolFailed(f"{clip.name} was cut off: its server ended the answer.")
            self._problems.setdefault(clip.name, early)
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response


async def _followed(
    way: Way, clip: Source, headers: dict[str, str]
) -> aiohttp.ClientResponse:
    """The answer at the end of the redirects."""
    at = way.address(clip)
    for _ in range(_HOPS):
        answer = await way.session.get(
            at, headers=headers, timeout=_PATIENCE, allow_redirects=False
        )
        location = answer.headers.get("Location", "")
        if answer.status not in (301, 302, 303, 307, 308) or not location:
            return answer
        answer.release()
        target = URL(urljoin(str(answer.url), location))
        if target.scheme != "https" and at.scheme == "https":
            raise BadInput(f"{clip.name} leads from https to http: it is not followed.")
        at = target
    raise BadInput(f"{clip.name} leads on and on: it redirects {_HOPS} times.")


def _refused(clip: Source, status: int) -> ScoringError:
    sentence = f"{clip.name} cannot be read: its server answered {status}."
    if status < 500 and status not in _PASSING:
        return BadInput(sentence)
    return ToolFailed(sentence)


def _told(clip: Source, error: BaseException) -> ScoringError:
    """The problem as a sentence that has no secret of the address in it."""
    if isinstance(error, ScoringError):
        return error
    if isinstance(error, TimeoutError):
        return ToolFailed(f"{clip.name} cannot be read: its server does not answer.")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return ToolFailed(
            f"{clip.name} cannot be read: its certificate is not trusted."
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        reason = os.strerror(number) if number > 0 else error.os_error.strerror
        return ToolFailed(f"{clip.name} cannot be read: {reason or 'no connection'}.")
    return ToolFailed(f"{clip.name} cannot be read: {type(error).__name__}.")
