"""``trimtab dev``: an operator on a cluster of its own, begun anew at every save."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from trimtab.cli import common, node

ABOUT = """
Run operators on an embedded cluster of their own, install their CRDs there, and begin
anew whenever a Python file beside them is saved. Pods run as processes of this machine.
Objects are kept, also for the next time. Control-C stops it.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("dev", help="run with reload", description=ABOUT)
    made.set_defaults(run=run)
    common.add_source(made, several=True)
    made.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the folder that the objects are kept in (default: "
        "${XDG_DATA_HOME:-~/.local/share}/trimtab/dev)",
    )
    made.add_argument(
        "--port",
        type=common.port,
        default=8080,
        metavar="N",
        help="where the operator's health and metrics are; 0 is any (default: 8080)",
    )
    node.add_node(made)
    common.add_log(made)


def run(options: argparse.Namespace) -> int:
    """Serve, run and look, until a signal comes."""
    folders = [_folder(each) for each in options.source]
    with common.needing("embedded", what="The embedded cluster"):
        from trimtab.cli.reloading import develop
    common.running(develop(options, folders))
    return 0


def _folder(source: str) -> Path:
    """The folder whose files count: that of the file, or of the module."""
    from importlib.util import find_spec

    from trimtab.cli.loading import NotAnOperator

    file = Path(source)
    if file.is_file():
        return file.resolve().parent
    if source.endswith(".py") or "/" in source:
        raise NotAnOperator(f"There is no file {source}; name the one to run.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = find_spec(source)
    except (ImportError, ValueError, AttributeError):
        found = None
    if found is None or found.origin is None:
        raise NotAnOperator(f"There is no file and no module {source} to run.")
    return Path(found.origin).resolve().parent
