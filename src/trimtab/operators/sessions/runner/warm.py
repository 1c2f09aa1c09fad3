"""A warm runner: one that waits in a pool, and is told its session when it has one.

``POST /session`` with the variables that a pod of the session would have had, over the
checkout of a worker, makes it that session's runner. When the checkout is over, nothing
of the session is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from trimtab.client.errors import ConfigError
from trimtab.operators.sessions.runner.facts import Facts, facts_of
from trimtab.operators.sessions.runner.session import Session
from trimtab.pool.worker.gate import Use
from trimtab.pool.worker.handler import Handler
from trimtab.runtime.asks import Answer, Ask, json_answer, refusal

PATH: Final = "/session"
FOLDER: Final = "AMBIENT_TOKEN_FOLDER"
"""The variable that names where files with tokens go."""
TOKENS: Final = "/var/run/secrets/ambient"


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner is told. Nothing of it shows in a repr: there are tokens in it."""

    environment: dict[str, str]
    files: dict[str, str] = {}
    """Tokens, by the name of their file."""

    def __repr__(self) -> str:
        return f"Binding({self.environment.get('AGENTIC_SESSION_NAME')!r})"


class Warm(Handler):
    """Takes a session when a client of the pool brings one.

    Guarantees: one session for a checkout. The same session once more only renews its
    variables and tokens; of another one nothing is taken while this one is there.
    """

    def __init__(
        self,
        make: Callable[[Facts], Session],
        *,
        changed: Callable[[Session | None], None],
        base: Mapping[str, str],
    ) -> None:
        self._make = make
        self._changed = changed
        self._base = base
        self._session: Session | None = None
        self._checkout = ""
        self._written: list[Path] = []
        self._environment: dict[str, str] = {}

    async def serve(self, ask: Ask, use: Use) -> Answer:
        if (ask.method, ask.path) != ("POST", PATH):
            text = f"There is no {ask.method} {ask.path} here."
            return refusal(HTTPStatus.NOT_FOUND, "not-found", text)
        if use.checkout != self._checkout:
            await self._let_go()  # its end was lost on the way
            self._checkout = use.checkout
        try:
            return self._bound(msgspec.json.decode(ask.body, type=Binding))
        except (ConfigError, msgspec.DecodeError) as error:
            return refusal(HTTPStatus.BAD_REQUEST, "bad-request", str(error))
        except OSError as error:
            reason = error.strerror or "it failed"
            text = f"The session cannot begin here: {reason}."
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "failed", text)

    async def clean(self) -> None:
        await self._let_go()

    def _bound(self, asked: Binding) -> Answer:
        environment = {**self._environment, **asked.environment}
        facts = facts_of({**self._base, **environment})
        present = self._session
        if present is not None:
            known = (present.facts.namespace, present.facts.name)
            if known != (facts.namespace, facts.name):
                text = f"This runner is {'/'.join(known)}'s."
                return refusal(HTTPStatus.CONFLICT, "bound", text)
        self._keep(asked.files)
        self._environment = environment
        if present is None:
            present = self._session = self._make(facts)
            present.begin()
            self._changed(present)
        else:
            present.facts = facts
        return json_answer({"session": facts.name})

    def _keep(self, files: Mapping[str, str]) -> None:
        folder = Path(self._base.get(FOLDER, TOKENS))
        for name, content in files.items():
            if "/" in name or name.startswith("."):
                raise ConfigError(f"{name[:80]!r} is no name of a file for a token.")
            folder.mkdir(parents=True, exist_ok=True)
            new = folder / f".{name}.new"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.truncate()
                file.write(content)
            self._written.append(new.replace(folder / name))

    async def _let_go(self) -> None:
        session, self._session, self._checkout = self._session, None, ""
        self._environment = {}
        self._changed(None)
        if session is not None:
            await session.end()
        self.forget()

    def forget(self) -> None:
        """Leave no token behind, whoever ends this."""
        for file in self._written:
            file.unlink(missing_ok=True)
        self._written.clear()
