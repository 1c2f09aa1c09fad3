"""The runner's API: what its backend and its operator may ask of it.

==================================  =================================================
``GET /health``, ``/healthz``       anybody: whether it has a session and serves it
``POST /``                          a run of the agent, streamed (AG-UI)
``GET /events/{thread}``            the events of a thread, and those to come
``POST /repos/add``, ``/remove``    have a repository, or have it no more
``GET /repos/status``               which there are, and their branches
``POST /workflow``                  the instructions to work by
``POST /interrupt``, ``/model``     break off; another model
``GET /capabilities`` and more      what it can do
``GET /content/…``, ``POST``        files of the workspace
``GET /tasks``                      runs that are under way
==================================  =================================================

All but the first want the session's token, if it has one.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec

from trimtab.operators.sessions.runner.agent import Failed
from trimtab.operators.sessions.runner.content import Content
from trimtab.operators.sessions.runner.git import GitFailed
from trimtab.operators.sessions.runner.runs import Busy, Event, server_sent
from trimtab.operators.sessions.runner.session import Session
from trimtab.operators.sessions.runner.workspace import Workflow
from trimtab.runtime.asks import Answer, Ask, json_answer
from trimtab.runtime.serving import Connection

TOKEN: Final = "x-ambient-session-token"
STREAM: Final = "text/event-stream"
_TOKENS: Final = {"x-github-token": "github.com", "x-gitlab-token": "gitlab.com"}
T = TypeVar("T")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    role: str = "user"
    content: Any = ""


class RunInput(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a run begins with; more may be said, and is not listened to."""

    thread_id: str = ""
    run_id: str = ""
    messages: list[Message] = []


class AddRepository(msgspec.Struct, frozen=True, kw_only=True):
    url: str = ""
    branch: str = ""
    name: str = ""


