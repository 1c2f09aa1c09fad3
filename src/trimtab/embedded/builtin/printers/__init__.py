"""Tables of built-in kinds: the columns and cells that ``kubectl get`` shows.

Each kind has a printer, in the module of its idea; a kind without one is shown with its
name and when it was created. Cells are for a wide table: a client leaves out what it
does not show, by the priority of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from trimtab.embedded.builtin.printers import (
    access,
    autoscaling,
    cluster,
    config,
    controllers,
    devices,
    network,
    podstates,
    storage,
)
from trimtab.embedded.builtin.printers.cells import Plain, Printer, TableColumn, printer

__all__ = ["TableColumn", "arranged", "columns", "row", "row_conditions"]

_NEVER: Final = "0001-01-01T00:00:00Z"


def _default(obj: Plain, now: datetime) -> list[Any]:
    meta = obj["metadata"]
    return [meta["name"], meta.get("creationTimestamp") or _NEVER]


_DEFAULT: Final = printer("Name/name, Created At:date", _default)
_PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    **podstates.PRINTERS,
    **controllers.PRINTERS,
    **autoscaling.PRINTERS,
    **network.PRINTERS,
    **storage.PRINTERS,
    **cluster.PRINTERS,
    **config.PRINTERS,
    **access.PRINTERS,
    **devices.PRINTERS,
}


def columns(group: str, kind: str) -> tuple[TableColumn, ...]:
    """The header of a kind's table, those columns included that only wide ones show."""
    return _PRINTERS.get((group, kind), _DEFAULT).columns


def arranged(
    group: str, kind: str, objs: Iterable[dict[str, Any]]
) -> Iterable[dict[str, Any]]:
    """The objects of a list in the order of its rows, which is mostly their own."""
    if (group, kind) != ("flowcontrol.apiserver.k8s.io", "FlowSchema"):
        return objs
    return sorted(
        objs,
        key=lambda obj: (obj["spec"]["matchingPrecedence"], obj["metadata"]["name"]),
    )


def row(group: str, kind: str, obj: Mapping[str, Any], *, now: datetime) -> list[Any]:
    """The cells of one object, as they are at that moment.

    Assumptions: the object was stored by this server, so its times and quantities are
    in their canonical form.
    """
    return _PRINTERS.get((group, kind), _DEFAULT).row(obj, now)


def row_conditions(
    group: str, kind: str, obj: Mapping[str, Any]
) -> list[dict[str, str]]:
    """What a table says of an object beside the cells: that a pod is over."""
    return podstates.conditions(obj) if (group, kind) == ("", "Pod") else []
