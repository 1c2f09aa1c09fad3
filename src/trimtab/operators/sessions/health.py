"""Health: whether the runner in a pod that is ready answers, asked once for each pod.

It is asked by a controller of its own, so that a runner that does not answer delays
nobody who starts and stops sessions; they learn of the answer from the status. Once a
runner has answered, its node goes on asking, and the pod says what came of it.
"""

from __future__ import annotations

from typing import Any, Final

import trimtab
from trimtab.api.kinds import Pod
from trimtab.client import TrimtabError
from trimtab.operators.sessions import names
from trimtab.operators.sessions.calling import Runner, Runners
from trimtab.operators.sessions.judging import judge
from trimtab.operators.sessions.kinds import AgenticSession
from trimtab.operators.sessions.profiles import Registry
from trimtab.runtime import Context, Result

OWNER: Final = "health"
AGAIN: Final = 1.0
"""Seconds between two questions to a runner that does not answer."""
CHANGES: Final = ("status.phase",)


class Asker:
    """Asks each runner until it has answered, and writes down which pod that was in.

    Guarantees: no call to a runner whose pod is not ready, and none to one that has
    answered.
    """

    def __init__(self, runners: Runners, *, registry: Registry) -> None:
        self._runners = runners
        self._registry = registry

    async def reconcile(self, session: AgenticSession, ctx: Context) -> Result:
        """Ask the runner of one session, if there is one to ask."""
        status = session.status
        pod = ctx.get(Pod, status.worker or names.pod_name(session.metadata.name))
        if session.status.phase != "Creating" or pod is None:
            return ctx.done()
        if session.status.answeredBy == pod.metadata.uid:
            return ctx.done()
        if judge(pod, now=ctx.now).state != "ready" or not pod.status.podIP:
            return ctx.done()
        port = self._registry.of(session).container.port
        runner = Runner(key=session.key, host=pod.status.podIP, port=port)
        try:
            await self._runners.health(runner)
        except TrimtabError as error:
            ctx.log.info("The runner does not answer yet: %s", error)
            return ctx.done(after=AGAIN)
        said = AgenticSession.status_of(OWNER)(answeredBy=pod.metadata.uid)
        return ctx.done(status=said)


def register(
    app: trimtab.Operator, runners: Runners, *, registry: Registry, **primary: Any
) -> Asker:
    """Have an operator ask; ``primary`` is what ``app.reconciles`` takes besides."""
    asker = Asker(runners, registry=registry)

    @app.reconciles(
        AgenticSession,
        on_change=CHANGES,
        concurrency=runners.limits.together,
        name=OWNER,
        **primary,
    )
    async def health(session: AgenticSession, ctx: Context) -> Result:
        return await asker.reconcile(session, ctx)

    return asker
