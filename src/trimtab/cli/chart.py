"""``trimtab chart``: a Helm chart from the operator's own source."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trimtab.cli import common

ABOUT = """
Write a Helm chart: CRDs, roles with exactly what the operator needs, a Deployment that
restricted namespaces take, a Service, a disruption budget, a monitor, and values with a
schema.
"""
MARK = "made by trimtab chart"


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("chart", help="write a Helm chart", description=ABOUT)
    made.set_defaults(run=run)
    common.add_source(made)
    made.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="the folder to write; a chart of ours that is there is replaced "
        "(default: charts/OPERATOR)",
    )
    made.add_argument(
        "--image",
        metavar="REPOSITORY",
        help="the container's image, without its tag (default: the operator's name)",
    )
    made.add_argument(
        "--version",
        default="0.1.0",
        metavar="VERSION",
        help="of the chart, and the tag of the image (default: 0.1.0)",
    )


def run(options: argparse.Namespace) -> int:
    """Write it."""
    from trimtab.authoring.charts import Chart, files_of
    from trimtab.authoring.crds import classes, converted, definitions
    from trimtab.authoring.files import write_folder
    from trimtab.cli.loading import source_of

    source = source_of(options.source)
    operator = source.operator(name=options.operator)
    chart = Chart(
        operator=operator,
        definitions=definitions(
            classes(source.module, [operator]), converted=converted([operator])
        ),
        source=_in_container(options.source),
        image=options.image or operator.name,
        version=options.version,
    )
    folder = options.output or Path("charts") / operator.name
    write_folder(folder, files_of(chart), replace=_is_ours(folder))
    print(f"Written: {folder}")
    return 0


def _in_container(source: str) -> str:
    """What the image calls it: a module as it is, a file by its own name."""
    return Path(source).name if source.endswith(".py") else source


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a chart that this command wrote."""
    try:
        return MARK in (folder / "Chart.yaml").read_text()
    except OSError:
        return False
