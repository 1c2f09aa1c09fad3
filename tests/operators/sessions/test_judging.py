"""Laws of judging: what a pod says about the runner in it."""

from __future__ import annotations

import pytest

from tests.operators.sessions.pods import (
    NOW,
    container,
    ended,
    later,
    pod,
    ready,
    running,
    unschedulable,
    waiting,
)
from trimtab.api.kinds import Pod
from trimtab.operators.sessions.judging import HOPELESS, IMAGE, Verdict, judge


def judged(found: Pod | None, **others: object) -> Verdict:
    return judge(found, now=NOW, **others)  # type: ignore[arg-type]


def test_no_pod_is_an_absent_one_that_may_be_made_again() -> None:
    verdict = judged(None)
    assert (verdict.state, verdict.retry, verdict.over) == ("absent", True, True)


def test_a_container_that_runs_is_started_and_one_that_says_so_is_ready() -> None:
    assert judged(pod(container(running()))).state == "started"
    assert judged(ready()).state == "ready"


@pytest.mark.parametrize(
    ("code", "reason", "state", "word", "retry"),
    [
        (0, "Completed", "completed", "Completed", False),
        (2, "Error", "failed", "PrerequisiteFailed", False),
        (1, "Error", "failed", "RunnerExit", False),
        (137, "Error", "failed", "RunnerKilled", True),
        (143, "Error", "failed", "RunnerKilled", True),
        (137, "OOMKilled", "failed", "OOMKilled", True),
        (1, "OOMKilled", "failed", "OOMKilled", True),
    ],
)
@pytest.mark.parametrize("phase", ["Running", "Failed", "Succeeded"])
def test_what_was_done_to_a_runner_is_tried_again_and_what_it_did_is_not(
    code: int, reason: str, state: str, word: str, retry: bool, phase: str
) -> None:
    verdict = judged(pod(container(ended(code, reason)), phase=phase))
    assert (verdict.state, verdict.reason, verdict.retry) == (state, word, retry)
    assert verdict.exit_code == code


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", "reason": "Preempting"}, "Preempted"),
        ({"phase": "Failed", "reason": "NodeLost"}, "NodeLost"),
        ({"phase": "Unknown"}, "NodeLost"),
        (
            {"conditions": {"DisruptionTarget": (True, "PreemptionByScheduler")}},
            "Preempted",
        ),
        (
            {"conditions": {"DisruptionTarget": (True, "DeletionByTaintManager")}},
            "NodeLost",
        ),
        (
            {"conditions": {"DisruptionTarget": (True, "EvictionByEvictionAPI")}},
            "Evicted",
        ),
        ({"going": later(60)}, "PodDeleted"),
    ],
)
def test_a_pod_that_was_taken_away_is_lost_whatever_its_runner_said_at_the_end(
    status: dict[str, object], word: str
) -> None:
    for state in (running(), ended(137, at=later(1)), ended(0, at=later(1))):
        verdict = judged(pod(container(state), **status))  # type: ignore[arg-type]
        assert (verdict.state, verdict.reason) == ("lost", word)
        assert verdict.retry


def test_a_runner_that_had_ended_before_its_pod_was_taken_is_judged_by_its_end() -> (
    None
):
    found = pod(container(ended(0, at=later(-5))), going=later(60))
    assert judged(found).state == "completed"


@pytest.mark.parametrize("reason", sorted(IMAGE))
@pytest.mark.parametrize("first", [False, True])
def test_an_image_that_cannot_be_pulled_has_a_grace_in_every_container(
    reason: str, first: bool
) -> None:
    stuck = container(waiting(reason, "no such tag"), "init" if first else "sidecar")
    beside = () if first else (stuck,)
    found = pod(*beside, phase="Pending", first=(stuck,) if first else ())
    verdict = judge(found, now=NOW, grace=60)
    assert (verdict.state, verdict.reason, verdict.look_again) == (
        "starting",
        reason,
        60,
    )
    assert "no such tag" in verdict.message
    verdict = judge(found, now=later(20), troubled_since=NOW, grace=60)
    assert (verdict.state, verdict.look_again) == ("starting", 40)
    verdict = judge(found, now=later(60), troubled_since=NOW, grace=60)
    assert (verdict.state, verdict.retry) == ("failed", False)


@pytest.mark.parametrize("reason", sorted(HOPELESS))
def test_an_image_that_can_never_be_pulled_has_none(reason: str) -> None:
    verdict = judged(pod(container(waiting(reason)), phase="Pending"))
    assert (verdict.state, verdict.retry) == ("failed", False)


def test_an_init_container_that_failed_fails_a_pod_that_is_pending_still() -> None:
    found = pod(phase="Pending", first=(container(ended(1), "init-hydrate"),))
    verdict = judged(found)
    assert (verdict.state, verdict.reason) == ("failed", "InitFailed")
    assert not verdict.retry
    killed = pod(phase="Pending", first=(container(ended(137), "init-hydrate"),))
    assert judged(killed).retry


def test_a_sidecar_that_failed_is_told_while_the_runner_works_on() -> None:
    found = pod(container(running()), container(ended(1), "state-sync"))
    verdict = judged(found)
    assert (verdict.state, verdict.reason) == ("started", "SidecarFailed")
    assert "state-sync" in verdict.message


def test_a_crash_loop_is_a_failure_that_may_pass() -> None:
    found = pod(container(waiting("CrashLoopBackOff"), "state-sync"))
    verdict = judged(found)
    assert (verdict.state, verdict.retry) == ("failed", True)


def test_a_pod_without_a_node_says_why() -> None:
    verdict = judged(unschedulable())
    assert (verdict.state, verdict.reason) == ("starting", "Unschedulable")
    assert judged(pod(phase="Pending", node="")).reason == "Scheduling"


def test_a_node_that_refuses_a_pod_is_not_the_only_one() -> None:
    verdict = judged(pod(phase="Failed", reason="OutOfcpu", message="no room"))
    assert (verdict.state, verdict.retry) == ("failed", True)
    late = judged(pod(phase="Failed", reason="DeadlineExceeded"))
    assert (late.reason, late.retry) == ("DeadlineExceeded", False)
