"""What a host provides in place of the real machine: clocks, chance, its name.

Unchanged code calls ``time.time()``, ``datetime.now()``, ``uuid4()`` or ``random()``;
on a host of a simulation it is answered by the world. The functions are exchanged in
their own modules and wherever they were imported by name. Outside of any host they are
the real ones: a progress bar beside the simulation shows real seconds.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date as RealDate
from datetime import datetime as RealDatetime
from random import Random as RealRandom
from types import ModuleType
from typing import Any, Final

from trimtab.sim.hosts import HOST, Host
from trimtab.sim.loop import SimLoop
from trimtab.sim.refusals import refused

real_start: Final = threading.Thread.start
"""The world's own threads start by it."""
CHANCES: Final = (
    "betavariate choice choices expovariate gammavariate gauss getrandbits"
    " lognormvariate normalvariate paretovariate randbytes randint random randrange"
    " sample seed shuffle triangular uniform vonmisesvariate weibullvariate"
).split()
# Whose module names stay as they are: the standard library's, and ours, which is
# handed its clocks and chance.
OURS: Final = ("trimtab.", "msgspec", "hypothesis", "pytest", "_pytest")


def now() -> float:
    """The loop's clock, also in a thread of a simulation."""
    return _clock[0].time()


_clock: list[SimLoop] = []


def _wall(host: Host) -> float:
    return host.wall(now())


def _uptime(host: Host) -> float:
    return host.uptime + now()


def _given(real: Callable[..., Any], provide: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks the host, if there is one."""

    def provided(*args: Any, **more: Any) -> Any:
        host = HOST.get()
        return real(*args, **more) if host is None else provide(host, *args, **more)

    provided.__name__ = provided.__qualname__ = getattr(real, "__name__", "provided")
    provided.__doc__ = real.__doc__
    return provided


class _DateMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        real: type = cls.__mro__[1]
        return isinstance(instance, real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real: type = cls.__mro__[1]
        return issubclass(subclass, real)


class SimDatetime(RealDatetime, metaclass=_DateMeta):
    """``datetime`` by the clock of the host; what it makes are plain datetimes."""

    def __new__(cls, *args: Any, **more: Any) -> Any:
        return RealDatetime(*args, **more)  # noqa: DTZ001

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        host = HOST.get()
        if host is None:
            return RealDatetime.now(tz)
        return RealDatetime.fromtimestamp(_wall(host), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


class SimDate(RealDate, metaclass=_DateMeta):
    """``date`` by the clock of the host."""

    def __new__(cls, *args: Any, **more: Any) -> Any:
        return RealDate(*args, **more)

    @classmethod
    def today(cls) -> Any:
        return SimDatetime.now().date()


class SimRandom(RealRandom):
    """``Random`` that takes a seed of the host's chance if it is given none."""

    def seed(self, a: Any = None, version: int = 2) -> None:
        host = HOST.get()
        if a is None and host is not None:
            a = host.random.getrandbits(64)
        super().seed(a, version)


def _uuid1(host: Host, node: int | None = None, clock_seq: int | None = None) -> Any:
    return uuid.UUID(int=host.random.getrandbits(128), version=1)


def _sleep(host: Host, seconds: float) -> None:
    _clock[0].pass_time(seconds)


def _chance(name: str) -> Callable[..., Any]:
    return lambda host, *args, **more: getattr(host.random, name)(*args, **more)


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(host: Host, *args: Any, **more: Any) -> Any:
        raise refused(name)

    return refuse


def _replacements() -> list[tuple[Any, str, Any]]:
    """What is exchanged: where, under which name, by what."""
    clocks: dict[str, Callable[..., Any]] = {
        "time": _wall,
        "time_ns": lambda host: int(_wall(host) * 1e9),
        "monotonic": _uptime,
        "monotonic_ns": lambda host: int(_uptime(host) * 1e9),
        "perf_counter": _uptime,
        "perf_counter_ns": lambda host: int(_uptime(host) * 1e9),
        "sleep": _sleep,
    }
    given: list[tuple[Any, str, Callable[..., Any]]] = [
        *((time, name, provide) for name, provide in clocks.items()),
        *((random, name, _chance(name)) for name in CHANCES),
        (os, "urandom", lambda host, size: host.random.randbytes(size)),
        (random, "_urandom", lambda host, size: host.random.randbytes(size)),
        (uuid, "uuid1", _uuid1),
        (socket, "gethostname", lambda host: host.name),
        (socket.socket, "__init__", _refuse("socket.socket")),
        (socket, "getaddrinfo", _refuse("socket.getaddrinfo")),
        (subprocess.Popen, "__init__", _refuse("subprocess.Popen")),
        (threading.Thread, "start", _refuse("threading.Thread")),
        *(
            (os, name, _refuse(f"os.{name}"))
            for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")
        ),
    ]
    made = [
        (place, name, _given(getattr(place, name), provide))
        for place, name, provide in given
    ]
    return [
        *made,
        (datetime, "datetime", SimDatetime),
        (datetime, "date", SimDate),
        (random, "Random", SimRandom),
    ]


@contextmanager
def provided() -> Iterator[None]:
    """Exchange the machine for what hosts provide, for as long as the block runs.

    Assumptions: one block at a time. Modules that are imported within it are not
    looked through; import what is simulated before.
    """
    undo: list[tuple[Any, str, Any]] = []
    exchanged: dict[int, Any] = {}
    for place, name, replacement in _replacements():
        real = getattr(place, name)
        undo.append((place, name, real))
        exchanged[id(real)] = (real, replacement)
    for module in _foreign():
        for name, value in list(vars(module).items()):
            if id(value) in exchanged:
                undo.append((module, name, value))
    try:
        for place, name, real in undo:
            setattr(place, name, exchanged[id(real)][1])
        yield
    finally:
        for place, name, real in reversed(undo):
            setattr(place, name, real)


def _foreign() -> list[ModuleType]:
    """Modules that are neither Python's nor ours."""
    python = sysconfig.get_path("stdlib")
    packages = sysconfig.get_path("purelib")
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and not f"{name}.".startswith(OURS)
        and (file := getattr(module, "__file__", None))
        and (not file.startswith(python) or file.startswith(packages))
    ]


@contextmanager
def clocked(loop: SimLoop) -> Iterator[None]:
    """Let hosts read this loop's clock."""
    _clock[:] = [loop]
    try:
        yield
    finally:
        _clock.clear()


def running_loop() -> SimLoop:
    """The loop of the simulation that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop
