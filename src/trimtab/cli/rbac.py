"""``trimtab rbac``: the roles that grant an operator what it needs, and no more."""

from __future__ import annotations

import argparse
from typing import Any

from trimtab.cli import common

ABOUT = """
Print a service account, and the roles and bindings that grant it exactly what the
operator's declarations and its source need. With --namespaces there are Roles only, in
those namespaces; run the operator with the same --namespaces then.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("rbac", help="print roles", description=ABOUT)
    made.set_defaults(run=run)
    common.add_source(made)
    made.add_argument(
        "--namespace",
        default="default",
        metavar="NAME",
        help="where the operator runs and keeps its lease (default: default)",
    )
    made.add_argument(
        "--namespaces",
        type=common.names,
        metavar="NAMES",
        help="the only namespaces that it works in, with commas between",
    )


def run(options: argparse.Namespace) -> int:
    """Print them."""
    from trimtab.authoring.permissions import objects_of, rules_of
    from trimtab.cli.loading import NotAnOperator, source_of

    operator = source_of(options.source).operator(name=options.operator)
    if options.namespaces:
        try:
            operator.within(options.namespaces)
        except ValueError as error:
            raise NotAnOperator(f"{options.source}: {error}") from error
    rules = rules_of(operator, namespace=options.namespace)
    made = objects_of(rules, name=operator.name, namespace=options.namespace)
    print(common.documents(made), end="")
    return 0
