"""Laws of rotation: whatever replicas do when, what they serve is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from trimtab.api.kinds.core import Secret
from trimtab.runtime.webhooks import rotation
from trimtab.runtime.webhooks.certificates import (
    Issued,
    expiry,
    issue,
    joined,
    lasting,
    split,
)
from trimtab.runtime.webhooks.rotation import Kept, Wish, wish
from trimtab.runtime.webhooks.secret import data_of, read

START = datetime(2030, 1, 1, tzinfo=UTC)
LIFE = timedelta(hours=24)
NAMES = ("a.example.com", "127.0.0.1")


@lru_cache(maxsize=256)
def issued(now: datetime) -> Issued:
    return issue(NAMES, lifetime=LIFE, now=now)


class Replica:
    """What one replica has seen, which may be long ago."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.revision = 0
        self.trusted: tuple[bytes, ...] = ()
        """What it has seen to be trusted."""


class Replicas(RuleBasedStateMachine):
    """Replicas that share a Secret and a configuration, and each is late at times.

    None is later than most of a third of a lifetime: what it serves would expire.
    """

    @initialize()
    def begin(self) -> None:
        self.now = START
        self.kept = rotation.begun(issued(START))
        self.revision = 0
        self.configured: tuple[bytes, ...] = self.kept.authorities
        self.replicas = [Replica(self.kept) for _ in range(3)]

    @rule(hours=st.integers(1, 4))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)
        # So many hours are more than anybody sleeps through.
        for replica in self.replicas:
            if replica.kept.current.expires <= self.now + timedelta(hours=4):
                self._does(replica, ("see", "inject", "work", "inject", "work"))

    @rule(
        number=st.integers(0, 2),
        deeds=st.lists(st.sampled_from(["see", "inject", "work"]), max_size=4),
    )
    def one_does_something(self, number: int, deeds: list[str]) -> None:
        self._does(self.replicas[number], deeds)

    @invariant()
    def all_serve_what_is_trusted(self) -> None:
        for replica in getattr(self, "replicas", ()):
            current = replica.kept.current
            assert current.expires > self.now
            assert current.authority in self.configured

    @invariant()
    def nobody_is_trusted_for_ever(self) -> None:
        if hasattr(self, "kept"):
            assert len(self.kept.authorities) <= 4

    def _does(self, replica: Replica, deeds: Sequence[str]) -> None:
        does = {"see": self._sync, "inject": self._inject, "work": self._work}
        for deed in deeds:
            does[deed](replica)
            self.all_serve_what_is_trusted()

    def _sync(self, replica: Replica) -> None:
        replica.kept, replica.revision = self.kept, self.revision

    def _inject(self, replica: Replica) -> None:
        wanted = dict.fromkeys((*self.configured, *replica.kept.authorities))
        good = lasting(wanted, now=self.now)
        self.configured = good
        replica.trusted = good

    def _work(self, replica: Replica) -> None:
        chosen = wish(replica.kept, names=NAMES, now=self.now, trusted=replica.trusted)
        if chosen is Wish.NOTHING or replica.revision != self.revision:
            return  # the swap fails: somebody was faster
        kept = replica.kept
        if chosen is Wish.MAKE:
            kept = rotation.begun(issued(self.now))
        elif chosen is Wish.ANNOUNCE:
            kept = rotation.announced(kept, issued(self.now), now=self.now)
        elif chosen is Wish.PROMOTE:
            kept = rotation.promoted(kept, now=self.now)
        else:
            kept = rotation.tidied(kept, now=self.now)
        self.kept, self.revision = kept, self.revision + 1
        self._sync(replica)


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=10, stateful_step_count=25)


def test_a_certificate_goes_through_its_states_in_order() -> None:
    first = rotation.begun(issued(START))
    late = START + LIFE * 0.7
    assert wish(None, names=NAMES, now=START, trusted=()) is Wish.MAKE
    assert wish(first, names=NAMES, now=START, trusted=()) is Wish.NOTHING
    assert rotation.due(first, now=START) <= LIFE * 0.7
    assert wish(first, names=NAMES, now=late, trusted=()) is Wish.ANNOUNCE
    second = rotation.announced(first, issued(late), now=late)
    assert second.current == first.current
    assert wish(second, names=NAMES, now=late, trusted=()) is Wish.NOTHING
    only_old = first.authorities
    assert wish(second, names=NAMES, now=late, trusted=only_old) is Wish.NOTHING
    both = second.authorities
    assert wish(second, names=NAMES, now=late, trusted=both) is Wish.PROMOTE
    third = rotation.promoted(second, now=late)
    assert (third.current, third.next) == (issued(late), None)
    assert third.authorities == both
    over = START + LIFE + timedelta(seconds=2)
    assert wish(third, names=NAMES, now=over, trusted=()) is Wish.TIDY
    assert rotation.tidied(third, now=over).authorities == (issued(late).authority,)
    expired = over + LIFE
    assert wish(third, names=NAMES, now=expired, trusted=()) is Wish.MAKE


def test_when_a_certificate_expires_the_one_that_was_announced_is_served() -> None:
    """Nobody could be told for long enough; some have heard of it all the same."""
    first = rotation.begun(issued(START))
    late = START + LIFE * 0.7
    both = rotation.announced(first, issued(late), now=late)
    over = START + LIFE + timedelta(seconds=2)
    assert wish(both, names=NAMES, now=over, trusted=()) is Wish.PROMOTE
    after = rotation.promoted(both, now=over)
    assert after.authorities == (issued(late).authority,)
    gone = late + LIFE + timedelta(seconds=2)
    assert wish(both, names=NAMES, now=gone, trusted=()) is Wish.MAKE


def test_a_certificate_for_other_names_is_replaced() -> None:
    first = rotation.begun(issued(START))
    more = (*NAMES, "b.example.com")
    assert wish(first, names=more, now=START, trusted=()) is Wish.ANNOUNCE
    assert wish(first, names=NAMES[:1], now=START, trusted=()) is Wish.NOTHING


def test_a_secret_keeps_all_of_it() -> None:
    first = rotation.begun(issued(START))
    late = START + LIFE * 0.7
    both = rotation.announced(first, issued(late), now=late)
    for kept in (first, both, rotation.promoted(both, now=late)):
        assert read(Secret(data=data_of(kept))) == kept
    data = data_of(both)
    assert {"tls.crt", "tls.key", "ca.crt", "next.crt", "next.key"} <= set(data)
    for missing in data:
        left = {key: value for key, value in data.items() if key != missing}
        assert read(Secret(data=left)) is None
    assert read(Secret(data={**data, "ca.crt": b"nonsense"})) is None


def test_nothing_that_is_kept_shows_a_key() -> None:
    kept = rotation.begun(issued(START))
    assert b"PRIVATE KEY" in kept.current.pem
    assert "PRIVATE KEY" not in f"{kept!r}{kept.current!r}"


def test_an_authority_says_when_it_ends_and_a_bundle_what_is_in_it() -> None:
    one, two = issued(START), issued(START + LIFE)
    assert expiry(one.authority) == one.expires
    assert one.expires >= START + LIFE
    assert expiry(b"nonsense") is None
    assert split(joined([one.authority, two.authority, one.authority])) == (
        one.authority,
        two.authority,
    )
    now = START + LIFE + timedelta(minutes=1)
    assert lasting([one.authority, b"x", two.authority], now=now) == (two.authority,)


def test_what_is_served_is_always_among_what_is_to_be_trusted() -> None:
    one, two = issued(START), issued(START + LIFE)
    with pytest.raises(AssertionError, match="always trusted"):
        Kept(current=one, authorities=(two.authority,))
