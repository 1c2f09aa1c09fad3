"""``trimtab sessions start|stop``: sessions, made or told by annotations to go on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trimtab.cli.verbs import add_verb, followed

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.operators.sessions.kinds import AgenticSession, AgenticSessionSpec

START = """
Start a session, or one that is over again. One that there is not yet is made: of a
prompt, and of repositories.
"""
STOP = "Stop a session, in whatever phase it is. It can be started again."


def add(verbs: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    start = add_verb(verbs, "start", _start, help="start a session", about=START)
    start.add_argument("--prompt", default="", help="of a new session")
    start.add_argument(
        "--repo",
        action="append",
        default=[],
        metavar="URL[#BRANCH]",
        help="of a new session; may be repeated",
    )
    stop = add_verb(verbs, "stop", _stop, help="stop a session", about=STOP)
    for made in (start, stop):
        made.add_argument("name", metavar="SESSION")
        made.add_argument(
            "--wait", action="store_true", help="until it runs, or is over"
        )


async def _start(client: Client, options: argparse.Namespace) -> int:
    from trimtab.api import Metadata
    from trimtab.client import AlreadyExists, ConfigError
    from trimtab.operators.sessions import names
    from trimtab.operators.sessions.kinds import START_REQUESTED, AgenticSession

    if problem := names.check(options.name):
        raise ConfigError(problem)
    made = AgenticSession(metadata=Metadata(name=options.name), spec=_spec(options))
    try:
        session = await client.create(made)
        print(f"agenticsession/{options.name} created", flush=True)
    except AlreadyExists:
        if options.prompt or options.repo:
            raise ConfigError(
                f"There is a session {options.name} already, so nothing can be said "
                "of it here: edit it with kubectl, or choose another name."
            ) from None
        session = await _wish(client, options.name, "Running", START_REQUESTED)
        print(f"agenticsession/{options.name} is to run", flush=True)
    return await _awaited(client, session, options)


async def _stop(client: Client, options: argparse.Namespace) -> int:
    from trimtab.operators.sessions.kinds import STOP_REQUESTED

    session = await _wish(client, options.name, "Stopped", STOP_REQUESTED)
    print(f"agenticsession/{options.name} is to stop", flush=True)
    return await _awaited(client, session, options)


def _spec(options: argparse.Namespace) -> AgenticSessionSpec:
    from trimtab.operators.sessions.kinds import AgenticSessionSpec, Repository

    repos = []
    for each in options.repo:
        url, _, branch = each.partition("#")
        repos.append(Repository(url=url, branch=branch or "main"))
    return AgenticSessionSpec(initialPrompt=options.prompt, repos=repos)


async def _wish(client: Client, name: str, phase: str, stamp: str) -> AgenticSession:
    from datetime import UTC, datetime

    from trimtab.api.times import rfc3339
    from trimtab.operators.sessions.kinds import DESIRED, AgenticSession

    wishes = {DESIRED: phase, stamp: rfc3339(datetime.now(UTC))}
    body = {"metadata": {"annotations": wishes}}
    return await client.patch(AgenticSession, name, body)


async def _awaited(
    client: Client, session: AgenticSession, options: argparse.Namespace
) -> int:
    """Follow a session until its wish is fulfilled; 0 if it is."""
    from trimtab.operators.sessions.explaining import is_fulfilled

    if not options.wait:
        return 0
    starts = options.call is _start

    def told(session: AgenticSession) -> int | None:
        done = is_fulfilled(session, starts=starts)
        if done is None:
            return None
        print(f"agenticsession/{session.metadata.name} is {session.status.phase}")
        return 0 if done else 1

    return await followed(client, session, told, gone=int(starts))
