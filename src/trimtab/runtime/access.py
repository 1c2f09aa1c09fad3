"""Access: who calls a service, and what they may do, by the API server's own reviews.

A caller is whom the API server says that its token belongs to (TokenReview), and may do
what RBAC lets it (SubjectAccessReview): a service that stands before objects needs no
users and no rights of its own.

Answers are kept for a short time and in a bounded number, so that a busy service asks
twice per caller and half a minute. Tokens are kept as digests only.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from trimtab.api import Resource
from trimtab.client import Client, TrimtabError

LIFETIME: Final = 30.0
DENIAL: Final = 5.0
"""A refusal is kept for less: whoever just got a right should not have to wait."""
KEPT: Final = 4096
DEADLINE: Final = 10.0

Review = Literal["token", "access"]
Verdict = Literal["allowed", "denied", "failed", "kept"]
Count: TypeAlias = Callable[[Review, Verdict], None]

T = TypeVar("T")


class Unauthenticated(TrimtabError):
    """Nobody knows whose token this is."""


class Identity(msgspec.Struct, frozen=True):
    """Who calls, as the API server says."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


class Kept(Generic[T]):
    """Answers by key, for so many seconds and in no greater number.

    Guarantees: of any number who ask for one key at once, one asks the server; if that
    one gives up, another does.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        # Two, so that those who are refused push out nobody who is not.
        self._yes: dict[Any, tuple[float, T]] = {}
        self._no: dict[Any, tuple[float, T]] = {}
        self._asking: dict[Any, asyncio.Future[None]] = {}

    async def get(
        self,
        key: Any,
        ask: Callable[[], Awaitable[tuple[T, bool]]],
        *,
        kept: Callable[[], None],
    ) -> T:
        """The answer that is kept, or what ``ask`` answers, with whether it is yes."""
        loop = asyncio.get_running_loop()
        while True:
            found = self._yes.get(key) or self._no.get(key)
            if found is not None and loop.time() < found[0]:
                kept()
                return found[1]
            if (asking := self._asking.get(key)) is None:
                break
            await asyncio.wait([asking])
        done = self._asking[key] = loop.create_future()
        try:
            answer, is_yes = await ask()
        finally:
            del self._asking[key]
            done.set_result(None)
        self._keep(key, answer, is_yes=is_yes)
        return answer

    def _keep(self, key: Any, answer: T, *, is_yes: bool) -> None:
        self._yes.pop(key, None)
        self._no.pop(key, None)
        seconds = self._seconds if is_yes else min(self._seconds, DENIAL)
        answers = self._yes if is_yes else self._no
        answers[key] = asyncio.get_running_loop().time() + seconds, answer
        if len(answers) > self._size:
            del answers[next(iter(answers))]


class Reviews:
    """Asks the API server who somebody is and what they may do.

    Errors: :class:`Unauthenticated`; the client's own when the server cannot be asked.
    """

    def __init__(
        self,
        client: Client,
        *,
        audiences: tuple[str, ...] = (),
        lifetime: float = LIFETIME,
        count: Count = lambda review, verdict: None,
    ) -> None:
        if not 0 <= lifetime <= LIFETIME:
            raise ValueError(f"reviews are kept for at most {LIFETIME:g} s")
        self._client = client
        self._audiences = audiences
        self._count = count
        self._callers: Kept[Identity] = Kept(KEPT, lifetime)
        self._rights: Kept[bool] = Kept(KEPT, lifetime)

    async def caller(self, token: str) -> Identity:
        """Whose token this is."""
        if not token:
            raise Unauthenticated(
                "This needs a token: send that of a service account as "
                "Authorization: Bearer."
            )
        key = hashlib.sha256(token.encode()).digest()
        found = await self._callers.get(
            key,
            lambda: self._who(token),
            kept=lambda: self._count("token", "kept"),
        )
        if not found.name:
            raise Unauthenticated(
                "The API server does not know this token, or it was made for somebody"
                " else than this service: get a new one."
            )
        return found

    async def allows(
        self,
        token: str,
        verb: str,
        kind: type[Resource],
        *,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> bool:
        """Whether the owner of a token may do something."""
        return await self.may(
            await self.caller(token),
            verb,
            kind,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )

    async def may(
        self,
        caller: Identity,
        verb: str,
        kind: type[Resource],
        *,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> bool:
        """Whether a caller may do something, as ``kubectl auth can-i`` asks."""

        async def ask() -> tuple[bool, bool]:
            try:
                answer = await self._client.may(
                    caller.name,
                    verb,
                    kind,
                    groups=caller.groups,
                    namespace=namespace,
                    name=name,
                    subresource=subresource,
                    deadline=DEADLINE,
                )
            except TrimtabError:
                self._count("access", "failed")
                raise
            self._count("access", "allowed" if answer.allowed else "denied")
            return answer.allowed, answer.allowed

        key = (caller, verb, kind, namespace, subresource, name)
        return await self._rights.get(
            key, ask, kept=lambda: self._count("access", "kept")
        )

    async def _who(self, token: str) -> tuple[Identity, bool]:
        spec: dict[str, Any] = {"token": token}
        if self._audiences:
            spec["audiences"] = list(self._audiences)
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": spec,
        }
        try:
            answer = await self._client.create(review, deadline=DEADLINE)
        except TrimtabError:
            self._count("token", "failed")
            raise
        status = answer.get("status") or {}
        if not status.get("authenticated"):
            self._count("token", "denied")
            return Identity(""), False
        self._count("token", "allowed")
        user = status.get("user") or {}
        groups = tuple(user.get("groups") or ())
        return Identity(user.get("username", ""), user.get("uid", ""), groups), True
