"""Laws of the elector: never two holders, soon one again, and client-go's records."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.api.resource import Metadata
from trimtab.api.times import MicroTime
from trimtab.kinds import Lease, LeaseSpec
from trimtab.runtime.lease import NEVER, Elector, LeaseOptions, Proposal, identity

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DURATION, RETRY = 15.0, 2.0


def options(who: str = "a", **more: Any) -> LeaseOptions:
    return LeaseOptions(name="lock", namespace="here", identity=who, **more)


class Server:
    """The Lease as an API server keeps it: one at most, and compare-and-swap."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self._numbers = count(1)

    def write(self, proposal: Proposal) -> Lease | None:
        """The new Lease; None for a refusal."""
        number = str(next(self._numbers))
        found = self.lease.metadata if self.lease else Metadata()
        if (found.resourceVersion, found.uid) != (
            proposal.resource_version,
            proposal.uid,
        ):
            return None
        metadata = Metadata(uid=found.uid or f"uid-{number}", resourceVersion=number)
        self.lease = Lease(metadata=metadata, spec=proposal.spec)
        return self.lease

    def touch(self) -> None:
        """Somebody labels it."""
        if self.lease is not None:
            number = str(next(self._numbers))
            metadata = msgspec.structs.replace(
                self.lease.metadata, resourceVersion=number
            )
            self.lease = msgspec.structs.replace(self.lease, metadata=metadata)

    def put(self, spec: LeaseSpec) -> Lease:
        """Somebody else writes it."""
        number = str(next(self._numbers))
        metadata = Metadata(uid="foreign", resourceVersion=number)
        self.lease = Lease(metadata=metadata, spec=spec)
        return self.lease


def foreign(who: str = "other", **more: Any) -> LeaseSpec:
    """As client-go writes it."""
    time = MicroTime.of(EPOCH)
    given = {"leaseDurationSeconds": 15, "leaseTransitions": 4, **more}
    return LeaseSpec(holderIdentity=who, acquireTime=time, renewTime=time, **given)


def take(elector: Elector, server: Server, now: float) -> bool:
    """One quick look, and a write if there is something to write."""
    elector.saw(server.lease, now=now)
    proposal = elector.propose(now=now, wall=EPOCH + timedelta(seconds=now))
    if proposal is not None and (answer := server.write(proposal)):
        elector.saw(answer, now=now)
    return elector.holds(now)


# Whatever happens


class Replica:
    """An elector whose clock began at any time, and the messages under way."""

    def __init__(self, who: str, server: Server, ahead: float) -> None:
        self.server = server
        self.ahead = ahead
        self.who = who
        self.travelling: list[Proposal] = []
        """Sent and not arrived; neither giving up nor dying takes them back."""
        self.start()

    def start(self) -> None:
        """Forget all, as a new process of the same name."""
        self.elector = Elector(options(self.who))
        self.answer: Callable[[float], None] | None = None

    def holds(self, now: float) -> bool:
        return self.elector.holds(now + self.ahead)

    def step(self, what: str, now: float) -> None:
        own, elector = now + self.ahead, self.elector
        if what == "read":
            seen = self.server.lease
            self.answer = lambda then: elector.saw(seen, now=then)
        elif what == "propose":
            proposal = elector.propose(now=own, wall=EPOCH + timedelta(seconds=now))
            self.travelling += [proposal] if proposal else []
        elif what == "arrive" and self.travelling:
            if written := self.server.write(self.travelling.pop(0)):
                self.answer = lambda then: elector.saw(written, now=then)
        elif what == "answer" and self.answer is not None:
            answer, self.answer = self.answer, None
            answer(own)
        elif what == "look":
            for each in ("read", "answer", "propose", "arrive", "answer"):
                self.step(each, now)
        elif what == "touch":
            self.server.touch()
        elif what == "die":
            self.start()
        elif what == "release" and (proposal := elector.release(wall=EPOCH)):
            self.travelling.append(proposal)
            self.start()


STEPS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["look"] * 8 + ["read", "propose", "arrive", "answer"])
    | st.sampled_from(["look"] * 8 + ["touch", "die", "release"]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 7.0, 13.0, 14.5, 15.0, 40.0]),
)


