"""Triggering: a turn of a schedule becomes a session, or goes on with the last one.

Running a turn twice is the same as running it once: its session is named after the turn
and is created, never applied, and one that is resumed says for which turn it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from trimtab.api.times import rfc3339
from trimtab.client import AlreadyExists, Client, NotFound, TrimtabError
from trimtab.client.calling import Caller, NoReply, Place
from trimtab.operators.sessions.kinds import (
    DESIRED,
    FORCE_PROMPT,
    SCHEDULED_NAME,
    START_REQUESTED,
    AgenticSession,
)
from trimtab.operators.sessions.scheduling import label_of, session_of

Plain = dict[str, Any]
How = Literal["created", "resumed", "told", "done"]
Tell = Callable[[AgenticSession, str, datetime], Awaitable[None]]
"""Gives a prompt to a session that runs."""

MANAGER: Final = "sessions.schedules"
BACKEND_PORT: Final = 8080
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_WITHIN: Final = 30.0


class Untold(TrimtabError):
    """A prompt did not reach a session that runs."""


class Taken(TrimtabError):
    """Somebody else has an object of the name that a turn's session needs."""


class Turned(msgspec.Struct, frozen=True):
    """What came of a turn."""

    how: How
    session: str


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one schedule."""

    namespace: str
    schedule: str
    name: str
    """Of the session, if a new one is made."""
    at: datetime
    template: Plain
    reuse: bool = False

    @property
    def prompt(self) -> str:
        said = self.template.get("initialPrompt", "")
        return said if isinstance(said, str) else ""


async def fulfil(
    client: Client, wish: Wish, *, last: AgenticSession | None, tell: Tell | None
) -> Turned:
    """Run a turn; ``last`` is the schedule's last session, if it has one still.

    Flow: with ``reuse``, a last session that runs is told the prompt, and one that is
    stopped or completed is resumed with it. Otherwise a new session is created.

    Errors: whatever the server answers; :class:`Untold`.
    """
    if wish.reuse and last is not None:
        stamp = last.metadata.annotations.get(START_REQUESTED)
        if stamp == rfc3339(wish.at):
            return Turned("done", last.metadata.name)
        if last.status.phase == "Running":
            return await _told(wish, last, tell)
        if last.status.phase in ("Stopped", "Completed"):
            return await _resumed(client, wish, last)
    return await _created(client, wish)


async def _told(wish: Wish, last: AgenticSession, tell: Tell | None) -> Turned:
    if wish.prompt:
        if tell is None:
            raise Untold(
                f"{last} runs, and there is no backend that could tell it its prompt."
            )
        await tell(last, wish.prompt, wish.at)
    return Turned("told", last.metadata.name)


async def _resumed(client: Client, wish: Wish, last: AgenticSession) -> Turned:
    annotations = {DESIRED: "Running", START_REQUESTED: rfc3339(wish.at)}
    body: Plain = {
        "metadata": {
            "resourceVersion": last.metadata.resourceVersion,
            "annotations": annotations,
        }
    }
    if wish.prompt:
        annotations[FORCE_PROMPT] = "true"
        body["spec"] = {"initialPrompt": wish.prompt}
    namespace, name = last.key
    await client.patch(AgenticSession, name, body, namespace=namespace, manager=MANAGER)
    return Turned("resumed", name)


async def _created(client: Client, wish: Wish) -> Turned:
    made = session_of(
        wish.template,
        schedule=wish.schedule,
        namespace=wish.namespace,
        name=wish.name,
        at=wish.at,
    )
    try:
        # What a newer backend says besides is left out and no reason to fail.
        await client.create(made, manager=MANAGER, validation="Ignore")
    except AlreadyExists:
        found = await client.get(AgenticSession, wish.name, namespace=wish.namespace)
        if found.metadata.labels.get(SCHEDULED_NAME) != label_of(wish.schedule):
            raise Taken(
                f"{found} is there already and not of the schedule {wish.schedule}; "
                "rename one of them."
            ) from None
        return Turned("done", wish.name)
    return Turned("created", wish.name)


async def newest(
    client: Client, *, namespace: str, schedule: str
) -> AgenticSession | None:
    """The last session of a schedule, by a list; for programs that end with it."""
    found: AgenticSession | None = None
    labels = {SCHEDULED_NAME: label_of(schedule)}
    async for each in client.list(AgenticSession, namespace=namespace, labels=labels):
        if found is None or _made(each) >= _made(found):
            found = each
    return found


def _made(session: AgenticSession) -> tuple[str, str]:
    since = session.metadata.creationTimestamp
    return ("" if since is None else rfc3339(since), session.metadata.name)


async def known(client: Client, *, namespace: str, name: str) -> AgenticSession | None:
    """The session that a status names, if it is there still."""
    with suppress(NotFound):
        if name:
            return await client.get(AgenticSession, name, namespace=namespace)
    return None


def own_token() -> str:
    """What this process shows: the token of its own account, as its pod has it.

    Errors: :class:`Untold`, for a process that has none.
    """
    try:
        return ACCOUNT.read_text().strip()
    except OSError:
        raise Untold(
            "This process has no service account to show to the backend; run it in a "
            "pod that has one."
        ) from None


class Backend:
    """The program that relays between people and runners: prompts go through it.

    It keeps what is said, which a runner that is called directly does not.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        namespace: str,
        token: Callable[[], str] = own_token,
    ) -> None:
        host = f"backend-service.{namespace}.svc.cluster.local"
        self._place = Place(
            host=host, port=BACKEND_PORT, name=f"{host}:{BACKEND_PORT}", tls=False
        )
        self._caller = caller
        self._token = token

    async def tell(self, session: AgenticSession, prompt: str, at: datetime) -> None:
        """Give a prompt to a session that runs.

        Errors: :class:`Untold`.
        """
        namespace, name = session.key
        turn = int(at.timestamp())
        body = {
            "threadId": name,
            "runId": f"scheduled-{turn}",
            "messages": [
                {"id": f"scheduled-msg-{turn}", "role": "user", "content": prompt}
            ],
        }
        try:
            reply = await self._caller.call(
                self._place,
                "POST",
                f"/api/projects/{namespace}/agentic-sessions/{name}/agui/run",
                headers=(
                    ("Authorization", f"Bearer {self._token()}"),
                    ("Content-Type", "application/json"),
                ),
                body=msgspec.json.encode(body),
                within=_WITHIN,
                safe=False,
                limit=64 * 1024,
            )
        except NoReply as problem:
            raise Untold(f"The backend did not take the prompt: {problem}.") from None
        if reply.status >= 400:
            raise Untold(f"The backend answered the prompt with {reply.status}.")
