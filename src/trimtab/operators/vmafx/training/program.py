"""The trainer program: a model from a file, and a door for those who bring samples.

It ends with 0 when it is told to, and with 2 when something is wrong that trying again
does not mend: a model that cannot be trained, a folder or an address that is taken.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from random import Random
from typing import Final

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training import unix
from trimtab.operators.vmafx.training.callers import Callers
from trimtab.operators.vmafx.training.checkpoints import Shelf
from trimtab.operators.vmafx.training.doors import LIMITS, Doors
from trimtab.operators.vmafx.training.intake import Intake
from trimtab.operators.vmafx.training.models import Model, load
from trimtab.operators.vmafx.training.outputs import output_of
from trimtab.operators.vmafx.training.problems import TrainingError
from trimtab.operators.vmafx.training.settings import Settings, settings_of
from trimtab.operators.vmafx.training.state import Store
from trimtab.operators.vmafx.training.trainer import Trainer
from trimtab.runtime.serving import CannotListen, Server
from trimtab.runtime.signals import Signals

WRONG: Final = 2
STATE: Final = "state"
"""The folder with what it knows, beside its models."""
_GRACE: Final = 5.0


def main(arguments: Sequence[str] | None = None, *, now: Callable[[], datetime]) -> int:
    """Run until a signal comes; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    code = 0
    try:
        settings = settings_of(arguments, os.environ)
        asyncio.run(run(settings, random=Random(), now=now))
    except* (ConfigError, CannotListen, TrainingError) as errors:
        print(f"trainer: {_first(errors)}", file=sys.stderr)
        code = WRONG
    return code


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


async def run(
    settings: Settings, *, random: Random, now: Callable[[], datetime]
) -> None:
    """Train until a signal comes.

    Flow: what was learned before is known again before anybody is answered. On a
    signal no more is taken in; what was, is written down.
    """
    base = _base(settings)
    may = Callers(settings.token_file).may if settings.token_file else _anybody
    folder = settings.directory / STATE
    async with AsyncExitStack() as stack:
        store = stack.enter_context(Store(folder))
        trainer = Trainer(
            base,
            store=store,
            shelf=Shelf(folder, output_of(settings.output), keep=settings.keep),
            options=settings.options,
            random=random,
            now=now,
        )
        at = asyncio.get_running_loop().time()
        await asyncio.to_thread(trainer.begin, at=at)
        intake = Intake(trainer)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(intake.run())
        stack.callback(intake.close)
        await _serve(settings, intake, may, stack)


def _anybody(shown: str) -> bool:
    return True


async def _serve(
    settings: Settings,
    intake: Intake,
    may: Callable[[str], bool],
    stack: AsyncExitStack,
) -> None:
    """Open the doors, and wait for a signal."""
    signals = stack.enter_context(Signals())
    if settings.socket is not None:
        await stack.enter_async_context(unix.serving(settings.socket, intake))
    server = Server(
        settings.host,
        settings.port,
        handle=Doors(intake, may=may).handle,
        context=None,
        limits=LIMITS,
    )
    await stack.enter_async_context(server)
    print(f"Trainer listens on {server.host}:{server.port}.", flush=True)
    await signals.stopped.wait()
    await server.drain(_GRACE)


def _base(settings: Settings) -> Model:
    base = load(settings.base)
    wanted, found = settings.features, base.network.inputs
    if wanted is not None and wanted != found:
        raise ConfigError(
            f"{settings.base} takes {found} features and not {wanted}: name another "
            "model, or another number."
        )
    return base
