"""Laws of the leases: who is heard of keeps its jobs, and nobody is judged too soon."""

from __future__ import annotations

from datetime import UTC, datetime

from trimtab.api import Metadata
from trimtab.operators.vmafx.kinds import (
    Doing,
    Run,
    VmafxJob,
    VmafxJobSpec,
    VmafxJobStatus,
    VmafxNode,
    VmafxNodeSpec,
    VmafxNodeStatus,
)
from trimtab.operators.vmafx.leases import Leases

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("n", "j")


def job(*, attempt: int = 1, session: str = "s1", outcome: str = "") -> VmafxJob:
    run = Run(attempt=attempt, session=session, since=NOW, outcome=outcome)  # type: ignore[arg-type]
    return VmafxJob(
        metadata=Metadata(name="j", namespace="n", uid="u"),
        spec=VmafxJobSpec(reference="a", distorted="b"),
        status=VmafxJobStatus(run=run),
    )


def node(
    beat: int, *, session: str = "s1", attempts: tuple[int, ...] = (1,)
) -> VmafxNode:
    doing = [Doing(job="u", attempt=attempt) for attempt in attempts]
    return VmafxNode(
        metadata=Metadata(name="one", namespace="n"),
        spec=VmafxNodeSpec(gpuVendor="cpu"),
        status=VmafxNodeStatus(session=session, beat=beat, jobs=doing),
    )


def test_beats_that_name_a_job_keep_it_and_silence_loses_it() -> None:
    leases = Leases(lease=60)
    leases.job(job(), now=0)
    for beat in range(1, 20):
        leases.node(node(beat), now=beat * 10.0)
        assert leases.silent(beat * 10.0 + 59.9) == []
    assert leases.silent(190 + 60) == [KEY]


def test_the_same_beat_seen_again_is_no_sign_of_life() -> None:
    leases = Leases(lease=60)
    leases.job(job(), now=0)
    leases.node(node(1), now=0)
    leases.node(node(1), now=50)
    assert leases.silent(60) == [KEY]


def test_a_beat_that_does_not_name_the_attempt_does_not_keep_it() -> None:
    leases = Leases(lease=60)
    leases.job(job(attempt=2), now=0)
    leases.node(node(1, attempts=(1,)), now=30)
    leases.node(node(2, attempts=()), now=50)
    assert leases.silent(60) == [KEY]


def test_who_has_just_started_waits_a_whole_lease() -> None:
    leases = Leases(lease=60)
    leases.node(node(7), now=1000)
    leases.job(job(), now=1000)
    assert leases.silent(1059.9) == []


def test_a_new_session_of_a_node_ends_what_the_old_one_had() -> None:
    leases = Leases(lease=60)
    leases.job(job(), now=0)
    leases.node(node(1), now=0)
    leases.node(node(0, session="s2", attempts=()), now=1)
    assert leases.silent(1) == [KEY]


def test_a_node_that_is_gone_has_nothing() -> None:
    leases = Leases(lease=60)
    leases.job(job(), now=0)
    leases.node(node(1), now=0)
    leases.gone(("n", "one"))
    assert leases.silent(1) == [KEY]


def test_nothing_is_kept_of_what_is_over() -> None:
    leases = Leases(lease=60)
    leases.job(job(), now=0)
    leases.job(job(outcome="completed"), now=1)
    assert len(leases) == 0
    assert list(leases.of("s1")) == []
    assert leases.silent(1000) == []
