"""The desk: objects in a dict, asked and changed by a client's own requests.

It stands where a server would, in tests of one reconcile. What is applied is merged
into what is there; nothing is defaulted, validated or authorized, and nobody watches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from trimtab.client.errors import TrimtabError
from trimtab.client.transport import Progress, Request, TransportStatistics

Plain = dict[str, Any]
APPLY = "application/apply-patch+yaml"
FIRST = 100


class NoServer(TrimtabError):
    """A rehearsal was asked for something that only a server can do."""


class Written:
    """An answer that is there as a whole."""

    def __init__(self, status: int, content: Plain) -> None:
        self.status = status
        self._body = json.dumps(content).encode()

    def headers(self, name: str) -> Sequence[str]:
        return ["application/json"] if name.lower() == "content-type" else []

    async def read(self, *, limit: int) -> bytes:
        return self._body

    async def chunk(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def pump(self, take: Callable[[bytes], None]) -> None:
        take(await self.chunk())

    def close(self) -> None:
        """Nothing is open."""


class Desk:
    """A transport whose server is a dict: objects by the path of each."""

    def __init__(self) -> None:
        self.objects: dict[str, Plain] = {}
        self._revision = FIRST

    def put(self, path: str, obj: Plain) -> Plain:
        """Lay down an object, with what a server would have given it."""
        self._revision += 1
        metadata = obj.setdefault("metadata", {})
        metadata.setdefault("uid", f"uid-{self._revision}")
        metadata["resourceVersion"] = str(self._revision)
        metadata.setdefault("generation", 1)
        self.objects[path] = obj
        return obj

    async def send(self, request: Request, *, progress: Progress) -> Written:
        progress.sent = True
        path = unquote(request.path)
        answer = getattr(self, f"_{request.method.lower()}", None)
        if answer is None or request.stream:
            raise NoServer(f"{request} needs a server; run that test on a cluster.")
        made: Written = answer(path, request)
        return made

    async def close(self) -> None:
        """Nothing is open."""

    def statistics(self) -> TransportStatistics:
        return TransportStatistics()

    def _get(self, path: str, request: Request) -> Written:
        base, namespace, plural, name = _place(path)
        if name:
            found = self.objects.get(path)
            return _missing(path) if found is None else Written(200, found)
        items = [
            obj
            for each, obj in self.objects.items()
            if (place := _place(each))[0] == base
            and place[2] == plural
            and namespace in ("", place[1])
        ]
        return Written(200, {"metadata": {}, "items": items})

    def _post(self, path: str, request: Request) -> Written:
        obj = _body(request)
        return Written(201, self.put(f"{path}/{obj['metadata']['name']}", obj))

    def _put(self, path: str, request: Request) -> Written:
        return Written(200, self.put(path, _body(request)))

    def _patch(self, path: str, request: Request) -> Written:
        path = path.removesuffix("/status")
        found = self.objects.get(path)
        applied = ("Content-Type", APPLY) in request.headers
        if found is None and not applied:
            return _missing(path)
        made = merged(found or {}, _body(request))
        return Written(200, self.put(path, made))

    def _delete(self, path: str, request: Request) -> Written:
        if self.objects.pop(path, None) is None:
            return _missing(path)
        return Written(200, {"kind": "Status", "status": "Success"})


def _place(path: str) -> tuple[str, str, str, str]:
    """The parts of a path: group and version, namespace, resource, name."""
    parts = path.strip("/").split("/")
    count = 2 if parts[0] == "api" else 3
    base, rest = "/".join(parts[:count]), parts[count:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return base, namespace, rest[0], rest[1] if len(rest) > 1 else ""


def merged(old: Plain, new: Plain) -> Plain:
    """A map with what another one says; null takes away, lists are replaced."""
    made = dict(old)
    for key, value in new.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = merged(made[key], value)
        else:
            made[key] = value
    return made


def _body(request: Request) -> Plain:
    content: Any = json.loads(request.body or b"{}")
    if not isinstance(content, dict):
        raise NoServer(f"{request}: a JSON patch needs a server.")
    return content


def _missing(path: str) -> Written:
    name = path.rpartition("/")[2]
    return Written(
        404,
        {
            "kind": "Status",
            "status": "Failure",
            "reason": "NotFound",
            "message": f"{name!r} is not among the objects of this rehearsal",
            "code": 404,
        },
    )
