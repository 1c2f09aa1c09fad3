"""Laws of the history: the last reconcile of each object, of bounded many objects."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from trimtab.runtime.history import SIZE, History, Reconciled, told
from trimtab.runtime.reconcile import Cause


def reconciled(outcome: str = "ok", *, error: str = "") -> Reconciled:
    causes = (Cause("change", fields=("spec.image",)),)
    return Reconciled(causes, outcome, 0.25, 2, 100.0, error)


def test_the_last_reconcile_of_an_object_is_known() -> None:
    history = History()
    history.add(("a", "x"), reconciled("error"))
    history.add(("a", "x"), reconciled("ok"))
    last = history.of(("a", "x"))
    assert last is not None
    assert last.outcome == "ok"
    assert history.of(("a", "y")) is None


def test_what_ran_longest_ago_is_forgotten_first() -> None:
    history = History()
    for number in range(SIZE):
        history.add(("", str(number)), reconciled())
    history.add(("", "0"), reconciled())
    history.add(("", "new"), reconciled())
    assert history.of(("", "0")) is not None
    assert history.of(("", "1")) is None
    assert history.of(("", "new")) is not None


def test_it_is_told_in_words_and_numbers_that_json_has() -> None:
    clock = datetime(2026, 1, 2, tzinfo=UTC)
    said = told(reconciled(error="no roof"), now=103.5, clock=clock)
    assert said == msgspec.json.decode(msgspec.json.encode(said))
    assert said["causes"] == ["change (spec.image)"]
    assert said["secondsAgo"] == 3.5
    assert said["error"] == "no roof"
    assert told(reconciled(), now=103.5, clock=clock)["error"] is None


def test_failures_are_counted_and_to_try_again_is_none() -> None:
    history, key = History(), ("a", "x")
    history.add(key, reconciled("retry", error="somebody else wrote first"))
    assert history.failures(key) is None
    history.add(key, reconciled("error", error="no roof"))
    history.add(key, reconciled("retry", error="not yet"))
    found = history.failures(key)
    assert found is not None
    assert (found.count, found.error) == (1, "no roof")
