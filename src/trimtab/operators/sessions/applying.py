"""Applying: the repositories and the workflow of a session, brought into its runner.

What is to be done is the difference of a spec and a status, and needs nobody to ask. It
is done by a controller of its own: a runner that does not answer keeps one of its
workers for a few seconds, and none of those that start and stop sessions, who learn of
the results from the status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

import trimtab
from trimtab.api.times import rfc3339
from trimtab.cache import Key
from trimtab.client import TrimtabError
from trimtab.operators.sessions.calling import Declined, NoAnswer, Runner, Runners
from trimtab.operators.sessions.kinds import (
    AgenticSession,
    AgenticSessionStatus,
    ReconciledRepository,
    ReconciledWorkflow,
    Repository,
    Workflow,
)
from trimtab.operators.sessions.repositories import names_of
from trimtab.runtime import Context, Result
from trimtab.runtime.backoff import Backoff

OWNER: Final = "applying"
AGAIN: Final = Backoff(first=2.0, cap=300.0)
PASS: Final = 30.0
"""Seconds after which no further step is begun, and what is done is written."""
MESSAGE: Final = 1024
MESSAGES: Final = 64 * 1024
"""All messages of one session together, so that its status is always stored."""
REMEMBERED: Final = 4096
CHANGES: Final = (
    "spec.repos",
    "spec.activeWorkflow",
    "status.phase",
    "status.readyAt",
    "status.restarts",
)
"""What brings a session here; not what is written here."""

Locate: TypeAlias = Callable[[AgenticSession, Context], Awaitable[Runner]]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a runner that is to be made."""

    verb: Literal["remove", "add", "workflow"]
    name: str = ""
    url: str = ""
    branch: str = ""
    path: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended; without a message it went well."""

    message: str = ""
    working: bool = False
    """The runner is still at it."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A condition to state."""

    type: str
    status: bool
    reason: str
    message: str = ""


# What is to be done


def incarnation(status: AgenticSessionStatus) -> str:
    """Which runner a session has: another word for each that became ready."""
    ready = rfc3339(status.readyAt) if status.readyAt else ""
    return f"{ready}#{status.restarts}"


def steps(session: AgenticSession) -> list[Step]:
    """What the runner must be asked, in order; nothing if all of the spec is applied.

    A runner that nothing is known of is asked everything: what it cloned by itself it
    will find.
    """
    spec, status = session.spec, session.status
    fresh = status.appliedTo != incarnation(status)
    had = {} if fresh else {each.url: each for each in status.reconciledRepos}
    wanted = wanted_repositories(spec.repos)
    names = names_of(wanted)
    gone = [each for url, each in had.items() if url not in wanted]
    return [
        *(Step(verb="remove", name=each.name, url=each.url) for each in gone),
        *(
            Step(verb="add", name=names[url], url=url, branch=each.branch)
            for url, each in wanted.items()
            if not _has(had.get(url), each, names[url])
        ),
        *_workflow_steps(
            spec.activeWorkflow, None if fresh else status.reconciledWorkflow
        ),
    ]


def wanted_repositories(repos: Sequence[Repository]) -> dict[str, Repository]:
    """Repositories by address; of several with the same one the last counts."""
    return {each.url: each for each in repos}


def _has(found: ReconciledRepository | None, wanted: Repository, name: str) -> bool:
    return found is not None and (found.status, found.branch, found.name) == (
        "Ready",
        wanted.branch,
        name,
    )


def _workflow_steps(
    wanted: Workflow | None, found: ReconciledWorkflow | None
) -> Iterator[Step]:
    goal = wanted if wanted and wanted.gitUrl else Workflow(branch="")
    is_now = found or ReconciledWorkflow(status="Active")
    said = (is_now.gitUrl, is_now.branch, is_now.path, is_now.status)
    if said != (goal.gitUrl, goal.branch, goal.path, "Active"):
        yield Step(verb="workflow", url=goal.gitUrl, branch=goal.branch, path=goal.path)


# What came of it


