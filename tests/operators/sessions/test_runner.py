"""Laws of the reference runner, of the real program with real repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.operators.sessions.runner_process import (
    HOST,
    Process,
    events,
    repository,
    running,
    spoken,
    started,
)
from tests.pool.worker_process import NAME, UID, write_secret
from trimtab.client.calling import Caller, Place
from trimtab.operators.sessions.runner.git import GitFailed, check_branch, check_url
from trimtab.operators.sessions.runner.program import main
from trimtab.pool import secrets
from trimtab.pool.calls import Target
from trimtab.pool.httpcalls import HttpCalls
from trimtab.pool.secrets import Authority
from trimtab.testing import eventually


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with running(tmp_path_factory.mktemp("workspace")) as made:
        yield made


async def test_only_health_is_answered_without_the_token(runner: Process) -> None:
    for path in ("/health", "/healthz"):
        assert (await runner.ask(path, token="")).status == 200
    for path in ("/repos/status", "/capabilities", "/events/t", "/content/list"):
        for shown in ("", "wrong", runner.token[:-1], "é"):
            assert (await runner.ask(path, token=shown)).status in (400, 401)
    assert (await runner.ask("/capabilities")).status == 200


async def test_a_repository_is_cloned_once_and_then_found(
    runner: Process, tmp_path: Path
) -> None:
    url = repository(tmp_path / "shop", "main", "next")
    body = {"url": url, "branch": "main", "name": "shop"}
    first = await runner.said("/repos/add", body)
    again = await runner.said("/repos/add", body)
    other = await runner.said("/repos/add", {**body, "branch": "next"})
    assert [each["newly_cloned"] for each in (first, again, other)] == [
        True,
        False,
        False,
    ]
    text = (runner.folder / "repos/shop/README.md").read_text()
    assert text == "This is next.\n"
    found = {
        each["name"]: each for each in (await runner.said("/repos/status"))["repos"]
    }
    assert found["shop"] == {
        "name": "shop",
        "url": url,
        "branches": ["main", "next"],
        "currentActiveBranch": "next",
        "defaultBranch": "main",
    }


async def test_many_who_ask_for_one_repository_get_one_clone(
    runner: Process, tmp_path: Path
) -> None:
    body = {"url": repository(tmp_path / "many"), "branch": "main"}
    answers = await asyncio.gather(*(runner.said("/repos/add", body) for _ in range(5)))
    assert [each["newly_cloned"] for each in answers].count(True) == 1


async def test_a_repository_that_cannot_be_cloned_is_a_sentence_and_no_folder(
    runner: Process, tmp_path: Path
) -> None:
    url = repository(tmp_path / "real")
    for body in (
        {"url": str(tmp_path / "nowhere"), "name": "bad"},
        {"url": url, "branch": "no-such", "name": "bad"},
    ):
        reply = await runner.ask("/repos/add", body)
        assert reply.status == 500
        detail = msgspec.json.decode(reply.body)["detail"]
        assert detail.startswith("git clone failed with exit code 128: ")
    assert not (runner.folder / "repos/bad").exists()
    assert (await runner.ask("/repos/add", {"branch": "main"})).status == 400


async def test_a_removed_repository_is_gone_and_removing_it_again_is_no_failure(
    runner: Process, tmp_path: Path
) -> None:
    await runner.said("/repos/add", {"url": repository(tmp_path / "old")})
    removed = [await runner.said("/repos/remove", {"name": "old"}) for _ in range(2)]
    assert [each["removed"] for each in removed] == [True, False]
    assert not (runner.folder / "repos/old").exists()


async def test_a_path_in_a_name_is_refused(runner: Process, tmp_path: Path) -> None:
    url = repository(tmp_path / "fine")
    for name in ("../up", "a/b", "..", ".git", "-x"):
        reply = await runner.ask("/repos/add", {"url": url, "name": name})
        assert reply.status == 500
        assert (await runner.ask("/repos/remove", {"name": name})).status == 400


@pytest.mark.parametrize("url", ["", "-u./x", "ext::sh -c true", "a\nb"])
def test_no_option_and_no_program_hides_in_an_address(url: str) -> None:
    with pytest.raises(GitFailed):
        check_url(url)


@pytest.mark.parametrize("name", ["-f", "a..b", "a b", "x.lock", "a/", "@{-1}", "a\n"])
def test_no_option_hides_in_a_branch(name: str) -> None:
    with pytest.raises(GitFailed):
        check_branch(name)
    assert check_branch("feature/x-1.2") == "feature/x-1.2"


async def test_a_workflow_is_active_or_the_answer_is_a_failure(
    runner: Process, tmp_path: Path
) -> None:
    url = repository(tmp_path / "flows", file="review/steps.md")
    body = {"gitUrl": url, "branch": "main", "path": "review"}
    said = [(await runner.said("/workflow", body))["message"] for _ in range(2)]
    assert said == ["It is active.", "It was active already."]
    for wrong in ({"path": "no/such"}, {"path": "../.."}, {"branch": "none"}):
        reply = await runner.ask("/workflow", {**body, **wrong})
        assert reply.status == 500
    assert spoken(await runner.run("workflow")) == url
    await runner.said("/workflow", {"gitUrl": ""})
    assert spoken(await runner.run("workflow")) == "none"


async def test_a_run_is_streamed_from_its_start_to_its_end(runner: Process) -> None:
    told = await runner.run("say hello\nwrite notes/a.txt text\nread notes/a.txt")
    kinds = [each["type"] for each in told]
    tool = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert kinds == ["RUN_STARTED", *text, *tool, *tool, "RUN_FINISHED"]
    assert told[-2]["content"] == "text"
    assert {(each["threadId"], each["runId"]) for each in (told[0], told[-1])} == {
        ("t", "r")
    }


async def test_a_run_that_fails_or_is_interrupted_ends_with_an_error(
    runner: Process,
) -> None:
    told = await runner.run("fail because")
    assert (told[-1]["type"], told[-1]["message"]) == ("RUN_ERROR", "because")

    async def interrupted() -> bool:
        body = {"thread_id": "slow"}
        return bool((await runner.said("/interrupt", body))["interrupted"])

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(runner.run("sleep 60", thread="slow"))
        await eventually(interrupted)
    assert slow.result()[-1]["message"] == "interrupted"


async def test_a_thread_has_one_run_and_the_model_stays_while_it_lasts(
    runner: Process,
) -> None:
    message = {"role": "user", "content": "sleep 60"}
    asked = {"threadId": "one", "messages": [message]}

    async def busy() -> bool:
        return bool((await runner.said("/tasks"))["tasks"])

    async with asyncio.TaskGroup() as group:
        slow = group.create_task(runner.ask("/", asked))
        await eventually(busy)
        assert (await runner.ask("/", asked)).status == 409
        assert (await runner.ask("/model", {"model": "x"})).status == 422
        await runner.said("/interrupt", {})
        await slow
    assert await runner.said("/model", {"model": "x"}) == {"model": "x"}


async def test_events_are_there_for_who_comes_late(runner: Process) -> None:
    await runner.run("say one", thread="late")
    caller = Caller()
    lines = caller.lines(
        runner.place,
        "/events/late",
        headers=(("X-Ambient-Session-Token", runner.token),),
        within=5.0,
    )
    heard = b""
    async for line in lines:
        heard += line + b"\n"
        if b"RUN_FINISHED" in line:
            break
    await lines.aclose()  # type: ignore[attr-defined]
    await caller.close()
    assert spoken(events(heard)) == "one"


async def test_what_leads_out_of_the_workspace_is_refused(runner: Process) -> None:
    (runner.folder / "out").symlink_to("/etc")
    for path in ("../x", "out/passwd", "a/../../b", "%2e%2e/x"):
        for verb in ("list", "file"):
            reply = await runner.ask(f"/content/{verb}?path={path}")
            assert reply.status == 400
    written = {"path": "deep/er.txt", "content": "aGk=", "encoding": "base64"}
    await runner.said("/content/write", written)
    assert (await runner.ask("/content/file?path=deep/er.txt")).body == b"hi"
    assert (await runner.ask("/content/write", {"path": "../x"})).status == 400


async def test_nonsense_is_answered_and_hurts_nobody(runner: Process) -> None:
    nonsense: tuple[Any, ...] = ([], "x", {"messages": 1}, {"messages": []})
    for body in nonsense:
        assert (await runner.ask("/", body)).status == 400
    assert (await runner.ask("/nowhere")).status == 404
    assert (await runner.ask("/health")).status == 200


async def test_a_prompt_is_told_once_after_the_clones_and_ends_with_its_code(
    tmp_path: Path,
) -> None:
    url = repository(tmp_path / "first")
    repos = msgspec.json.encode([{"url": url, "branch": "main"}]).decode()
    prompt = "read repos/first/README.md\nwrite told.txt yes\nexit 7"
    with started(tmp_path / "w", INITIAL_PROMPT=prompt, REPOS_JSON=repos) as process:
        assert await asyncio.to_thread(process.process.wait, 20) == 7
    assert (tmp_path / "w/told.txt").read_text() == "yes"


async def test_a_session_that_is_resumed_is_not_told_its_prompt(tmp_path: Path) -> None:
    with running(
        tmp_path / "w", INITIAL_PROMPT="write told.txt yes", IS_RESUME="true"
    ) as process:
        await process.run("say hi")  # whatever it begins with has begun
        assert process.end() == 0
    assert not (tmp_path / "w/told.txt").exists()


def test_a_runner_that_lacks_something_ends_with_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "below")
    for environment in (
        {},
        {"AGENTIC_SESSION_NAME": "mine", "REPOS_JSON": "{"},
        {"AGENTIC_SESSION_NAME": "mine", "WORKSPACE_PATH": folder},
        {"TRIMTAB_WORKER": "w", "TRIMTAB_WORKER_SECRET": folder},
    ):
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            assert main(["--host", HOST, "--port", "0"]) == 2
        said = capsys.readouterr().err
        assert said.startswith("runner: ")
        assert said.count("\n") == 1


async def test_a_warm_runner_serves_one_session_and_nothing_of_it_is_left(
    tmp_path: Path,
) -> None:
    authority = Authority.make("test", now=datetime.now(UTC))
    key = write_secret(tmp_path / "secret", authority=authority)
    arguments = ("--warm", "--secret", str(tmp_path / "secret"), "--worker-port", "0")
    tokens = tmp_path / "tokens"
    with started(
        tmp_path / "w", *arguments, AMBIENT_TOKEN_FOLDER=str(tokens)
    ) as process:
        process.serving()
        control = process.worker_port
        target = Target(
            name=NAME,
            uid=UID,
            address=HOST,
            port=control,
            ca=authority.pem,
            key=key,
            bearer=secrets.control(key, UID),
        )
        caller = Caller()
        calls = HttpCalls(caller)
        assert (await process.ask("/health")).status == 503
        assert (await process.ask("/capabilities")).status == 503

        async def bind(epoch: int, name: str) -> int:
            token = secrets.token(key, UID, f"c{epoch}", epoch)
            environment = {"AGENTIC_SESSION_NAME": name, "AGUI_TOKEN": f"t-{name}"}
            body = {"environment": environment, "files": {"bot-token": name}}
            reply = await caller.call(
                Place(host=HOST, port=control, name=NAME, ca=authority.pem),
                "POST",
                "/session",
                headers=(("Authorization", f"Bearer {token}"),),
                body=msgspec.json.encode(body),
                within=10.0,
            )
            return reply.status

        assert await bind(1, "early") == 403
        await calls.begin(target, epoch=1, checkout="c1", tenant="team")
        assert await bind(1, "first") == 200
        assert await bind(1, "first") == 200, "a renewal"
        assert await bind(1, "second") == 409
        process.token = "t-first"
        await process.run("write mine.txt secret")
        assert (tokens / "bot-token").stat().st_mode & 0o777 == 0o600
        await calls.clean(target, epoch=1, checkout="c1")
        assert not (tmp_path / "w/mine.txt").exists()
        assert not (tokens / "bot-token").exists()
        assert (await process.ask("/health")).status == 503
        await calls.begin(target, epoch=2, checkout="c2", tenant="team")
        assert await bind(2, "second") == 200
        assert (await process.ask("/capabilities")).status == 401
        process.token = "t-second"
        assert spoken(await process.run("env AGENTIC_SESSION_NAME")) == "second"
        await caller.close()
        assert process.end() == 0
