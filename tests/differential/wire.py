"""Raw HTTP to one server: any request as it stands, and the whole of its answer."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trimtab.client import load
from trimtab.client.credentials import TlsFiles
from trimtab.testing.cluster import Cluster

JSON = "application/json"
WITHIN = 30.0
"""Seconds for an answer; a watch that sees nothing ends the test."""

Plain = dict[str, Any]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, nothing of it read yet."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def obj(self) -> Any:
        """The body as JSON."""
        return msgspec.json.decode(self.body)


class Wire:
    """One server, asked by one thread, over one connection that is kept open."""

    def __init__(self, cluster: Cluster) -> None:
        config = load(kubeconfig=cluster.kubeconfig)
        tls = config.tls
        material = tls.material if isinstance(tls, TlsFiles) else tls
        self._context = material.context()
        self._host = urlsplit(config.server).netloc
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, timeout=WITHIN, context=self._context
        )

    def close(self) -> None:
        self._connection.close()

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Ask, and read the answer to its end."""
        try:
            return _exchange(self._connection, method, target, body, headers or {})
        except (http.client.HTTPException, ConnectionError, ssl.SSLEOFError):
            # A kept connection may have been closed meanwhile: a fresh one has not.
            self._connection.close()
            return _exchange(self._connection, method, target, body, headers or {})

    def watch(
        self,
        target: str,
        *,
        until: Callable[[Plain], bool],
        headers: Mapping[str, str],
    ) -> tuple[Reply, list[Plain]]:
        """The events of a watch up to and with the first that `until` is true of.

        A watch that the server ends, or that is refused, is read to its end.
        """
        connection = self._connect()
        events: list[Plain] = []
        try:
            connection.request("GET", target, headers=dict(headers))
            response = connection.getresponse()
            if response.status != 200:
                return _reply(response, response.read()), events
            deadline = time.monotonic() + WITHIN
            while line := response.readline():
                events.append(msgspec.json.decode(line))
                if until(events[-1]) or time.monotonic() > deadline:
                    break
            return _reply(response, b""), events
        finally:
            connection.close()


def _exchange(
    connection: http.client.HTTPSConnection,
    method: str,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> Reply:
    connection.request(method, target, body=body, headers=dict(headers))
    response = connection.getresponse()
    return _reply(response, response.read())


def _reply(response: http.client.HTTPResponse, body: bytes) -> Reply:
    return Reply(
        status=response.status, headers=tuple(response.getheaders()), body=body
    )
