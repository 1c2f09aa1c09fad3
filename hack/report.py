"""What a run of pytest came to: counts and durations, read from its own report."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NO_TESTS = 5


class Case(NamedTuple):
    """One test. It is exactly one of passed, failed and skipped."""

    name: str
    seconds: float
    failed: bool
    skipped: bool


class Report(NamedTuple):
    """All tests of a run. `trouble` is what pytest itself says went wrong, if so."""

    cases: tuple[Case, ...] = ()
    trouble: str = ""

    @property
    def failed(self) -> int:
        return sum(case.failed for case in self.cases)

    @property
    def skipped(self) -> int:
        return sum(case.skipped for case in self.cases)

    @property
    def passed(self) -> int:
        return len(self.cases) - self.failed - self.skipped

    def slowest(self, count: int) -> list[Case]:
        return sorted(self.cases, key=lambda case: -case.seconds)[:count]


def read(path: Path, *, code: int) -> Report:
    """Reads a JUnit report; `code` is the exit code of the pytest that wrote it."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return Report(trouble=f"pytest ended with code {code} and left no report.")
    cases = _once(_case(element) for element in root.iter("testcase"))
    report = Report(cases)
    if code == NO_TESTS or not cases:
        return report._replace(trouble="No test was there to run.")
    if code != 0 and not report.failed:
        return report._replace(trouble=f"pytest ended with code {code}.")
    return report


def _case(element: ElementTree.Element) -> Case:
    parts = filter(None, [element.get("classname"), element.get("name")])
    failed = any(element.find(tag) is not None for tag in ("failure", "error"))
    return Case(
        name=".".join(parts),
        seconds=float(element.get("time") or 0),
        failed=failed,
        # An expected failure is written as skipped, and is counted so.
        skipped=not failed and element.find("skipped") is not None,
    )


def _once(cases: Iterable[Case]) -> tuple[Case, ...]:
    """One case for each test: one that failed, and in its teardown too, comes twice."""
    found: dict[str, Case] = {}
    for case in cases:
        before = found.get(case.name, case)
        found[case.name] = before if before.failed else case
    return tuple(found.values())


def write_evidence(report: Report, *, root: Path, seconds: float) -> Path:
    """Writes the summary of a long run to `docs/evidence/`; a second one beside it."""
    now = datetime.datetime.now(datetime.UTC)
    commit = _git(root, "rev-parse", "--short", "HEAD") or "no commit"
    if _git(root, "status", "--porcelain", "--untracked-files=no"):
        commit += " with changes that are not committed"
    facts = {
        "date": f"{now:%Y-%m-%d %H:%M} UTC",
        "commit": commit,
        "machine": machine(),
        "python": platform.python_version(),
        "result": f"{report.passed} passed, {report.failed} failed, "
        f"{report.skipped} skipped",
        "duration": f"{seconds:.0f} s",
    }
    path = root / "docs" / "evidence" / f"long-{now:%Y-%m-%d-%H%M}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_page(facts, report))
    return path


def _page(facts: dict[str, str], report: Report) -> str:
    lines = ["# A run of the long tests", "", "| what | value |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    lines += ["", "| test | outcome | seconds |", "|---|---|---:|"]
    for case in report.cases:
        outcome = "failed" if case.failed else "skipped" if case.skipped else "passed"
        lines.append(f"| `{case.name}` | {outcome} | {case.seconds:.1f} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What durations depend on, without the machine's name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{cores or os.cpu_count()} cores, {memory / 2**30:.0f} GiB, "
        f"{platform.system()} {platform.machine()}"
    )


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
