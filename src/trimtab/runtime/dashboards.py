"""Dashboards: a page of Grafana for a program, made from its catalogue of metrics.

Every metric has a panel: one that is added to the definitions is on the page at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trimtab.runtime.catalogue import WINDOW, Catalogue, Definition

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
QUANTILES: Final = (0.5, 0.99)
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def page(
    catalogue: Catalogue,
    *,
    title: str,
    uid: str,
    rows: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The page, as Grafana imports it.

    ``rows`` are names of metrics by the titles of rows; what is in none comes first.
    """
    return {
        "title": title,
        "uid": uid,
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"}
            ]
        },
        "panels": _panels(catalogue, rows or {}),
    }


def _panels(
    catalogue: Catalogue, rows: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    placed = {name for names in rows.values() for name in names}
    first = [name for name in catalogue.definitions if name not in placed]
    made: list[dict[str, Any]] = []
    y = 0
    for title, names in (("", first), *rows.items()):
        if title:
            place = {"x": 0, "y": y, "w": WIDTH * COLUMNS, "h": 1}
            head = {"type": "row", "title": title, "panels": [], "gridPos": place}
            made.append({"id": len(made) + 1, **head})
            y += 1
        for number, name in enumerate(names):
            place = {
                "x": number % COLUMNS * WIDTH,
                "y": y + number // COLUMNS * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            panel = {"id": len(made) + 1, **_panel(catalogue, name), "gridPos": place}
            made.append(panel)
        y += -(-len(names) // COLUMNS) * HEIGHT
    return made


def _panel(catalogue: Catalogue, name: str) -> dict[str, Any]:
    each = catalogue.definitions[name]
    targets = [
        {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(_queries(catalogue, name, each))
    ]
    return {
        "type": "timeseries",
        "title": name.replace("_", " "),
        "description": each.about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": _unit(name, each)}, "overrides": []},
        "targets": targets,
    }


def _queries(
    catalogue: Catalogue, name: str, each: Definition
) -> list[tuple[str, str]]:
    """The expressions of a panel, and what each line is called."""
    series = catalogue.series(name)
    by = ", ".join(each.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in each.labels) or name
    grouped = f" by ({by})" if by else ""
    often = f"sum{grouped} (rate({series}[{WINDOW}]))"
    if each.kind == "histogram":
        found = [
            (catalogue.quantile(part, name), f"p{part * 100:g}") for part in QUANTILES
        ]
        return [*found, (often, legend)]
    if each.kind == "counter":
        return [(often, legend)]
    if name.endswith("timestamp_seconds"):
        return [(f"time() - max{grouped} ({series})", legend)]
    # Every replica tells of the same objects: the one that sees most is right.
    return [(f"max{grouped} ({series})", legend)]


def _unit(name: str, each: Definition) -> str:
    if name.endswith("_seconds"):
        return "s"
    return "ops" if each.kind == "counter" else "short"
