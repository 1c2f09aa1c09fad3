"""The runner program: a session from the environment, or one that a pool brings.

In a pod of a session the variables say which it is. In a worker of a pool, which has
``TRIMTAB_WORKER``, it waits behind the worker's gate for one. It ends with 0 when it is
told to, with 2 when something is missing that it cannot do without, and with what the
agent says.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Final

from trimtab.client.errors import ConfigError
from trimtab.operators.sessions.runner.api import Api
from trimtab.operators.sessions.runner.facts import PORT, Facts, facts_of
from trimtab.operators.sessions.runner.session import Session
from trimtab.operators.sessions.runner.warm import Warm
from trimtab.pool.worker.gate import Gate
from trimtab.pool.worker.program import FOLDER, Identity
from trimtab.pool.worker.server import WorkerServer
from trimtab.runtime.serving import CannotListen, Limits, Server
from trimtab.runtime.signals import Signals

MISSING: Final = 2
"""The exit code of a runner that lacks something: trying again is of no use."""
WORKER: Final = "TRIMTAB_WORKER"
RELOAD: Final = 30.0
LARGEST: Final = 16 * 1024 * 1024

logger = logging.getLogger("trimtab.operators.sessions.runner")


def parser() -> argparse.ArgumentParser:
    """The arguments; most of what matters is in the environment."""
    made = argparse.ArgumentParser(
        prog="python -m trimtab.operators.sessions.runner",
        description="The reference runner of agent sessions, with a scripted agent.",
    )
    environment = os.environ
    made.add_argument("--host", default=environment.get("POD_IP", "0.0.0.0"))
    made.add_argument(
        "--port", type=int, default=environment.get("AGUI_PORT") or PORT, metavar="N"
    )
    made.add_argument(
        "--warm",
        action="store_true",
        default=WORKER in environment,
        help=f"wait in a pool for a session (default: if there is a {WORKER})",
    )
    secret = environment.get("TRIMTAB_WORKER_SECRET", FOLDER)
    made.add_argument("--secret", type=Path, default=Path(secret), metavar="DIR")
    made.add_argument("--worker-port", type=int, default=8443, metavar="N")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal comes, or the agent ends it; the exit code."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    code = 0
    try:
        code = asyncio.run(Program(options, random=Random()).run())
    except* (ConfigError, CannotListen) as errors:
        print(f"runner: {errors.exceptions[0]}", file=sys.stderr)
        code = MISSING
    return code


class Program:
    """One run of the runner."""

    def __init__(self, options: argparse.Namespace, *, random: Random) -> None:
        self._options = options
        self._random = random
        self._api = Api()
        self._group: asyncio.TaskGroup = asyncio.TaskGroup()
        self._renewing: asyncio.Task[None] | None = None
        self._code = 0
        self._over = asyncio.Event()

    async def run(self) -> int:
        """Serve; the exit code."""
        with Signals(lambda _: self._over.set()):
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._group)
                if self._options.warm:
                    side = await stack.enter_async_context(self._worker(stack))
                    logger.info("Waiting on %s port %d.", side.host, side.port)
                else:
                    self._bind(self._session())
                server = await stack.enter_async_context(self._server())
                logger.info("Serving on %s port %d.", server.host, server.port)
                await self._over.wait()
                self._api.draining = True
                if self._renewing is not None:
                    self._renewing.cancel()
                if self._api.session is not None:
                    self._api.session.stop()
        return self._code

    def _session(self) -> Session:
        made = self._make(facts_of(os.environ))
        try:
            made.begin()
        except OSError as error:
            reason = error.strerror or "it failed"
            raise ConfigError(
                f"There can be no workspace in {made.facts.folder} ({reason}); name "
                "another with WORKSPACE_PATH."
            ) from error
        return made

    def _make(self, facts: Facts) -> Session:
        return Session(facts, self._group, random=self._random, leave=self._leave)

    def _bind(self, session: Session | None) -> None:
        self._api.session = session

    def _leave(self, code: int) -> None:
        self._code = code
        self._over.set()

    def _server(self) -> Server:
        return Server(
            self._options.host,
            self._options.port,
            handle=self._api.handle,
            context=None,
            limits=Limits(connections=256, body=LARGEST),
        )

    def _worker(self, stack: AsyncExitStack) -> Server:
        """The side that the pool's gateways call."""
        identity = Identity(self._options.secret)
        gate = Gate(identity.key, identity.uid)
        handler = Warm(self._make, changed=self._bind, base=dict(os.environ))
        stack.callback(handler.forget)
        worker = WorkerServer(gate, handler)
        self._renewing = self._group.create_task(_renewed(identity))
        return Server(
            self._options.host,
            self._options.worker_port,
            handle=worker.handle,
            context=identity.context,
            limits=Limits(connections=64, body=LARGEST),
        )


async def _renewed(identity: Identity) -> None:
    """Take up a certificate that was made again while this runner waited."""
    while True:
        await asyncio.sleep(RELOAD)
        try:
            identity.reload()
        except ConfigError as error:
            logger.warning("%s", error)