class RemoveRepository(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""


class SetWorkflow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    git_url: str = ""
    branch: str = ""
    path: str = ""


class Interrupt(msgspec.Struct, frozen=True, kw_only=True):
    thread_id: str = ""


class SetModel(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""


class Problem(Exception):
    """What is answered in place of the answer."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Api:
    """Answers for the session that the runner has, which may be none yet."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.draining = False
        Route = Callable[[Session, Ask], Awaitable[Answer]]
        self._routes: dict[tuple[str, str], Route] = {
            ("POST", "/"): self._run,
            ("POST", "/repos/add"): self._add,
            ("POST", "/repos/remove"): self._remove,
            ("GET", "/repos/status"): self._repositories,
            ("POST", "/workflow"): self._workflow,
            ("POST", "/interrupt"): self._interrupt,
            ("POST", "/model"): self._model,
            ("GET", "/capabilities"): self._capabilities,
            ("GET", "/mcp/status"): self._tools,
            ("POST", "/feedback"): self._feedback,
            ("GET", "/tasks"): self._tasks,
        }

    async def handle(self, ask: Ask, connection: Connection) -> Answer:
        """The answer to any request."""
        try:
            if ask.path in ("/health", "/healthz"):
                return self._health()
            session = self.session
            if session is None:
                unready = HTTPStatus.SERVICE_UNAVAILABLE
                raise Problem(unready, "This runner has no session yet.")
            if not _knows(session.facts.token, ask.headers.get(TOKEN, "")):
                raise Problem(
                    HTTPStatus.UNAUTHORIZED, f"The header {TOKEN} is not the session's."
                )
            return await self._routed(session, ask)
        except Problem as problem:
            return json_answer({"detail": str(problem)}, status=problem.status)
        except msgspec.DecodeError as error:
            text = f"The request makes no sense: {error}."
            return json_answer({"detail": text}, status=HTTPStatus.BAD_REQUEST)

    async def _routed(self, session: Session, ask: Ask) -> Answer:
        route = self._routes.get((ask.method, ask.path))
        if route is not None:
            return await route(session, ask)
        if ask.method == "GET" and ask.path.startswith("/events/"):
            return self._events(session, ask)
        if ask.path.startswith("/content/"):
            return _content(session, ask)
        if ask.method == "POST" and ask.path.startswith("/tasks/"):
            thread = ask.path.removeprefix("/tasks/").removesuffix("/stop")
            return json_answer({"stopped": session.runs.interrupt(thread)})
        raise Problem(HTTPStatus.NOT_FOUND, f"There is no {ask.method} {ask.path}.")

    def _health(self) -> Answer:
        if self.session is None or self.draining:
            status = "stopping" if self.draining else "waiting"
            unready = HTTPStatus.SERVICE_UNAVAILABLE
            return json_answer({"status": status}, status=unready)
        return json_answer({"status": "healthy", "session": self.session.facts.name})

    async def _run(self, session: Session, ask: Ask) -> Answer:
        asked = _read(ask, RunInput)
        said = [each for each in asked.messages if each.role == "user"]
        prompt = said[-1].content if said else ""
        if not isinstance(prompt, str) or not prompt:
            raise Problem(HTTPStatus.BAD_REQUEST, "There is no message of a user.")
        before = session.runs.thread(asked.thread_id).count if asked.thread_id else 0
        try:
            thread = session.runs.start(
                prompt, thread=asked.thread_id, run=asked.run_id
            )
        except Busy as error:
            raise Problem(HTTPStatus.CONFLICT, str(error)) from error
        return _streamed(thread.follow(since=before, run=thread.run))

    def _events(self, session: Session, ask: Ask) -> Answer:
        thread = session.runs.thread(ask.path.removeprefix("/events/"))
        last = ask.headers.get("last-event-id", "0")
        return _streamed(thread.follow(since=int(last) if last.isdecimal() else 0))

    async def _add(self, session: Session, ask: Ask) -> Answer:
        asked = _read(ask, AddRepository)
        if not asked.url:
            raise Problem(HTTPStatus.BAD_REQUEST, "Which repository? Give its url.")
        try:
            name, cloned = await session.workspace.add(
                asked.url, branch=asked.branch, name=asked.name, tokens=_tokens(ask)
            )
        except GitFailed as error:
            raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error
        return json_answer(
            {"message": f"{name} is there.", "name": name, "newly_cloned": cloned}
        )

    async def _remove(self, session: Session, ask: Ask) -> Answer:
        try:
            was = await session.workspace.remove(_read(ask, RemoveRepository).name)
        except GitFailed as error:
            raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error
        return json_answer({"message": "It is gone.", "removed": was})

    async def _repositories(self, session: Session, ask: Ask) -> Answer:
        return json_answer({"repos": await session.workspace.statuses()})

    async def _workflow(self, session: Session, ask: Ask) -> Answer:
        asked = _read(ask, SetWorkflow)
        wanted = Workflow(url=asked.git_url, branch=asked.branch, path=asked.path)
        wanted = wanted if wanted.url else Workflow()
        try:
            other = await session.workspace.use(wanted, tokens=_tokens(ask))
        except GitFailed as error:
            # Not 200 with an excuse: whoever asks has to learn that it failed.
            raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error
        text = "It is active." if other else "It was active already."
        return json_answer({"message": text})

    async def _interrupt(self, session: Session, ask: Ask) -> Answer:
        asked = _read(ask, Interrupt) if ask.body else Interrupt()
        return json_answer({"interrupted": session.runs.interrupt(asked.thread_id)})

    async def _model(self, session: Session, ask: Ask) -> Answer:
        asked = _read(ask, SetModel)
        if not asked.model:
            raise Problem(HTTPStatus.BAD_REQUEST, "Which model? Give its name.")
        if session.runs.busy:
            busy = HTTPStatus.UNPROCESSABLE_ENTITY
            raise Problem(busy, "The agent is at work: interrupt it first.")
        session.model = asked.model
        return json_answer({"model": session.model})

    async def _capabilities(self, session: Session, ask: Ask) -> Answer:
        return json_answer(
            {
                "framework": "scripted",
                "model": session.model,
                "agent_features": ["agentic_chat", "interrupt"],
                "platform_features": ["repos", "workflows", "content"],
                "session_persistence": False,
            }
        )

    async def _tools(self, session: Session, ask: Ask) -> Answer:
        return json_answer({"servers": [], "totalCount": 0})

    async def _feedback(self, session: Session, ask: Ask) -> Answer:
        return json_answer({"message": "Thank you."})

    async def _tasks(self, session: Session, ask: Ask) -> Answer:
        busy = session.runs.busy
        return json_answer(
            {"tasks": [{"id": each.name, "run": each.run} for each in busy]}
        )


def _knows(expected: str, shown: str) -> bool:
    """Whether a caller may ask, in a time that tells nothing of the token."""
    return not expected or hmac.compare_digest(shown.encode(), expected.encode())


def _tokens(ask: Ask) -> dict[str, str]:
    """What repositories may be fetched with, by host."""
    return {
        host: ask.headers[name] for name, host in _TOKENS.items() if name in ask.headers
    }


def _content(session: Session, ask: Ask) -> Answer:
    try:
        return Content(session.facts.folder).answer(ask)
    except Failed as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error)) from error


def _streamed(events: AsyncIterator[tuple[int, Event]]) -> Answer:
    async def pieces() -> AsyncIterator[bytes]:
        async for number, event in events:
            yield server_sent(number, event)

    return Answer(type=STREAM, stream=pieces())


def _read(ask: Ask, into: type[T]) -> T:
    return msgspec.json.decode(ask.body, type=into)
