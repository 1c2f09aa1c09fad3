"""Each rule of ours refuses the bug it is there for, and nothing that looks like it."""

from __future__ import annotations

import textwrap

import pytest

from hack.lints import RULES
from hack.lints.source import Source

POOL = "src/trimtab/pool/state.py"


def findings(rule: str, code: str, *, path: str = POOL) -> list[str]:
    source = Source(path, textwrap.dedent(code))
    return [str(finding) for finding in RULES[rule](source)]


CLIENT_OF_ONES_OWN = [
    "import aiohttp\nasync def f():\n    async with aiohttp.ClientSession() as s: ...",
    "from aiohttp import ClientSession as S\ns = S()",
    "def f():\n    import aiohttp\n    return aiohttp.client.ClientSession()",
    "import aiohttp\nmake = aiohttp.ClientSession\nmake()",
    "import aiohttp\nclass Mine(aiohttp.ClientSession): ...",
    "import aiohttp\nconnector = aiohttp.TCPConnector(limit=1)",
    "import httpx\nhttpx.get('x')",
    "import httpx\nhttpx.AsyncClient()",
    "import grpc\ngrpc.insecure_channel('x')",
    "import grpc.aio\ngrpc.aio.secure_channel('x', None)",
    "from grpc import aio\naio.insecure_channel('x')",
    "from urllib.request import urlopen\nurlopen('x')",
    "from trimtab.client import Client\nClient(transport)",
    "from trimtab import Client\nClient(transport)",
    "from ..client.client import Client\nClient(transport)",
    "from trimtab.client import Client\nClient.connect()",
    "import trimtab.client\ntrimtab.client.connect()",
    "from trimtab.client.http import HttpTransport\nHttpTransport(config)",
]


@pytest.mark.parametrize("code", CLIENT_OF_ONES_OWN)
def test_a_client_cannot_be_made_outside_the_wiring(code: str) -> None:
    (finding,) = findings("clients", code)
    assert finding.startswith(f"{POOL}:")
    assert findings("clients", code, path="src/trimtab/operators/x/y.py") != []


@pytest.mark.parametrize("place", ["client/http.py", "cli/run.py", "testing/real.py"])
def test_the_wiring_may_make_clients(place: str) -> None:
    code = "import aiohttp\naiohttp.ClientSession()"
    assert findings("clients", code, path=f"src/trimtab/{place}") == []


@pytest.mark.parametrize(
    "code",
    [
        "from trimtab.client import Client\nasync def f(c: Client):\n    await c.get()",
        "import aiohttp\nasync def f(s: aiohttp.ClientSession):\n    await s.get('x')",
        "from aiohttp import web\napp = web.Application()",
        "def f(connect):\n    return connect()",
    ],
)
def test_a_client_that_is_handed_in_may_be_used(code: str) -> None:
    assert findings("clients", code) == []


LOOSE_TASK = [
    "import asyncio\nasync def f():\n    asyncio.create_task(g())",
    "from asyncio import create_task\nasync def f():\n    create_task(g())",
    "from asyncio import create_task as go\nasync def f():\n    go(g())",
    "import asyncio as a\nasync def f():\n    a.ensure_future(g())",
    "import asyncio\nasync def f():\n    asyncio.get_running_loop().create_task(g())",
    "async def f(loop):\n    loop.create_task(g())",
    "import asyncio\nspawn = asyncio.create_task",
    "import asyncio\nasync def f():\n    asyncio.Task(g())",
    "import asyncio\nasync def f(self):\n    self.loop.create_task(g())",
    # A group's name in one function says nothing about the same name in another.
    """
    import asyncio
    async def f():
        async with asyncio.TaskGroup() as tg:
            tg.create_task(g())
    async def h(tg):
        tg.create_task(g())
    """,
    # A name that held a group and then something else does not hold one.
    """
    import asyncio
    async def f():
        async with asyncio.TaskGroup() as tg:
            ...
        tg = asyncio.get_running_loop()
        tg.create_task(g())
    """,
]


@pytest.mark.parametrize("code", LOOSE_TASK)
def test_a_task_cannot_be_started_outside_a_group(code: str) -> None:
    assert findings("tasks", code) != []


@pytest.mark.parametrize(
    "code",
    [
        """
        import asyncio
        async def f():
            async with asyncio.TaskGroup() as tg:
                tg.create_task(g())
                async def inner():
                    tg.create_task(g())
        """,
        "import asyncio\ndef f(group: asyncio.TaskGroup):\n    group.create_task(g())",
        "from asyncio import TaskGroup\ndef f(*, g: TaskGroup):\n    g.create_task(1)",
        """
        import asyncio
        class Manager:
            def __init__(self, group: asyncio.TaskGroup) -> None:
                self._group = group
            def start(self):
                self._group.create_task(g())
        """,
        """
        import asyncio
        class Manager:
            group: asyncio.TaskGroup | None
            def start(self):
                self.group.create_task(g())
        """,
        """
        import asyncio
        class Manager:
            async def __aenter__(self):
                self.tasks = await self.stack.enter_async_context(asyncio.TaskGroup())
            def start(self):
                self.tasks.create_task(g())
        """,
        "class Simulation:\n    def create_task(self, work): ...",
    ],
)
def test_a_group_may_start_tasks(code: str) -> None:
    assert findings("tasks", code) == []


