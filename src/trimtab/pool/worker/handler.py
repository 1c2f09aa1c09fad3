"""A handler: what a worker does for its client; and two of them, ready to use.

A worker's own is a class without arguments, in a module that the program is given
(``--handler module:Class``). Every method may be left to :class:`Handler`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from trimtab.client.errors import ConfigError
from trimtab.pool.worker.gate import Use
from trimtab.runtime.asks import Answer, Ask, json_answer


class Handler:
    """Does nothing; what a worker's own handler overrides.

    Flow: ``activate`` once for a tenant; then, again and again, ``serve`` for the calls
    of one client and ``clean`` after the last of them has ended. No two clients are
    ever served at once.
    """

    async def activate(self, tenant: str) -> None:
        """Bind the worker to a tenant. Raising makes the pool replace the worker."""

    async def serve(self, ask: Ask, use: Use) -> Answer:
        """Answer one call. It is cancelled when the client may be served no longer."""
        return json_answer({"checkout": use.checkout, "epoch": use.epoch})

    async def clean(self) -> None:
        """Forget what a client left. Raising makes the pool replace the worker."""

    async def health(self) -> None:
        """Raise if the worker cannot serve."""


class Echo(Handler):
    """Answers with what it was sent, and sees to it that no two clients share it.

    What it saw is at ``/witness``, and one line of JSON each in a file, if it is given
    one: who entered, who left, and ``shared`` if somebody was inside already.
    """

    def __init__(self, record: Path | None = None) -> None:
        self._record = record
        self._inside: dict[Use, None] = {}
        self.shared = 0
        self.served = 0
        self.tenants: list[str] = []

    async def activate(self, tenant: str) -> None:
        self.tenants.append(tenant)
        self._note("activate", tenant=tenant)

    async def serve(self, ask: Ask, use: Use) -> Answer:
        self._enter(use)
        try:
            if ask.path == "/witness":
                return json_answer(self._witness(use))
            self.served += 1
            return Answer(body=ask.body or b"{}", type="application/octet-stream")
        finally:
            del self._inside[use]

    async def clean(self) -> None:
        if self._inside:
            self._shared("clean")
        self._note("clean")

    def _enter(self, use: Use) -> None:
        others = [each for each in self._inside if each.checkout != use.checkout]
        foreign = len(set(self.tenants)) > 1
        self._inside[use] = None
        self._note("serve", epoch=use.epoch, checkout=use.checkout, tenant=use.tenant)
        if others or foreign:
            self._shared(use.checkout)

    def _shared(self, checkout: str) -> None:
        self.shared += 1
        self._note("shared", checkout=checkout)

    def _witness(self, use: Use) -> dict[str, Any]:
        return {
            "checkout": use.checkout,
            "epoch": use.epoch,
            "tenant": use.tenant,
            "served": self.served,
            "shared": self.shared,
        }

    def _note(self, event: str, **about: Any) -> None:
        if self._record is not None:
            line = json.dumps({"event": event, **about}) + "\n"
            with self._record.open("a") as file:
                file.write(line)


def load_handler(text: str) -> Handler:
    """The handler that ``module:Class`` names."""
    module, _, name = text.partition(":")
    try:
        made = getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"The handler {text!r} cannot be had ({error}); name one as module:Class."
        ) from error
    if not isinstance(made, Handler):
        raise ConfigError(
            f"The handler {text!r} is no trimtab.pool.worker.handler.Handler; "
            "make it a subclass."
        )
    return made
