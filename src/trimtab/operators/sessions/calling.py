"""Calling runners: one bounded way to all of them, with a breaker for each.

A runner is a stranger's program. It may answer nothing, nonsense or a gigabyte; none of
that takes more of this process than a few seconds of one task and 64 KiB.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final

import msgspec

from trimtab.cache import Key
from trimtab.client import TrimtabError
from trimtab.client.calling import Caller, NoReply, Place, Reply
from trimtab.runtime.backoff import Backoff

TOKEN: Final = "X-Ambient-Session-Token"
PORT: Final = 8001
OPEN: Final = Backoff(first=5.0, cap=600.0)
"""How long a runner is left alone that has failed too often."""


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of all calls together, and of each."""

    together: int = 64
    """Calls at once, to whomever; the next one waits for its turn. As many again may
    ask for health, which waits for no work."""
    each: int = 2
    """Calls at once to one runner; the next one fails."""
    dial: float = 3.0
    """Seconds for a connection."""
    total: float = 10.0
    """Seconds for a call as a whole, its turn not counted."""
    health: float = 2.0
    body: int = 64 * 1024
    failures: int = 3
    """So many in a row, and a runner is left alone for a while."""
    remembered: int = 4096
    """Runners whose failures are counted; the oldest are forgotten."""


class NoAnswer(TrimtabError):
    """A runner did not answer, or not in a way that can be read."""

    def __init__(self, message: str, *, working: bool = False) -> None:
        super().__init__(message)
        self.working = working
        """It was asked, and may well be at it."""


class Declined(TrimtabError):
    """A runner answered that it did not do it."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """Where the runner of a session is, and what it is shown. No repr has the token."""

    key: Key
    """Namespace and name of the session."""
    host: str
    port: int = PORT
    token: str = ""

    def __repr__(self) -> str:
        return f"Runner({'/'.join(self.key)} at {self.host}:{self.port})"


class RunnersStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What was called, and how it went."""

    calls: int
    failed: int
    """Without an answer."""
    spared: int
    """Not made, because the runner had failed too often."""
    under_way: int
    troubled: int
    """Runners whose last call failed."""


class _Trouble:
    """What is known of a runner that failed, or that is being called."""

    __slots__ = ("calls", "failures", "place", "until")

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self.calls = 0
        self.failures = 0
        self.until = 0.0


