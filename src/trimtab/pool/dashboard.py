"""The dashboard: a page of Grafana for a pool, made from its metrics."""

from __future__ import annotations

from typing import Any

from trimtab.pool.alerts import CATALOGUE
from trimtab.runtime import dashboards


def document() -> dict[str, Any]:
    """The page, as Grafana imports it."""
    return dashboards.page(CATALOGUE, title="Trimtab worker pools", uid="trimtab-pool")
