"""Handlers of workers that go wrong, for tests of the worker program."""

from __future__ import annotations

import asyncio

from trimtab.pool.worker.gate import Use
from trimtab.pool.worker.handler import Handler
from trimtab.runtime.asks import Answer, Ask


class Slow(Handler):
    """Serves for ever, and does not hear that it should stop if asked so."""

    async def serve(self, ask: Ask, use: Use) -> Answer:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if ask.path != "/deaf":
                    raise


class Dirty(Handler):
    """Cannot clean up after its client."""

    async def clean(self) -> None:
        raise OSError("the disk is full")


class Unbindable(Handler):
    """Cannot be bound to a tenant."""

    async def activate(self, tenant: str) -> None:
        raise OSError("no such tenant")
