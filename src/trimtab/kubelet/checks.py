"""Checks: one look at a container by HTTP, TCP, gRPC or a command; hooks use them too.

Each answers with whether it went well and with words, which are the kubelet's where it
has words of its own.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from trimtab.api.kinds import Container, HTTPGetAction
from trimtab.kubelet import grpc
from trimtab.kubelet.processes import StartFailed

MOST_OUTPUT = 10 << 10
MOST_BODY = 10 << 10
AGENT = "kube-probe/1.36"
REDIAL = 1.0
TOO_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"

Run = Callable[[Sequence[str]], Awaitable[tuple[int, bytes]]]
"""Runs a command in the container; its exit code and what it said."""


class Checked(NamedTuple):
    """What a check found; neither well nor not is what could not be asked."""

    ok: bool | None
    output: str = ""


def port_of(container: Container, port: int | str) -> int:
    """A port by its number or by the name that the container gives it."""
    if isinstance(port, int):
        return port
    for each in container.ports:
        if each.name == port:
            return each.containerPort
    if port.isdecimal():
        return int(port)
    raise ValueError(f'strconv.Atoi: parsing "{port}": invalid syntax')


async def by_command(command: Sequence[str], run: Run) -> Checked:
    try:
        code, output = await run(command)
    except StartFailed as error:
        return Checked(None, str(error))
    return Checked(code == 0, output[:MOST_OUTPUT].decode(errors="replace"))


async def by_connection(
    host: str, port: int, *, within: float | None = None
) -> Checked:
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Checked(False, f"dial tcp {host}:{port}: i/o timeout")
    except OSError as error:
        return Checked(False, f"dial tcp {host}:{port}: {_why(error)}")
    writer.close()
    return Checked(True)


async def by_request(
    action: HTTPGetAction, host: str, port: int, *, within: float | None = None
) -> Checked:
    """A GET; a status from 200 to 399 is well."""
    secure = action.scheme.upper() == "HTTPS"
    scheme = "https" if secure else "http"
    path = action.path or "/"
    if not path.startswith("/"):
        path = f"/{path}"
    url = f"{scheme}://{host}:{port}{path}"
    try:
        async with asyncio.timeout(within):
            code = await _get(action, host, port, path, secure=secure)
    except TimeoutError:
        return Checked(False, f'Get "{url}": {TOO_LATE}')
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        return Checked(False, f'Get "{url}": dial tcp {host}:{port}: {_why(error)}')
    if 200 <= code < 400:
        return Checked(True)
    return Checked(False, f"HTTP probe failed with statuscode: {code}")


async def _get(
    action: HTTPGetAction, host: str, port: int, path: str, *, secure: bool
) -> int:
    context: ssl.SSLContext | None = None
    if secure:
        # A pod's certificate names no loopback address, and a kubelet checks none; so
        # none of the authorities are read that the system trusts, at 20 ms each time.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        headers = {"host": f"{host}:{port}", "user-agent": AGENT, "accept": "*/*"}
        headers |= {each.name.lower(): each.value for each in action.httpHeaders}
        headers["connection"] = "close"
        lines = [f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        status = await reader.readline()
        words = status.split(maxsplit=2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/"):
            raise ValueError("malformed HTTP response")
        return int(words[1])
    finally:
        writer.close()


async def by_grpc(host: str, port: int, service: str, *, within: float) -> Checked:
    """A call of the gRPC health service, which may come up within the time."""
    address, connected = f"{host}:{port}", False
    try:
        async with asyncio.timeout(within):
            ends = await _dialled(host, port)
            connected = True
            state = await grpc.health(*ends, address=address, service=service)
    except TimeoutError:
        text = f"timeout: health rpc did not complete within {within:g}s"
        if not connected:
            text = f'timeout: failed to connect service "{address}" within {within:g}s'
            text += ": context deadline exceeded"
        return Checked(False, text)
    except (OSError, EOFError, ValueError) as error:
        return Checked(False, f"error: health rpc probe failed: {_why(error)}")
    if state == grpc.SERVING:
        return Checked(True)
    word = grpc.WORDS.get(state, str(state))
    return Checked(False, f'service unhealthy (responded with "{word}")')


async def _dialled(
    host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, as soon as somebody listens; gRPC waits like this."""
    while True:
        with suppress(ConnectionError):
            return await asyncio.open_connection(host, port)
        await asyncio.sleep(REDIAL)


def _why(error: BaseException) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