@settings(max_examples=400)
@given(steps=st.lists(STEPS, max_size=40))
def test_never_do_two_replicas_hold_the_lease(
    steps: list[tuple[int, str, float]],
) -> None:
    server = Server()
    # Exactly representable, so that no rounding stands between the clocks.
    replicas = [Replica(str(n), server, n * 1024.0) for n in range(3)]
    now = 0.0
    for number, what, passes in steps:
        replicas[number].step(what, now)
        assert sum(each.holds(now) for each in replicas) <= 1
        now += passes


@given(seed=st.integers(0, 10_000), replicas=st.integers(2, 5))
def test_after_a_death_another_leads_within_the_duration_and_a_retry(
    seed: int, replicas: int
) -> None:
    random, server = Random(seed), Server()
    electors = [Elector(options(str(n))) for n in range(replicas)]
    turns = [(random.uniform(0, RETRY), n) for n in range(replicas)]
    heapq.heapify(turns)
    died, dead, now = None, -1, 0.0
    while now < 100:
        now, number = heapq.heappop(turns)
        if number == dead:
            continue
        holds = take(electors[number], server, now)
        if holds and died is not None:
            assert now - died <= DURATION + RETRY
            assert electors[number].transitions == 1
            return
        if holds and now > 20:
            dead, died = number, now
            continue
        wait = electors[number].expires() - now
        pause = RETRY if holds else random.uniform(0.8, 1.0) * RETRY
        then = min(pause, wait) if wait > 0 else pause
        heapq.heappush(turns, (now + then, number))
    raise AssertionError("nobody led again")


# One by one


def test_nothing_is_written_before_the_first_look() -> None:
    assert Elector(options()).propose(now=1e9, wall=EPOCH) is None


def test_a_lease_that_was_never_there_is_made_at_once() -> None:
    server, elector = Server(), Elector(options())
    assert take(elector, server, 100.0)
    assert server.lease is not None
    assert server.lease.spec == LeaseSpec(
        holderIdentity="a",
        leaseDurationSeconds=15,
        acquireTime=MicroTime.of(EPOCH + timedelta(seconds=100)),
        renewTime=MicroTime.of(EPOCH + timedelta(seconds=100)),
        leaseTransitions=0,
    )


def test_a_fresh_observer_waits_a_full_duration_whatever_renew_time_says() -> None:
    server, elector = Server(), Elector(options())
    server.put(foreign())  # its renewTime is long past by the wall clock
    assert not take(elector, server, 1000.0)
    assert not take(elector, server, 1014.9)
    assert elector.expires() == 1015.0
    assert take(elector, server, 1015.0)
    assert elector.transitions == 5


@pytest.mark.parametrize("change", ["renewal", "label"])
def test_any_change_of_the_lease_starts_the_wait_anew(change: str) -> None:
    server, elector = Server(), Elector(options())
    server.put(foreign())
    take(elector, server, 0.0)
    if change == "renewal":
        server.put(foreign())
    else:
        server.touch()
    assert not take(elector, server, 14.0)
    assert not take(elector, server, 15.0)
    assert take(elector, server, 29.0)


def test_the_holder_says_how_long_it_holds() -> None:
    server, elector = Server(), Elector(options())
    server.put(foreign(leaseDurationSeconds=60))
    take(elector, server, 0.0)
    assert not take(elector, server, 59.0)
    assert take(elector, server, 60.0)


@pytest.mark.parametrize("seconds", [None, 0, -3])
def test_a_holder_that_does_not_say_so_is_given_our_own_duration(
    seconds: int | None,
) -> None:
    server, elector = Server(), Elector(options())
    server.put(foreign(leaseDurationSeconds=seconds))
    take(elector, server, 0.0)
    assert elector.expires() == 15.0


@pytest.mark.parametrize("nobody", ["", None])
def test_a_lease_without_a_holder_is_taken_at_once(nobody: str | None) -> None:
    server, elector = Server(), Elector(options())
    server.put(msgspec.structs.replace(foreign(), holderIdentity=nobody))
    assert take(elector, server, 0.0)


def test_a_renewal_keeps_the_time_of_acquiring_and_the_transitions() -> None:
    server, elector = Server(), Elector(options())
    take(elector, server, 0.0)
    first = server.lease
    assert take(elector, server, 2.0)
    assert first
    assert server.lease
    assert server.lease.spec == msgspec.structs.replace(
        first.spec, renewTime=MicroTime.of(EPOCH + timedelta(seconds=2))
    )
    assert elector.deadline == 2.0 + DURATION


