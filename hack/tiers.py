"""The tiers of tests: what each runs, what it may cost, and what it says at its end.

`python -m hack.tiers test` runs the checks and then the tests, and prints a line for
each step; the longest check runs beside the tests. The last line is always `N passed,
M failed, K skipped`. A failed check, a budget that was broken and, in CI, a test that
was skipped each count as one failure, so the run failed exactly if M is not zero. A
test that is expected to fail proves nothing about what works: it counts as skipped.

Making the environment and building the real cluster's binaries happen before, in make,
and cost the budget nothing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from hack import report

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
TYPED = ("src", "tests", "hack", "examples", "bench")
# A run that takes twice its budget hangs: it is interrupted, so that CI ends.
PATIENCE = 2
# How long an interrupted run has to put its clusters away.
GRACE = 30.0
# What runs beside the tests takes the time that they leave.
POLITELY = ("nice", "-n", "10")
# A run starts a hundred Pythons: without bytecode each compiles the library again.
UNWANTED = "PYTHONDONTWRITEBYTECODE"


class Step(NamedTuple):
    """One program that must end with zero; its words are shown if it does not."""

    name: str
    command: tuple[str, ...]


class Tier(NamedTuple):
    """One of the three commands."""

    name: str
    minutes: float
    selection: tuple[str, ...]
    checks: bool = False
    evidence: bool = False


# The tests of a file stay together, and each process has a cluster of its own. Three on
# two cores, because a third of their time is waiting; the long ones measure, so two.
THREE = ("-n", "3", "--dist=loadfile")
TWO = ("-n", "2", "--dist=loadfile")

TIERS = {
    tier.name: tier
    for tier in (
        Tier("test", 6, ("-m", "not long and not simulation", *THREE), checks=True),
        Tier(
            "cluster",
            15,
            ("-m", "(cluster or simulation) and not long", "--cluster=real", *THREE),
        ),
        Tier(
            "long",
            60,
            ("-m", "long", "--cluster=real", "--timeout=3600", *TWO),
            evidence=True,
        ),
    )
}


def checks() -> list[Step]:
    """What is checked before any test runs, the quick ones first."""
    layers = Path(PYTHON).parent / "lint-imports"
    return [
        Step("ruff check", (PYTHON, "-m", "ruff", "check", "--quiet", ".")),
        Step("ruff format", (PYTHON, "-m", "ruff", "format", "--check", ".")),
        Step("own lint rules", (PYTHON, "-m", "hack.lints")),
        Step("layers", (str(layers), "--no-logo")),
        Step("docs", (PYTHON, "-m", "mkdocs", "build", "--strict", "--quiet")),
    ]


def types() -> Step:
    """The check that takes half a minute of one processor where nothing is cached."""
    folders = [folder for folder in TYPED if any((ROOT / folder).rglob("*.py"))]
    command = (*POLITELY, PYTHON, "-m", "mypy", "--strict", *folders)
    return Step("mypy --strict", command)


def environment() -> dict[str, str]:
    """What every step runs in: ours, and bytecode is kept."""
    return {name: value for name, value in os.environ.items() if name != UNWANTED}


def run_check(step: Step) -> bool:
    """Runs one step and prints its line."""
    began = time.monotonic()
    process = start(step)
    passed, words = end(step, process)
    print(f"{words}{time.monotonic() - began:6.1f} s", flush=True)
    return passed


def start(step: Step) -> subprocess.Popen[bytes]:
    """One step, which runs from now on."""
    return subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def end(step: Step, process: subprocess.Popen[bytes]) -> tuple[bool, str]:
    """Waits for a step: whether it went well, and the beginning of its line."""
    said, _ = process.communicate()
    passed = process.returncode == 0
    reasons = "" if passed else said.decode(errors="replace")
    return passed, f"{reasons}{step.name:<16}{'ok' if passed else 'FAILED':<8}"


def run_tests(arguments: list[str], *, within: float) -> report.Report:
    """Runs pytest, whose own words are shown as they come, and counts."""
    with tempfile.TemporaryDirectory(prefix="trimtab-tier-") as folder:
        results = Path(folder) / "results.xml"
        command = [PYTHON, "-m", "pytest", "-q", f"--junit-xml={results}", *arguments]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL
        )
        code = wait(process, within=within)
        return report.read(results, code=code)


def wait(process: subprocess.Popen[bytes], *, within: float) -> int:
    """The exit code; past the time, pytest is asked to stop and then made to."""
    try:
        return process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        print(f"Stopping: pytest has run for {within:.0f} s.", flush=True)
        process.send_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass  # the terminal told pytest as well
    try:
        return process.wait(timeout=GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def verdicts(
    result: report.Report, *, tier: Tier, seconds: float, in_ci: bool
) -> list[str]:
    """A sentence for each way in which a run fails though no test does."""
    found = []
    if result.trouble:
        found.append(result.trouble)
    if in_ci and result.skipped:
        names = ", ".join(case.name for case in result.cases if case.skipped)
        found.append(f"In CI no test may be skipped, and these were: {names}.")
    if seconds > tier.minutes * 60:
        slowest = ", ".join(f"{c.name} {c.seconds:.0f} s" for c in result.slowest(3))
        found.append(
            f"The tier took {seconds:.0f} s, its budget is {tier.minutes * 60:.0f} s:"
            f" make it quicker or move tests to a longer tier; slowest: {slowest}."
        )
    return found


def run(tier: Tier, arguments: list[str]) -> int:
    """Runs a tier; see the module's first lines for what it prints and counts."""
    began = time.monotonic()
    longest = types()
    beside = start(longest) if tier.checks else None
    steps = checks() if tier.checks else []
    failed_checks = [step.name for step in steps if not run_check(step)]
    left = max(tier.minutes * 60 * PATIENCE - (time.monotonic() - began), GRACE)
    result = run_tests([*tier.selection, *arguments], within=left)
    if beside is not None:
        passed, words = end(longest, beside)
        print(f"{words}beside the tests", flush=True)
        failed_checks += [] if passed else [longest.name]
    seconds = time.monotonic() - began
    in_ci = os.environ.get("CI", "").lower() in ("1", "true", "yes")
    sentences = verdicts(result, tier=tier, seconds=seconds, in_ci=in_ci)
    if failed_checks:
        print(f"Failed besides the tests: {', '.join(failed_checks)}.")
    for sentence in sentences:
        print(sentence)
    if tier.evidence and result.cases:
        written = report.write_evidence(result, root=ROOT, seconds=seconds)
        print(f"Written: {written.relative_to(ROOT)}; commit it.")
    return close(tier, result, seconds, len(failed_checks) + len(sentences))


def close(tier: Tier, result: report.Report, seconds: float, others: int) -> int:
    """Prints the closing lines; the exit code says the same as the last of them."""
    failed = result.failed + others
    print(f"Tier {tier.name}: {seconds:.0f} s of {tier.minutes * 60:.0f} s.")
    print(f"{result.passed} passed, {failed} failed, {result.skipped} skipped")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Runs one tier of the tests.")
    parser.add_argument("tier", choices=sorted(TIERS))
    parser.add_argument("--minutes", type=float, help="another budget than its own")
    chosen, rest = parser.parse_known_args(arguments)
    tier = TIERS[chosen.tier]
    if chosen.minutes is not None:
        tier = tier._replace(minutes=chosen.minutes)
    return run(tier, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
