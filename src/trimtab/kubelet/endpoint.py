"""The endpoint: HTTPS at which an API server reaches the pods of this node.

Whoever asks shows a certificate that the cluster's own authority signed, and the
cluster is asked what they may do, as a kubelet asks it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime
from urllib.parse import parse_qsl, unquote

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from trimtab.api.kinds import ConfigMap, Node
from trimtab.client import ApiError, Client, TrimtabError
from trimtab.embedded.authentication import certificate_user
from trimtab.embedded.requests import User
from trimtab.kubelet.selfsigned import certificate
from trimtab.kubelet.serving import Asked, Refused, Streams, refusal
from trimtab.kubelet.site import LOOPBACK

logger = logging.getLogger("trimtab.kubelet")

TRUST = ("kube-system", "extension-apiserver-authentication")
CLIENT_CA = "client-ca-file"
PATHS = {
    "containerLogs": "log",
    "exec": "exec",
    "attach": "attach",
    "portForward": "portforward",
}
FAREWELL = 1.0


class NoTrust(TrimtabError):
    """Nothing tells which certificates the cluster's API server may show."""


class Endpoint:
    """Serves the streams of one node.

    Flow: ``port = await open()``, ``close`` once.

    Errors: :class:`NoTrust` if the cluster does not publish its authority.
    """

    def __init__(
        self,
        client: Client,
        streams: Streams,
        *,
        name: str,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._streams = streams
        self._name = name
        self._now = now
        self._stack = AsyncExitStack()

    async def open(self) -> int:
        """Listen on a free port of the loopback, and say which."""
        trusted = await self._trusted()
        names = (self._name, LOOPBACK, "localhost")
        context = _context(trusted, await certificate(*names, now=self._now()))
        server = Server(self._serve, access_log=None, handler_cancellation=True)
        listener = await asyncio.get_running_loop().create_server(
            server, LOOPBACK, 0, ssl=context
        )
        self._stack.push_async_callback(server.shutdown, FAREWELL)
        self._stack.callback(listener.close)
        port: int = listener.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        await self._stack.aclose()

    async def _trusted(self) -> str:
        namespace, name = TRUST
        try:
            found = await self._client.get(ConfigMap, name, namespace=namespace)
            return found.data[CLIENT_CA]
        except (ApiError, KeyError) as error:
            raise NoTrust(
                f"The cluster does not say in the ConfigMap {namespace}/{name} which "
                "authority signs its API server's certificates, so logs and exec are "
                "not served here."
            ) from error

    async def _serve(self, request: BaseRequest) -> StreamResponse:
        try:
            return await self._answer(request)
        except Refused as problem:
            return refusal(problem)
        except TrimtabError as error:
            return refusal(Refused(500, str(error)))

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        path = unquote(request.rel_url.raw_path)
        if path == "/healthz":
            return Response(text="ok")
        what, *words = path.strip("/").split("/")
        if what not in PATHS or len(words) not in (2, 3, 4):
            raise Refused(404, "404 page not found")
        pairs = parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True)
        asked = Asked(
            what=PATHS[what],
            namespace=words[0],
            pod=words[1],
            uid=words[2] if len(words) == 4 else "",
            container=words[-1] if len(words) > 2 else "",
            parameters=tuple(pairs),
        )
        await self._check(request, asked)
        return await self._streams.answer(request, asked)

    async def _check(self, request: BaseRequest, asked: Asked) -> None:
        user = _user(request)
        verb = "get" if asked.what == "log" else "create"
        access = await self._client.may(
            user.name,
            verb,
            Node,
            groups=user.groups,
            name=self._name,
            subresource="proxy",
        )
        if not access.allowed:
            raise Refused(
                403,
                f"Forbidden (user={user.name}, verb={verb}, resource=nodes, "
                "subresource(s)=[proxy])",
            )


def _context(trusted: str, own: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=trusted)
    context.verify_mode = ssl.CERT_REQUIRED
    with tempfile.NamedTemporaryFile() as file:  # it is private by default
        file.write(own)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _user(request: BaseRequest) -> User:
    assert request.transport is not None, "somebody asks"
    secured = request.transport.get_extra_info("ssl_object")
    user = certificate_user(secured.getpeercert(), secured.getpeercert(True))
    if user is None:
        raise Refused(401, "Unauthorized")
    return user
