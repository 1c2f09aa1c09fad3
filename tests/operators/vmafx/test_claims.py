"""Laws of a job's run: one holder, bounded attempts, and a final end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.api import Metadata
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import (
    PartOf,
    Run,
    Scored,
    VmafxJob,
    VmafxJobSpec,
    VmafxJobStatus,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(run: Run | None = None, **spec: object) -> VmafxJob:
    given_spec = VmafxJobSpec(reference="a", distorted="b", **spec)  # type: ignore[arg-type]
    return VmafxJob(
        metadata=Metadata(name="j", namespace="n", uid="u", resourceVersion="1"),
        spec=given_spec,
        status=VmafxJobStatus(run=run or Run()),
    )


def after(before: VmafxJob, run: Run | None) -> VmafxJob:
    if run is None:
        return before
    return replace(before, status=replace(before.status, run=run))


def claimed(before: VmafxJob, session: str) -> VmafxJob:
    return after(
        before, claims.claim(before, node=f"node-{session}", session=session, now=NOW)
    )


def test_a_running_job_cannot_be_claimed_again() -> None:
    running = claimed(job(), "s1")
    with pytest.raises(claims.NotFree):
        claims.claim(running, node="x", session="s2", now=NOW)


def test_only_the_holder_of_the_current_attempt_may_report() -> None:
    first = claimed(job(), "s1")
    second = claimed(after(first, claims.expire(first, attempt=1, now=NOW)), "s2")
    for session, attempt in (("s1", 1), ("s2", 1), ("s1", 2)):
        with pytest.raises(claims.NotYours):
            claims.report(second, session=session, attempt=attempt, now=NOW, score=1.0)
    run = claims.report(second, session="s2", attempt=2, now=NOW, score=0.0)
    assert run is not None
    assert (run.outcome, run.score) == ("completed", 0.0)


def test_a_report_that_was_made_already_changes_nothing() -> None:
    running = claimed(job(), "s1")
    done = after(
        running, claims.report(running, session="s1", attempt=1, now=NOW, score=9.0)
    )
    assert claims.report(done, session="s1", attempt=1, now=NOW, score=8.0) is None
    assert done.status.run.score == 9.0


def test_an_error_of_a_job_that_nobody_wants_is_its_cancellation() -> None:
    running = claimed(job(), "s1")
    unwanted = replace(running, spec=replace(running.spec, cancel=True))
    for retryable in (True, False):
        run = claims.report(
            unwanted,
            session="s1",
            attempt=1,
            now=NOW,
            error="It was interrupted.",
            retryable=retryable,
        )
        assert run is not None
        assert (run.outcome, run.lost) == ("cancelled", 0)


def test_what_a_node_gave_back_it_may_not_report() -> None:
    running = claimed(job(), "s1")
    given_back = after(
        running, claims.release(running, session="s1", attempt=1, now=NOW)
    )
    with pytest.raises(claims.NotYours):
        claims.report(given_back, session="s1", attempt=1, now=NOW, score=1.0)
    assert claims.backoff(given_back) == 0.0
    assert given_back.status.run.lost == 0


@pytest.mark.parametrize(("attempts", "waits"), [(3, [5.0, 10.0]), (1, [])])
def test_a_job_that_kills_its_nodes_is_given_up(
    attempts: int, waits: list[float]
) -> None:
    seen = job(maxAttempts=attempts)
    waited = []
    for number in range(attempts):
        seen = claimed(seen, f"s{number}")
        seen = after(
            seen, claims.expire(seen, attempt=seen.status.run.attempt, now=NOW)
        )
        if not claims.is_over(seen):
            waited.append(claims.backoff(seen))
    assert waited == waits
    assert seen.status.run.outcome == "failed"
    assert f"node-s{attempts - 1}" in seen.status.run.error


def test_a_wait_is_never_longer_than_five_minutes() -> None:
    run = Run(attempt=19, lost=19, outcome="expired")
    assert claims.backoff(job(run, maxAttempts=20)) == 300.0


MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["claim", "report", "fail", "retry", "release", "expire", "cancel"]
        ),
        st.sampled_from(["s1", "s2", "s3"]),
        st.integers(0, 4),
    ),
    max_size=30,
)


def moved(seen: VmafxJob, move: str, session: str, attempt: int) -> Run | None:
    if move == "claim":
        return claims.claim(seen, node=session, session=session, now=NOW)
    if move == "report":
        return claims.report(
            seen, session=session, attempt=attempt, now=NOW, score=float(attempt)
        )
    if move in ("fail", "retry"):
        again = move == "retry"
        return claims.report(
            seen,
            session=session,
            attempt=attempt,
            now=NOW,
            error="broken",
            retryable=again,
        )
    if move == "release":
        return claims.release(seen, session=session, attempt=attempt, now=NOW)
    if move == "expire":
        return claims.expire(seen, attempt=seen.status.run.attempt, now=NOW)
    return claims.cancel(seen, now=NOW, why="not wanted")


@given(moves=MOVES, attempts=st.integers(1, 4))
def test_whatever_happens_the_end_is_final_and_attempts_are_bounded(
    moves: list[tuple[str, str, int]], attempts: int
) -> None:
    seen = job(maxAttempts=attempts)
    for move, session, attempt in moves:
        before = seen
        try:
            seen = after(seen, moved(seen, move, session, attempt))
        except (claims.NotYours, claims.NotFree):
            continue
        run, old = seen.status.run, before.status.run
        if claims.is_over(before):
            assert seen is before
        assert run.attempt == old.attempt + (move == "claim")
        assert old.lost <= run.lost <= attempts
        if run.outcome == "completed" and old.outcome == "":
            assert (old.session, old.attempt) == (session, attempt)


def segment(index: int, first: int, count: int, **run: object) -> VmafxJob:
    given_run = {
        "outcome": "completed",
        "attempt": 1,
        "score": 10.0 * index,
        "features": {"psnr": 1.0 + index, f"only-{index}": 1.0},
        "scored": Scored(first=first, count=count, total=6),
        **run,
    }
    return job(Run(**given_run), segment=PartOf(index=index, of=2))  # type: ignore[arg-type]


def test_a_split_job_is_no_nodes_and_has_the_means_of_its_segments() -> None:
    whole = job(segments=2)
    with pytest.raises(claims.NotFree):
        claims.claim(whole, node="n", session="s", now=NOW)
    begun = after(whole, claims.begin(whole, now=NOW))
    assert claims.is_running(begun)
    assert not claims.is_held(begun)
    assert claims.begin(begun, now=NOW) is None
    parts = [segment(0, 0, 2), segment(1, 2, 4)]
    for before in (whole, begun):
        ended = after(before, claims.join(before, parts, frames="f", now=NOW))
        run = ended.status.run
        assert (run.outcome, run.attempt) == ("completed", 1)
        assert run.score == pytest.approx(40 / 6)
        assert run.features == {"psnr": pytest.approx(10 / 6)}
        assert claims.join(ended, parts, frames="", now=NOW) is None


def test_segments_that_do_not_meet_are_no_score() -> None:
    whole = job(segments=2)
    for parts in (
        [segment(0, 0, 2), segment(1, 3, 3)],
        [segment(0, 0, 2, scored=None), segment(1, 2, 4)],
    ):
        run = claims.join(whole, parts, frames="", now=NOW)
        assert run is not None
        assert (run.outcome, run.score) == ("failed", None)
        assert run.error.startswith("The segments of j do not fit together: ")


def test_a_split_job_ends_with_a_segment_that_cannot_be_scored() -> None:
    whole = job(segments=2)
    bad = segment(1, 0, 0, outcome="failed", error="b is no video.")
    failed = claims.end_with(whole, bad, now=NOW)
    assert failed is not None
    assert failed.error == "b is no video (segment 2 of 2)."
    gone = segment(0, 0, 0, outcome="cancelled")
    cancelled = claims.end_with(whole, gone, now=NOW)
    assert cancelled is not None
    assert cancelled.outcome == "cancelled"
    assert cancelled.error == "Its segment 1 of 2 was cancelled."


def test_who_knows_no_segments_has_not_scored_one() -> None:
    part = claimed(job(segment=PartOf(index=0, of=2)), "s1")
    run = claims.report(part, session="s1", attempt=1, now=NOW, score=1.0)
    assert run is not None
    assert (run.outcome, run.lost) == ("expired", 1)
    assert run.error == "Node node-s1 scores no segments: update it."
