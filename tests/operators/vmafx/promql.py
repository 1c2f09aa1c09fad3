"""As much of Prometheus as our rules need: expressions over samples, and alerts.

Written from the language's description, for the words that the rules use; any other is
an error, so a rule cannot be judged by half.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final, TypeAlias

Labels: TypeAlias = frozenset[tuple[str, str]]
Vector: TypeAlias = dict[Labels, float]

STALE: Final = 300.0
"""Seconds after which a series that nobody wrote is gone."""
TOKEN: Final = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?(?![\w:]))|(?P<text>"[^"]*")'
    r"|(?P<duration>\d+[smhd])|(?P<name>[a-zA-Z_:][\w:]*)|(?P<sign>[=!<>]=|=~|.))"
)
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FOLDS: Final[dict[str, Callable[[list[float]], float]]] = {
    "sum": sum,
    "max": max,
    "min": min,
}


def seconds(text: str) -> float:
    return float(text[:-1]) * UNITS[text[-1]]


class Store:
    """Samples by series, each with its times in order."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, list[tuple[float, float]]]] = {}

    def add(self, name: str, labels: Labels, at: float, value: float) -> None:
        self._series.setdefault(name, {}).setdefault(labels, []).append((at, value))

    def between(
        self, name: str, since: float, until: float
    ) -> Iterator[tuple[Labels, list[tuple[float, float]]]]:
        for labels, samples in self._series.get(name, {}).items():
            first = bisect_right(samples, since, key=itemgetter(0))
            last = bisect_right(samples, until, key=itemgetter(0))
            if first < last:
                yield labels, samples[first:last]


class Expression:
    """One expression at one time."""

    def __init__(self, text: str, store: Store, at: float) -> None:
        self._tokens = [
            (match.lastgroup or "", match.group(match.lastgroup or 0))
            for match in TOKEN.finditer(text.strip())
        ]
        self._store = store
        self._at = at

    def value(self) -> Any:
        found = self._binary(0)
        assert not self._tokens, f"not understood: {self._tokens}"
        return found

    def _peek(self) -> str:
        return self._tokens[0][1] if self._tokens else ""

    def _take(self, expected: str = "") -> str:
        _, text = self._tokens.pop(0)
        assert expected in ("", text), f"{expected} is not {text}"
        return text

    def _binary(self, level: int) -> Any:
        levels = (("and",), (">", "<", ">=", "<=", "=="), ("+", "-"), ("*", "/"))
        if level == len(levels):
            return self._one()
        left = self._binary(level + 1)
        while self._peek() in levels[level]:
            sign = self._take()
            left = _combined(sign, left, self._binary(level + 1))
        return left

    def _one(self) -> Any:
        kind, text = self._tokens.pop(0)
        if kind == "number":
            return float(text)
        if text == "(":
            found = self._binary(0)
            self._take(")")
            return found
        if text in FOLDS:
            return self._folded(FOLDS[text])
        if self._peek() == "(":
            return getattr(self, f"_{text}")()
        return {labels: found[-1][1] for labels, found in self._samples(text)}

    def _folded(self, fold: Callable[[list[float]], float]) -> Vector:
        by: list[str] = []
        if self._peek() == "by":
            self._take()
            by = self._names()
        groups: dict[Labels, list[float]] = {}
        for labels, value in self._argument().items():
            kept = frozenset(each for each in labels if each[0] in by)
            groups.setdefault(kept, []).append(value)
        return {labels: fold(values) for labels, values in groups.items()}

    def _names(self) -> list[str]:
        self._take("(")
        found = [self._take()]
        while self._take() == ",":
            found.append(self._take())
        return found

    def _argument(self) -> Any:
        self._take("(")
        found = self._binary(0)
        self._take(")")
        return found

    def _range(self) -> Iterator[tuple[Labels, list[tuple[float, float]], float]]:
        self._take("(")
        name = self._take()
        for labels, found in self._samples(name):
            yield labels, found, self._window
        self._take(")")

    def _samples(self, name: str) -> list[tuple[Labels, list[tuple[float, float]]]]:
        wanted, self._window, back = self._matchers(), STALE, 0.0
        if self._peek() == "[":
            self._take()
            self._window = seconds(self._take())
            self._take("]")
        if self._peek() == "offset":
            self._take()
            back = seconds(self._take())
        until = self._at - back
        found = self._store.between(name, until - self._window, until)
        return [(labels, each) for labels, each in found if wanted(dict(labels))]

    def _matchers(self) -> Callable[[dict[str, str]], bool]:
        tests: list[tuple[str, str, str]] = []
        if self._peek() == "{":
            self._take()
            while self._peek() != "}":
                label, sign, text = self._take(), self._take(), self._take()
                tests.append((label, sign, text.strip('"')))
            self._take("}")
        assert all(sign in ("=", "=~") for _, sign, _ in tests)

        def matches(labels: dict[str, str]) -> bool:
            return all(
                labels.get(label, "") == text
                if sign == "="
                else re.fullmatch(text, labels.get(label, "")) is not None
                for label, sign, text in tests
            )

        return matches

    def _increase(self) -> Vector:
        return {
            labels: found[-1][1] - found[0][1]
            for labels, found, _ in self._range()
            if len(found) > 1
        }

    def _rate(self) -> Vector:
        return {
            labels: (found[-1][1] - found[0][1]) / (found[-1][0] - found[0][0])
            for labels, found, _ in self._range()
            if len(found) > 1
        }

    def _avg_over_time(self) -> Vector:
        return {
            labels: sum(value for _, value in found) / len(found)
            for labels, found, _ in self._range()
        }

    def _vector(self) -> Vector:
        return {frozenset(): self._argument()}

    def _histogram_quantile(self) -> Vector:
        self._take("(")
        part = float(self._take())
        self._take(",")
        buckets = self._binary(0)
        self._take(")")
        groups: dict[Labels, list[tuple[float, float]]] = {}
        for labels, count in buckets.items():
            rest = frozenset(each for each in labels if each[0] != "le")
            groups.setdefault(rest, []).append((float(dict(labels)["le"]), count))
        made = {rest: _quantile(part, sorted(each)) for rest, each in groups.items()}
        return {rest: value for rest, value in made.items() if value is not None}


