"""What a handler may return and raise, and how a cause reads."""

from __future__ import annotations

import pytest

from trimtab.runtime import Cause, Request, Result, Retry


@pytest.mark.parametrize("after", [-1.0, float("inf"), float("nan")])
def test_a_pause_that_cannot_be_waited_for_is_refused(after: float) -> None:
    with pytest.raises(ValueError, match="cannot be waited for"):
        Result(after=after)
    with pytest.raises(ValueError, match="cannot be waited for"):
        Retry("not yet", after=after)


def test_a_retry_says_what_it_waits_for() -> None:
    retry = Retry("the volume is not bound yet", after=5)
    assert (str(retry), retry.after) == ("the volume is not bound yet", 5)


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            Cause("change", "Website shop/web", ("spec.image",)),
            "change of Website shop/web (spec.image)",
        ),
        (Cause("owned", "Pod shop/web-1"), "owned change of Pod shop/web-1"),
        (Cause("initial", "Website shop/web"), "first list of Website shop/web"),
        (Cause("timer"), "timer"),
    ],
)
def test_a_cause_reads_as_a_reason(cause: Cause, text: str) -> None:
    assert str(cause) == text


def test_equal_causes_are_one() -> None:
    assert len({Cause("timer"), Cause("timer"), Cause("retry")}) == 2


def test_a_request_reads_as_kubectl_names_objects() -> None:
    assert str(Request(("shop", "web"))) == "shop/web"
    assert str(Request(("", "node-1"))) == "node-1"
    assert Request(("shop", "web")).namespace == "shop"
    assert Request(("shop", "web")).name == "web"
