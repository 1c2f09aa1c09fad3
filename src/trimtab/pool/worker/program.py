"""The worker program: a gate, a handler and TLS, from the files of the pool's Secret.

``python -m trimtab.pool.worker`` is a worker as it stands: it echoes what its client
sends. With ``--handler module:Class`` it does what that class does.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trimtab.client.errors import ConfigError
from trimtab.pool import secrets
from trimtab.pool.worker.gate import Gate
from trimtab.pool.worker.handler import Echo, Handler, load_handler
from trimtab.pool.worker.server import QUIET_SECONDS, WorkerServer
from trimtab.runtime.serving import Limits, Server
from trimtab.runtime.signals import Signals

if TYPE_CHECKING:
    from trimtab.runtime.remote import Remote

FOLDER: Final = "/var/run/trimtab/worker"
RELOAD_SECONDS: Final = 30.0
FAREWELL_SECONDS: Final = 1.0

logger = logging.getLogger("trimtab.pool.worker")


class Identity:
    """Who a worker is: the files of its Secret, with the certificate as it is now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.key = self._read(secrets.KEY)
        self.uid = self._read(secrets.UID).decode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._certificate = b""
        self.reload()

    def reload(self) -> bool:
        """Use the certificate that is in the files; whether it is another one."""
        certificate = self._read(secrets.CERTIFICATE)
        if certificate == self._certificate:
            return False
        try:
            self.context.load_cert_chain(
                self._folder / secrets.CERTIFICATE, self._folder / secrets.PRIVATE
            )
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"The certificate in {self._folder} cannot be used ({error}); mount "
                "the Secret of this worker there."
            ) from error
        self._certificate = certificate
        return True

    def pair(self) -> tuple[bytes, bytes]:
        """The private key and the certificate, as they are in the files."""
        return self._read(secrets.PRIVATE), self._read(secrets.CERTIFICATE)

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{self._folder / name} cannot be read ({error.strerror}); mount the "
                "Secret of this worker there, or name its folder with --secret."
            ) from error


class Memory:
    """The highest epoch, in a file: a program that is started again knows it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._written = -1

    def recall(self) -> int:
        if self._path is None:
            return 0
        with suppress(OSError, ValueError):
            return int(self._path.read_text())
        return 0

    def remember(self, epoch: int) -> None:
        if self._path is not None and epoch != self._written:
            new = self._path.with_suffix(".new")
            new.write_text(str(epoch))
            new.replace(self._path)
            self._written = epoch


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    made = argparse.ArgumentParser(
        prog="python -m trimtab.pool.worker",
        description="A worker of a pool: it serves one client at a time.",
    )
    folder = os.environ.get("TRIMTAB_WORKER_SECRET", FOLDER)
    made.add_argument("--secret", type=Path, default=Path(folder), metavar="DIR")
    made.add_argument("--host", default=os.environ.get("POD_IP", "0.0.0.0"))
    made.add_argument("--port", type=int, default=8443)
    made.add_argument("--handler", metavar="MODULE:CLASS", help="default: an echo")
    made.add_argument("--activation", default="/activate", metavar="PATH")
    made.add_argument(
        "--grpc", type=int, metavar="PORT", help="be activated over gRPC, there"
    )
    made.add_argument("--record", type=Path, metavar="FILE", help="whom it served")
    made.add_argument("--state", type=Path, metavar="FILE", help="the highest epoch")
    made.add_argument(
        "--grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="for the present client, when told to stop (default: 30)",
    )
    made.add_argument(
        "--patience",
        type=float,
        default=QUIET_SECONDS,
        metavar="SECONDS",
        help="for a former client to let go (default: 4)",
    )
    made.add_argument(
        "--reload",
        type=float,
        default=RELOAD_SECONDS,
        metavar="SECONDS",
        help="between two looks whether the certificate was renewed (default: 30)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a worker until a signal comes."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    handler: Handler = Echo(options.record)
    if options.handler:
        handler = load_handler(options.handler)
    asyncio.run(run(options, handler))


async def run(options: argparse.Namespace, handler: Handler) -> None:
    """Serve; a signal refuses new checkouts, and lets the present one finish."""
    identity, memory = Identity(options.secret), Memory(options.state)
    gate = Gate(identity.key, identity.uid, floor=memory.recall())
    worker = WorkerServer(
        gate,
        handler,
        activation=options.activation,
        remember=memory.remember,
        patience=options.patience,
    )
    server = Server(
        options.host,
        options.port,
        handle=worker.handle,
        context=identity.context,
        limits=Limits(connections=256, body=16 * 1024 * 1024),
    )
    with Signals() as signals:
        async with asyncio.TaskGroup() as group, server, AsyncExitStack() as stack:
            keeping = group.create_task(_renewed(identity, options.reload))
            if options.grpc is not None:
                remote = _remote(worker, identity, options)
                made = await stack.enter_async_context(remote)
                logger.info("gRPC on %s at %d.", options.host, made.port)
            logger.info("Serving on %s port %d.", server.host, server.port)
            await signals.stopped.wait()
            worker.draining = True
            await _finished(gate, options.grace)
            await server.drain(FAREWELL_SECONDS)
            keeping.cancel()


def _remote(
    worker: WorkerServer, identity: Identity, options: argparse.Namespace
) -> Remote:
    try:
        # Here, because gRPC takes memory that who does not speak it can spare.
        from trimtab.pool.worker.remote import remote
    except ImportError as error:
        raise ConfigError(
            "gRPC is not installed: install trimtab[pool-grpc], or leave --grpc out."
        ) from error
    return remote(worker, identity, host=options.host, port=options.grpc)


async def _renewed(identity: Identity, every: float) -> None:
    """Take up a certificate that was made again; new connections are shown it."""
    while True:
        await asyncio.sleep(every)
        try:
            if identity.reload():
                logger.info("The certificate was renewed.")
        except ConfigError as error:
            logger.warning("%s", error)


async def _finished(gate: Gate, seconds: float) -> None:
    """Wait until the present client is gone, but no longer than the grace."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await gate.quiet(altogether=True)
