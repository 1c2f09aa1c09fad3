"""Health: whether a process should go on living, and whether it is ready for work.

A check is a function that answers None, or a sentence that says what is wrong. The
answers look like those of kube-apiserver's ``/livez`` and ``/readyz``, which people and
scripts know how to read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Check: TypeAlias = Callable[[], str | None]


class Report(NamedTuple):
    """The answer to a probe."""

    healthy: bool
    text: str


class Health:
    """The checks of one process. Without any it is healthy."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_live(self, name: str, check: Check) -> Callable[[], None]:
        """A check that a restart would mend; the answer is what removes it again."""
        return _add(self._live, name, check)

    def add_ready(self, name: str, check: Check) -> Callable[[], None]:
        """A check that time would mend; the answer is what removes it again."""
        return _add(self._ready, name, check)

    def live(self, *, verbose: bool = False) -> Report:
        return _report("livez", self._live, verbose)

    def ready(self, *, verbose: bool = False) -> Report:
        return _report("readyz", self._ready, verbose)


def _add(checks: dict[str, Check], name: str, check: Check) -> Callable[[], None]:
    if name in checks:
        raise ValueError(
            f"There is a health check {name!r} already; give this one another name."
        )
    checks[name] = check
    return lambda: _remove(checks, name, check)


def _remove(checks: dict[str, Check], name: str, check: Check) -> None:
    if checks.get(name) is check:
        del checks[name]


def _report(probe: str, checks: dict[str, Check], verbose: bool) -> Report:
    """Every check is asked, so that one look shows all that is wrong."""
    problems = {name: _ask(check) for name, check in list(checks.items())}
    healthy = not any(problems.values())
    if healthy and not verbose:
        return Report(True, "ok")
    lines = [
        f"[-]{name}: {problem}" if problem else f"[+]{name} ok"
        for name, problem in problems.items()
    ]
    lines.append(f"{probe} check {'passed' if healthy else 'failed'}\n")
    return Report(healthy, "\n".join(lines))


def _ask(check: Check) -> str | None:
    try:
        problem = check()
    except Exception as error:
        problem = f"the check itself failed with {type(error).__name__}: {error}"
    # One line for each check, whatever it says.
    return " ".join(problem.split()) if problem else None
