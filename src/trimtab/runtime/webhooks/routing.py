"""Routing: a review that came in, to the function that it is for, and its answer.

An answer says yes, no, or (as an error of HTTP) that there is none: then the server
does what the webhook's failure policy says.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from trimtab.api.codec import convert
from trimtab.api.objects import wire
from trimtab.client.budget import budget
from trimtab.runtime.threads import Threads
from trimtab.runtime.webhooks import review as reviews
from trimtab.runtime.webhooks.conversion import Converter
from trimtab.runtime.webhooks.conversion import review as convert_review
from trimtab.runtime.webhooks.declarations import CONVERTS, Declarations, Hook
from trimtab.runtime.webhooks.patches import difference, merged
from trimtab.runtime.webhooks.review import Asked, NotAReview, Refused, Review

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
SHARE = 0.9
"""Of the time that the server waits, so that its user reads our sentence and not that
nobody answered."""
OURS = ("/validates/", "/mutates/")

logger = logging.getLogger("trimtab.runtime.webhooks")


class Answer(NamedTuple):
    """What goes back over HTTP."""

    status: HTTPStatus
    body: bytes
    type: str = TEXT


class Router:
    """Answers reviews by the declared functions.

    Guarantees: ``answer`` never raises, and ends within the time it is given, also if
    a handler does not. A handler in a thread cannot be ended, but no longer counts.
    """

    def __init__(self, declared: Declarations, *, threads: Threads) -> None:
        self._hooks = {each.path: each for each in declared.hooks}
        self._converter = Converter(declared.conversions)
        self._converts = bool(declared.conversions)
        self._threads = threads
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """How many reviews each webhook answered, and how."""

    def serves(self, path: str) -> bool:
        """Whether there is something at a path at all."""
        return path.startswith(OURS) or (self._converts and path == CONVERTS)

    async def answer(self, path: str, body: bytes, seconds: float) -> Answer:
        """The answer to a review, within so many seconds."""
        hook = self._hooks.get(path)
        name = hook.name if hook else path.rpartition("/")[2]
        try:
            with budget(seconds * SHARE):
                async with asyncio.timeout(seconds * SHARE) as limit:
                    outcome, answer = await self._answered(path, hook, body)
        except NotAReview as error:
            outcome = "unreadable"
            logger.error(
                "What was sent to the webhook %s is of no use: %s", name, error
            )
            answer = Answer(HTTPStatus.BAD_REQUEST, f"{error}\n".encode())
        except Exception as error:
            late = isinstance(error, TimeoutError) and limit.expired()
            outcome = "timeout" if late else "error"
            answer = self._failed(name, error, seconds * SHARE if late else None)
        self.outcomes[name if hook or path == CONVERTS else "unknown", outcome] += 1
        return answer

    async def _answered(
        self, path: str, hook: Hook | None, body: bytes
    ) -> tuple[str, Answer]:
        if path == CONVERTS and self._converts:
            # Thousands of objects may be in one review; others are answered meanwhile.
            made = await self._threads.run(
                convert_review, body, self._converter.convert
            )
            return "converted", Answer(HTTPStatus.OK, made, JSON)
        asked = reviews.asked(body)
        if hook is None:
            return "unknown", _unknown(path, asked)
        return await self._reviewed(hook, asked)

    async def _reviewed(self, hook: Hook, asked: Asked) -> tuple[str, Answer]:
        review, whole, obj = _read(hook, asked)
        outcome, response = "allowed", reviews.allowed(asked.uid)
        if obj is not None:
            try:
                made = await self._called(hook, obj, review)
            except Refused as error:
                outcome, response = "refused", reviews.refused(asked.uid, error)
            else:
                patch = list(_patch(hook, whole, obj, made))
                outcome = "changed" if patch else "allowed"
                response = reviews.allowed(asked.uid, patch=patch)
        elif asked.operation != "DELETE" and not _is_going(whole):
            refusal = Refused(_unreadable(hook, whole), status=422)
            outcome, response = "refused", reviews.refused(asked.uid, refusal)
        body = reviews.answer(response, review.warnings)
        return outcome, Answer(HTTPStatus.OK, body, JSON)

    async def _called(self, hook: Hook, obj: Any, review: Review[Any]) -> Any:
        if hook.awaited:
            return await hook.handler(obj, review)
        return await self._threads.run(hook.handler, obj, review)

    def _failed(self, name: str, error: Exception, late: float | None) -> Answer:
        """No answer; what it was goes to the log, for it may hold anything."""
        if late is not None:
            text = f"{name} did not answer within {late:.3g} s"
            logger.error("The webhook %s.", text)
        else:
            text = f"{name} failed with {type(error).__name__}; its log says where"
            logger.error("The webhook %s failed.", name, exc_info=error)
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode())


def _read(hook: Hook, asked: Asked) -> tuple[Review[Any], Any, Any]:
    """The review, the object as it was sent, and as the handler gets it.

    There is nothing for the handler where the object cannot be read as its class, and
    where it is being deleted: what is on its way out must not be held back by rules
    about what is to stay.
    """
    data = asked.old if asked.operation == "DELETE" else asked.new
    whole = msgspec.json.decode(data) if data else {}
    updates = asked.operation == "UPDATE" and asked.old
    before = msgspec.json.decode(asked.old) if updates and asked.old else None
    operation: Any = asked.operation
    review: Review[Any] = Review(
        operation,
        old=None if before is None else _typed(hook, before),
        user=asked.user_info.username,
        groups=asked.user_info.groups,
        namespace=asked.namespace,
        name=asked.name,
        dry_run=asked.dry_run,
    )
    if asked.operation != "DELETE" and _is_going(whole):
        return review, whole, None
    obj = _typed(hook, whole)
    if obj is None and asked.operation == "DELETE":
        review.warn(f"{hook.name} was not asked: {_unreadable(hook, whole)}")
    return review, whole, obj


def _typed(hook: Hook, whole: Any) -> Any:
    try:
        return convert(hook.kind, whole)
    except (msgspec.ValidationError, ValueError):
        return None


def _unreadable(hook: Hook, whole: Any) -> str:
    try:
        convert(hook.kind, whole)
    except (msgspec.ValidationError, ValueError) as error:
        return f"The {hook.kind.kind} cannot be read: {str(error).rstrip('.')}."
    raise AssertionError("it can be read")


def _is_going(whole: Any) -> bool:
    return bool((whole.get("metadata") or {}).get("deletionTimestamp"))


def _patch(hook: Hook, whole: Any, obj: Any, made: Any) -> Iterable[dict[str, Any]]:
    if made is None:
        return ()
    if hook.verb == "validates" or not isinstance(made, hook.kind):
        wanted = "nothing" if hook.verb == "validates" else hook.kind.__name__
        raise TypeError(f"it returned {type(made).__name__} where {wanted} is wanted")
    return difference(whole, merged(whole, wire(obj), wire(made)))


def _unknown(path: str, asked: Asked) -> Answer:
    """A webhook that this version of the operator does not have.

    While versions are replaced by others, an old one is asked what only the new one
    knows; it judges by its own rules, which have nothing against it.
    """
    name = path.rpartition("/")[2]
    told = [f"{name} is not known to the operator that was asked; it lets it pass."]
    body = reviews.answer(reviews.allowed(asked.uid), told)
    return Answer(HTTPStatus.OK, body, JSON)
