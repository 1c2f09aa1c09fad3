"""Laws of the worker program, asked of a real process over verified TLS."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.pool.worker_process import Process, worker
from trimtab.client.calling import NoReply
from trimtab.pool.calls import CallFailed
from trimtab.pool.kinds import Activation
from trimtab.pool.secrets import Authority
from trimtab.testing.waiting import eventually

SLOW = ("--handler", "tests.pool.worker_handlers:Slow")


async def held(here: Process, epoch: int, checkout: str, path: str) -> str:
    """Use a worker that does not answer; how that ends."""
    try:
        return str((await here.use(epoch, checkout, path)).status)
    except NoReply as error:
        return str(error)


async def uses(here: Process) -> int:
    """How many calls are under way in a worker."""
    reply = await here.caller.call(
        here.place,
        "GET",
        "/v1/health",
        headers=(("Authorization", f"Bearer {here.target.bearer}"),),
        within=5.0,
    )
    return int(json.loads(reply.body)["uses"])


async def test_only_the_client_of_the_present_checkout_is_served(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"
    async with worker(tmp_path, "--record", str(record)) as here:
        assert (await here.use(1, "a")).status == 403, "nothing was begun"
        await here.begin(1, "a")
        assert (await here.use(1, "a")).body == b"hello"
        await here.begin(2, "b")
        assert (await here.use(1, "a")).status == 403
        assert (await here.use(2, "b")).status == 200
        with pytest.raises(CallFailed, match="epoch 1 is over"):
            await here.begin(1, "a")
        await here.clean(2, "b")
        assert (await here.use(2, "b")).status == 403
        with pytest.raises(CallFailed):
            await here.begin(2, "b")
        await here.calls.healthy(here.target)
    seen = [json.loads(line) for line in record.read_text().splitlines()]
    assert [each["event"] for each in seen] == ["serve", "serve", "clean"]
    assert [each.get("checkout") for each in seen] == ["a", "b", None]


async def test_a_begin_drops_the_calls_and_connections_of_lower_epochs(
    tmp_path: Path,
) -> None:
    async with worker(tmp_path, *SLOW) as here, asyncio.TaskGroup() as group:
        await here.begin(1, "a")
        old = [group.create_task(held(here, 1, "a", "/x")) for _ in range(3)]
        await eventually(lambda: _is(here, 3))
        await here.begin(2, "b")
        ends = [await each for each in old]
        assert all("gave no answer" in each for each in ends), ends
        assert await uses(here) == 0, "an acknowledged begin leaves nobody inside"
        new = group.create_task(held(here, 2, "b", "/x"))
        await eventually(lambda: _is(here, 1))
        await here.begin(2, "b")
        assert not new.done(), "the same begin once more drops nobody"
        await here.clean(2, "b")
        assert "gave no answer" in await new


async def _is(here: Process, wanted: int) -> bool:
    return await uses(here) == wanted


async def test_a_call_that_does_not_end_fails_the_begin_and_spoils_the_worker(
    tmp_path: Path,
) -> None:
    deaf = (*SLOW, "--patience", "0.2")
    async with worker(tmp_path, *deaf) as here, asyncio.TaskGroup() as group:
        await here.begin(1, "a")
        old = group.create_task(held(here, 1, "a", "/deaf"))
        await eventually(lambda: _is(here, 1))
        with pytest.raises(CallFailed, match="does not end"):
            await here.begin(2, "b")
        with pytest.raises(CallFailed, match="cannot be used"):
            await here.begin(3, "c")
        await here.calls.healthy(here.target)
        await old


async def test_a_worker_that_was_not_cleaned_is_never_begun_again(
    tmp_path: Path,
) -> None:
    handler = "tests.pool.worker_handlers:Dirty"
    async with worker(tmp_path, "--handler", handler) as here:
        await here.begin(1, "a")
        with pytest.raises(CallFailed, match="step clean failed"):
            await here.clean(1, "a")
        with pytest.raises(CallFailed):
            await here.clean(1, "a")
        with pytest.raises(CallFailed):
            await here.begin(2, "b")


async def test_a_worker_is_bound_to_one_tenant_and_twice_is_once(
    tmp_path: Path,
) -> None:
    record, activation = tmp_path / "record", Activation()
    async with worker(tmp_path, "--record", str(record)) as here:

        async def bind(epoch: int, tenant: str) -> None:
            await here.calls.activate(
                here.target, epoch=epoch, tenant=tenant, activation=activation
            )

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(bind(1, "acme"))
        await here.begin(1, "a")
        assert (await here.use(1, "a")).status == 200
        with pytest.raises(CallFailed, match="another tenant"):
            await bind(2, "evil")
        with pytest.raises(CallFailed, match="epoch 1 is over"):
            await bind(1, "acme")
    seen = [json.loads(line)["event"] for line in record.read_text().splitlines()]
    assert seen.count("activate") == 1


async def test_a_failed_activation_spoils_the_worker(tmp_path: Path) -> None:
    handler = "tests.pool.worker_handlers:Unbindable"
    async with worker(tmp_path, "--handler", handler) as here:
        with pytest.raises(CallFailed, match="step activate failed"):
            await here.calls.activate(
                here.target, epoch=1, tenant="acme", activation=Activation()
            )
        with pytest.raises(CallFailed):
            await here.begin(1, "a")


async def test_a_restarted_worker_refuses_until_it_is_begun_and_below_what_it_knew(
    tmp_path: Path,
) -> None:
    authority = Authority.make("test", now=datetime.now(UTC))
    state = ("--state", str(tmp_path / "epoch"))
    async with worker(tmp_path, *state, authority=authority) as here:
        await here.begin(5, "a")
        here.process.kill()
        await here.process.wait()
    async with worker(tmp_path, *state, authority=authority) as here:
        assert (await here.use(5, "a")).status == 403
        with pytest.raises(CallFailed, match="epoch 4 is over"):
            await here.begin(4, "x")
        await here.begin(6, "b")
        assert (await here.use(6, "b")).status == 200


async def test_strangers_control_nothing_and_an_impostor_is_not_called(
    tmp_path: Path,
) -> None:
    async with worker(tmp_path) as here:
        stranger = msgspec.structs.replace(here.target, bearer=here.token(1, "a"))
        with pytest.raises(CallFailed, match="Only the pool's gateways"):
            await here.calls.begin(stranger, epoch=1, checkout="a", tenant="t")
        other = msgspec.structs.replace(here.target, name="worker-b")
        with pytest.raises(CallFailed, match="mismatch"):
            await here.calls.healthy(other)
        foreign = Authority.make("other", now=datetime.now(UTC)).pem
        other = msgspec.structs.replace(here.target, ca=foreign)
        with pytest.raises(CallFailed, match="verify failed"):
            await here.calls.healthy(other)


async def test_a_worker_that_is_told_to_stop_lets_its_client_finish(
    tmp_path: Path,
) -> None:
    async with worker(tmp_path, *SLOW) as here, asyncio.TaskGroup() as group:
        await here.begin(1, "a")
        last = group.create_task(held(here, 1, "a", "/x"))
        await eventually(lambda: _is(here, 1))
        here.terminate()

        async def refuses() -> bool:
            try:
                await here.begin(2, "b")
            except CallFailed as error:
                return "stopping" in str(error)
            return False

        await eventually(refuses)
        assert not last.done()
        await here.clean(1, "a")
        await last
        assert await here.process.wait() == 0
