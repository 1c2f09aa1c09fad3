"""Responses: answers as HTTP, whole or in pieces, compressed if that pays.

What kube-apiserver does where a client looks: an answer of up to 128 KiB comes whole
and plain; a longer one is compressed for those who accept gzip, and streamed. People
with curl or a browser get their JSON indented.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from aiohttp.http import StreamWriter
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from multidict import CIMultiDict

from trimtab.embedded.api import Answer
from trimtab.embedded.driver import Cut, Stream
from trimtab.embedded.requests import TRUE, ApiRequest

logger = logging.getLogger(__name__)

GZIP_FROM = 128 << 10
# The level that costs least; the others gain little on JSON.
GZIP_LEVEL = 1
GZIP_FORMAT = 31
BATCH = 64 << 10
MOST = 100
"""So many pieces are a batch, however small: each may have been much work."""
# A reader that takes nothing for so long is cut off: somebody else may need the memory.
STALLED_SECONDS = 60.0
PEOPLE = ("curl", "Wget", "Mozilla/5.0")

Pieces = Iterator[bytes]


class Reply:
    """One answer on its way to one client."""

    def __init__(self, request: BaseRequest, asked: ApiRequest, *, audit: str) -> None:
        self._request = request
        self._asked = asked
        self._audit = audit

    async def send(self, answer: Answer | Stream) -> StreamResponse:
        """Send all of an answer; a client that is gone is not an error."""
        if isinstance(answer, Stream):
            return await self._stream(answer)
        if isinstance(answer.body, bytes):
            return self._whole(answer, answer.body)
        return await self._pieces(answer, answer.body)

    def abort(self) -> StreamResponse:
        """End the connection; what has been sent of an answer stays a part of it."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return Response()

    def _headers(self, answer: Answer | Stream) -> CIMultiDict[str]:
        headers = CIMultiDict(
            {
                "Audit-Id": self._audit,
                "Cache-Control": "no-cache, private",
                "Content-Type": answer.content_type,
                "Server": "trimtab",
            }
        )
        if not isinstance(answer, Stream):
            for name, value in answer.headers:
                if name in headers and name != "Warning":
                    headers[name] = value
                else:
                    headers.add(name, value)
        return headers

    def _whole(self, answer: Answer, body: bytes) -> Response:
        headers = self._headers(answer)
        if body and self._is_for_people(answer):
            body = msgspec.json.format(body, indent=2)
        if len(body) > GZIP_FROM and self._takes_gzip(headers):
            compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
            body = compressor.compress(body) + compressor.flush()
        return Response(status=answer.status, headers=headers, body=body)

    async def _pieces(self, answer: Answer, pieces: Pieces) -> StreamResponse:
        """An answer in pieces; a small one is sent whole after all."""
        batches = _batched(pieces)
        head, more = b"", True
        while more and len(head) <= GZIP_FROM:
            batch = next(batches, None)
            head, more = head + (batch or b""), batch is not None
            if batch == b"":
                await asyncio.sleep(0)
        if not more or self._is_for_people(answer):
            return self._whole(answer, head + b"".join(batches))
        headers = self._headers(answer)
        if self._takes_gzip(headers):
            batches = _compressed(head, batches)
            head = b""
        response = StreamResponse(status=answer.status, headers=headers)
        return await self._send_batches(response, head, batches)

    async def _send_batches(
        self, response: StreamResponse, head: bytes, batches: Pieces
    ) -> StreamResponse:
        try:
            await response.prepare(self._request)
            if head:
                await self._write(head)
            for batch in batches:
                if batch:
                    await self._write(batch)
                await asyncio.sleep(0)  # a long list must not hold up everybody else
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            return self.abort()
        except Exception:
            # The head is sent and promises a whole list: a broken one must look so.
            logger.exception("%s broke off.", self._asked.path)
            return self.abort()
        return response

    async def _stream(self, stream: Stream) -> StreamResponse:
        """A watch: each chunk as it comes, until it is over or nobody listens."""
        headers = self._headers(stream)
        response = StreamResponse(status=stream.status, headers=headers)
        try:
            await response.prepare(self._request)
            while data := await stream.chunk():
                await self._write(data)
            await response.write_eof()
        except (Cut, ConnectionError, TimeoutError):
            return self.abort()
        finally:
            stream.close()
        return response

    async def _write(self, data: bytes) -> None:
        writer = self._request.writer
        assert isinstance(writer, StreamWriter), "it is the server's own"
        await writer.write(data, drain=False)
        if self._request.protocol.writing_paused:
            async with asyncio.timeout(STALLED_SECONDS):
                await writer.drain()

    def _takes_gzip(self, headers: CIMultiDict[str]) -> bool:
        accepted = self._asked.headers.get("accept-encoding", "").split(",")
        if not any(each.strip() == "gzip" for each in accepted):
            return False
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")
        return True

    def _is_for_people(self, answer: Answer) -> bool:
        if not answer.content_type.startswith("application/json"):
            return False
        return wants_indentation(self._asked.query, self._asked.headers)


def wants_indentation(query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Whether JSON is to be read by a person, who asks for it or uses curl."""
    asked = query.get("pretty", "")
    return asked in TRUE if asked else headers.get("user-agent", "").startswith(PEOPLE)


def _batched(pieces: Iterable[bytes]) -> Pieces:
    """The same bytes in pieces of about one size, and empty ones as time goes by."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= BATCH or len(batch) >= MOST:
            yield b"".join(batch)
            batch.clear()
            size = 0
    if size:
        yield b"".join(batch)


def _compressed(head: bytes, batches: Pieces) -> Pieces:
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    if data := compressor.compress(head):
        yield data
    for batch in batches:
        if data := compressor.compress(batch):
            yield data
    yield compressor.flush()
