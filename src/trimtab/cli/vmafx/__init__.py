"""``trimtab vmafx``: the score of a clip, jobs, and the programs that do them."""

from __future__ import annotations

import argparse
from typing import Any

from trimtab.cli.vmafx import gateway, jobs, node, score, tenants, train

ABOUT = "Video quality: how much a clip lost on its way, measured by libvmaf."


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the commands."""
    made = commands.add_parser("vmafx", help="score video quality", description=ABOUT)
    inner = made.add_subparsers(metavar="COMMAND", required=True)
    for command in (score, jobs, gateway, node, tenants, train):
        command.add(inner)
