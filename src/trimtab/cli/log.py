"""``trimtab log``: what a running operator logs, told or set."""

from __future__ import annotations

import argparse
from typing import Any

from trimtab.cli import common

ABOUT = """
Tell the log level of a running operator, or set it, without a restart. It is forgotten
when the operator stops.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("log", help="set what is logged", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument(
        "level",
        nargs="?",
        choices=("debug", "info", "warning", "error"),
        help="what is logged from now on (default: tell what is)",
    )
    common.add_url(made)


def run(options: argparse.Namespace) -> int:
    """Tell it, or set it and tell it."""
    from trimtab.cli import asking

    if options.level is None:
        found = asking.ask_json(options.url, "debug", "log")
    else:
        path = ("debug", "log", options.level)
        found = asking.ask_json(options.url, *path, method="PUT")
    if found is None:
        raise asking.NoAnswer(
            f"{options.url} does not answer questions from here: ask from its own "
            "machine, or through kubectl port-forward."
        )
    print(found["level"])
    return 0
