"""What a runner may at the API server, and its tokens."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

import pytest

from tests.operators.sessions.samples import client_in
from trimtab.api import Metadata
from trimtab.client import Client, NotFound
from trimtab.kinds import Secret, ServiceAccount
from trimtab.operators.sessions import access
from trimtab.operators.sessions.access import EXPIRES, Access, rules
from trimtab.operators.sessions.kinds import (
    AgenticSession,
    AgenticSessionSpec,
    UserContext,
)
from trimtab.operators.sessions.settings import Limits, Settings
from trimtab.runtime import Context
from trimtab.testing import Cluster

SECRET = "ambient-runner-token-a"
ACCOUNT = "ambient-session-a"


class Desk:
    """Of a context, what tokens need: a client whose calls are counted, and a clock."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.now = datetime.now(UTC).replace(microsecond=0)

    @property
    def ctx(self) -> Context:
        return cast(Context, self)

    @property
    def calls(self) -> int:
        return sum(self.client.statistics().requests.values())

    async def secret(self) -> Secret:
        return await self.client.get(Secret, SECRET)


@pytest.fixture
async def desk(cluster: Cluster, namespace: str) -> AsyncIterator[Desk]:
    async with client_in(cluster, namespace) as client:
        yield Desk(client)


async def begun(desk: Desk) -> AgenticSession:
    user = UserContext(userId="ada@example.com")
    made = AgenticSession(
        metadata=Metadata(name="a"), spec=AgenticSessionSpec(userContext=user)
    )
    return await desk.client.create(made)


async def test_before_each_pod_both_tokens_are_new(desk: Desk) -> None:
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    due = await tokens.ensure_token(desk.ctx, seen, fresh=True)
    first = await desk.secret()
    assert due == 2700.0
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    second = await desk.secret()
    assert first.data["agui-token"] != second.data["agui-token"]
    assert set(second.data) == {"agui-token", "k8s-token"}
    (owner,) = second.metadata.ownerReferences
    assert owner.uid == seen.metadata.uid
    account = await desk.client.get(ServiceAccount, ACCOUNT)
    assert account.metadata.annotations[access.USER] == "ada@example.com"


async def test_a_token_is_replaced_before_it_expires_and_the_runner_is_not_disturbed(
    desk: Desk,
) -> None:
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    due = await tokens.ensure_token(desk.ctx, seen, fresh=True)
    first = await desk.secret()
    calls = desk.calls
    desk.now += timedelta(seconds=due - 61)
    assert await tokens.ensure_token(desk.ctx, seen, fresh=False) == 61.0
    assert desk.calls == calls  # nothing is due, so nobody is asked
    desk.now += timedelta(seconds=61)
    await tokens.ensure_token(desk.ctx, seen, fresh=False)
    second = await desk.secret()
    assert second.data["agui-token"] == first.data["agui-token"]
    assert (
        second.metadata.annotations["ambient-code.io/token-refreshed-at"]
        > first.metadata.annotations["ambient-code.io/token-refreshed-at"]
    )


async def test_after_a_restart_one_read_tells_when_a_token_is_due(desk: Desk) -> None:
    seen = await begun(desk)
    await Access(Settings(), random=Random(1)).ensure_token(desk.ctx, seen, fresh=True)
    tokens, calls = Access(Settings(), random=Random(2)), desk.calls
    desk.now += timedelta(seconds=100)
    assert await tokens.ensure_token(desk.ctx, seen, fresh=False) == 2600.0
    assert await tokens.ensure_token(desk.ctx, seen, fresh=False) == 2600.0
    assert desk.calls == calls + 1


@pytest.mark.parametrize("said", ["", "yesterday"])
async def test_a_secret_that_says_nothing_of_its_age_is_made_anew(
    desk: Desk, said: str
) -> None:
    seen = await begun(desk)
    annotations = {"ambient-code.io/token-refreshed-at": said} if said else {}
    made = Secret(metadata=Metadata(name=SECRET, annotations=annotations))
    await desk.client.create(made)
    tokens = Access(Settings(), random=Random(1))
    assert await tokens.ensure_token(desk.ctx, seen, fresh=False) == 2700.0
    assert "k8s-token" in (await desk.secret()).data


async def test_a_resumed_session_never_starts_with_an_old_token(desk: Desk) -> None:
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    before = (await desk.secret()).data
    desk.now += timedelta(hours=2)
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    after = await desk.secret()
    assert after.data["agui-token"] != before["agui-token"]
    said = after.metadata.annotations["ambient-code.io/token-refreshed-at"]
    assert datetime.fromisoformat(said) == desk.now


async def test_a_short_life_of_a_token_brings_its_end_forward(desk: Desk) -> None:
    seen = await begun(desk)
    settings = Settings(limits=Limits(token_lifetime=600))
    tokens = Access(settings, random=Random(1))
    due = await tokens.ensure_token(desk.ctx, seen, fresh=True)
    assert 400.0 < due <= 455.0
    assert EXPIRES in (await desk.secret()).metadata.annotations


async def test_what_a_session_had_is_gone_when_it_is_over(desk: Desk) -> None:
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    await tokens.revoke(desk.ctx, seen)
    for kind, name in ((Secret, SECRET), (ServiceAccount, ACCOUNT)):
        with pytest.raises(NotFound):
            await desk.client.get(kind, name)
    await tokens.revoke(desk.ctx, seen)  # once more is no error
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    assert "k8s-token" in (await desk.secret()).data


async def test_an_account_that_somebody_deleted_is_made_again_when_it_is_due(
    desk: Desk,
) -> None:
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    word = (await desk.secret()).data["agui-token"]
    await desk.client.delete(ServiceAccount, ACCOUNT)
    desk.now += timedelta(seconds=2700)
    await tokens.ensure_token(desk.ctx, seen, fresh=False)
    assert (await desk.secret()).data["agui-token"] == word


async def test_a_runner_may_read_itself_and_named_secrets_and_nothing_else(
    desk: Desk,
) -> None:
    seen = await begun(desk)
    await Access(Settings(), random=Random(1)).ensure_token(desk.ctx, seen, fresh=True)
    place = seen.metadata.namespace
    user = f"system:serviceaccount:{place}:{ACCOUNT}"

    async def may(verb: str, kind: Any, name: str) -> bool:
        review = await desk.client.may(user, verb, kind, namespace=place, name=name)
        return review.allowed

    assert await may("patch", AgenticSession, "a")
    assert await may("get", Secret, "ambient-runner-secrets")
    assert not await may("get", AgenticSession, "b")
    assert not await may("create", AgenticSession, "")
    assert not await may("get", Secret, "ambient-runner-token-b")
    assert not await may("get", Secret, SECRET)
    assert not await may("list", Secret, "")


def test_more_than_that_must_be_asked_for() -> None:
    plain = rules("a", Settings())
    assert all(rule["resourceNames"] for rule in plain)
    more = rules("a", Settings(child_sessions=True, mlflow_account=True))
    assert [rule["verbs"] for rule in more[2:]] == [
        ["create"],
        ["get", "list", "update"],
    ]


async def test_no_token_is_in_a_log_or_an_error(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen, tokens = await begun(desk), Access(Settings(), random=Random(1))
    await tokens.ensure_token(desk.ctx, seen, fresh=True)
    found = await desk.secret()
    for value in found.data.values():
        assert value.decode() not in caplog.text
        assert value.decode() not in repr(found)
