"""Laws that hold for every call, whatever the server does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from tests.client.faults import TOKEN

# Far more than a busy machine needs, far less than a deadline that is not minded.
MARGIN = 6.0


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    """What happens inside ends by its deadline, give or take a busy machine."""
    clock = asyncio.get_running_loop().time
    started = clock()
    yield
    elapsed = clock() - started
    assert elapsed < seconds + MARGIN, f"{elapsed:.2f} s where {seconds:.2f} were given"


def tells_well(error: BaseException) -> None:
    """An error is one line that names the request, and keeps the token to itself."""
    text = str(error)
    assert text.partition(" ")[0] in ("GET", "POST", "PUT", "PATCH", "DELETE"), text
    assert "\n" not in text
    cause: BaseException | None = error
    while cause is not None:
        assert TOKEN not in str(cause) + repr(cause)
        cause = cause.__cause__ or cause.__context__