def repositories(
    session: AgenticSession, outcomes: Mapping[Step, Outcome], *, now: datetime
) -> list[ReconciledRepository]:
    """What the status says of the repositories after some steps."""
    status = session.status
    fresh = status.appliedTo != incarnation(status)
    found = {} if fresh else {each.url: each for each in status.reconciledRepos}
    wanted = wanted_repositories(session.spec.repos)
    names, most = names_of(wanted), min(MESSAGE, MESSAGES // (len(wanted) or 1))
    for step, outcome in outcomes.items():
        outcome = replace(outcome, message=outcome.message[:most])
        if step.verb == "remove":
            left = found.pop(step.url, None)
            if left is not None and outcome.message:
                text = outcome.message
                found[step.url] = replace(left, status="Failed", message=text)
        elif step.verb == "add":
            found[step.url] = _repository(step, outcome, found.get(step.url), now=now)
    for url, each in wanted.items():
        found.setdefault(
            url,
            ReconciledRepository(
                url=url, name=names[url], branch=each.branch, status="Cloning"
            ),
        )
    return list(found.values())


def _repository(
    step: Step, outcome: Outcome, before: ReconciledRepository | None, *, now: datetime
) -> ReconciledRepository:
    done = not outcome.message
    since = before.clonedAt if before else None
    return ReconciledRepository(
        url=step.url,
        name=step.name,
        branch=step.branch,
        status="Ready" if done else "Cloning" if outcome.working else "Failed",
        message=outcome.message,
        clonedAt=now if done else since,
    )


def workflow(
    session: AgenticSession, outcomes: Mapping[Step, Outcome], *, now: datetime
) -> ReconciledWorkflow | None:
    """What the status says of the workflow after some steps."""
    status = session.status
    fresh = status.appliedTo != incarnation(status)
    found = None if fresh else status.reconciledWorkflow
    for step, outcome in outcomes.items():
        if step.verb != "workflow":
            continue
        done = not outcome.message
        if done and not step.url:
            return None
        found = ReconciledWorkflow(
            gitUrl=step.url,
            branch=step.branch,
            path=step.path,
            status="Active" if done else "Cloning" if outcome.working else "Failed",
            message=outcome.message[:MESSAGE],
            appliedAt=now if done else found.appliedAt if found else None,
        )
    return found


def conditions(session: AgenticSession) -> list[Said]:
    """What the status of a session says of all this, for people."""
    left = steps(session)
    repos = _about_repositories(session, [each for each in left if each.name])
    flow = _about_workflow(session, [each for each in left if not each.name])
    both = Said(type="Reconciled", status=True, reason="SpecApplied")
    for each, reason in (
        (repos, "RepoReconciliationFailed"),
        (flow, "WorkflowReconciliationFailed"),
    ):
        if not each.status:
            why = reason if each.reason == "UpdateFailed" else each.reason
            both = Said(
                type="Reconciled", status=False, reason=why, message=each.message
            )
            break
    return [repos, flow, both]


def _about_repositories(session: AgenticSession, left: Sequence[Step]) -> Said:
    found = session.status.reconciledRepos
    failed = [each for each in found if each.status == "Failed"]
    if left and failed:
        first = failed[0]
        more = f" {len(failed) - 1} more failed." if len(failed) > 1 else ""
        text = f"{first.name}: {first.message}{more}"
        return _said("ReposReconciled", "UpdateFailed", text[:MESSAGE])
    if left:
        return _said("ReposReconciled", "Updating")
    reason = "Reconciled" if session.spec.repos else "NoRepos"
    return Said(type="ReposReconciled", status=True, reason=reason)


def _about_workflow(session: AgenticSession, left: Sequence[Step]) -> Said:
    found = session.status.reconciledWorkflow
    if left and found is not None and found.status == "Failed":
        return _said("WorkflowReconciled", "UpdateFailed", found.message)
    if left:
        return _said("WorkflowReconciled", "Updating")
    wanted = session.spec.activeWorkflow
    reason = "Reconciled" if wanted and wanted.gitUrl else "NotConfigured"
    return Said(type="WorkflowReconciled", status=True, reason=reason)


def _said(type: str, reason: str, message: str = "") -> Said:
    return Said(type=type, status=False, reason=reason, message=message)


# Doing it


class Applier:
    """Makes the calls that a session needs, and tries again what failed.

    Guarantees: no call to a runner that is not ready. One pass makes calls one after
    the other and stops at the first that has no answer; it begins none after ``PASS``
    seconds. Pauses between passes that fail grow; an edit of the spec ends a pause.
    """

    def __init__(self, runners: Runners, *, locate: Locate, random: Random) -> None:
        self._runners = runners
        self._locate = locate
        self._random = random
        self._failures: dict[Key, int] = {}

    async def reconcile(self, session: AgenticSession, ctx: Context) -> Result:
        """One pass for one session."""
        todo = steps(session) if session.status.phase == "Running" else []
        if not todo:
            self._failures.pop(session.key, None)
            self._runners.forget(session.key)
            return ctx.done(status=self._known(session))
        outcomes = await self._performed(session, ctx, todo)
        ctx.status(
            AgenticSession.status_of(OWNER)(
                reconciledRepos=repositories(session, outcomes, now=ctx.now),
                reconciledWorkflow=workflow(session, outcomes, now=ctx.now),
                appliedTo=incarnation(session.status),
            )
        )
        return ctx.done(after=self._pause(session.key, todo, outcomes))

    def _known(self, session: AgenticSession) -> Any:
        """What an earlier runner had is not there, if this one is asked nothing."""
        status = session.status
        stale = bool(status.reconciledRepos or status.reconciledWorkflow)
        known = status.appliedTo == incarnation(status)
        if status.phase != "Running" or known or not stale:
            return None
        return AgenticSession.status_of(OWNER)(
            reconciledRepos=[], reconciledWorkflow=None, appliedTo=incarnation(status)
        )

    async def _performed(
        self, session: AgenticSession, ctx: Context, todo: Sequence[Step]
    ) -> dict[Step, Outcome]:
        clock = asyncio.get_running_loop().time
        ends, made = clock() + PASS, dict[Step, Outcome]()
        try:
            runner = await self._locate(session, ctx)
        except TrimtabError as error:
            return {todo[0]: Outcome(message=str(error), working=True)}
        for step in todo:
            if clock() >= ends:
                break
            try:
                await self._call(runner, step)
                made[step] = Outcome()
            except Declined as error:
                made[step] = Outcome(message=str(error))
            except NoAnswer as error:
                made[step] = Outcome(message=str(error), working=error.working)
                break
        return made

    async def _call(self, runner: Runner, step: Step) -> None:
        runners, name, url, branch = self._runners, step.name, step.url, step.branch
        match step.verb:
            case "add":
                await runners.add_repository(runner, url=url, branch=branch, name=name)
            case "remove":
                await runners.remove_repository(runner, name=name)
            case "workflow":
                await runners.set_workflow(
                    runner, url=url, branch=branch, path=step.path
                )

    def _pause(
        self, key: Key, todo: Sequence[Step], outcomes: Mapping[Step, Outcome]
    ) -> float | None:
        """Seconds until the next pass; None if nothing is left to do."""
        if any(each.message for each in outcomes.values()):
            failures = self._failures.get(key, 0) + 1
            if len(self._failures) >= REMEMBERED:
                del self._failures[next(iter(self._failures))]
            self._failures[key] = failures
            return AGAIN.pause(failures, random=self._random)
        self._failures.pop(key, None)
        return 0.0 if len(outcomes) < len(todo) else None


def register(
    app: trimtab.Operator,
    runners: Runners,
    *,
    locate: Locate,
    random: Random,
    **primary: Any,
) -> Applier:
    """Have an operator apply; ``primary`` is what ``app.reconciles`` takes besides."""
    applier = Applier(runners, locate=locate, random=random)

    @app.reconciles(
        AgenticSession,
        on_change=CHANGES,
        concurrency=runners.limits.together,
        name=OWNER,
        **primary,
    )
    async def applying(session: AgenticSession, ctx: Context) -> Result:
        return await applier.reconcile(session, ctx)

    return applier
