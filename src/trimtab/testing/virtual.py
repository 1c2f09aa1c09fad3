"""Virtual time for tests: an hour of waiting takes no time, and every run is the same.

The test runs on the loop of the simulation: time jumps to the next timer when nothing
can run, and a seed decides which task goes on. ``time``, ``datetime``, ``random`` and
``uuid`` are virtual as well.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import wraps
from random import Random
from typing import Any, ParamSpec, TypeVar, overload

from trimtab.sim.hosts import HOST, Host
from trimtab.sim.loop import SimLoop, simulate
from trimtab.sim.provided import clocked, provided

P = ParamSpec("P")
T = TypeVar("T")


@overload
def virtual_time(
    test: Callable[P, Coroutine[Any, Any, T]], /, *, seed: int = 0
) -> Callable[P, T]: ...


@overload
def virtual_time(
    test: None = None, /, *, seed: int = 0
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, T]]: ...


def virtual_time(test: Any = None, /, *, seed: int = 0) -> Any:
    """Run an asynchronous test in virtual time: ``@virtual_time`` above it.

    Guarantees: the same seed gives the same order of everything, in any process.

    Assumptions: it needs nothing from outside of the process (sockets, subprocesses and
    threads are refused by name), and no asynchronous fixture, which would belong to
    another loop.

    Errors: what the test raises; :class:`trimtab.sim.loop.Stuck` if it waits for
    something that can never happen.
    """
    if test is None:
        return lambda given: virtual_time(given, seed=seed)

    @wraps(test)
    def plain(*args: Any, **named: Any) -> Any:
        async def main(loop: SimLoop) -> Any:
            return await test(*args, **named)

        def run() -> Any:
            HOST.set(Host("test", random=Random(f"test {seed}")))
            return simulate(main, seed=seed, within=clocked)

        with provided():
            return copy_context().run(run)

    # Else a test runner would take it for asynchronous still.
    del plain.__wrapped__
    plain.__signature__ = _signature(test)  # type: ignore[attr-defined]
    return plain


def _signature(test: Callable[..., Any]) -> Any:
    from inspect import signature

    return signature(test)
