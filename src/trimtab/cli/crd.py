"""``trimtab crd``: the CRDs of an operator's classes, or how a cluster's differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.authoring.findings import Report

DIFFERS = 3
HARMS = 4
ABOUT = f"""
Print the CustomResourceDefinitions of an operator's classes, as YAML. With --check,
compare them with what the cluster has, and say what would become of which stored
objects: the exit code is 0 if nothing differs, {DIFFERS} if something does, and
{HARMS} if something would be refused, lost or changed.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("crd", help="print or check CRDs", description=ABOUT)
    made.set_defaults(run=run)
    common.add_source(made)
    made.add_argument(
        "--check", action="store_true", help="compare with the current cluster"
    )
    common.add_cluster(made)


def run(options: argparse.Namespace) -> int:
    """Print the CRDs, or what differs."""
    from trimtab.authoring.crds import classes, converted, definitions
    from trimtab.cli.loading import source_of

    source = source_of(options.source)
    operators = source.operators()
    if options.operator is not None:
        kinds = list(source.operator(name=options.operator).kinds())
    else:
        kinds = classes(source.module, operators.values())
    wanted = definitions(kinds, converted=converted(operators.values()))
    if not options.check:
        print(common.documents(wanted), end="")
        return 0
    reports = common.running(_checked(options, wanted))
    for report in reports:
        print("\n".join(report.lines()))
    if any(report.harmful for report in reports):
        return HARMS
    return 0 if all(report.same for report in reports) else DIFFERS


async def _checked(
    options: argparse.Namespace, wanted: list[dict[str, Any]]
) -> list[Report]:
    from trimtab.authoring.crds import check
    from trimtab.client import Client

    async with Client(common.config_of(options)) as client:
        return [await check(client, each) for each in wanted]
