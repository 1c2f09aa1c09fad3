"""Waiting in a test until something holds, without sleeping for longer than needed."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    check: Callable[[], Awaitable[T]],
    *,
    within: float = ...,
    every: float = ...,
    describe: str = ...,
) -> T: ...


@overload
async def eventually(
    check: Callable[[], T],
    *,
    within: float = ...,
    every: float = ...,
    describe: str = ...,
) -> T: ...


async def eventually(
    check: Callable[[], T | Awaitable[T]],
    *,
    within: float = 10.0,
    every: float = 0.02,
    describe: str = "",
) -> T:
    """Call `check` until it returns something true, and return that.

    Flow: `check` may be a function or a coroutine function. A false value, or an
    `AssertionError`, means *not yet*; any other exception is raised at once. It is
    called at least once, and at most once more after the time is up.

    Guarantees: returns or raises soon after `within` seconds of the loop's clock,
    also when an asynchronous check hangs: it is cancelled then.

    Errors: `AssertionError` that says what `describe` says, how long that was waited
    for, and the last failure. A check that only asserts returns None, which is false:
    let it return True, so that a look-up that found nothing never passes for one.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + within
    failure: AssertionError | None = None
    last = "the check did not return in time"
    while True:
        over = clock() >= deadline
        try:
            # The last call gets the length of one pause rather than no time at all.
            async with asyncio.timeout_at(deadline + every) as limit:
                value = await _value(check)
            if value:
                return value
            failure, last = None, f"the check returned {value!r}"
        except AssertionError as error:
            failure, last = error, str(error) or "the check raised AssertionError"
        except TimeoutError:
            if not limit.expired():
                raise
            over = True
        if over:
            name = describe or getattr(check, "__qualname__", repr(check))
            message = f"{name}: not so within {within:g} s; {last}"
            raise AssertionError(message) from failure
        await asyncio.sleep(min(every, max(deadline - clock(), 0.0)))


async def _value(check: Callable[[], T | Awaitable[T]]) -> T:
    result = check()
    if inspect.isawaitable(result):
        awaited: T = await result
        return awaited
    return result
