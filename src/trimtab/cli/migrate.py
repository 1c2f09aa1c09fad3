"""``trimtab migrate``: stored objects, rewritten in the version that is stored now."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trimtab.cli import common

ABOUT = """
Write every object of a kind again, as it is, so that all are stored in the CRD's
storage version, and note that in the CRD: older versions can be removed from it then. A
run that was interrupted goes on where it was.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser(
        "migrate", help="rewrite stored objects", description=ABOUT
    )
    made.set_defaults(run=run)
    made.add_argument("kind", metavar="KIND", help="Website, or websites.example.com")
    common.add_cluster(made)


def run(options: argparse.Namespace) -> int:
    """Rewrite them."""
    done = common.running(_migrated(options))
    if done.before == [done.version]:
        print(f"All objects are stored as {done.version} already.")
        return 0
    skipped = f", {done.skipped} were before" if done.skipped else ""
    print(
        f"{done.rewritten} objects were rewritten{skipped}: storedVersions is "
        f"{done.version} now, and was {', '.join(done.before)}."
    )
    return 0


async def _migrated(options: argparse.Namespace) -> Any:
    from trimtab.authoring.migrating import find, migrate
    from trimtab.client import Client

    async with Client(common.config_of(options)) as client:
        definition = await find(client, options.kind)
        return await migrate(client, definition, tell=_tell)


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
