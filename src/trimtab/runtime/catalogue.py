"""Catalogues of metrics: what alert rules and dashboards are made from.

A program defines its metrics once. An expression is asked of the catalogue by the name
of a metric, so that a rule about one that does not exist cannot be written.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

WINDOW: Final = "5m"

Kind = Literal["counter", "gauge", "histogram"]


class Definition(msgspec.Struct, frozen=True):
    """What a metric is, means and is labelled with."""

    kind: Kind
    about: str
    labels: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True):
    """The metrics of a program, by their names without the prefix."""

    prefix: str
    definitions: dict[str, Definition]
    labels: dict[str, tuple[str, ...]]
    """The values of each label that has a closed set of them."""

    def series(self, name: str, **labels: str) -> str:
        """The series of a metric, for an expression; a histogram's is its count.

        A value that begins with ``~`` is a pattern of values with ``|`` between.

        Errors: ``ValueError`` for a metric, a label or a value that does not exist.
        """
        found = self.definitions.get(name)
        if found is None:
            raise ValueError(f"there is no metric {name}")
        parts = []
        for label, value in labels.items():
            self._check(name, found, label, value)
            sign, text = ("=~", value[1:]) if value.startswith("~") else ("=", value)
            parts.append(f'{label}{sign}"{text}"')
        suffix = {"counter": "_total", "histogram": "_count", "gauge": ""}[found.kind]
        chosen = f"{{{','.join(parts)}}}" if parts else ""
        return f"{self.prefix}{name}{suffix}{chosen}"

    def _check(self, name: str, found: Definition, label: str, value: str) -> None:
        if label not in found.labels:
            raise ValueError(f"{name} has no label {label}")
        for each in value.removeprefix("~").split("|"):
            if label in self.labels and each not in self.labels[label]:
                raise ValueError(f"{name} has no {label}={each}")

    def buckets(self, name: str, **labels: str) -> str:
        """The buckets of a histogram."""
        if self.definitions[name].kind != "histogram":
            raise ValueError(f"{name} has no buckets")
        return self.series(name, **labels).replace("_count", "_bucket", 1)

    def rate(self, name: str, *, window: str = WINDOW, **labels: str) -> str:
        """How often per second something happens, over all replicas."""
        return f"sum(rate({self.series(name, **labels)}[{window}]))"

    def quantile(
        self,
        part: float,
        name: str,
        *,
        window: str = WINDOW,
        by: tuple[str, ...] = (),
        **labels: str,
    ) -> str:
        """A quantile of a histogram, over all replicas."""
        grouped = ", ".join(("le", *by))
        buckets = self.buckets(name, **labels)
        return (
            f"histogram_quantile({part}, sum by ({grouped}) (rate({buckets}"
            f"[{window}])))"
        )


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert: when, for how long, and what to do."""

    name: str
    expression: str
    lasting: str
    severity: Literal["warning", "critical"]
    summary: str
    advice: str
    runbook: str = ""

    def plain(self) -> dict[str, Any]:
        """As Prometheus reads it."""
        more = {"runbook_url": self.runbook} if self.runbook else {}
        told = {"summary": self.summary, "description": self.advice, **more}
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": self.severity},
            "annotations": told,
        }


class Recording(msgspec.Struct, frozen=True):
    """A series that is made of others, so that rules can be about it."""

    name: str
    expression: str

    def plain(self) -> dict[str, Any]:
        """As Prometheus reads it."""
        return {"record": self.name, "expr": self.expression}


def group(name: str, rules: tuple[Alert | Recording, ...]) -> dict[str, Any]:
    """A group of rules, as one of those of a file that Prometheus reads."""
    return {"name": name, "rules": [rule.plain() for rule in rules]}
