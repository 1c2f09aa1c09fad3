"""Laws of the fence: what is sent behind it ends before another can lead."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client.errors import TrimtabError
from trimtab.runtime.fence import ALWAYS, Fence, NotLeader

SECONDS = st.floats(min_value=0, max_value=1e6)


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@given(now=SECONDS, seconds=SECONDS, deadline=SECONDS)
def test_a_call_is_made_only_if_it_ends_before_the_deadline(
    now: float, seconds: float, deadline: float
) -> None:
    fence = Fence(Clock(now), deadline=deadline)
    assert fence.valid == (now < deadline)
    if seconds < deadline - now:
        fence.check(seconds)
    else:
        with pytest.raises(NotLeader):
            fence.check(seconds)


def test_a_refusal_is_one_of_our_errors_and_says_how_long_is_left() -> None:
    fence = Fence(Clock(7.5), deadline=10.0)
    with pytest.raises(TrimtabError, match=r"runs out in 2\.5 s .* may take 30 s"):
        fence.check(30.0)


def test_a_renewal_opens_a_fence_and_never_shortens_it() -> None:
    clock = Clock(11.0)
    fence = Fence(clock, deadline=10.0)
    fence.extend(20.0)
    fence.check(1.0)
    fence.extend(5.0)
    fence.check(1.0)


def test_a_revoked_fence_stays_closed_whatever_comes() -> None:
    fence = Fence(Clock(), deadline=10.0)
    fence.revoke("another leads")
    fence.revoke("something else")
    fence.extend(math.inf)
    assert not fence.valid
    with pytest.raises(NotLeader, match=r"\(another leads\)"):
        fence.check(0.0)


def test_work_without_an_election_is_never_refused() -> None:
    ALWAYS.check(1e9)
    assert ALWAYS.valid
    with pytest.raises(AssertionError):
        ALWAYS.revoke("no")
    assert ALWAYS.valid
