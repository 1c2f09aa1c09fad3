"""Serving: logs, commands and ports of the pods of a node, for whoever may ask.

The questions are a kubelet's own; who asks them, and by what right, is for those who
carry them here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
from aiohttp import WSMsgType
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_ws import WebSocketResponse

from trimtab.kubelet.containers import ContainerRun
from trimtab.kubelet.executing import PROTOCOLS, Command, Session
from trimtab.kubelet.forwarding import Forwarding
from trimtab.kubelet.kubelet import Kubelet
from trimtab.kubelet.logs import Reading, Wanted
from trimtab.kubelet.pods import PodRun
from trimtab.kubelet.ports import belongs
from trimtab.kubelet.spdy import Malformed

TUNNEL = "SPDY/3.1+portforward.k8s.io"
HEARTBEAT = 30.0
MOST_MESSAGE = 4 << 20


class Refused(Exception):
    """What is asked for cannot be had; ``code`` is the status that says so."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question: what of which container, with which parameters, in their order."""

    what: str
    """log, exec, attach or portforward."""
    namespace: str
    pod: str
    uid: str = ""
    container: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def flag(self, *names: str) -> bool:
        given = dict(self.parameters)
        return any(given.get(name) in ("true", "1") for name in names)


class Streams:
    """Answers questions about the pods of one kubelet."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def find(self, asked: Asked) -> PodRun | None:
        """The pod that a question is about, if this kubelet runs or ran it."""
        for run in self._kubelet.runs.values():
            meta = run.pod.metadata
            if (meta.namespace, meta.name) == (asked.namespace, asked.pod) and (
                asked.uid in ("", meta.uid)
            ):
                return run
        return None

    async def answer(self, request: BaseRequest, asked: Asked) -> StreamResponse:
        """Answer one question.

        Errors: :class:`Refused`.
        """
        run = self.find(asked)
        if run is None and asked.what == "log":
            return await self._kept_log(request, asked)
        if run is None:
            raise Refused(404, f'pod "{asked.pod}_{asked.namespace}" not found')
        if asked.what == "portforward":
            return await self._forward(request, run)
        name = asked.container or run.mains[0].spec.name
        container = run.named(name)
        if container is None:
            raise Refused(404, f"container not found ({name!r})")
        if asked.what == "log":
            return await self._log(request, run, container, asked)
        if asked.what == "exec":
            return await self._execute(request, container, asked)
        return await self._attach(request, container, asked)

    def keeps(self, asked: Asked) -> Path | None:
        """The folder of a pod that ended before this kubelet began, if it is here."""
        for pod in self._kubelet.ended():
            if pod.key == (asked.namespace, asked.pod):
                return self._kubelet.options.folder / "pods" / pod.metadata.uid
        return None

    async def _kept_log(self, request: BaseRequest, asked: Asked) -> StreamResponse:
        folder = self.keeps(asked)
        found = sorted(
            (folder / "logs" / asked.container).glob("*.log") if folder else (),
            key=lambda path: int(path.stem),
        )
        if not found:
            raise Refused(404, f'pod "{asked.pod}_{asked.namespace}" not found')
        wanted = Wanted.of(dict(asked.parameters), now=self._kubelet.site.now())
        with Reading(found[-1], wanted) as reading:
            body = b"".join(iter(reading.next, b""))
        return Response(body=body, headers={"Content-Type": "text/plain"})

    async def _log(
        self, request: BaseRequest, run: PodRun, container: ContainerRun, asked: Asked
    ) -> StreamResponse:
        wanted = Wanted.of(dict(asked.parameters), now=run.site.now())
        pieces = _pieces(run, container, wanted, previous=asked.flag("previous"))
        first = await anext(pieces, b"")
        response = StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with suppress(ConnectionError):
            if first:
                await response.write(first)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        return response

    async def _execute(
        self, request: BaseRequest, container: ContainerRun, asked: Asked
    ) -> StreamResponse:
        argv = [value for name, value in asked.parameters if name == "command"]
        if not argv:
            raise Refused(400, "you must specify at least 1 command")
        if container.process is None:
            raise Refused(400, f"container not found ({container.spec.name!r})")
        command = Command(
            argv=argv,
            stdin=asked.flag("stdin", "input"),
            tty=asked.flag("tty"),
        )
        socket = await _upgraded(request, PROTOCOLS)
        with suppress(ConnectionError):
            session = Session(container, socket.send_bytes)
            await session.execute(command, _messages(socket))
            await socket.close()
        return socket

    async def _attach(
        self, request: BaseRequest, container: ContainerRun, asked: Asked
    ) -> StreamResponse:
        console, process = container.console, container.process
        if console is None or process is None:
            raise Refused(400, f"container not found ({container.spec.name!r})")
        stdin = asked.flag("stdin", "input")
        socket = await _upgraded(request, PROTOCOLS)
        with suppress(ConnectionError):
            session = Session(container, socket.send_bytes)
            await session.attach(console, process, _messages(socket), stdin=stdin)
            await socket.close()
        return socket

    async def _forward(self, request: BaseRequest, run: PodRun) -> StreamResponse:
        socket = await _upgraded(request, (TUNNEL,))

        async def connect(
            port: int,
        ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            return await asyncio.open_connection(_host(run, port), port)

        try:
            async with asyncio.TaskGroup() as group:
                forwarding = Forwarding(group, send=socket.send_bytes, connect=connect)
                async for message in _messages(socket):
                    await forwarding.receive(message)
                raise _Over
        except* (_Over, Malformed, ConnectionError):
            pass
        await socket.close()
        return socket


class _Over(Exception):
    """The client hung up: what it forwarded ends."""


def _host(run: PodRun, port: int) -> str:
    """Where a port of a pod is: at its address, or where its own process listens."""
    if belongs(port, "127.0.0.1", run.pod.metadata.uid):
        return "127.0.0.1"
    return run.place.address


async def _pieces(
    run: PodRun, container: ContainerRun, wanted: Wanted, *, previous: bool
) -> AsyncIterator[bytes]:
    name, pod = container.spec.name, run.pod.metadata.name
    folder = run.place.folder / "logs" / name
    if previous:
        path = folder / f"{container.restarts - 1}.log"
        if not path.exists():
            text = f'previous terminated container "{name}" in pod "{pod}" not found'
            raise Refused(400, text)
        with Reading(path, wanted) as reading:
            while data := reading.next():
                yield data
        return
    if container.log is None:
        reason = container.state.get("waiting", {}).get("reason", "")
        text = f'container "{name}" in pod "{pod}" is waiting to start: {reason}'
        raise Refused(400, text)
    async for data in container.log.read(wanted):
        yield data


async def _upgraded(
    request: BaseRequest, protocols: tuple[str, ...]
) -> WebSocketResponse:
    if "websocket" not in request.headers.get("Upgrade", "").lower():
        raise Refused(
            400, "only WebSockets are spoken here: use a newer kubectl (1.31 or later)"
        )
    socket = WebSocketResponse(
        protocols=protocols, heartbeat=HEARTBEAT, max_msg_size=MOST_MESSAGE
    )
    await socket.prepare(request)
    return socket


async def _messages(socket: WebSocketResponse) -> AsyncIterator[bytes]:
    async for message in socket:
        if message.type == WSMsgType.BINARY and message.data:
            yield message.data
        elif message.type == WSMsgType.TEXT and message.data:
            yield message.data.encode()


def refusal(problem: Refused) -> Response:
    """A problem in a kubelet's own form: a line of text."""
    return Response(status=problem.code, text=f"{problem}\n")
