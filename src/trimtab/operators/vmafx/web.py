"""The gateway's HTTP: a score while the caller waits, probes, and metrics.

====================  ========================================================
``POST /v1/score``    ``{reference, distorted, model?}``, with a token
``GET /healthz``      whether the process answers
``GET /readyz``       whether it serves: 503, and why, while it does not
``GET /metrics``      for Prometheus
``GET /apis/…``       external metrics, if asked for: see ``scaling.external``
====================  ========================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import grpc
import msgspec

from trimtab.client import TrimtabError
from trimtab.operators.vmafx import roles
from trimtab.operators.vmafx.direct import Scoring
from trimtab.operators.vmafx.guarding import BadRequest, Guard, code_of
from trimtab.operators.vmafx.scaling.external import ROOT, External
from trimtab.operators.vmafx.wire import scoring_pb2 as wire
from trimtab.runtime.asks import Answer, Ask, json_answer, refusal, unserved
from trimtab.runtime.serving import Connection, Limits

LIMITS: Final = Limits(connections=512, body=1 << 20)

_STATUS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    grpc.StatusCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    grpc.StatusCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    grpc.StatusCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION: HTTPStatus.SERVICE_UNAVAILABLE,
    grpc.StatusCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
}


class _Wanted(msgspec.Struct, frozen=True):
    """What a score is asked of."""

    reference: str
    distorted: str
    model: str = ""


class Web:
    """Answers requests; ``handle`` is what a server is given.

    Guarantees: what is not in the table of roles, and is no probe, is refused. A caller
    that hangs up ends its measurement.
    """

    def __init__(
        self,
        scoring: Scoring,
        *,
        guard: Guard,
        problem: Callable[[], str],
        metrics: Callable[[], tuple[str, bytes]],
        external: External | None = None,
    ) -> None:
        self._scoring = scoring
        self._guard = guard
        self._problem = problem
        self._metrics = metrics
        self._external = external
        self.routes: dict[str, Callable[[Ask], Awaitable[Answer]]] = {
            "POST /v1/score": self._score,
            "GET /healthz": self._health,
            "GET /readyz": self._ready,
            "GET /metrics": self._scrape,
        }

    async def handle(self, ask: Ask, connection: Connection | None = None) -> Answer:
        """The answer to any request."""
        method = f"{ask.method} {ask.path}"
        call = self.routes.get(method)
        if self._external is not None and ask.path.startswith(ROOT):
            return self._external.answer(ask)
        if call is None:
            return unserved(ask, self.routes)
        if method in roles.OPEN:
            return await call(ask)
        try:
            with self._guard.counted(method):
                await self._guard.check(method, ask.bearer)
                return await call(ask)
        except TrimtabError as error:
            return _refused(error)

    async def _score(self, ask: Ask) -> Answer:
        try:
            wanted = msgspec.json.decode(ask.body, type=_Wanted)
        except msgspec.DecodeError as error:
            raise BadRequest(
                f"The body is not what is scored, as JSON: {error}."
            ) from error
        found = await self._scoring.score(
            wire.ScoreRequest(
                reference=wanted.reference,
                distorted=wanted.distorted,
                model=wanted.model,
            )
        )
        return json_answer({"score": found.score, "features": dict(found.features)})

    async def _health(self, ask: Ask) -> Answer:
        return json_answer({"status": "ok"})

    async def _ready(self, ask: Ask) -> Answer:
        if problem := self._problem():
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", problem)
        return json_answer({"status": "ready"})

    async def _scrape(self, ask: Ask) -> Answer:
        type, body = self._metrics()
        return Answer(body=body, type=type)


def _refused(error: TrimtabError) -> Answer:
    code = code_of(error)
    status = _STATUS.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    answer = refusal(status, code.name.lower().replace("_", "-"), str(error))
    if status is not HTTPStatus.UNAUTHORIZED:
        return answer
    return msgspec.structs.replace(answer, headers=(("WWW-Authenticate", "Bearer"),))
