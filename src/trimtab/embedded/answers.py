"""Answers: what goes back to whoever asked, whatever carries it there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Protocol

import msgspec

from trimtab.embedded import bodies, status
from trimtab.embedded.bodies import JSON
from trimtab.embedded.forms import Renderer
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Outcome, Write

PLAIN = "text/plain"
MOST_WARNING = 4096
"""So many letters of warnings are sent; if there are more, all are shortened."""
LONGEST_WARNING = 256

Headers = tuple[tuple[str, str], ...]


class Answer(msgspec.Struct, kw_only=True):
    """What goes back: a body at once, or piece by piece."""

    status: int = 200
    content_type: str = JSON
    headers: Headers = ()
    body: bytes | Iterator[bytes] = b""


class Chunks(Protocol):
    """Some of a watch at a time; :class:`trimtab.embedded.watching.Watcher` is one."""

    async def chunk(self) -> bytes: ...

    def close(self) -> None: ...


class WatchAnswer(msgspec.Struct, kw_only=True):
    """A watch that has begun; its watcher is read until it is over."""

    watcher: Chunks
    status: int = 200
    content_type: str = JSON


@contextmanager
def telling(write: Write) -> Iterator[None]:
    """What a write is warned of is told even if it is refused."""
    try:
        yield
    except ApiProblem as problem:
        problem.warnings += write.warnings
        raise


def written(
    renderer: Renderer, outcome: Outcome, warnings: Sequence[str] = ()
) -> Answer:
    """The answer to a write: the object, 201 if it is new, and warnings."""
    if outcome.text is not None:
        code = 200 if outcome.text else 204
        return Answer(status=code, content_type=PLAIN, body=outcome.text)
    if outcome.obj.get("kind") == renderer.kind.kind:
        body = renderer.plain(outcome.obj)
    else:
        body = bodies.encode(outcome.obj, renderer.form.media)
    return Answer(
        status=201 if outcome.created else 200,
        content_type=renderer.form.media,
        headers=warned(warnings),
        body=body,
    )


def warned(texts: Iterable[str]) -> Headers:
    """Warnings as headers: each once, and shortened if they are long together."""
    told = [each for each in dict.fromkeys(texts) if each and not _is_unfit(each)]
    if sum(map(len, told)) > MOST_WARNING:
        told = [each[:LONGEST_WARNING] for each in told]
        totals = accumulate(map(len, told), initial=0)
        told = [
            t for t, before in zip(told, totals, strict=False) if before < MOST_WARNING
        ]
    return tuple(("Warning", f"299 - {status.quoted(each)}") for each in told)


def _is_unfit(text: str) -> bool:
    """Whether a text cannot stand in a header."""
    return any(letter < " " or letter == "\x7f" for letter in text)
