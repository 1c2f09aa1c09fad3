"""Explaining: what an operator knows of one object, in the form of ``/debug/why``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.cache import Key
from trimtab.runtime.history import History
from trimtab.runtime.reconcile import Cause
from trimtab.runtime.workqueue import WorkQueue


def awaited(
    queue: WorkQueue | None, history: History, key: Key, *, now: float
) -> dict[str, Any]:
    """What is next for an object, and what has gone wrong so far."""
    failed = history.failures(key)
    return {
        "waiting": None if queue is None else _waiting(queue, key, now),
        "errors": None
        if failed is None
        else {
            "count": failed.count,
            "last": failed.error,
            "secondsAgo": round(now - failed.ended, 3),
        },
    }


def _waiting(queue: WorkQueue, key: Key, now: float) -> dict[str, Any]:
    found = queue.waiting(key)
    return {
        "working": found.working,
        "dueInSeconds": None if found.due is None else round(found.due - now, 3),
        "causes": causes(found.causes),
        "failures": found.failures,
        "held": found.held,
    }


def causes(some: Iterable[Cause]) -> list[str]:
    return [str(each) for each in some]
