"""Laws of the doors: who brings samples is answered line by line, and bounded."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.operators.vmafx.training.school import NAMES, samples, trainer
from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training import unix
from trimtab.operators.vmafx.training.doors import Doors
from trimtab.operators.vmafx.training.intake import Busy, Intake
from trimtab.operators.vmafx.training.samples import MOST_LINES, Sample
from trimtab.operators.vmafx.training.trainer import Trainer
from trimtab.runtime.asks import Answer, Ask
from trimtab.testing import eventually


@asynccontextmanager
async def intake(folder: Path, **more: Any) -> AsyncIterator[Intake]:
    with trainer(folder, **more) as made:
        taken = Intake(made, room=1000)
        async with asyncio.TaskGroup() as group:
            group.create_task(taken.run())
            try:
                yield taken
            finally:
                taken.close()


def lines(found: Sequence[Sample]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in found)


async def asked(
    doors: Doors, method: str, path: str, body: bytes = b""
) -> tuple[int, Any]:
    answer: Answer = await doors.handle(Ask(method=method, path=path, body=body))
    if answer.type == "application/x-ndjson":
        return answer.status, said(answer.body)
    return answer.status, msgspec.json.decode(answer.body)


def said(body: bytes) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in body.splitlines()]


GOOD = samples(1, seed=1)[0]
BAD = {
    b"hello": "no sample",
    b'{"job_id": "a", "features": [1, 2], "true_score": 5}': "6 features here",
    b'{"job_id": "", "features": [1,2,3,4,5,6], "true_score": 5}': "job_id",
    b'{"job_id": "a", "features": [1,2,3,4,5,6]}': "true_score",
    b'{"job_id": "a", "features": [1,2,3,4,5,6], "true_score": 101}': "0 to 100",
    b'{"job_id": "a", "features": [1,2,3,4,5,6], "true_score": -1}': "0 to 100",
    b'{"job_id": "a", "features": [1,2,3,4,5,6], "true_score": "x"}': "no sample",
    b'{"job_id": "a", "features": [1,2,3,4,5,NaN], "true_score": 1}': "no sample",
    b'{"job_id": "a", "features": [1,2,3,4,5,1e300], "true_score": 1}': "Feature 5",
    b"[" * 5000: "no sample",
}


async def test_each_line_is_answered_in_order_and_a_bad_one_harms_nobody(
    tmp_path: Path,
) -> None:
    async with intake(tmp_path) as taken:
        doors = Doors(taken, may=lambda shown: True)
        bad = list(BAD)
        body = b"\n".join(
            each for line in bad for each in (line, msgspec.json.encode(GOOD))
        )
        status, acks = await asked(doors, "POST", "/samples", body)
        assert status == 200
        assert len(acks) == 2 * len(bad)
        for line, refused, good in zip(bad, acks[::2], acks[1::2], strict=True):
            assert refused["ok"] is False
            assert BAD[line] in refused["error"]
            assert "retryable" not in refused
            assert good == {
                "ok": True,
                "job_id": GOOD.job_id,
                "step": 0,
                "trained": False,
            }
        _, status_said = await asked(doors, "GET", "/status")
        assert status_said["current_samples"] == len(bad)


async def test_the_status_has_what_the_operator_reads(tmp_path: Path) -> None:
    async with intake(tmp_path, minimum=600) as taken:
        doors = Doors(taken, may=lambda shown: True)
        _, before = await asked(doors, "GET", "/status")
        assert before == {
            "phase": "running",
            "current_samples": 0,
            "last_checkpoint_time": "",
            "model_version": "",
            "loss": None,
            "steps": 0,
            "gate": None,
            "message": "600 more samples until the model is judged.",
            "features": list(NAMES),
            "rollbacks": 0,
        }
        status, acks = await asked(
            doors, "POST", "/samples", lines(samples(600, seed=2))
        )
        assert status == 200
        assert acks[-1]["checkpoint"] == "v000001"
        assert any("loss" in ack for ack in acks if ack["trained"])
        _, after = await asked(doors, "GET", "/status")
        assert after["model_version"] == "v000001"
        assert after["last_checkpoint_time"] == "2026-01-02T12:00:00Z"
        assert after["steps"] > 0
        assert after["loss"] > 0
        gate = after["gate"]
        assert gate["passed"] is True
        assert gate["rmse"] < gate["base"]["rmse"]
        assert {"plcc", "srocc", "rmse"} == set(gate["base"])
        assert gate["reason"] == ""
        _, history = await asked(doors, "GET", "/history")
        assert len(history["losses"]) == after["steps"]
        assert history["gates"] == [{"step": after["steps"], "gate": gate}]


async def test_it_is_paused_resumed_and_rolled_back_by_http(tmp_path: Path) -> None:
    async with intake(tmp_path, minimum=600) as taken:
        doors = Doors(taken, may=lambda shown: True)
        status, body = await asked(doors, "POST", "/pause", b"{}")
        assert (status, body["phase"]) == (200, "paused")
        await asked(doors, "POST", "/samples", lines(samples(600, seed=2)))
        assert (await asked(doors, "GET", "/status"))[1]["steps"] == 0
        status, body = await asked(doors, "POST", "/resume")
        assert (status, body["phase"]) == (200, "running")
        assert body["steps"] > 0
        for wish in (b"", b"{}", b'{"version": "last-good"}', b'{"version": "v0"}'):
            status, body = await asked(doors, "POST", "/rollback", wish)
            assert status == 200
        assert body["rollbacks"] == 4
        status, body = await asked(doors, "POST", "/rollback", b'{"version": "v9"}')
        assert (status, body["code"]) == (404, "not-found")
        status, body = await asked(doors, "POST", "/rollback", b"[]")
        assert (status, body["code"]) == (400, "bad-request")
        assert (await asked(doors, "GET", "/pause"))[0] == 405
        assert (await asked(doors, "GET", "/nothing"))[0] == 404
        assert (await asked(doors, "GET", "/healthz"))[0] == 200


async def test_what_is_too_much_is_sent_back_and_nothing_is_kept_of_it(
    tmp_path: Path,
) -> None:
    async with intake(tmp_path) as taken:
        doors = Doors(taken, may=lambda shown: True)
        many = msgspec.json.encode(GOOD) + b"\n"
        status, _ = await asked(doors, "POST", "/samples", many * (MOST_LINES + 1))
        assert status == 413
        _, acks = await asked(doors, "POST", "/samples", many * 1001)
        assert all(ack["retryable"] and not ack["ok"] for ack in acks)
        assert all(ack["job_id"] == GOOD.job_id for ack in acks)
        assert taken.status.current_samples == 0
    with pytest.raises(Busy):
        await taken.do(lambda at: None)
    acks = await taken.offer([many])
    assert acks[0].retryable


async def test_samples_of_many_are_flushed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with intake(tmp_path) as taken:
        real, calls = Trainer.accept, list[int]()

        def counted(self: Trainer, found: Sequence[Sample], *, at: float) -> Any:
            calls.append(len(found))
            return real(self, found, at=at)

        monkeypatch.setattr(Trainer, "accept", counted)
        line = msgspec.json.encode(GOOD)
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(taken.offer([line, line]))
        assert sum(calls) == 100
        assert len(calls) <= 3


async def test_what_the_disk_refuses_may_be_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    async with intake(tmp_path) as taken:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            (ack,) = await taken.offer([msgspec.json.encode(GOOD)])
            assert (ack.ok, ack.retryable) == (False, True)
            assert "No space left" in ack.error
            assert phase(taken) == "failed"
        # Nobody sends anything: it tries again by itself.
        await eventually(lambda: phase(taken) == "running")
        (ack,) = await taken.offer([msgspec.json.encode(GOOD)])
        assert ack.ok


def phase(taken: Intake) -> str:
    return taken.status.phase


async def speak(path: Path, content: bytes, *, answers: int) -> list[dict[str, Any]]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(content)
        await writer.drain()
        found = [await reader.readline() for _ in range(answers)]
    finally:
        writer.close()
        await writer.wait_closed()
    return said(b"".join(found))


async def test_the_socket_answers_lines_and_is_for_this_user_only(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    async with intake(tmp_path / "t") as taken:
        async with unix.serving(path, taken):
            mode = os.lstat(path).st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
            assert stat.S_IMODE(os.lstat(tmp_path / "s.lock").st_mode) == 0o600
            found = samples(60, seed=3)
            *acks, last = await speak(path, lines(found) + b"\nhello\n", answers=61)
            assert [ack["job_id"] for ack in acks] == [each.job_id for each in found]
            assert any(ack["trained"] for ack in acks)
            assert last["ok"] is False
            (ack,) = await speak(path, b"x" * 200_000, answers=1)
            assert "at most 65536 bytes" in ack["error"]
        assert not path.exists()
        assert taken.status.current_samples == 60


async def test_a_socket_that_was_left_behind_is_taken_over_and_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    async with intake(tmp_path / "t") as taken:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        async with unix.serving(path, taken):
            assert await speak(path, b"x\n", answers=1)
            with pytest.raises(ConfigError, match="Another trainer serves"):
                async with unix.serving(path, taken):
                    pass
            assert await speak(path, b"x\n", answers=1)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            with pytest.raises(ConfigError, match="Another program serves"):
                async with unix.serving(path, taken):
                    pass
        path.unlink()
        path.write_text("precious")
        with pytest.raises(ConfigError, match="no socket of ours"):
            async with unix.serving(path, taken):
                pass
        assert path.read_text() == "precious"
        for wrong in (tmp_path / "none" / "s", tmp_path / ("long" * 40)):
            with pytest.raises(ConfigError, match="cannot be served"):
                async with unix.serving(wrong, taken):
                    pass


async def test_connections_beyond_the_limit_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix, "CONNECTIONS", 1)
    path = tmp_path / "s"
    async with intake(tmp_path / "t") as taken, unix.serving(path, taken):
        _, first = await asyncio.open_unix_connection(str(path))
        reader, second = await asyncio.open_unix_connection(str(path))
        assert await asyncio.wait_for(reader.read(), 10) == b""
        for each in (first, second):
            each.close()
            await each.wait_closed()
        # The place of one that has gone is free again.
        await eventually(lambda: _answered(path))


async def _answered(path: Path) -> bool:
    try:
        return bool(await speak(path, b"x\n", answers=1))
    except (ConnectionError, msgspec.DecodeError):
        return False
