"""``trimtab sessions``: agent sessions, from the command line."""

from __future__ import annotations

import argparse
from typing import Any

from trimtab.cli.sessions import commanding, seeing, trigger

ABOUT = "Agent sessions: see them, start and stop them, and learn why they are so."


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the commands."""
    made = commands.add_parser("sessions", help="agent sessions", description=ABOUT)
    verbs = made.add_subparsers(metavar="VERB", required=True)
    for module in (seeing, commanding, trigger):
        module.add(verbs)
    # The name by which CronJobs of the platform call it.
    trigger.add(commands, name="session-trigger")
