"""Laws of the queue: the best job first, each once, and none before its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trimtab.api import Metadata
from trimtab.operators.vmafx import claims
from trimtab.operators.vmafx.kinds import (
    Backend,
    Run,
    VmafxJob,
    VmafxJobSpec,
    VmafxJobStatus,
)
from trimtab.operators.vmafx.queue import JobQueue, Key

START = datetime(2026, 1, 1, tzinfo=UTC)
BACKENDS: tuple[Backend | None, ...] = (None, "cpu", "cuda")


def job(
    name: str,
    *,
    priority: int = 0,
    age: int = 0,
    backend: Backend | None = None,
    run: Run | None = None,
    revision: int = 1,
    cancel: bool = False,
) -> VmafxJob:
    return VmafxJob(
        metadata=Metadata(
            name=name,
            namespace="n",
            uid=f"uid-{name}",
            resourceVersion=str(revision),
            creationTimestamp=START - timedelta(seconds=age),
        ),
        spec=VmafxJobSpec(
            reference="a",
            distorted="b",
            priority=priority,
            backend=backend,
            cancel=cancel,
        ),
        status=VmafxJobStatus(run=run or Run()),
    )


def test_priority_goes_before_age_and_age_before_the_name() -> None:
    queue = JobQueue()
    for each in (
        job("young", age=1),
        job("old", age=9),
        job("urgent", priority=5),
        job("twin", age=9),
    ):
        queue.put(each, now=0.0)
    taken = [queue.take(("cpu",), now=0.0) for _ in range(5)]
    names = [key[1] if key else None for key in taken]
    assert names == ["urgent", "old", "twin", "young", None]


def test_a_node_gets_only_what_it_can_do() -> None:
    queue = JobQueue()
    queue.put(job("gpu", backend="cuda", priority=9), now=0.0)
    queue.put(job("any"), now=0.0)
    assert queue.take(("cpu",), now=0.0) == ("n", "any")
    assert queue.take(("cpu",), now=0.0) is None
    assert queue.take((), now=0.0) is None
    assert queue.take(("cuda",), now=0.0) == ("n", "gpu")


def test_a_lost_job_waits_from_when_it_was_seen_lost() -> None:
    queue = JobQueue()
    lost = Run(attempt=2, lost=2, outcome="expired")
    assert not queue.put(job("j", run=lost), now=100.0)
    assert queue.take(("cpu",), now=109.9) is None
    assert not queue.put(job("j", run=lost, revision=2), now=109.0)
    assert queue.due(now=109.0) == 1.0
    assert queue.take(("cpu",), now=110.0) == ("n", "j")


class Queueing(RuleBasedStateMachine):
    """The queue beside a plain list that is sorted whenever somebody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = JobQueue()
        self.now = 0.0
        self.revision = 0
        self.model: dict[Key, tuple[VmafxJob, float]] = {}

    @rule(
        name=st.sampled_from("abcdef"),
        priority=st.integers(0, 2),
        age=st.integers(0, 3),
        backend=st.sampled_from(BACKENDS),
        lost=st.integers(0, 2),
        cancel=st.booleans(),
    )
    def changed(
        self,
        name: str,
        priority: int,
        age: int,
        backend: Backend | None,
        lost: int,
        cancel: bool,
    ) -> None:
        self.revision += 1
        run = Run(attempt=lost, lost=lost, outcome="expired") if lost else Run()
        seen = job(
            name,
            priority=priority,
            age=age,
            backend=backend,
            run=run,
            revision=self.revision,
            cancel=cancel,
        )
        self.queue.put(seen, now=self.now)
        known = self.model.pop(seen.key, None)
        if cancel:
            return
        due = self.now + claims.backoff(seen)
        if known is not None:
            due = min(due, known[1])
        self.model[seen.key] = (seen, due)

    @rule(name=st.sampled_from("abcdef"))
    def gone(self, name: str) -> None:
        self.queue.drop(("n", name))
        self.model.pop(("n", name), None)

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(backends=st.sampled_from([(), ("cpu",), ("cpu", "cuda")]))
    def taken(self, backends: tuple[str, ...]) -> None:
        fitting = [
            (-each.spec.priority, each.metadata.creationTimestamp, each.metadata.uid)
            for each, due in self.model.values()
            if due <= self.now
            and (each.spec.backend is None or each.spec.backend in backends)
        ]
        key = self.queue.take(backends, now=self.now)
        if not fitting:
            assert key is None
            return
        assert key is not None
        best = min(fitting)
        assert self.model.pop(key)[0].metadata.uid == best[2]

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert set(self.queue.keys()) == set(self.model)


TestQueueing = Queueing.TestCase


@given(changes=st.lists(st.integers(0, 3), min_size=200, max_size=300))
@settings(max_examples=10)
def test_what_is_kept_grows_with_the_jobs_and_not_with_their_changes(
    changes: list[int],
) -> None:
    queue = JobQueue()
    for revision, priority in enumerate(changes):
        queue.put(job("j", priority=priority, revision=revision), now=0.0)
        assert sum(map(len, queue._ready.values())) <= 70
    assert queue.take((), now=0.0) == ("n", "j")
    assert queue.take((), now=0.0) is None
    assert len(queue) == 0
