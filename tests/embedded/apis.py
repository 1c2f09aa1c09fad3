"""An API in this process: on any store, at any time, asked by a function call."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import parse_qsl

from tests.embedded.asking import JSON, Answer, encoded
from trimtab.embedded import api as embedded
from trimtab.embedded.api import Api
from trimtab.embedded.inprocess import ADMIN
from trimtab.embedded.requests import ApiRequest
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def api_on(
    store: Store, *, clock: Clock | None = None, random: Random | None = None
) -> Api:
    return Api(store, now=clock or Clock(), random=random or Random(1), tokens=Tokens())


def settle(api: Api) -> None:
    """Let it do all that follows from what was written."""
    while api.work():
        pass


def asked(
    api: Api, method: str, path: str, body: Any = None, *, media: str = JSON
) -> Answer:
    """Ask an API in this process."""
    path, _, query = path.partition("?")
    request = ApiRequest(
        method=method,
        path=path,
        query=dict(parse_qsl(query)),
        headers={"content-type": media},
        body=b"" if body is None else encoded(body),
        user=ADMIN,
    )
    answer = api.handle(request)
    assert isinstance(answer, embedded.Answer)
    read = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return Answer(status=answer.status, media=answer.content_type, body=read)
