"""Laws of calling runners: whatever a runner does, it costs little and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from tests.operators.sessions.misbehaving import misbehaving
from trimtab.client.calling import Caller
from trimtab.operators.sessions.calling import (
    CallLimits,
    Declined,
    NoAnswer,
    Runner,
    Runners,
)

QUICK = CallLimits(total=1.5, dial=1.5, health=1.0)


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    made = Caller()
    yield made
    await made.close()


def runners(caller: Caller, limits: CallLimits = QUICK) -> Runners:
    return Runners(caller, random=Random(1), limits=limits)


async def add(runners: Runners, runner: Runner) -> None:
    await runners.add_repository(runner, url="u", branch="b", name="n")


async def test_audit_3_five_hundred_calls_share_a_few_connections(
    caller: Caller,
) -> None:
    calls = runners(caller, CallLimits())
    async with misbehaving("good") as server:
        for _ in range(250):
            await calls.health(server.runner())
            await add(calls, server.runner())
        assert server.requests == 500
        assert server.connections == caller.opened == 1


@pytest.mark.parametrize("way", ["giant", "endless"])
async def test_audit_6_an_answer_of_a_gigabyte_costs_64_kib(
    caller: Caller, way: str
) -> None:
    calls = runners(caller, CallLimits())
    async with misbehaving(way) as server:
        with pytest.raises(NoAnswer, match="longer than 65536 bytes"):
            await add(calls, server.runner())
        # What is in the buffers of two sockets was sent and is read by nobody.
        assert server.sent < 16 << 20
    assert caller.reused == 0


@pytest.mark.parametrize("way", ["silent", "garbage", "hangs up"])
async def test_a_runner_without_a_usable_answer_is_a_sentence(
    caller: Caller, way: str
) -> None:
    calls = runners(caller)
    async with misbehaving(way) as server:
        with pytest.raises(NoAnswer) as raised:
            await add(calls, server.runner())
    assert str(raised.value).endswith(".")
    assert raised.value.working == (way == "silent"), "it may be at it still"
    assert "t0ken" not in f"{raised.value} {server.runner()!r}"


async def test_a_refusal_is_told_in_the_runners_words_made_plain(
    caller: Caller,
) -> None:
    calls = runners(caller)
    async with misbehaving("failing") as server:
        with pytest.raises(Declined, match=r"with 500: no disk left$") as raised:
            await add(calls, server.runner())
        assert raised.value.status == 500
        assert calls.statistics().troubled == 0, "it answers, so it is called again"


async def test_a_workflow_that_failed_with_200_has_failed(caller: Caller) -> None:
    calls = runners(caller)
    async with misbehaving("excuse") as server:
        with pytest.raises(Declined, match="the clone failed"):
            await calls.set_workflow(server.runner(), url="u", branch="b", path="")


async def test_a_runner_that_fails_often_is_left_alone_and_then_tried_again(
    caller: Caller,
) -> None:
    calls = runners(caller)
    async with misbehaving("hangs up") as server:
        for _ in range(3):
            with pytest.raises(NoAnswer, match="no answer"):
                await add(calls, server.runner())
        asked = server.requests
        with pytest.raises(NoAnswer, match="3 times in a row"):
            await add(calls, server.runner())
        assert server.requests == asked
        assert calls.statistics().spared == 1
        server.way = "good"
        await add(calls, server.runner("other"))
        calls.forget(("team", "mine"))
        await add(calls, server.runner())
        assert calls.statistics().troubled == 0


async def test_another_pod_is_another_runner(caller: Caller) -> None:
    calls = runners(caller)
    async with misbehaving("hangs up") as bad, misbehaving("good") as good:
        for _ in range(3):
            with pytest.raises(NoAnswer):
                await add(calls, bad.runner())
        await add(calls, good.runner())


async def test_fault_g_runners_that_never_answer_delay_nobody_else(
    caller: Caller,
) -> None:
    calls = runners(caller, CallLimits(total=20.0, together=8))
    loop = asyncio.get_running_loop()
    async with misbehaving("silent") as silent, misbehaving("good") as good:
        async with asyncio.TaskGroup() as group:
            stuck = [
                group.create_task(add(calls, silent.runner(f"s{number}")))
                for number in range(8)
            ]
            while silent.requests < len(stuck):
                await asyncio.sleep(0)
            began = loop.time()
            await calls.health(good.runner())
            assert loop.time() - began < 10.0
            for task in stuck:
                task.cancel()
        await add(calls, good.runner())
    assert calls.statistics().under_way == 0


async def test_one_runner_has_few_calls_at_once(caller: Caller) -> None:
    calls = runners(caller, CallLimits(total=20.0))
    async with misbehaving("silent") as server, asyncio.TaskGroup() as group:
        stuck = [group.create_task(add(calls, server.runner())) for _ in range(2)]
        while server.requests < 2:
            await asyncio.sleep(0)
        with pytest.raises(NoAnswer, match="being called already"):
            await add(calls, server.runner())
        for task in stuck:
            task.cancel()


async def test_of_runners_that_failed_only_so_many_are_remembered(
    caller: Caller,
) -> None:
    calls = runners(caller, CallLimits(remembered=10, dial=0.3))
    async with misbehaving("hangs up") as server:
        for number in range(30):
            with pytest.raises(NoAnswer):
                await add(calls, server.runner(f"s{number}"))
    assert calls.statistics().troubled <= 10
