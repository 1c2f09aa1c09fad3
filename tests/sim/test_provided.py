"""Laws of hosts: unchanged code gets its time and its chance from the world."""

from __future__ import annotations

import datetime as module
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import copy_context
from datetime import UTC, datetime
from random import Random
from time import monotonic as imported_by_name
from typing import Any, TypeVar

import pytest

from trimtab.sim.hosts import BOOTED, HOST, Host
from trimtab.sim.loop import Refused, SimLoop, simulate
from trimtab.sim.provided import clocked, provided

T = TypeVar("T")


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    with provided():
        yield


def on(host: Host, call: Callable[[], T]) -> T:
    """What unchanged code gets on a host, 10 s after its world began."""

    async def main(loop: SimLoop) -> T:
        loop.pass_time(10)
        context = copy_context()
        context.run(HOST.set, host)
        return context.run(call)

    return simulate(main, seed=1, within=clocked)


def host(**more: Any) -> Host:
    return Host("machine-1", random=Random(7), **more)


def test_the_wall_clock_is_the_worlds_with_the_skew_of_the_host() -> None:
    expected = pytest.approx(BOOTED + 10 + 5, abs=0.01)
    assert on(host(skew=5.0), time.time) == expected
    assert on(host(skew=5.0), lambda: datetime.now(UTC).timestamp()) == expected
    assert on(host(skew=5.0), lambda: module.datetime.now(UTC).timestamp()) == expected
    assert on(host(skew=5.0), lambda: time.time_ns() / 1e9) == expected


def test_there_is_a_time_also_for_what_happens_as_a_world_ends() -> None:
    found: list[float] = []
    problems: list[object] = []

    async def main(loop: SimLoop) -> None:
        loop.set_exception_handler(lambda loop, problem: problems.append(problem))
        context = copy_context()
        context.run(HOST.set, host())
        # It is done when this has ended, and before the loop has.
        loop.call_soon(lambda: found.append(time.time()), context=context)

    simulate(main, seed=1, within=clocked)
    assert (len(found), problems) == (1, [])


def test_the_monotonic_clock_is_the_hosts_own_also_if_it_was_imported_by_name() -> None:
    assert on(host(uptime=100.0), imported_by_name) == pytest.approx(110, abs=0.01)
    assert on(host(uptime=100.0), time.perf_counter) == pytest.approx(110, abs=0.01)


def test_a_time_that_the_world_gave_is_a_plain_one() -> None:
    found = on(host(), lambda: datetime.now(UTC))
    assert type(found) is type(module.datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(found, module.datetime)


def test_sleeping_in_a_plain_function_passes_virtual_time() -> None:
    def sleep() -> float:
        before = time.monotonic()
        time.sleep(60)
        return time.monotonic() - before

    began = time.monotonic()
    assert on(host(), sleep) == pytest.approx(60, abs=0.01)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.random(),
        lambda: random.choice(range(1000)),
        lambda: Random().random(),
        lambda: random.SystemRandom().random(),
        lambda: secrets.token_hex(8),
        lambda: os.urandom(8),
        lambda: uuid.uuid4(),
        lambda: uuid.uuid1(),
    ],
)
def test_chance_is_the_hosts_own(call: Callable[[], object]) -> None:
    assert on(host(), call) == on(host(), call)
    other = Host("machine-2", random=Random(8))
    assert on(host(), call) != on(other, call)


def test_the_name_of_the_machine_is_the_hosts() -> None:
    assert on(host(), socket.gethostname) == "machine-1"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: socket.socket(), "socket.socket"),
        (lambda: subprocess.run(["true"]), "subprocess.Popen"),
        (lambda: os.system("true"), "os.system"),
        (lambda: threading.Thread(target=print).start(), "threading.Thread"),
    ],
)
def test_what_no_simulation_has_is_refused_by_name(
    call: Callable[[], object], name: str
) -> None:
    asked = host()
    with pytest.raises(Refused, match=name):
        on(asked, call)
    assert asked.refused == [name]


def test_outside_of_any_host_everything_is_real() -> None:
    assert abs(time.time() - module.datetime.now(UTC).timestamp()) < 5
    assert secrets.token_hex(8) != secrets.token_hex(8)
    assert socket.gethostname() != "machine-1"
    with socket.socket():
        pass
