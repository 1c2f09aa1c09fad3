"""The trainer's HTTP: how it is, samples, and what it is told to do.

====================  ========================================================
``GET /status``       how it is; the operator reads this
``GET /history``      losses and judgements, to be drawn
``GET /healthz``      whether the process answers
``POST /samples``     samples, one a line; answers, one a line
``POST /pause``       learn no more; samples still are taken, and wait
``POST /resume``      learn again
``POST /rollback``    ``{"version": "v000002"}`` or ``"last-good"``, which is also
                      meant without a body; ``v000000`` is the base
====================  ========================================================

Whoever reaches it may ask; what changes something (``POST``) needs the trainer's token,
as ``Authorization: Bearer``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import msgspec

from trimtab.operators.vmafx.training.checkpoints import LAST_GOOD
from trimtab.operators.vmafx.training.intake import Busy, Intake
from trimtab.operators.vmafx.training.problems import TrainingError, UnknownVersion
from trimtab.operators.vmafx.training.samples import LONGEST_LINE, MOST_LINES, lines
from trimtab.runtime.asks import Answer, Ask, json_answer, refusal, unserved
from trimtab.runtime.serving import Connection, Limits

LIMITS: Final = Limits(connections=128, body=4 << 20, read=10.0)
_NDJSON: Final = "application/x-ndjson"
_UNKNOWN: Final = msgspec.structs.replace(
    refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "Whoever changes something here shows the trainer's token, as Authorization: "
        "Bearer, and this is not it.",
    ),
    headers=(("WWW-Authenticate", "Bearer"),),
)


class _Wish(msgspec.Struct, frozen=True):
    """What a rollback is asked to."""

    version: str = LAST_GOOD


class Doors:
    """Answers requests; ``handle`` is what a server is given."""

    def __init__(self, intake: Intake, *, may: Callable[[str], bool]) -> None:
        """``may`` says of a token, or of an empty one, whether it may change it."""
        self._intake = intake
        self._may = may
        self._trainer = intake.trainer
        self._routes: dict[str, Callable[[Ask], Awaitable[Answer]]] = {
            "GET /status": self._status,
            "GET /history": self._history,
            "GET /healthz": self._health,
            "POST /samples": self._samples,
            "POST /pause": self._pause,
            "POST /resume": self._resume,
            "POST /rollback": self._roll_back,
        }

    async def handle(self, ask: Ask, connection: Connection | None = None) -> Answer:
        """The answer to any request."""
        call = self._routes.get(f"{ask.method} {ask.path}")
        if call is None:
            return unserved(ask, self._routes)
        if ask.method != "GET" and not self._may(ask.bearer):
            return _UNKNOWN
        try:
            return await call(ask)
        except UnknownVersion as error:
            return refusal(HTTPStatus.NOT_FOUND, "not-found", str(error))
        except Busy as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(error))
        except TrainingError as error:
            return refusal(HTTPStatus.CONFLICT, "conflict", str(error))
        except OSError as error:
            why = f"The disk refused it ({error.strerror}): ask again."
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "disk", why)

    async def _status(self, ask: Ask) -> Answer:
        return json_answer(self._intake.status)

    async def _history(self, ask: Ask) -> Answer:
        return json_answer(await self._intake.do(lambda _: self._trainer.history()))

    async def _health(self, ask: Ask) -> Answer:
        return json_answer({"status": "ok"})

    async def _samples(self, ask: Ask) -> Answer:
        found = [line for line in ask.body.split(b"\n") if line.strip()]
        if len(found) > MOST_LINES or any(len(line) > LONGEST_LINE for line in found):
            return refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too-large",
                f"A request has at most {MOST_LINES} samples, of {LONGEST_LINE} bytes "
                "each: send them in several.",
            )
        acks = await self._intake.offer(found)
        return Answer(body=lines(acks), type=_NDJSON)

    async def _pause(self, ask: Ask) -> Answer:
        await self._intake.do(lambda at: self._trainer.pause(at=at))
        return json_answer(self._intake.status)

    async def _resume(self, ask: Ask) -> Answer:
        await self._intake.do(lambda at: self._trainer.resume(at=at))
        return json_answer(self._intake.status)

    async def _roll_back(self, ask: Ask) -> Answer:
        try:
            wish = msgspec.json.decode(ask.body or b"{}", type=_Wish)
        except msgspec.DecodeError as error:
            sentence = f"The body does not say to which version: {error}."
            return refusal(HTTPStatus.BAD_REQUEST, "bad-request", sentence)
        await self._intake.do(lambda at: self._trainer.roll_back(wish.version, at=at))
        return json_answer(self._intake.status)
