"""``trimtab sessions ls|explain|logs``: what there is, why, and what it printed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.verbs import add_verb

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.operators.sessions.kinds import AgenticSession

EXPLAIN = "Say how a session is, why, and what happens to it next."
LOGS = """
Print what the runner of a session prints; when its pod is gone, the end of that, if it
ended badly.
"""


def add(verbs: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    ls = add_verb(verbs, "ls", _ls, help="list sessions")
    ls.add_argument(
        "--all-namespaces", "-A", action="store_true", help="of all projects"
    )
    ls.add_argument("--active", action="store_true", help="without those that are over")
    explain = add_verb(
        verbs, "explain", _explain, help="say how it is, and why", about=EXPLAIN
    )
    explain.add_argument("name", metavar="SESSION")
    logs = add_verb(verbs, "logs", _logs, help="what its runner prints", about=LOGS)
    logs.add_argument("name", metavar="SESSION")
    logs.add_argument("--follow", "-f", action="store_true", help="go on")
    logs.add_argument(
        "--tail", type=common.count, metavar="LINES", help="only the last ones"
    )
    logs.add_argument("--container", "-c", metavar="NAME", help="default: the runner")


async def _ls(client: Client, options: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from trimtab.operators.sessions import explaining
    from trimtab.operators.sessions.kinds import AgenticSession

    where = None if options.all_namespaces else client.config.namespace
    # Of thousands of sessions no more than a page is held, and a line of each.
    rows = [
        explaining.row(each, now=datetime.now(UTC))
        async for each in client.list(AgenticSession, namespace=where)
        if not options.active or explaining.is_active(each)
    ]
    print("\n".join(explaining.table(rows, projects=options.all_namespaces)))
    return 0


async def _explain(client: Client, options: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from trimtab.client import NotFound
    from trimtab.operators.sessions import explaining
    from trimtab.operators.sessions.kinds import (
        SETTINGS,
        AgenticSession,
        ProjectSettings,
    )

    session = await client.get(AgenticSession, options.name)
    try:
        project = await client.get(ProjectSettings, SETTINGS)
    except NotFound:
        project = None
    for line in explaining.session(session, project=project, now=datetime.now(UTC)):
        print(line)
    return 0


async def _logs(client: Client, options: argparse.Namespace) -> int:
    from trimtab.client import NotFound
    from trimtab.operators.sessions import names
    from trimtab.operators.sessions.kinds import AgenticSession

    session = await client.get(AgenticSession, options.name)
    try:
        async with client.logs(
            session.status.worker or names.pod_name(options.name),
            container=options.container or _container(session),
            follow=options.follow,
            tail=options.tail,
        ) as lines:
            async for line in lines:
                _print(line.decode(errors="replace"))
    except NotFound:
        return _remembered(session)
    return 0


def _container(session: AgenticSession) -> str | None:
    from trimtab.operators.sessions.kinds import APP

    return None if session.status.worker else APP


def _remembered(session: AgenticSession) -> int:
    evidence = session.status.evidence
    if evidence is None or not evidence.log:
        name = session.metadata.name
        print(f"The session {name} has no pod, and no log was kept.", file=sys.stderr)
        return 1
    for line in evidence.log.splitlines():
        _print(line)
    return 0


def _print(line: str) -> None:
    """Print a stranger's line: nothing in it moves the cursor."""
    kept = (each if each.isprintable() or each == "\t" else "�" for each in line)
    print("".join(kept), flush=True)
