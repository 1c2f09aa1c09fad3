"""Deadlines, retries, credentials and cancellation of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from tests.client.conftest import QUICK, Connect
from tests.client.faults import (
    TOKEN,
    FaultServer,
    Handler,
    answers,
    cut,
    hang,
    status,
)
from tests.client.kinds import ConfigMap, config_map, website
from tests.client.laws import ends_within, tells_well
from trimtab.client import Client, RateLimit, RetryPolicy, budget
from trimtab.client.config import Impersonation
from trimtab.client.credentials import TlsMaterial
from trimtab.client.errors import (
    Ambiguous,
    ApiError,
    ConfigError,
    DeadlineExceeded,
    Disconnected,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from trimtab.testing import eventually

SOON = 0.2
LONG = 60.0


# Deadlines


async def test_the_deadline_of_the_argument_holds(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(deadline=LONG)
    server.always(hang)
    with ends_within(SOON), pytest.raises(DeadlineExceeded, match=r"0\.2 s"):
        await client.get(ConfigMap, "one", deadline=SOON)


async def test_the_default_deadline_holds_where_none_is_named(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(deadline=SOON)
    server.always(hang)
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        await client.get(ConfigMap, "one")


async def test_a_budget_replaces_the_default_deadline(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(deadline=0.001)
    with budget(LONG):
        await client.get(ConfigMap, "one")
    server.always(hang)
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        with budget(SOON):
            await connect(deadline=LONG).get(ConfigMap, "one")


async def test_the_shorter_of_argument_and_budget_holds(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    for given, argument in ((SOON, LONG), (LONG, SOON)):
        with ends_within(SOON), pytest.raises(DeadlineExceeded), budget(given):
            await client.get(ConfigMap, "one", deadline=argument)


async def test_a_nested_budget_can_only_shorten(
    server: FaultServer, client: Client
) -> None:
    server.always(hang)
    for outer, inner in ((SOON, LONG), (LONG, SOON)):
        with ends_within(SOON), pytest.raises(DeadlineExceeded):
            with budget(outer), budget(inner):
                await client.get(ConfigMap, "one")


async def test_one_budget_is_spent_by_all_the_calls_in_it(
    server: FaultServer, client: Client
) -> None:
    server.play(answers({"metadata": {"name": "one"}}))
    server.always(hang)
    with ends_within(1.0), budget(1.0):
        await client.get(ConfigMap, "one")
        for _ in range(3):
            with pytest.raises(DeadlineExceeded):
                await client.get(ConfigMap, "one")


@pytest.mark.parametrize("deadline", [0.0, -1.0])
async def test_a_call_without_time_left_sends_nothing(
    server: FaultServer, client: Client, deadline: float
) -> None:
    await client.get(ConfigMap, "one")  # a connection is at hand
    with pytest.raises(DeadlineExceeded):
        await client.create(config_map(), deadline=deadline)
    with pytest.raises(DeadlineExceeded), budget(deadline):
        await client.create(config_map())
    assert len(server.requests) == 1


async def test_waiting_for_a_place_in_the_pool_costs_the_deadline_and_sends_nothing(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(pool=1)
    server.always(hang)
    task = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: server.requests)
    # Nothing was sent, so a write is not ambiguous.
    with ends_within(SOON), pytest.raises(DeadlineExceeded):
        await client.create(config_map(), deadline=SOON)
    assert not task.done()
    assert len(server.requests) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_retries_end_with_the_deadline(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(retry=RetryPolicy(attempts=10**9, base=0.01, cap=0.01))
    server.always(status(500))
    with ends_within(SOON), pytest.raises((ServerError, DeadlineExceeded)):
        await client.get(ConfigMap, "one", deadline=SOON)
    assert 0 < client.statistics().retries <= len(server.requests)


# Retries


@pytest.mark.parametrize("fault", [cut, status(500), status(503), status(429)])
async def test_a_read_is_tried_again_and_succeeds(
    server: FaultServer, client: Client, fault: Handler
) -> None:
    server.play(*[fault] * 3)
    await client.get(ConfigMap, "one")
    assert client.statistics().retries == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 413, 422])
async def test_what_the_server_refuses_is_not_tried_again(
    server: FaultServer, client: Client, code: int
) -> None:
    server.always(status(code))
    with pytest.raises(ApiError):
        await client.get(ConfigMap, "one")
    assert len(server.requests) == (2 if code == 401 else 1)


WRITES = ["create", "replace", "apply", "patch", "delete", "delete_collection"]


@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_whose_answer_is_lost_is_ambiguous_and_sent_once(
    server: FaultServer, client: Client, verb: str
) -> None:
    await client.get(ConfigMap, "one")  # on a kept connection the library would repeat
    server.always(cut)
    with pytest.raises(Ambiguous) as caught:
        await write(client, verb)
    assert isinstance(caught.value.__cause__, Disconnected)
    assert len(server.requests) == 2
    tells_well(caught.value)


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_that_failed_without_a_time_to_come_back_is_sent_once(
    server: FaultServer, client: Client, verb: str, code: int
) -> None:
    server.always(status(code))
    with pytest.raises(ApiError):
        await write(client, verb)
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("verb", [*WRITES, "get"])
async def test_retry_after_is_obeyed_for_every_call(
    server: FaultServer, client: Client, verb: str, code: int
) -> None:
    busy = status(code, headers=(("Retry-After", "0"),))
    server.play(busy, busy)
    await write(client, verb)
    assert client.statistics().retries == 2


async def test_an_eviction_that_is_refused_for_now_is_not_tried_again(
    server: FaultServer, client: Client
) -> None:
    server.always(status(429, headers=(("Retry-After", "0"),)))
    with pytest.raises(TooManyRequests):
        await client.evict("web")
    assert len(server.requests) == 1


async def test_retry_after_is_not_cut_short(
    server: FaultServer, client: Client
) -> None:
    server.play(status(429, headers=(("Retry-After", "1"),)))
    clock = asyncio.get_running_loop().time
    started = clock()
    await client.create(config_map())
    assert clock() - started >= 1.0


@pytest.mark.parametrize("named", ["30", "9" * 5000])
async def test_a_pause_that_does_not_fit_into_the_deadline_is_not_begun(
    server: FaultServer, client: Client, named: str
) -> None:
    server.always(status(429, headers=(("Retry-After", named),)))
    with ends_within(0), pytest.raises(TooManyRequests) as caught:
        await client.get(ConfigMap, "one", deadline=20)
    assert caught.value.retry_after == float(named)


@pytest.mark.parametrize("named", ["soon", "-1", "1.5", "Sun, 15 Nov 2026 17:00 GMT"])
async def test_a_pause_in_no_number_of_seconds_is_ours_to_choose(
    server: FaultServer, client: Client, named: str
) -> None:
    server.always(status(503, headers=(("Retry-After", named),)))
    with pytest.raises(Unavailable) as caught:
        await client.create(config_map())
    assert caught.value.retry_after is None
    assert len(server.requests) == 1


async def test_the_pause_may_stand_in_the_body(
    server: FaultServer, client: Client
) -> None:
    server.play(status(429, retryAfterSeconds=0))
    await client.create(config_map())
    assert len(server.requests) == 2


async def write(client: Client, verb: str) -> None:
    name = "one"
    if verb == "create":
        await client.create(config_map())
    elif verb == "replace":
        await client.replace(website(name))
    elif verb == "apply":
        await client.apply(config_map(), manager="tests")
    elif verb == "patch":
        await client.patch(ConfigMap, name, {"data": {}})
    elif verb == "delete":
        await client.delete(ConfigMap, name)
    elif verb == "delete_collection":
        await client.delete_collection(ConfigMap)
    else:
        await client.get(ConfigMap, name)


# Who asks


class Renewed:
    """Credentials that are another token after each refusal."""

    def __init__(self) -> None:
        self.number = 0
        self.refused: list[Mapping[str, str] | None] = []

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {TOKEN}-{self.number}"}

    async def tls(self) -> TlsMaterial | None:
        return None

    def invalidate(self, refused: Mapping[str, str] | None = None) -> None:
        self.refused.append(refused)
        self.number += 1


@pytest.mark.parametrize("verb", ["get", "create"])
async def test_a_refused_token_is_renewed_once(
    server: FaultServer, connect: Connect, verb: str
) -> None:
    credentials = Renewed()
    client = connect(server.config(credentials=credentials))
    server.play(status(401, "Unauthorized"))
    await write(client, verb)
    tokens = [request.headers["Authorization"] for request in server.requests]
    assert tokens == [f"Bearer {TOKEN}-0", f"Bearer {TOKEN}-1"]
    assert credentials.refused == [{"Authorization": f"Bearer {TOKEN}-0"}]
    server.always(status(401, "Unauthorized"))
    with pytest.raises(Unauthorized) as caught:
        await write(client, verb)
    assert len(server.requests) == 4
    tells_well(caught.value)


async def test_credentials_that_cannot_be_had_fail_the_call_and_send_nothing(
    server: FaultServer, connect: Connect
) -> None:
    class None_(Renewed):
        async def headers(self) -> Mapping[str, str]:
            raise ConfigError("the plugin failed; log in again")

    client = connect(server.config(credentials=None_()))
    with pytest.raises(ConfigError, match="log in"):
        await client.create(config_map())
    assert server.requests == []


async def test_impersonation_and_the_usual_headers_go_with_every_request(
    server: FaultServer, connect: Connect
) -> None:
    acting = Impersonation(user="ann", groups=("a", "b"))
    config = msgspec.structs.replace(server.config(), impersonate=acting)
    client = connect(config, user_agent="tests/1")
    await client.create(config_map())
    (request,) = server.requests
    assert request.headers["Impersonate-User"] == "ann"
    assert request.headers.getall("Impersonate-Group") == ["a", "b"]
    assert request.headers["User-Agent"] == "tests/1"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["Accept-Encoding"] == "identity"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"


# Cancellation


@pytest.mark.parametrize("verb", ["get", "create"])
async def test_a_cancelled_call_leaves_no_connection_and_is_counted(
    server: FaultServer, client: Client, verb: str
) -> None:
    server.always(hang)
    task = asyncio.ensure_future(write(client, verb))
    await eventually(lambda: server.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: client.statistics().transport.connections_open == 0)
    assert client.statistics().requests == {(verb, "Cancelled"): 1}


async def test_a_request_that_cannot_be_written_down_is_counted_and_not_sent(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(user_agent="a\r\nX-Injected: b")
    with pytest.raises(ValueError, match="header"):
        await client.create(config_map())
    assert client.statistics().requests == {("create", "ValueError"): 1}
    assert server.requests == []


async def test_a_cancelled_pause_ends_the_call(
    server: FaultServer, client: Client
) -> None:
    server.always(status(429, headers=(("Retry-After", "5"),)))
    task = asyncio.ensure_future(client.get(ConfigMap, "one"))
    await eventually(lambda: client.statistics().retries)
    task.cancel()
    with ends_within(0), pytest.raises(asyncio.CancelledError):
        await task
    assert len(server.requests) == 1


# A client-side rate limit


async def test_a_rate_limit_spreads_calls_out(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(rate_limit=RateLimit(per_second=20, burst=2))
    clock = asyncio.get_running_loop().time
    started = clock()
    for _ in range(6):
        await client.get(ConfigMap, "one")
    assert clock() - started >= 4 / 20


async def test_a_call_that_a_rate_limit_would_make_late_fails_at_once_and_unsent(
    server: FaultServer, connect: Connect
) -> None:
    client = connect(rate_limit=RateLimit(per_second=0.001, burst=1), retry=QUICK)
    await client.get(ConfigMap, "one")
    for _ in range(3):
        with ends_within(0), pytest.raises(DeadlineExceeded, match="rate limit"):
            await client.create(config_map())
    assert len(server.requests) == 1
