"""Beside the server: questions about pods that come to an embedded API server.

The server knows who asks and whether they may; the kubelet is in the same process.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from trimtab.api.objects import wire
from trimtab.embedded import status
from trimtab.embedded.api import Answer
from trimtab.embedded.bodies import JSON
from trimtab.embedded.driver import Driver
from trimtab.embedded.requests import ApiRequest, target_of
from trimtab.embedded.subresources import check_container, check_log_options
from trimtab.kubelet.serving import Asked, Refused, Streams
from trimtab.kubelet.usage import ROOT, Usage, announced

SERVED = frozenset({"log", "exec", "attach", "portforward"})
CONNECTIONS = SERVED - {"log"}


class Beside:
    """What the server's listener asks before it asks the API."""

    def __init__(self, streams: Streams, driver: Driver, *, usage: Usage) -> None:
        self._streams = streams
        self._driver = driver
        self._usage = usage

    async def serve(
        self, request: BaseRequest, asked: ApiRequest
    ) -> StreamResponse | None:
        """The answer, or None if it is not about a pod that runs here.

        Errors: ``ApiProblem`` if they may not ask, or if it cannot be answered.
        """
        if asked.path == "/apis" or asked.path.startswith(ROOT):
            return await self._metrics(asked)
        target = target_of(asked.path)
        if target is None or target.resource != "pods" or target.group:
            return None
        if target.subresource not in SERVED or asked.method not in ("GET", "POST"):
            return None
        pairs = parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True)
        wanted = Asked(
            what=target.subresource,
            namespace=target.namespace,
            pod=target.name,
            container=asked.query.get("container", ""),
            parameters=tuple(pairs),
        )
        run = self._streams.find(wanted)
        log = target.subresource == "log"
        if run is None and not (log and self._streams.keeps(wanted)):
            return None
        admitted = self._driver.admit(asked)
        if target.subresource in CONNECTIONS:
            # To connect is to make something, whatever the method says.
            self._driver.admit(msgspec.structs.replace(asked, method="POST"))
        else:
            check_log_options(admitted, target.name)
        if run is not None and target.subresource != "portforward":
            check_container(wire(run.pod), wanted.container, target.name)
        try:
            return await self._streams.answer(request, wanted)
        except Refused as problem:
            raise _told(problem) from problem

    async def _metrics(self, asked: ApiRequest) -> StreamResponse | None:
        """What pods use, and that it can be asked for."""
        if asked.method != "GET":
            return None
        if asked.path == "/apis":
            answer = await self._driver.answer(asked)
            if not isinstance(answer, Answer) or not isinstance(answer.body, bytes):
                return None
            if "json" not in answer.content_type:
                return None
            return _json(announced(answer.body), answer.content_type, answer.status)
        self._driver.admit(asked)
        found = self._usage.answer(asked.path.rstrip("/"))
        if found is None:
            raise status.ApiProblem(404, "NotFound", "no metrics are known of that pod")
        return _json(msgspec.json.encode(found), JSON, 200)


def _json(body: bytes, content_type: str, code: int) -> Response:
    return Response(status=code, body=body, headers={"Content-Type": content_type})


def _told(problem: Refused) -> status.ApiProblem:
    reasons = {400: "BadRequest", 404: "NotFound", 501: "NotImplemented"}
    return status.ApiProblem(
        problem.code, reasons.get(problem.code, "InternalError"), str(problem)
    )