def test_the_time_counts_from_before_the_sending() -> None:
    server, elector = Server(), Elector(options())
    elector.saw(None, now=0.0)
    proposal = elector.propose(now=0.0, wall=EPOCH)
    assert proposal
    elector.saw(server.write(proposal), now=9.0)
    assert elector.deadline == DURATION


def test_a_write_whose_answer_was_lost_is_recognised() -> None:
    server, elector = Server(), Elector(options())
    elector.saw(None, now=0.0)
    lost = elector.propose(now=0.0, wall=EPOCH)
    later = elector.propose(now=3.0, wall=EPOCH)
    assert lost
    assert later
    server.write(lost)
    assert server.write(later) is None
    elector.saw(server.lease, now=4.0)
    assert elector.ours
    assert elector.deadline == DURATION


def test_another_process_of_the_same_name_is_somebody_else() -> None:
    server, first, second = Server(), Elector(options()), Elector(options())
    assert take(first, server, 0.0)
    assert not take(second, server, 1.0)
    assert take(first, server, 2.0)
    assert not take(second, server, 15.5)


def test_another_holder_whose_clock_shows_the_same_is_somebody_else() -> None:
    server, first, second = Server(), Elector(options("a")), Elector(options("b"))
    for elector in (first, second):
        elector.saw(None, now=0.0)
    wishes = [each.propose(now=0.0, wall=EPOCH) for each in (first, second)]
    assert wishes[0]
    server.write(wishes[0])
    for elector in (first, second):
        elector.saw(server.lease, now=1.0)
    assert first.holds(1.0)
    assert not second.holds(1.0)


def test_a_holder_that_slept_takes_its_lease_again_if_nobody_else_did() -> None:
    server, elector = Server(), Elector(options())
    take(elector, server, 0.0)
    assert not elector.holds(100.0)
    assert take(elector, server, 100.0)
    assert elector.transitions == 0


def test_a_deleted_lease_is_made_again_by_its_holder_and_waited_for_by_others() -> None:
    server, holder, other = Server(), Elector(options("a")), Elector(options("b"))
    take(holder, server, 0.0)
    take(other, server, 1.0)
    server.lease = None
    assert not take(other, server, 14.0)
    assert take(holder, server, 14.5)
    assert not take(other, server, 16.0)
    server.lease = None
    assert not take(other, server, 20.0)
    assert not take(holder, server, 50.0), "others may have had it meanwhile"
    assert take(other, server, 50.0)
    assert other.transitions == 1


def test_a_release_is_what_client_go_writes_and_frees_the_lease() -> None:
    server, elector, other = Server(), Elector(options("a")), Elector(options("b"))
    server.put(foreign())
    take(elector, server, 0.0)
    assert elector.release(wall=EPOCH) is None
    take(elector, server, 20.0)
    proposal = elector.release(wall=EPOCH + timedelta(seconds=21))
    assert proposal
    assert proposal.patch()["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-01-01T00:00:21.000000Z",
        "renewTime": "2026-01-01T00:00:21.000000Z",
        "leaseTransitions": 5,
    }
    elector.saw(server.write(proposal), now=21.0)
    assert not elector.ours
    assert elector.renewed == NEVER
    assert take(other, server, 21.0)
    assert other.transitions == 6


def test_every_write_names_what_it_was_decided_on() -> None:
    elector = Elector(options())
    lease = Server().put(foreign(who=""))
    elector.saw(lease, now=0.0)
    proposal = elector.propose(now=0.0, wall=EPOCH)
    assert proposal
    assert proposal.patch()["metadata"] == {"resourceVersion": "1", "uid": "foreign"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"duration": 2.5}, "whole seconds"),
        ({"duration": 0.0}, "at least one"),
        ({"renew_deadline": 15.0}, "renew_deadline < duration"),
        ({"retry": 10.0}, "retry < renew_deadline"),
        ({"retry": 0.0}, "0 < retry"),
        ({"stuck": 2.0}, "more than a retry"),
        ({"who": ""}, "identity"),
    ],
)
def test_options_that_cannot_work_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        options(**more)


def test_identities_are_different() -> None:
    random = Random(1)
    assert len({identity(random) for _ in range(100)}) == 100
