"""The command of the soak, and the page that it leaves."""

from __future__ import annotations

import argparse
import asyncio
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.report import machine
from bench.soaking.run import CONVERGED_WITHIN, SLOPE_LIMIT, MiB, Outcome, Plan, soak

ROOT = Path(__file__).resolve().parents[2]
ROWS = 12
"""Of the table of memory."""


def laws(outcome: Outcome) -> dict[str, tuple[bool, str]]:
    """Each law, whether it held, and what was seen."""
    broken, left = outcome.broken, outcome.left
    return {
        f"all is as its spec says within {CONVERGED_WITHIN:.0f} s of the last event": (
            not broken,
            f"after {outcome.converged:.1f} s"
            + (f": {len(broken)} are not, the first: {broken[0]}" if broken else ""),
        ),
        f"memory grows by less than {SLOPE_LIMIT:g} MiB in 10,000 events": (
            outcome.slope < SLOPE_LIMIT,
            f"{outcome.slope:+.3f} MiB",
        ),
        "no task, thread, descriptor or connection is left": (
            not left,
            ", ".join(left) or "none",
        ),
        "replicas stop when they are told to, and log no error": (
            not outcome.problems,
            " ".join(outcome.problems) or "so they did",
        ),
    }


def page(outcome: Outcome) -> str:
    """What is committed."""
    plan = outcome.plan
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": _commit(),
        "machine": machine(),
        "python": platform.python_version(),
        "server": plan.cluster,
        "duration": f"{plan.seconds:.0f} s",
        "plan": f"{plan.live} Loads, at most {plan.rate:g} events/s, "
        f"a lease of {plan.lease} s, seed {plan.seed}",
        "result": "passed" if all(ok for ok, _ in laws(outcome).values()) else "failed",
    }
    held = ((law, _word(ok), seen) for law, (ok, seen) in laws(outcome).items())
    return f"""# A soak of an operator

Two replicas of `bench/soak_operator.py` behind relays that cut and silence their
connections, while Loads come, change and go, and leaders are killed or stopped beyond
their lease. One replica, the witness, is never killed.

{_table(("what", "value"), facts.items())}
{_table(("law", "held", "seen"), held)}
{_table(("happened", "times"), _happened(outcome))}
{_table(("the witness holds", "at the beginning", "at the end"), _held(outcome))}
{_table(("second", "events", "witness, MiB"), _memory(outcome))}
*Events* are the writes of the churn that the server acknowledged; what the operator
writes in answer comes on top. The slope is that of a least-squares line through a
sample each second, memory over events, after the first tenth of the run. At the
beginning and at the end the witness leads and has nothing to do; the threads of plain
handlers, which are started when they are first needed and stay, count from the
beginning.

To run it again: `.venv/bin/python bench/soak.py --page docs/evidence/soak.md`.
"""


def _word(held: bool) -> str:
    return "yes" if held else "**no**"


def _happened(outcome: Outcome) -> list[tuple[str, str]]:
    rate = sum(outcome.events.values()) / outcome.plan.seconds
    counts = {f"Loads or parts {name}": n for name, n in sorted(outcome.events.items())}
    counts |= {"events in all": sum(outcome.events.values())}
    counts |= {"writes in all, as the server counts them": outcome.revisions}
    counts |= dict(sorted(outcome.faults.items()))
    metrics = outcome.metrics
    for family, name in (
        ("trimtab_watch_restarts", "watches of the witness begun again"),
        ("trimtab_relists", "lists of the witness after the first"),
        ("trimtab_reconciles", "reconciles of the witness"),
    ):
        found = (v for key, v in metrics.items() if key.startswith(f"{family}_total"))
        counts[name] = round(sum(found))
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    return [("events per second", f"{rate:.1f}"), *rows]


def _held(outcome: Outcome) -> list[tuple[str, str, str]]:
    assert outcome.began is not None
    assert outcome.ended is not None
    before = msgspec.structs.asdict(outcome.began)
    after = msgspec.structs.asdict(outcome.ended)
    return [(name, f"{before[name]}", f"{after[name]}") for name in before]


def _memory(outcome: Outcome) -> list[tuple[str, str, str]]:
    samples = outcome.samples
    step = max(1, (len(samples) - 1) // ROWS)
    return [
        (f"{each.seconds:.0f}", f"{each.events:,}", f"{each.resident / MiB:.2f}")
        for each in samples[::step]
    ]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    commit = git("rev-parse", "--short", "HEAD") or "no commit"
    return commit + (" with changes that are not committed" if changed else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", choices=("embedded", "real"), default="embedded")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=Plan().rate, help="events/s")
    parser.add_argument("--live", type=int, default=Plan().live, help="Loads at once")
    parser.add_argument("--seed", type=int, default=Plan().seed)
    parser.add_argument("--page", type=Path, help="write what came of it to this file")
    asked = parser.parse_args()
    plan = Plan(
        cluster=asked.cluster,
        seconds=asked.minutes * 60,
        rate=asked.rate,
        live=asked.live,
        seed=asked.seed,
    )
    outcome = asyncio.run(soak(plan, say=lambda text: print(text, flush=True)))
    text = page(outcome)
    print(text)
    if asked.page:
        asked.page.write_text(text)
    return 0 if all(ok for ok, _ in laws(outcome).values()) else 1