def _quantile(part: float, buckets: list[tuple[float, float]]) -> float | None:
    rank, below, start = part * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank > 0:
            if bound == float("inf"):
                return start
            return start + (bound - start) * (rank - below) / (count - below)
        below, start = count, bound
    return None


def _combined(sign: str, left: Any, right: Any) -> Any:
    if sign == "and":
        return {labels: value for labels, value in left.items() if labels in right}
    if not isinstance(left, dict) and not isinstance(right, dict):
        return _applied(sign, left, right)
    names = left if isinstance(left, dict) else right
    found: Vector = {}
    for labels in names:
        one, other = (
            each.get(labels) if isinstance(each, dict) else each
            for each in (left, right)
        )
        if one is None or other is None:
            continue
        if (value := _applied(sign, one, other)) is not None:
            found[labels] = value
    return found


def _applied(sign: str, one: float, other: float) -> float | None:
    """A number, or None: for a comparison that does not hold, and 0 / 0."""
    match sign:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/":
            return one / other if other else None
    holds = {
        ">": one > other,
        "<": one < other,
        ">=": one >= other,
        "<=": one <= other,
        "==": one == other,
    }
    return one if holds[sign] else None


def fired(
    document: dict[str, Any],
    samples: Callable[[float], Iterator[tuple[str, dict[str, str], float]]],
    *,
    hours: float,
    step: float = 60.0,
) -> dict[str, float]:
    """When each alert first fired, with these samples scraped at every step."""
    store, pending = Store(), dict[tuple[str, Labels], float]()
    found: dict[str, float] = {}
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    for number in range(int(hours * 3600 / step)):
        now = number * step
        for name, labels, value in samples(now):
            store.add(name, frozenset(labels.items()), now, value)
        for rule in rules:
            vector = Expression(rule["expr"], store, now).value()
            if "record" in rule:
                for labels, value in vector.items():
                    store.add(rule["record"], labels, now, value)
                continue
            name = rule["alert"]
            for key in [each for each in pending if each[0] == name]:
                if key[1] not in vector:
                    del pending[key]
            for labels in vector:
                since = pending.setdefault((name, labels), now)
                if now - since >= seconds(rule["for"]):
                    found.setdefault(name, now)
    return found