class Runners:
    """Calls to runners; see the module's first lines.

    Guarantees: every call ends, within ``CallLimits.total`` and its turn. After some
    failures in a row a runner is not called for a while that grows, and such a call
    fails at once; the first one after that is a trial.

    Errors: :class:`NoAnswer`; :class:`Declined` for an answer other than 200.
    """

    def __init__(
        self, caller: Caller, *, random: Random, limits: CallLimits | None = None
    ) -> None:
        self.limits = limits or CallLimits()
        self._caller = caller
        self._random = random
        self._work = asyncio.Semaphore(self.limits.together)
        self._looks = asyncio.Semaphore(self.limits.together)
        self._known: dict[Key, _Trouble] = {}
        self._calls = self._failed = self._spared = 0

    async def health(self, runner: Runner) -> None:
        """Return if the runner is healthy."""
        await self._call(runner, "GET", "/health", within=self.limits.health)

    async def add_repository(
        self, runner: Runner, *, url: str, branch: str, name: str
    ) -> bool:
        """Have a repository, on a branch; whether it had to be cloned for that."""
        body = {"url": url, "branch": branch, "name": name}
        reply = await self._call(runner, "POST", "/repos/add", body)
        return _fields(reply).get("newly_cloned") is True

    async def remove_repository(self, runner: Runner, *, name: str) -> None:
        """Have a repository no more; one that is not there is no failure."""
        await self._call(runner, "POST", "/repos/remove", {"name": name})

    async def set_workflow(
        self, runner: Runner, *, url: str, branch: str, path: str
    ) -> None:
        """Work by what is in a repository; an empty address ends that."""
        body = {"gitUrl": url, "branch": branch, "path": path}
        reply = await self._call(runner, "POST", "/workflow", body)
        # There are runners that say 200 to this whatever happened.
        if error := _fields(reply).get("error"):
            raise Declined(
                f"{_shown(runner)} could not use the workflow: {_short(str(error))}",
                status=reply.status,
            )

    async def interrupt(self, runner: Runner, *, thread: str = "") -> None:
        """Break off what the agent does at the moment."""
        body = {"thread_id": thread} if thread else {}
        await self._call(runner, "POST", "/interrupt", body)

    def forget(self, key: Key) -> None:
        """A session is over: nothing about its runner matters any more."""
        self._known.pop(key, None)

    def statistics(self) -> RunnersStatistics:
        known = self._known.values()
        return RunnersStatistics(
            calls=self._calls,
            failed=self._failed,
            spared=self._spared,
            under_way=sum(each.calls for each in known),
            troubled=sum(each.failures > 0 for each in known),
        )

    async def _call(
        self,
        runner: Runner,
        method: str,
        path: str,
        body: Any = None,
        *,
        within: float | None = None,
    ) -> Reply:
        known = self._admitted(runner)
        known.calls += 1
        try:
            async with self._looks if body is None else self._work:
                self._calls += 1
                reply = await self._sent(runner, method, path, body, within)
        except NoReply as error:
            self._fails(known)
            working = error.sent and error.late
            raise NoAnswer(f"{error}.", working=working) from error
        finally:
            known.calls -= 1
            self._settle(runner.key, known)
        known.failures = 0
        self._settle(runner.key, known)
        return _checked(runner, path, reply)

    async def _sent(
        self, runner: Runner, method: str, path: str, body: Any, within: float | None
    ) -> Reply:
        name = f"{runner.host}:{runner.port}"
        headers: tuple[tuple[str, str], ...] = ((TOKEN, runner.token),)
        if body is not None:
            headers = (*headers, ("Content-Type", "application/json"))
        return await self._caller.call(
            Place(host=runner.host, port=runner.port, name=name, tls=False),
            method,
            path,
            headers=headers if runner.token else headers[1:],
            body=None if body is None else msgspec.json.encode(body),
            within=within or self.limits.total,
            dial=self.limits.dial,
            limit=self.limits.body,
        )

    def _admitted(self, runner: Runner) -> _Trouble:
        """What is known of a runner that may be called now."""
        known, place = self._known.get(runner.key), (runner.host, runner.port)
        if known is None or known.place != place:  # another pod is another runner
            known = self._known[runner.key] = _Trouble(place)
            self._shrink()
        left = known.until - asyncio.get_running_loop().time()
        if known.failures >= self.limits.failures and left > 0:
            self._spared += 1
            raise NoAnswer(
                f"{_shown(runner)} failed {known.failures} times in a row; it is "
                f"called again in {left:.0f} s."
            )
        if known.calls >= self.limits.each:
            raise NoAnswer(f"{_shown(runner)} is being called already.", working=True)
        return known

    def _fails(self, known: _Trouble) -> None:
        self._failed += 1
        known.failures += 1
        over = known.failures - self.limits.failures
        if over >= 0:
            pause = OPEN.pause(over + 1, random=self._random)
            known.until = asyncio.get_running_loop().time() + pause

    def _settle(self, key: Key, known: _Trouble) -> None:
        """Remember only those of whom there is something to remember."""
        if not known.failures and not known.calls and self._known.get(key) is known:
            del self._known[key]

    def _shrink(self) -> None:
        if len(self._known) > self.limits.remembered:
            idle = (key for key, each in self._known.items() if not each.calls)
            if (oldest := next(idle, None)) is not None:
                del self._known[oldest]


def _checked(runner: Runner, path: str, reply: Reply) -> Reply:
    if reply.status != 200:
        said = _fields(reply)
        text = said.get("detail") or said.get("message") or reply.body.decode("latin-1")
        raise Declined(
            f"{_shown(runner)} answered {path} with {reply.status}: "
            f"{_short(str(text)) or 'nothing'}",
            status=reply.status,
        )
    return reply


def _fields(reply: Reply) -> dict[str, Any]:
    """What an answer says, if it is an object of JSON."""
    try:
        found = msgspec.json.decode(reply.body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _short(text: str) -> str:
    """A stranger's text, as a part of a sentence."""
    plain = "".join(each if each.isprintable() else " " for each in text[:2000])
    return " ".join(plain.split())[:500]


def _shown(runner: Runner) -> str:
    return f"The runner of {'/'.join(runner.key)}"
