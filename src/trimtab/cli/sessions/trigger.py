"""``trimtab sessions trigger``: one turn of a schedule that a CronJob keeps.

The CronJob's pod says by its variables which session: ``SESSION_TEMPLATE`` is its spec
as JSON, ``SCHEDULED_SESSION_NAME`` the schedule, ``PROJECT_NAMESPACE`` the project, and
``REUSE_LAST_SESSION`` whether to go on with the last one.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trimtab.cli.verbs import add_verb

if TYPE_CHECKING:
    from trimtab.client import Client
    from trimtab.operators.sessions.triggering import Wish

ABOUT = """
Run one turn of a scheduled session, as the variables of a CronJob's pod describe it:
SESSION_TEMPLATE, SCHEDULED_SESSION_NAME, PROJECT_NAMESPACE, REUSE_LAST_SESSION. Running
a turn twice makes one session.
"""
TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
# A CronJob names its Jobs after the minute they are for, a Job its pods after itself.
_TURN: Final = re.compile(r"-(\d{8,10})-[a-z0-9]{5}")


def add(verbs: argparse._SubParsersAction[Any], *, name: str = "trigger") -> None:
    """Describe the arguments."""
    add_verb(verbs, name, _trigger, help="run a turn of a schedule", about=ABOUT)


def turn_of(host: str, *, now: datetime) -> datetime:
    """The time that a turn was planned for, by the name of its pod; else now."""
    found = _TURN.search(host)
    if found is None or found.end() != len(host):
        return now.replace(microsecond=0)
    return datetime.fromtimestamp(int(found[1]) * 60, UTC)


def wish_of(environment: Mapping[str, str], *, namespace: str, now: datetime) -> Wish:
    """What the variables ask for.

    Errors: ``ConfigError`` in which each of them is named that is missing or wrong.
    """
    import msgspec

    from trimtab.client import ConfigError
    from trimtab.operators.sessions import scheduling
    from trimtab.operators.sessions.triggering import Wish

    schedule = environment.get("SCHEDULED_SESSION_NAME", "")
    if not schedule:
        raise ConfigError(
            "SCHEDULED_SESSION_NAME is not set: this runs in the pod of a CronJob, "
            "which says which schedule it is."
        )
    try:
        text = environment.get("SESSION_TEMPLATE", "")
        template = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigError(f"SESSION_TEMPLATE is no spec as JSON: {error}.") from error
    at = turn_of(environment.get("HOSTNAME", ""), now=now)
    return Wish(
        namespace=environment.get("PROJECT_NAMESPACE") or namespace,
        schedule=schedule,
        name=scheduling.name_of(schedule, at),
        at=at,
        template=template,
        reuse=environment.get("REUSE_LAST_SESSION", "").lower() == "true",
    )


async def _trigger(client: Client, options: argparse.Namespace) -> int:
    from trimtab.client.calling import Caller
    from trimtab.operators.sessions import triggering

    at = client.config.namespace
    wish = wish_of(os.environ, namespace=at, now=datetime.now(UTC))
    last = None
    if wish.reuse:
        last = await triggering.newest(
            client, namespace=wish.namespace, schedule=wish.schedule
        )
    caller = Caller()
    backend = triggering.Backend(
        caller,
        namespace=os.environ.get("BACKEND_NAMESPACE") or at,
        token=lambda: TOKEN.read_text().strip(),
    )
    try:
        turned = await triggering.fulfil(client, wish, last=last, tell=backend.tell)
    finally:
        await caller.close()
    print(f"agenticsession/{turned.session} {turned.how}")
    return 0
