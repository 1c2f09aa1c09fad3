"""`eventually` passes only when something holds, and says what did not."""

import asyncio
import re

import pytest

from trimtab.testing import eventually


async def test_a_true_value_is_returned_at_once() -> None:
    assert await eventually(lambda: [1]) == [1]


async def test_it_polls_until_a_plain_check_holds() -> None:
    answers = iter([0, "", None, 7])
    assert await eventually(lambda: next(answers), every=0.001) == 7


async def test_it_polls_until_an_asynchronous_check_holds() -> None:
    answers = iter([False, False, True])

    async def check() -> bool:
        await asyncio.sleep(0)
        return next(answers)

    assert await eventually(check, every=0.001) is True


async def test_an_assertion_means_not_yet() -> None:
    seen: list[int] = []

    def check() -> bool:
        seen.append(1)
        assert len(seen) == 3
        return True

    assert await eventually(check, every=0.001)


async def test_when_the_time_is_up_the_last_failure_is_told() -> None:
    def check() -> bool:
        raise AssertionError("seven pods, not eight")

    with pytest.raises(AssertionError, match="seven pods, not eight") as caught:
        await eventually(check, within=0.01, every=0.001, describe="all pods run")
    assert str(caught.value).startswith("all pods run: not so within 0.01 s; ")
    assert isinstance(caught.value.__cause__, AssertionError)


async def test_a_check_that_returns_nothing_does_not_pass() -> None:
    def check() -> None:
        assert True

    with pytest.raises(AssertionError, match="the check returned None"):
        await eventually(check, within=0.01, every=0.001)


async def test_without_a_description_the_check_is_named() -> None:
    def the_lease_is_held() -> bool:
        return False

    expected = re.escape("the_lease_is_held: not so within 0.01 s; the check returned ")
    with pytest.raises(AssertionError, match=expected):
        await eventually(the_lease_is_held, within=0.01, every=0.001)


async def test_a_check_is_called_once_even_without_time() -> None:
    assert await eventually(lambda: True, within=0.0)


async def test_a_check_that_hangs_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def check() -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return True

    with pytest.raises(AssertionError, match="did not return in time"):
        await eventually(check, within=0.01)
    assert cancelled.is_set()


@pytest.mark.parametrize("error", [KeyError("pod"), TimeoutError("its own")])
async def test_any_other_error_is_raised_at_once(error: Exception) -> None:
    def check() -> bool:
        raise error

    with pytest.raises(type(error)) as caught:
        await eventually(check)
    assert caught.value is error
