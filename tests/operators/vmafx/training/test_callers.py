"""Laws of callers: a stranger may look, and changes nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec
import pytest

from tests.operators.vmafx.training.programs import program
from tests.operators.vmafx.training.school import samples
from tests.operators.vmafx.training.test_doors import intake, lines
from trimtab.client.calling import Caller
from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.callers import Callers
from trimtab.operators.vmafx.training.calling import place_of
from trimtab.operators.vmafx.training.doors import Doors
from trimtab.operators.vmafx.training.settings import settings_of
from trimtab.operators.vmafx.training.tokens import bearer, digest_of
from trimtab.runtime.asks import Answer, Ask

TOKEN, OTHER = "a" * 64, "b" * 64
CHANGES = ("/samples", "/pause", "/resume", "/rollback")


def filled(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def asked(
    doors: Doors, path: str, *, token: str, method: str = "POST", scheme: str = "Bearer"
) -> Answer:
    headers = {"authorization": f"{scheme} {token}"} if token else {}
    body = lines(samples(5, seed=1)) if path == "/samples" else b""
    return await doors.handle(Ask(method=method, path=path, headers=headers, body=body))


async def test_a_stranger_may_look_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    callers = Callers(filled(tmp_path / "token", f"{digest_of(TOKEN)}\n"))
    async with intake(tmp_path / "t") as taken:
        doors = Doors(taken, may=callers.may)
        before = taken.status
        for path in CHANGES:
            for shown in ("", OTHER, TOKEN[:-1], TOKEN + "a", digest_of(TOKEN)):
                answer = await asked(doors, path, token=shown)
                assert answer.status == 401
                assert ("WWW-Authenticate", "Bearer") in answer.headers
                sentence = msgspec.json.decode(answer.body)["message"]
                assert "Authorization: Bearer" in sentence
                assert sentence.endswith(".")
            assert (await asked(doors, path, token=TOKEN, scheme="Basic")).status == 401
        assert taken.status == before
        for path in ("/status", "/history", "/healthz"):
            assert (await asked(doors, path, token="", method="GET")).status == 200
        for path in CHANGES:
            assert (await asked(doors, path, token=TOKEN)).status == 200
        assert taken.status.current_samples == 5
    assert TOKEN not in caplog.text + repr(callers) + repr(doors)


async def test_what_counts_is_what_the_file_says_now(tmp_path: Path) -> None:
    first = filled(tmp_path / "1", TOKEN)
    link = tmp_path / "token"  # as a kubelet changes what is mounted
    link.symlink_to(first)
    callers = Callers(link)
    assert callers.may(TOKEN)
    assert not callers.may("")
    second = filled(tmp_path / "2", f"{digest_of(OTHER)}\n")
    (tmp_path / "next").symlink_to(second)
    os.rename(tmp_path / "next", link)
    assert callers.may(OTHER)
    assert not callers.may(TOKEN)
    for wrong in ("", "sha256:abc", "\n", "é"):
        filled(second, wrong)
        assert not any(callers.may(each) for each in (OTHER, TOKEN, wrong, ""))
    link.unlink()
    assert not callers.may(OTHER)
    filled(link, TOKEN)
    assert callers.may(TOKEN)


@pytest.mark.parametrize("text", ["", "\n", "sha256:", f"sha256:{'A' * 64}"])
def test_a_trainer_does_not_begin_without_the_token_that_was_named(
    tmp_path: Path, text: str
) -> None:
    for file in (filled(tmp_path / "token", text), tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError, match="no token: name another --token-file"):
            Callers(file)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "trainer.example.com"])
def test_only_on_loopback_is_a_trainer_open_to_all(host: str, tmp_path: Path) -> None:
    asked_for = ["--base", "b", "--address", f"{host}:9091"]
    with pytest.raises(ConfigError, match=r"file of a token .* --token-file"):
        settings_of(asked_for, {})
    named = {"VMAFX_SIDECAR_TOKEN_FILE": "/token"}
    assert settings_of(asked_for, named).token_file == Path("/token")
    for loopback in ("127.0.0.1", "127.64.0.9", "localhost", "[::1]"):
        found = settings_of(["--base", "b", "--address", f"{loopback}:1"], {})
        assert found.token_file is None
    # A pod without mounts of its own finds its volume elsewhere.
    folder = {"TRIMTAB_VOLUME_TOKEN": str(tmp_path)}
    found = settings_of([*asked_for, "--token-file", "/nowhere/digest"], folder)
    assert found.token_file == tmp_path / "digest"


async def test_a_stranger_s_samples_never_reach_the_model_of_the_program(
    tmp_path: Path,
) -> None:
    token = filled(tmp_path / "token", digest_of(TOKEN))
    caller = Caller()
    async with program(tmp_path, "--token-file", str(token)) as made:

        async def sent(shown: str) -> int:
            reply = await caller.call(
                place_of(f"127.0.0.1:{made.port}"),
                "POST",
                "/samples",
                headers=bearer(shown),
                body=lines(samples(5, seed=1)),
                within=30.0,
            )
            return reply.status

        assert [await sent(each) for each in ("", OTHER)] == [401, 401]
        assert (await made.ask("/status"))["current_samples"] == 0
        assert await sent(TOKEN) == 200
        filled(token, digest_of(OTHER))
        assert [await sent(each) for each in (TOKEN, OTHER)] == [401, 200]
        # Its socket is for this user, who needs none.
        assert await made.send(samples(3, seed=2), until=3) == 3
        assert (await made.ask("/status"))["current_samples"] == 13
        await made.stop()
    await caller.close()
