"""Which failures are worth another try, and how long the pauses are."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client import RetryPolicy, errors
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    CertificateInvalid,
    Closed,
    ConfigError,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ServerError,
    ServerTimeout,
    Stalled,
    TooManyRequests,
    TransportError,
    TrimtabError,
    Unavailable,
    Unreachable,
)
from trimtab.client.retry import told_to_wait

policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 10**6),
    told=st.integers(1, 10**6),
    base=st.floats(0, 10),
    cap=st.floats(0, 100),
)
numbers = st.integers(1, 10**7)
randoms = st.integers(0, 2**32).map(Random)

PASSING = [
    Unreachable("no"),
    Disconnected("no"),
    ServerError("no", status=500),
    ServerTimeout("no", status=504),
    Unavailable("no", status=503),
    TooManyRequests("no", status=429),
]
LASTING: list[TrimtabError] = [
    CertificateInvalid("no"),
    Closed("no"),
    DeadlineExceeded("no"),
    Malformed("no"),
    Stalled("no"),
    Ambiguous("no"),
    ConfigError("no"),
    errors.BodyTooLarge("no", seen=2, limit=1),
    *(kind("no", status=400) for kind in (errors.BadRequest, errors.Conflict)),
    *(kind("no", status=410) for kind in (errors.Gone, errors.NotFound, ApiError)),
]


@given(policies, st.sampled_from(PASSING), numbers, randoms)
def test_a_pause_lies_within_its_bounds(
    policy: RetryPolicy, error: TrimtabError, number: int, random: Random
) -> None:
    pause = policy.pause(error, attempt=number, safe=True, random=random)
    if number >= policy.attempts:
        assert pause is None
    else:
        assert pause is not None
        assert 0 <= pause <= policy.cap
        doubled = policy.base * 2.0 ** min(number - 1, 64)
        assert pause <= doubled


@given(policies, st.sampled_from(PASSING), numbers, randoms)
def test_what_is_not_safe_is_not_tried_again_unasked(
    policy: RetryPolicy, error: TrimtabError, number: int, random: Random
) -> None:
    assert policy.pause(error, attempt=number, safe=False, random=random) is None


@given(policies, st.sampled_from(LASTING), numbers, st.booleans(), randoms)
def test_what_will_not_pass_is_not_tried_again(
    policy: RetryPolicy, error: TrimtabError, number: int, safe: bool, random: Random
) -> None:
    assert policy.pause(error, attempt=number, safe=safe, random=random) is None


@given(
    policies,
    st.sampled_from([(TooManyRequests, 429), (Unavailable, 503)]),
    st.floats(0, 10**9),
    numbers,
    st.booleans(),
    randoms,
)
def test_a_pause_that_the_server_names_is_never_cut_short(
    policy: RetryPolicy,
    kind: tuple[type[ApiError], int],
    named: float,
    number: int,
    safe: bool,
    random: Random,
) -> None:
    error = kind[0]("wait", status=kind[1], retry_after=named)
    pause = policy.pause(error, attempt=number, safe=safe, random=random)
    if number >= policy.told:
        assert pause is None
    else:
        assert pause is not None
        assert named <= pause <= math.nextafter(named + policy.base, math.inf)


@pytest.mark.parametrize("kind", [ServerTimeout, ServerError, errors.Conflict])
def test_only_who_did_nothing_may_name_a_pause(kind: type[ApiError]) -> None:
    assert told_to_wait(kind("wait", status=500, retry_after=1.0)) is None


def test_pauses_are_spread_out() -> None:
    policy, random = RetryPolicy(base=1.0, cap=100.0), Random(3)
    error = Unreachable("no")
    pauses = {
        policy.pause(error, attempt=3, safe=True, random=random) for _ in range(100)
    }
    assert len(pauses) == 100
    assert all(pause is not None for pause in pauses)


def test_every_transport_error_has_been_thought_of() -> None:
    sorted_out = {type(each) for each in [*PASSING, *LASTING]}
    known = set(TransportError.__subclasses__()) | set(Unreachable.__subclasses__())
    assert known <= sorted_out
