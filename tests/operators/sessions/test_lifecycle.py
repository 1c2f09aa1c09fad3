"""Laws of the lifecycle: what a session becomes, whatever happens to it and to us."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.sessions.pods import (
    container,
    ended,
    pod,
    ready,
    running,
    unschedulable,
    waiting,
)
from tests.operators.sessions.walking import Walk
from trimtab.operators.sessions.kinds import (
    DESIRED,
    FORCE_PROMPT,
    STOP_REASON,
    STOP_REQUESTED,
    TERMINAL,
    ProjectSettings,
    ProjectSettingsSpec,
)
from trimtab.operators.sessions.settings import Limits


def at_work(**spec: object) -> Walk:
    """A session that runs."""
    walk = Walk(**spec)  # type: ignore[arg-type]
    walk.settle()
    walk.becomes(ready())
    walk.settle()
    walk.answers()
    walk.settle()
    assert walk.phase == "Running"
    return walk


def test_a_session_runs_only_when_its_pod_is_ready_and_its_runner_has_answered() -> (
    None
):
    walk = Walk()
    walk.settle()
    assert walk.phase == "Creating"
    walk.becomes(pod(container(running())))
    walk.answers()
    walk.settle()
    assert walk.phase == "Creating"
    walk.stated(answeredBy="another-pod")
    walk.becomes(ready())
    walk.settle()
    assert (walk.phase, walk.reason) == ("Creating", "AskingRunner")
    walk.answers()
    walk.settle()
    assert walk.phase == "Running"
    assert walk.phases == ["Creating", "Running"]
    assert walk.status.conditions.is_true("Ready")
    assert walk.status.readyAt == walk.status.firstStartedAt == walk.now


@pytest.mark.parametrize("state", ["none", "unschedulable", "started", "ready", "runs"])
def test_a_stop_is_obeyed_in_every_phase(state: str) -> None:
    walk = at_work() if state == "runs" else Walk()
    if state in ("unschedulable", "started", "ready"):
        walk.settle()
        made = {"unschedulable": unschedulable(), "ready": ready()}
        walk.becomes(made.get(state, pod(container(running()))))
    walk.command("Stopped")
    walk.settle()
    if state in ("none", "unschedulable"):  # nobody has the pod: it takes no time
        assert walk.phase == "Stopped"
    else:
        assert walk.phase == "Stopping"
        walk.gone()
        walk.settle()
    assert (walk.phase, walk.status.stoppedReason) == ("Stopped", "user")
    assert walk.pod is None
    assert DESIRED not in walk.annotations
    assert walk.status.completionTime == walk.now


def test_a_start_during_stopping_is_kept() -> None:
    walk = at_work()
    walk.command("Stopped")
    walk.settle()
    walk.command("Running")
    walk.settle()
    assert walk.phase == "Stopping"
    walk.gone()
    walk.settle()
    assert walk.phases[-3:] == ["Stopped", "Pending", "Creating"]
    assert walk.annotations == {}


def test_a_redundant_start_is_cleared_and_starts_nothing_later() -> None:
    walk = at_work()
    walk.command("Running")
    walk.settle()
    assert walk.annotations == {}
    walk.becomes(pod(container(ended(0)), phase="Succeeded"))
    walk.settle()
    walk.gone()
    walk.settle()
    assert walk.phase == "Completed"


@pytest.mark.parametrize("reason", ["inactivity", "run-finished"])
def test_why_it_was_stopped_is_what_the_stopper_said(reason: str) -> None:
    walk = at_work()
    walk.annotate(**{STOP_REASON: reason, STOP_REQUESTED: "now", DESIRED: "Stopped"})
    walk.settle()
    walk.gone()
    walk.settle()
    assert walk.status.stoppedReason == reason
    assert walk.annotations == {}


def test_a_dead_runner_is_seen_in_running_and_replaced() -> None:
    walk = at_work()
    walk.becomes(pod(container(ended(137, "OOMKilled"))))
    walk.settle()
    assert (walk.phase, walk.reason) == ("Stopping", "OOMKilled")
    assert walk.status.evidence is not None
    assert walk.status.evidence.reason == "OOMKilled"
    walk.gone()
    due = walk.settle()
    assert (walk.phase, walk.status.restarts, due) == ("Pending", 1, 5.0)
    walk.passes(5)
    walk.settle()
    assert (walk.phase, walk.pods) == ("Creating", 2)


def test_a_session_whose_pod_is_gone_does_not_stay_running() -> None:
    walk = at_work()
    walk.gone()
    walk.settle()
    assert walk.phase == "Pending"
    assert "PodMissing" in walk.told


def lose(walk: Walk) -> None:
    """The runner is lost, and the next one is waited for."""
    walk.becomes(pod(container(ended(137))))
    walk.settle()
    walk.gone()
    walk.settle()
    walk.passes(walk.limits.pause(walk.status.restarts) if walk.status.restarts else 0)
    walk.settle()


def again(walk: Walk) -> None:
    walk.becomes(ready())
    walk.answers()
    walk.settle()
    assert walk.phase == "Running"


def test_the_restart_budget_is_spent_and_then_it_has_failed() -> None:
    walk = at_work()
    for _ in range(walk.limits.restart_budget):
        lose(walk)
        again(walk)
    lose(walk)
    assert (walk.phase, walk.reason) == ("Failed", "RunnerKilled")
    assert walk.pod is None
    assert walk.pods == 1 + walk.limits.restart_budget


def test_pauses_between_restarts_grow() -> None:
    walk, pauses = at_work(), []
    for _ in range(walk.limits.restart_budget):
        walk.becomes(pod(container(ended(137))))
        walk.settle()
        walk.gone()
        pauses.append(walk.settle())
        walk.passes(pauses[-1] or 0)
        walk.settle()
        again(walk)
    assert pauses == [5.0, 10.0, 20.0]


def test_a_runner_that_worked_for_long_makes_good_for_those_lost_before() -> None:
    walk = at_work(timeout=0)
    for _ in range(10):
        walk.passes(walk.limits.settled)
        lose(walk)
        again(walk)
    assert walk.status.restarts == 1


def test_what_a_runner_did_itself_is_not_tried_again() -> None:
    walk = at_work()
    walk.becomes(pod(container(ended(1)), phase="Failed"))
    walk.settle()
    walk.gone()
    walk.settle()
    assert (walk.phase, walk.reason, walk.pods) == ("Failed", "RunnerExit", 1)


def test_a_start_has_a_deadline_and_says_what_it_waited_for() -> None:
    walk = Walk()
    walk.settle()
    walk.becomes(unschedulable())
    due = walk.settle()
    assert due == walk.limits.start_deadline
    walk.passes(due)
    walk.settle()
    assert (walk.phase, walk.status.stoppedReason) == ("Failed", "start-deadline")
    assert walk.reason == "StartDeadline"
    assert walk.pod is None


def test_failing_gives_a_start_no_more_time() -> None:
    walk = Walk(limits=Limits(restart_budget=1000))
    walk.settle()
    for _ in range(200):
        walk.becomes(pod(container(ended(137))))
        walk.settle()
        walk.gone()
        walk.passes(walk.settle() or 0)
        walk.settle()
        if walk.phase == "Failed":
            break
    assert walk.status.stoppedReason == "start-deadline"


def test_the_timeout_is_enforced_from_when_the_runner_was_ready() -> None:
    walk = at_work(timeout=60)
    assert walk.settle() == 60
    walk.passes(60)
    walk.settle()
    walk.gone()
    walk.settle()
    assert (walk.phase, walk.status.stoppedReason) == ("Stopped", "timeout")


def test_a_timeout_that_nobody_chose_ends_nothing_unless_it_is_to() -> None:
    walk = at_work(timeout=300)
    assert walk.settle() == walk.limits.inactivity
    strict = at_work(timeout=300, limits=Limits(unset_timeout=0))
    assert strict.settle() == 300


def project(seconds: int) -> ProjectSettings:
    return ProjectSettings(
        spec=ProjectSettingsSpec(groupAccess=[], inactivityTimeoutSeconds=seconds)
    )


def test_inactivity_is_the_sessions_then_the_projects_then_the_operators() -> None:
    walk = at_work(inactivityTimeout=50)
    walk.project = project(70)
    assert walk.settle() == 50
    walk = at_work()
    walk.project = project(70)
    assert walk.settle() == 70
    walk.project = None
    assert walk.settle() == 86400
    walk = at_work(inactivityTimeout=0)
    walk.project = project(70)
    assert walk.settle() is None


def test_activity_puts_inactivity_off_and_a_resume_does_too() -> None:
    walk = at_work(inactivityTimeout=50)
    walk.passes(40)
    walk.stated(lastActivityTime=walk.now)
    walk.passes(40)
    assert walk.settle() == 10
    walk.passes(10)
    walk.settle()
    assert walk.phase == "Stopping"
    walk.gone()
    walk.settle()
    assert walk.status.stoppedReason == "inactivity"
    walk.command("Running")
    walk.settle()
    again(walk)
    assert walk.settle() == 50


def test_an_image_error_has_a_grace_that_begins_with_it() -> None:
    walk = Walk()
    walk.settle()
    walk.becomes(pod(phase="Pending"))
    walk.passes(100)
    walk.settle()
    typo = pod(container(waiting("ErrImagePull")), phase="Pending")
    walk.becomes(typo)
    assert walk.settle() == 60
    walk.passes(30)
    walk.becomes(pod(container(waiting("ImagePullBackOff")), phase="Pending"))
    assert walk.settle() == 30
    walk.becomes(pod(phase="Pending"))
    walk.settle()
    walk.passes(1)
    walk.becomes(typo)
    assert walk.settle() == 60, "it had come right in between"
    walk.passes(60)
    walk.settle()
    walk.gone()
    walk.settle()
    assert (walk.phase, walk.reason) == ("Failed", "ErrImagePull")


def test_a_sidecar_that_fails_ends_a_start_and_not_a_runner_at_work() -> None:
    beside = pod(container(running()), container(ended(1), "state-sync"))
    walk = at_work()
    walk.becomes(beside)
    walk.settle()
    assert (walk.phase, walk.reason) == ("Running", "SidecarFailed")
    assert not walk.status.conditions.is_true("Ready")
    walk = Walk()
    walk.settle()
    walk.becomes(beside)
    walk.settle()
    assert walk.phase == "Stopping"


def test_a_session_is_resumed_only_after_a_runner_of_it_was_ready() -> None:
    walk = Walk()
    walk.settle()
    walk.becomes(pod(container(ended(137))))
    walk.settle()
    walk.gone()
    walk.settle()
    assert walk.status.firstStartedAt is None
    walk = at_work()
    first = walk.status.firstStartedAt
    walk.passes(100)
    lose(walk)
    again(walk)
    assert walk.status.firstStartedAt == first


def test_a_forced_prompt_is_forgotten_when_its_pod_is_there_and_not_before() -> None:
    walk = Walk()
    walk.annotate(**{FORCE_PROMPT: "true", DESIRED: "Running"})
    made = walk.decided()
    assert made.make
    assert FORCE_PROMPT not in made.clear
    walk.settle()
    assert walk.annotations == {}


def test_a_session_that_can_never_start_makes_no_pod() -> None:
    walk = Walk()
    walk.refused = "Its name is too long."
    walk.settle()
    assert (walk.phase, walk.reason, walk.pods) == ("Failed", "Refused", 0)
    assert walk.status.conditions["Ready"].message == "Its name is too long."


def test_the_pod_of_an_earlier_session_of_the_same_name_is_not_taken_for_its_own() -> (
    None
):
    walk = Walk()
    walk.pod = ready(owner="session-0")
    walk.settle()
    assert (walk.phase, walk.reason) == ("Pending", "PodRemains")
    walk.command("Stopped")
    walk.settle()
    assert walk.phase == "Stopped"


def test_a_word_that_is_no_command_is_said_to_be_none_and_changes_nothing() -> None:
    walk = at_work()
    walk.command("Sleeping")
    walk.settle()
    stated = walk.status.conditions["CommandUnderstood"]
    assert (walk.phase, stated.status) == ("Running", "False")
    assert "Sleeping" in stated.message
    walk.command("Running")
    walk.settle()
    assert walk.status.conditions.is_true("CommandUnderstood")


def test_a_running_session_of_the_original_is_taken_over_as_it_is() -> None:
    walk = Walk()
    walk.stated(phase="Running", startTime=walk.at(-1000))
    walk.pod = ready()
    walk.settle()
    assert walk.phase == "Running"
    assert walk.status.firstStartedAt is not None


def test_a_pod_that_does_not_go_is_talked_about() -> None:
    walk = at_work()
    walk.command("Stopped")
    assert walk.settle() == pytest.approx(90)
    walk.passes(90)
    walk.settle()
    assert "does not end on node-1" in walk.status.conditions["Ready"].message


def test_a_session_that_is_over_is_left_alone() -> None:
    for phase in TERMINAL:
        walk = Walk()
        walk.stated(phase=phase)
        decided = walk.decided()
        assert decided.status == walk.status
        assert not decided.conditions
        assert decided.due is None


def test_audit_2_conditions_are_one_of_each_type_after_a_thousand_looks() -> None:
    walk = Walk(timeout=0)
    for number in range(1000):
        HAPPENINGS[sorted(HAPPENINGS)[number % len(HAPPENINGS)]](walk)
        walk.settle()
        walk.command("Running")
    types = list(walk.status.conditions)
    assert len(types) == len(set(types)) <= 10
    assert all(len(each.message) <= 1024 for each in walk.status.conditions.values())


def test_a_running_session_that_nobody_uses_costs_no_write() -> None:
    walk = at_work()
    walk.settle()
    before = walk.session
    for _ in range(3):
        walk.passes(600)
        decided = walk.decided()
        walk.write(decided)
        assert walk.session == before
        assert decided.due is not None
        assert (decided.make, decided.remove, decided.clear) == (False, False, ())
        assert decided.events == ()


# All of it together


def runs(walk: Walk) -> None:
    walk.becomes(ready())
    walk.answers()


HAPPENINGS: dict[str, Callable[[Walk], None]] = {
    "start": lambda walk: walk.command("Running"),
    "stop": lambda walk: walk.command("Stopped"),
    "unschedulable": lambda walk: walk.becomes(unschedulable()),
    "started": lambda walk: walk.becomes(pod(container(running()))),
    "ready": lambda walk: walk.becomes(ready()),
    "answers": Walk.answers,
    "runs": runs,
    "runs again": runs,
    "killed": lambda walk: walk.becomes(pod(container(ended(137)))),
    "oom": lambda walk: walk.becomes(pod(container(ended(137, "OOMKilled")))),
    "done": lambda walk: walk.becomes(pod(container(ended(0)), phase="Succeeded")),
    "broken": lambda walk: walk.becomes(pod(container(ended(1)), phase="Failed")),
    "typo": lambda walk: walk.becomes(pod(container(waiting("ErrImagePull")))),
    "evicted": lambda walk: walk.becomes(pod(phase="Failed", reason="Evicted")),
    "deleted": lambda walk: walk.going(60) if walk.pod else None,
    "gone": Walk.gone,
    "second": lambda walk: walk.passes(1),
    "minute": lambda walk: walk.passes(60),
    "hour": lambda walk: walk.passes(3600),
    "crash": lambda walk: walk.act(walk.decided()),
}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(sorted(HAPPENINGS)), max_size=30), st.booleans())
def test_whatever_happens_a_stop_wins_and_a_start_after_it_too(
    names: list[str], at_once: bool
) -> None:
    walk = Walk(timeout=7200)
    for name in names:
        HAPPENINGS[name](walk)
        walk.settle()
        if walk.phase in TERMINAL:
            assert walk.pod is None, names
        if walk.phase == "Running":
            assert walk.pod is not None, names
    walk.command("Stopped")
    walk.settle()
    assert walk.phase in (*TERMINAL, "Stopping"), names
    if at_once:
        walk.command("Running")
        walk.settle()
    if walk.phase == "Stopping":
        walk.gone()
    walk.settle()
    if not at_once:
        assert walk.phase in TERMINAL, names
        assert walk.pod is None
        walk.command("Running")
    walk.settle()
    walk.becomes(ready())
    walk.answers()
    walk.settle()
    assert walk.phase == "Running", names
