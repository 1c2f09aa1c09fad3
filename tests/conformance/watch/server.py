"""A scripted API server: it serves a world, and misbehaves when a scenario says so.

Plain HTTP over loopback, by hand, so that an answer can be cut or fall silent at any
byte. It knows lists (in pages or whole), watches (from a revision, or beginning with
what is there), and as much of discovery as informers ask for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.conformance.watch.world import GROUP, KIND, PLURAL, VERSION, Event, World

HOST = "127.0.0.1"
LIST_PATHS = (
    f"/apis/{GROUP}/{VERSION}/{PLURAL}",
    f"/apis/{GROUP}/{VERSION}/namespaces/default/{PLURAL}",
)
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
Lines = list[bytes]


class Request(NamedTuple):
    """One request, as far as scenarios care."""

    verb: str
    """``list``, ``page`` (a list that goes on), ``watch``, ``stream`` (a watch that
    begins with what is there) or ``other``."""
    path: str
    query: dict[str, str]
    time: float


class Fault(NamedTuple):
    """What goes wrong with a request."""

    status: int = 0
    """Answer with this code in place of what was asked for."""
    retry_after: int = 0
    cut: float = 0.0
    """Send this share of the answer, then cut the connection."""
    in_stream: bool = False
    """Answer a watch with 200, and put the failure into the stream."""
    then: Callable[[], None] | None = None
    """Called when it has happened."""


class Cut(Exception):
    """Ends a connection without a farewell."""


class Wire:
    """One connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.mute = False
        """Whether nothing is sent any more, though the connection stays."""

    async def send(self, data: bytes) -> None:
        if not self.mute:
            self._writer.write(data)
            await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def answer(self, status: int, body: Any, headers: str = "") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} Word\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n{headers}\r\n"
        )
        await self.send(head.encode() + data)

    def abort(self) -> None:
        self._writer.transport.abort()