LOCK_ACROSS_AWAIT = [
    "async def f(self):\n    async with self._lock:\n        await g()",
    "async def f(lock):\n    with lock:\n        await g()",
    "async def f(self):\n    async with self.locks[key]:\n        return await g()",
    "async def f(self):\n    async with self.lock_for(key):\n        x = [await g()]",
    "async def f(aMutex):\n    async with aMutex:\n        async for x in y: ...",
    "async def f(lock):\n    async with lock:\n        async with g(): ...",
    "async def f(lock):\n    async with lock, g(): ...",
    "async def f(lock):\n    async with lock:\n        [x async for x in y]",
    "async def f(lock):\n    async with lock:\n        yield 1",
    "async def f(lock):\n    await lock.acquire()",
    """
    import threading
    guard = threading.Lock()
    async def f():
        with guard:
            await g()
    """,
    """
    import asyncio
    class Worker:
        def __init__(self):
            self.turn = asyncio.Semaphore(1)
        async def f(self):
            async with self.turn:
                await g()
    """,
    """
    from asyncio import Condition
    async def f():
        ready = Condition()
        async with ready:
            await ready.wait()
            await g()
    """,
]


@pytest.mark.parametrize("code", LOCK_ACROSS_AWAIT)
def test_a_lock_cannot_be_held_across_an_await(code: str) -> None:
    (finding,) = findings("locks", code)
    assert "`with`" in finding or "held across an await" in finding


@pytest.mark.parametrize(
    "code",
    [
        "async def f(lock):\n    with lock:\n        x = 1\n    await g()",
        "def f(lock):\n    with lock:\n        g()",
        "async def f(self):\n    async with self.clock.paused():\n        await g()",
        "async def f(block):\n    async with block:\n        await g()",
        "async def f(lock):\n    with lock:\n        async def h(): await g()",
        """
        import asyncio
        limit = asyncio.Semaphore(8)
        async def f():
            async with limit:
                await g()
        """,
        """
        import asyncio
        async def f():
            ready = asyncio.Condition()
            async with ready:
                await ready.wait_for(lambda: True)
        """,
    ],
)
def test_a_lock_that_nobody_waits_under_is_fine(code: str) -> None:
    assert findings("locks", code) == []


BOUNDLESS = [
    "_cache = {}",
    "_CACHE: dict[str, int] = {}",
    "tokenCache = dict()",
    "from collections import defaultdict\nby_key_cache = defaultdict(list)",
    "class A:\n    def __init__(self):\n        self._cache = {}",
    "class A:\n    def __init__(self):\n        self.cached: dict[str, int] = {}",
    "class A:\n    cache = {k: 1 for k in x}",
    "from dataclasses import field\nclass A:\n    cache = field(default_factory=dict)",
    "import functools\n@functools.cache\ndef f(): ...",
    "from functools import cache\nf = cache(g)",
    "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(): ...",
    "from functools import lru_cache\n@lru_cache(None)\ndef f(): ...",
]


@pytest.mark.parametrize("code", BOUNDLESS)
def test_a_cache_cannot_be_a_map_without_bounds(code: str) -> None:
    (finding,) = findings("caches", code)
    assert "a size and a lifetime" in finding


@pytest.mark.parametrize(
    "code",
    [
        "from functools import lru_cache\n@lru_cache(maxsize=64)\ndef f(): ...",
        "from functools import lru_cache\n@lru_cache\ndef f(): ...",
        "class A:\n    def __init__(self):\n        self._cache = Bounded(size=10)",
        "def f():\n    cache = {}\n    return len(cache)",
        "CACHE_HEADERS = {'Cache-Control': 'no-store'}",
        "from functools import cached_property\nclass A:\n    x = cached_property(f)",
        "names = {}",
    ],
)
def test_a_cache_with_a_bound_is_fine(code: str) -> None:
    assert findings("caches", code) == []


OWN_CLOCK_OR_CHANCE = [
    "import time\nnow = time.time()",
    "from time import monotonic as now\nnow()",
    "import time\ndef f(clock=time.monotonic): ...",
    "from datetime import datetime, UTC\ndatetime.now(UTC)",
    "import datetime\ndatetime.datetime.utcnow()",
    "import random\nrandom.uniform(0, 1)",
    "from random import shuffle\nshuffle(x)",
    "import random as r\nr.seed(1)",
    "import uuid\nname = str(uuid.uuid4())",
    "from uuid import uuid4\nuuid4()",
    "import secrets\nsecrets.token_hex()",
    "import os\nos.urandom(8)",
]


@pytest.mark.parametrize("code", OWN_CLOCK_OR_CHANCE)
def test_time_and_chance_cannot_come_from_outside(code: str) -> None:
    assert findings("clock", code) != []
    assert findings("clock", code, path="src/trimtab/embedded/store.py") == []
    assert findings("clock", code, path="src/trimtab/client/retry.py") != []


@pytest.mark.parametrize(
    "code",
    [
        "import asyncio\nnow = asyncio.get_running_loop().time()",
        "from random import Random\ndef f(random: Random):\n    random.uniform(0, 1)",
        "import random\ndef f(chance: random.Random):\n    chance.random()",
        "from datetime import datetime\ndef f(at: datetime):\n    at.isoformat()",
        "import time\ntime.strftime('%Y')",
    ],
)
def test_the_loops_time_and_an_injected_generator_are_fine(code: str) -> None:
    assert findings("clock", code) == []


def test_a_finding_names_its_line() -> None:
    (finding,) = findings("clock", "import time\n\n\nx = time.time()\n")
    assert finding.startswith(f"{POOL}:4: time.time is a clock")
