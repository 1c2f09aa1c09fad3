"""Laws of the gateway's certificate: renewed in place, and never by a bad one."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from trimtab.client import ConfigError
from trimtab.operators.vmafx.showing import Certificate
from trimtab.pool.secrets import Authority
from trimtab.runtime.asks import Answer, Ask
from trimtab.runtime.serving import Connection, Server


def now() -> datetime:
    return datetime.now(UTC)


class Files:
    """A certificate and its key on the disk, as cert-manager keeps them."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.make("test", now=now())
        self.paths = (folder / "tls.crt", folder / "tls.key")
        self.renew()

    def renew(self) -> bytes:
        pair = self.authority.issue("localhost", now=now())
        self.paths[0].write_bytes(pair.certificate)
        self.paths[1].write_bytes(pair.private)
        return pair.certificate


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
async def shown(files: Files) -> Certificate:
    # Files need no cluster.
    client = cast(Any, None)
    made = Certificate(client, namespace="n", now=now, files=files.paths)
    await made.load()
    return made


async def presented(port: int, authority: Authority) -> bytes:
    """The certificate that a server shows to who connects now."""
    trust = ssl.create_default_context(cadata=authority.pem.decode())
    _, writer = await asyncio.open_connection("localhost", port, ssl=trust)
    socket = writer.get_extra_info("ssl_object")
    found: bytes = socket.getpeercert(binary_form=True)
    writer.close()
    return found


async def answer(ask: Ask, connection: Connection) -> Answer:
    return Answer(body=b"{}")


async def test_a_new_certificate_is_shown_to_the_next_and_a_bad_one_to_nobody(
    files: Files, shown: Certificate
) -> None:
    server = Server("localhost", 0, handle=answer, context=shown.context)
    async with server:
        first = await presented(server.port, files.authority)
        files.renew()
        await shown.load()
        second = await presented(server.port, files.authority)
        assert second != first
        files.paths[0].write_text("no certificate")
        with pytest.raises(ConfigError, match="do not belong together"):
            await shown.load()
        files.paths[0].unlink()
        with pytest.raises(ConfigError, match=r"tls\.crt.* cannot be read"):
            await shown.load()
        assert await presented(server.port, files.authority) == second


async def test_grpc_shows_the_same(files: Files, shown: Certificate) -> None:
    server = grpc.aio.server()
    port = server.add_secure_port("localhost:0", shown.credentials())
    await server.start()
    try:
        files.renew()
        await shown.load()
        trusted = grpc.ssl_channel_credentials(files.authority.pem)
        async with grpc.aio.secure_channel(f"localhost:{port}", trusted) as channel:
            await asyncio.wait_for(channel.channel_ready(), 10)
    finally:
        await server.stop(0)