class ScriptedServer:
    """Use it as ``async with scripted(world) as server``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.requests: list[Request] = []
        self.url = ""
        self.port = 0
        self.refusing = False
        """Whether connections are dropped as soon as they come."""
        self.distort: Callable[[list[Event]], list[Event]] = list
        """What becomes of events on their way into a watch."""
        self._faults: list[tuple[str, Fault]] = []
        self._wires: set[Wire] = set()
        self._watchers: dict[asyncio.Queue[Lines | None], Wire] = {}
        self._pages: dict[str, Lines] = {}
        """What is left of lists in pages, by their continue token."""
        self._list_revision: dict[str, int] = {}
        self._definitions: dict[asyncio.Queue[bytes], Wire] = {}
        """Who watches the definitions of kinds."""

    # What scenarios do

    def plant(self, verb: str, *faults: Fault) -> None:
        """Have the next requests of a verb go wrong, one for each fault."""
        self._faults += [(verb, each) for each in faults]

    def forgive(self) -> None:
        """Nothing more goes wrong."""
        self._faults.clear()

    @property
    def planted(self) -> int:
        return len(self._faults)

    def asked(self, *verbs: str) -> int:
        """How many requests of these verbs there were."""
        return sum(each.verb in verbs for each in self.requests)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def announce(self) -> None:
        """Tell watchers of what has happened in the world since the last time."""
        events, self._told = self.world.since(self._told), self.world.revision
        lines = [each.line for each in self.distort(events)]
        for queue in self._watchers:
            queue.put_nowait(lines)

    def say(self, events: list[Event]) -> None:
        """Tell watchers of something once more, or late."""
        for queue in self._watchers:
            queue.put_nowait([each.line for each in events])

    def bookmark(self) -> None:
        for queue in self._watchers:
            queue.put_nowait([self.world.bookmark()])

    def announce_kind(self, event: str) -> None:
        """Tell who watches definitions that ours came or went."""
        change = {"type": event, "object": _definition(self.world.revision)}
        for queue in self._definitions:
            queue.put_nowait(json.dumps(change).encode() + b"\n")

    def end_watches(self) -> None:
        """End the watches as a server does that wants to."""
        for queue in self._watchers:
            queue.put_nowait(None)

    def cut_watches(self) -> None:
        for wire in self._watchers.values():
            wire.abort()

    def cut_all(self) -> None:
        for wire in self._wires:
            wire.abort()

    def mute_watches(self) -> None:
        """Let the watches fall silent for ever, with open connections."""
        for wire in self._watchers.values():
            wire.mute = True
        self._watchers.clear()

    # HTTP

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer requests on one connection until it ends."""
        wire = Wire(writer)
        self._wires.add(wire)
        try:
            while not self.refusing:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(wire, _request(head))
        except (Cut, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._wires.discard(wire)
            wire.abort()

    async def _answer(self, wire: Wire, request: Request) -> None:
        self.requests.append(request)
        fault = self._fault(request.verb)
        if request.verb == "other":
            await self._other(wire, request)
        elif fault is not None and fault.status and not fault.in_stream:
            await self._refuse(wire, fault)
        elif not self.world.served:
            await wire.answer(404, _status(404))
        elif request.verb in ("list", "page"):
            await self._list(wire, request, fault)
        else:
            await self._watch(wire, request, fault)

    async def _other(self, wire: Wire, request: Request) -> None:
        """What surrounds the kind: discovery, its definition, namespaces."""
        revision = self.world.revision
        kind = request.path.rpartition("/")[2]
        if kind not in ("namespaces", "customresourcedefinitions"):
            await wire.answer(*_discovery(request.path, served=self.world.served))
        elif request.query.get("watch"):
            await self._tell_definitions(wire)
        else:
            known = kind == "customresourcedefinitions" and self.world.served
            items = [_definition(revision)] if known else []
            metadata = {"resourceVersion": str(revision)}
            await wire.answer(200, {"metadata": metadata, "items": items})

    async def _tell_definitions(self, wire: Wire) -> None:
        await wire.send(STREAM)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._definitions[queue] = wire
        try:
            while True:
                await wire.chunk(await queue.get())
        finally:
            del self._definitions[queue]

    def _fault(self, verb: str) -> Fault | None:
        for place, (wanted, fault) in enumerate(self._faults):
            if wanted == verb:
                del self._faults[place]
                return fault
        return None

    async def _refuse(self, wire: Wire, fault: Fault) -> None:
        pause = f"Retry-After: {fault.retry_after}\r\n" if fault.retry_after else ""
        await wire.answer(fault.status, _status(fault.status), pause)
        if fault.then is not None:
            fault.then()

    async def _list(self, wire: Wire, request: Request, fault: Fault | None) -> None:
        limit = int(request.query.get("limit", "0"))
        token = request.query.get("continue", "")
        if token:
            revision, items = self._list_revision[token], self._pages.pop(token)
        else:
            revision = self.world.revision
            items = [each.data for _, each in sorted(self.world.objects.items())]
        rest = items[limit:] if limit else []
        metadata = {"resourceVersion": str(revision)}
        if rest:
            after = f"after-{revision}-{len(rest)}-{len(self.requests)}"
            self._pages[after], self._list_revision[after] = rest, revision
            metadata["continue"] = after
        body = b'{"kind":"%sList","apiVersion":"%s/%s","metadata":%s,"items":[%s]}' % (
            KIND.encode(),
            GROUP.encode(),
            VERSION.encode(),
            json.dumps(metadata).encode(),
            b",".join(items[:limit] if limit else items),
        )
        if fault is None:
            await wire.answer(200, body)
            return
        if token:
            self._pages[token] = items  # so that the page can be asked for again
        size = len(body)
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        await self._cut(wire, [body[: int(size * fault.cut)]], fault)

    async def _cut(self, wire: Wire, pieces: Lines, fault: Fault) -> None:
        for piece in pieces:
            await wire.send(piece)
        await asyncio.sleep(0.05)  # so that what was sent is read before it breaks
        if fault.then is not None:
            fault.then()
        raise Cut

    async def _watch(self, wire: Wire, request: Request, fault: Fault | None) -> None:
        await wire.send(STREAM)
        start = int(request.query.get("resourceVersion") or "0")
        expired = request.verb == "watch" and 0 < start < self.world.compacted
        if expired or (fault is not None and fault.in_stream):
            code = fault.status if fault and fault.status else 410
            error = {"type": "ERROR", "object": _status(code)}
            await wire.chunk(json.dumps(error).encode() + b"\n")
            await wire.send(b"0\r\n\r\n")
            return
        if request.verb == "stream" or not start:
            lines = [
                Event(each.revision, "ADDED", name, each.data).line
                for name, each in self.world.objects.items()
            ]
        else:
            lines = [each.line for each in self.distort(self.world.since(start))]
        if fault is not None:
            sent = lines[: int(len(lines) * fault.cut)]
            pieces = [b"%x\r\n%s\r\n" % (len(each), each) for each in sent]
            await self._cut(wire, pieces, fault)
        if request.verb == "stream":
            lines.append(self.world.bookmark(end=True))
        await self._follow(wire, lines)

    async def _follow(self, wire: Wire, lines: Lines) -> None:
        queue: asyncio.Queue[Lines | None] = asyncio.Queue()
        queue.put_nowait(lines)
        self._told = self.world.revision
        self._watchers[queue] = wire
        try:
            while (told := await queue.get()) is not None:
                if told:
                    await wire.chunk(b"".join(told))
            await wire.send(b"0\r\n\r\n")
        finally:
            self._watchers.pop(queue, None)

    _told = 0
    """Watchers know of everything up to this revision."""


@asynccontextmanager
async def scripted(world: World) -> AsyncIterator[ScriptedServer]:
    """A server of this world on a port of its own."""
    server = ScriptedServer(world)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await server.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # the scenario is over, and nobody waits for this
        finally:
            tasks.discard(task)

    listener = await asyncio.start_server(connected, HOST, 0)
    server.port = listener.sockets[0].getsockname()[1]
    server.url = f"http://{HOST}:{server.port}"
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        while tasks:
            await asyncio.sleep(0.001)


def _request(head: bytes) -> Request:
    line = head.split(b"\r\n", 1)[0].decode("latin-1")
    parts = urlsplit(line.split(" ")[1])
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    time = asyncio.get_running_loop().time()
    return Request(_verb(parts.path, query), parts.path, query, time)


def _verb(path: str, query: dict[str, str]) -> str:
    if path not in LIST_PATHS:
        return "other"
    if query.get("watch", "").lower() in ("true", "1"):
        initial = query.get("sendInitialEvents", "").lower() == "true"
        return "stream" if initial else "watch"
    return "page" if query.get("continue") else "list"


def _status(code: int) -> dict[str, Any]:
    reasons = {404: "NotFound", 410: "Expired", 429: "TooManyRequests"}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"the scenario answers {code}",
        "reason": reasons.get(code, "InternalError"),
        "code": code,
    }


def _definition(revision: int) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            "uid": "uid-of-the-kind",
            "resourceVersion": str(revision),
        },
        "spec": {"group": GROUP},
    }


def _resources(version: str, *rows: tuple[str, str, bool]) -> dict[str, Any]:
    resources = [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": namespaced,
            "kind": kind,
            "verbs": ["get", "list", "watch", "patch", "create"],
        }
        for plural, kind, namespaced in rows
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": resources,
    }


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _discovery(path: str, *, served: bool) -> tuple[int, dict[str, Any]]:
    extensions, ours = "apiextensions.k8s.io", f"{GROUP}/{VERSION}"
    groups = [_group(extensions), *([_group(GROUP)] if served else [])]
    answers: dict[str, dict[str, Any]] = {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": _resources(
            "v1", ("namespaces", "Namespace", False), ("events", "Event", True)
        ),
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
        f"/apis/{extensions}/v1": _resources(
            f"{extensions}/v1",
            ("customresourcedefinitions", "CustomResourceDefinition", False),
        ),
    }
    if served:
        answers[f"/apis/{ours}"] = _resources(ours, (PLURAL, KIND, True))
    found = answers.get(path)
    return (200, found) if found else (404, _status(404))
