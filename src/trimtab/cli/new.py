"""``trimtab new``: a project for a new operator, whose tests pass at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

ABOUT = """
Write a project for a new operator: a package with a kind and its controller, tests that
run on the embedded cluster, a CI file, a Containerfile, and targets for CRDs, roles and
the Helm chart.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("new", help="begin a project", description=ABOUT)
    made.set_defaults(run=run)
    made.add_argument("name", metavar="NAME", help="the operator's name: book-shop")
    made.add_argument(
        "--kind", default="", metavar="KIND", help="the kind (default: from NAME)"
    )
    made.add_argument(
        "--group",
        default="example.com",
        metavar="DOMAIN",
        help="the API group, a domain of yours (default: example.com)",
    )
    made.add_argument(
        "--output", type=Path, metavar="DIR", help="the folder to write (default: NAME)"
    )


def run(options: argparse.Namespace) -> int:
    """Write it."""
    from trimtab.authoring.files import write_folder
    from trimtab.authoring.projects import Project, files_of

    project = Project(name=options.name, kind=options.kind, group=options.group)
    folder = options.output or Path(project.name)
    write_folder(folder, files_of(project))
    steps = f"cd {folder}", "pip install -e '.[dev]'", "make dev"
    print(f"Written: {folder}\n", *steps, sep="\n  ")
    return 0
