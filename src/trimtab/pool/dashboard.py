"""The dashboard: a page of Grafana for a pool, made from its metrics.

Every metric has a panel: one that is added to the definitions is on the page at once.
"""

from __future__ import annotations

from typing import Any, Final

from trimtab.pool.alerts import WINDOW, quantile, series
from trimtab.pool.metrics import DEFINITIONS, Definition

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
QUANTILES: Final = (0.5, 0.99)
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def document() -> dict[str, Any]:
    """The page, as Grafana imports it."""
    panels = [
        _panel(number, name, each)
        for number, (name, each) in enumerate(DEFINITIONS.items())
    ]
    return {
        "title": "Trimtab worker pools",
        "uid": "trimtab-pool",
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
        "panels": panels,
    }


def _panel(number: int, name: str, each: Definition) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(_queries(name, each))
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": name.replace("_", " "),
        "description": each.about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": _unit(name, each)}, "overrides": []},
        "gridPos": {
            "x": number % COLUMNS * WIDTH,
            "y": number // COLUMNS * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "targets": targets,
    }


def _queries(name: str, each: Definition) -> list[tuple[str, str]]:
    """The expressions of a panel, and what each line is called."""
    by = ", ".join(each.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in each.labels) or name
    grouped = f" by ({by})" if by else ""
    if each.kind == "histogram":
        times = [(quantile(part, name), f"p{part * 100:g}") for part in QUANTILES]
        return [*times, (f"sum{grouped} (rate({series(name)}[{WINDOW}]))", legend)]
    if each.kind == "counter":
        return [(f"sum{grouped} (rate({series(name)}[{WINDOW}]))", legend)]
    if name.endswith("timestamp_seconds"):
        return [(f"time() - max{grouped} ({series(name)})", legend)]
    # Every replica tells of the same rows: the one that sees most is right.
    return [(f"max{grouped} ({series(name)})", legend)]


def _unit(name: str, each: Definition) -> str:
    if name.endswith("_seconds"):
        return "s"
    return "ops" if each.kind == "counter" else "short"
