"""Laws of exec plugins, with real little programs."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import pty
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.client.test_credentials import Authority
from trimtab.client.credentials import TlsFiles, TlsMaterial
from trimtab.client.errors import ConfigError
from trimtab.client.execplugin import (
    COMPLAINT_LIMIT,
    MARGIN,
    OUTPUT_LIMIT,
    ExecPlugin,
    ExecSpec,
)

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
SOURCE = "config: users[0].user.exec"
BASE = TlsMaterial(server_name="kubernetes", insecure=True)


def program(folder: Path, body: str, *, name: str = "login") -> str:
    """An executable file that runs ``body`` in Python and counts its runs."""
    path = folder / name
    runs = folder / "runs"
    path.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, os, sys\n"
        f"open({str(runs)!r}, 'a').write('x')\n"
        "def answer(version=None, kind='ExecCredential', **status):\n"
        "    info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "    version = version or info['apiVersion']\n"
        "    print(json.dumps(dict(apiVersion=version, kind=kind, status=status)))\n"
        f"{body}\n"
    )
    path.chmod(0o755)
    return str(path)


def runs(folder: Path) -> int:
    path = folder / "runs"
    return len(path.read_text()) if path.exists() else 0


def plugin(
    command: str,
    *,
    api_version: str = V1,
    interactive_mode: str = "Never",
    environ: Mapping[str, str] | None = None,
    cluster: Mapping[str, object] | None = None,
    files: TlsFiles | None = None,
    timeout: float | None = None,
    clock: Callable[[], float] = time.time,
    **more: Any,
) -> ExecPlugin:
    spec = ExecSpec(
        command=command,
        api_version=api_version,
        interactive_mode=interactive_mode,
        source=SOURCE,
        **more,
    )
    return ExecPlugin(
        spec,
        files=files or TlsFiles(BASE),
        environ=os.environ if environ is None else environ,
        cluster=cluster,
        timeout=timeout,
        clock=clock,
    )


async def refusal(made: ExecPlugin) -> str:
    with pytest.raises(ConfigError) as wrong:
        await made.headers()
    return str(wrong.value)


@pytest.mark.parametrize("version", [V1, BETA])
async def test_a_token_is_kept_and_the_command_runs_once(
    tmp_path: Path, version: str
) -> None:
    made = plugin(program(tmp_path, "answer(token='abc')"), api_version=version)
    first = await made.headers()
    assert first == {"Authorization": "Bearer abc"}
    assert await made.headers() is first
    assert await made.tls() is None
    assert runs(tmp_path) == 1


async def test_concurrent_callers_share_one_run(tmp_path: Path) -> None:
    made = plugin(program(tmp_path, "answer(token='abc')"))
    answers = await asyncio.gather(*(made.headers() for _ in range(20)))
    assert all(answer is answers[0] for answer in answers)
    assert runs(tmp_path) == 1


async def test_concurrent_callers_share_one_failure(tmp_path: Path) -> None:
    made = plugin(program(tmp_path, "sys.exit(3)"))
    answers = await asyncio.gather(
        *(made.headers() for _ in range(5)), return_exceptions=True
    )
    expected = (
        f'{SOURCE}.command: the exec plugin "{tmp_path}/login" failed with exit code 3'
        "; run it by hand to see why."
    )
    assert [str(answer) for answer in answers] == [expected] * 5
    assert runs(tmp_path) == 1
    assert await refusal(made)
    assert runs(tmp_path) == 2, "a failure is not kept"


async def test_a_cancelled_caller_leaves_the_run_to_one_that_waits(
    tmp_path: Path,
) -> None:
    """The first run hangs for ever; when its caller gives up the next one starts."""
    gate = tmp_path / "gate"
    body = (
        f"if not os.path.exists({str(gate)!r}):\n"
        f"    open({str(gate)!r}, 'w').write(str(os.getpid()))\n"
        "    import time; time.sleep(600)\n"
        "answer(token='abc')"
    )
    made = plugin(program(tmp_path, body))
    async with asyncio.TaskGroup() as group:
        leader = group.create_task(made.headers())
        await until(lambda: gate.exists() and gate.read_text() != "")
        followers = [group.create_task(made.headers()) for _ in range(3)]
        await asyncio.sleep(0)
        followers[0].cancel()
        leader.cancel()
    for follower in followers[1:]:
        assert follower.result() == {"Authorization": "Bearer abc"}
    assert runs(tmp_path) == 2
    assert not alive(int(gate.read_text()))


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][1] != "Z"
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # gone just now, or no Linux


async def until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.01)  # another process sets no event


async def test_a_refused_credential_is_dropped_once(tmp_path: Path) -> None:
    made = plugin(program(tmp_path, "answer(token='abc')"))
    first = await made.headers()
    made.invalidate(first)
    second = await made.headers()
    assert second is not first
    made.invalidate(first)  # another call that was refused before the renewal
    assert await made.headers() is second
    made.invalidate()
    assert await made.headers() is not second
    assert runs(tmp_path) == 3


@pytest.mark.parametrize(("life", "margin"), [(3600, MARGIN), (100, 10)])
async def test_a_credential_is_renewed_shortly_before_it_ends(
    tmp_path: Path, life: int, margin: float
) -> None:
    now = 1_700_000_000.0
    ends = datetime.datetime.fromtimestamp(now + life, datetime.UTC)
    stamp = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f"answer(token='abc', expirationTimestamp={stamp!r})"
    made = plugin(program(tmp_path, body), clock=lambda: now)
    await made.headers()
    now += life - margin - 1
    await made.headers()
    assert runs(tmp_path) == 1
    now += 1
    await made.headers()
    assert runs(tmp_path) == 2


async def test_a_credential_that_has_ended_already_is_used_once(tmp_path: Path) -> None:
    body = "answer(token='abc', expirationTimestamp='2001-01-01T00:00:00+01:00')"
    made = plugin(program(tmp_path, body))
    assert await made.headers() == {"Authorization": "Bearer abc"}
    assert await made.headers() == {"Authorization": "Bearer abc"}
    assert runs(tmp_path) == 2


async def test_a_certificate_joins_the_material_of_the_cluster(tmp_path: Path) -> None:
    certificate, key = (each.decode() for each in Authority().issue("robot"))
    body = f"answer(clientCertificateData={certificate!r}, clientKeyData={key!r})"
    made = plugin(program(tmp_path, body))
    assert await made.headers() == {}
    material = await made.tls()
    assert material is not None
    assert material.certificate == certificate.encode()
    assert material.key == key.encode()
    assert material.server_name == BASE.server_name
    material.context()
    assert await made.tls() is material
    assert runs(tmp_path) == 1
    made.invalidate(await made.headers())
    assert await made.tls() == material
    assert runs(tmp_path) == 2


async def test_a_bad_certificate_is_laid_at_the_door_of_the_command(
    tmp_path: Path,
) -> None:
    body = "answer(clientCertificateData='cert', clientKeyData='hiddenkey')"
    made = plugin(program(tmp_path, body))
    material = await made.tls()
    assert material is not None
    with pytest.raises(
        ConfigError, match=r"login\", status.clientCertificateData"
    ) as e:
        material.context()
    assert "hiddenkey" not in str(e.value) + repr(material) + repr(made)


async def test_a_rotating_authority_is_followed_with_a_token_too(
    tmp_path: Path,
) -> None:
    authority = tmp_path / "ca.crt"
    first, second = Authority().certificate, Authority().certificate
    authority.write_bytes(first)
    files = TlsFiles(TlsMaterial(ca=first), paths={"ca": str(authority)})
    made = plugin(program(tmp_path, "answer(token='abc')"), files=files)
    material = await made.tls()
    assert material is not None
    assert material.ca == first
    authority.write_bytes(second)
    made.invalidate()
    material = await made.tls()
    assert material is not None
    assert material.ca == second


async def test_the_command_gets_its_arguments_and_environment(tmp_path: Path) -> None:
    body = (
        "said = [sys.argv[1:], os.environ.get('OWN'), os.environ.get('HERE'),"
        " json.loads(os.environ['KUBERNETES_EXEC_INFO']), sys.stdin.read()]\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(json.dumps(said))\n"
        "answer(token='abc')"
    )
    made = plugin(
        program(tmp_path, body),
        args=("one", "$HOME; `two`"),
        env=(("OWN", "value"), ("KUBERNETES_EXEC_INFO", "overridden")),
        environ={"OWN": "replaced", "HERE": "kept"},
        cluster={"server": "https://never-told"},
    )
    await made.headers()
    args, own, here, info, stdin = json.loads((tmp_path / "said").read_text())
    assert args == ["one", "$HOME; `two`"]
    assert (own, here, stdin) == ("value", "kept", "")
    assert info == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


async def test_the_cluster_is_told_where_the_entry_asks_for_it(tmp_path: Path) -> None:
    said = tmp_path / "said"
    body = (
        f"open({str(said)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "answer(token='abc')"
    )
    cluster = {"server": "https://s", "config": {"when": datetime.date(2024, 1, 1)}}
    made = plugin(program(tmp_path, body), cluster=cluster, provide_cluster_info=True)
    await made.headers()
    assert json.loads(said.read_text())["spec"] == {
        "interactive": False,
        "cluster": {"server": "https://s", "config": {"when": "2024-01-01"}},
    }


async def test_a_bare_name_is_looked_up_on_path(tmp_path: Path) -> None:
    program(tmp_path, "answer(token='abc')")
    found = plugin("login", environ={"PATH": f"/nowhere{os.pathsep}{tmp_path}"})
    assert await found.headers() == {"Authorization": "Bearer abc"}
    missing = plugin(
        "login", environ={}, install_hint="Run \x1b[1mbrew\x1b[0m\ninstall."
    )
    assert await refusal(missing) == (
        f'{SOURCE}.command: the exec plugin "login" is not on PATH; '
        "Run [1mbrew[0m install."
    )


async def test_a_program_of_the_working_folder_is_never_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "answer(token='abc')")
    monkeypatch.chdir(tmp_path)
    assert "is not on PATH" in await refusal(plugin("login", environ={"PATH": "."}))
    assert runs(tmp_path) == 0


async def test_what_cannot_be_started_is_named(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    assert "is not there; install it" in await refusal(plugin(f"{tmp_path}/other"))
    assert "NUL in it" in await refusal(plugin(path, args=("a\0b",)))
    large = plugin(path, env=(("A", "x" * (1 << 20)),))
    assert "Argument list too long" in await refusal(large)
    os.chmod(path, 0o644)
    assert "(Permission denied)" in await refusal(plugin(path))
    os.chmod(path, 0o755)
    os.truncate(path, 0)
    assert "(Exec format error)" in await refusal(plugin(path))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("print('no json')", "printed no JSON object instead of an ExecCredential"),
        ("pass", "printed no JSON object"),
        ("print('[' * 100000)", "printed no JSON object"),
        ("sys.stdout.buffer.write(b'\\xff')", "printed no JSON object"),
        ("answer(token=12345678)", "printed a wrong value at $.status.token"),
        (
            "answer(token='t0psecret', expirationTimestamp='soon')",
            "a wrong value at $.st",
        ),
        (
            "answer(token='t0psecret', expirationTimestamp='2030-01-01T00:00:00')",
            "a wrong value at $.status.expirationTimestamp",
        ),
        ("answer(kind='Pod', token='t0psecret')", "is not an ExecCredential"),
        (f"answer(version={BETA!r}, token='t0psecret')", f"another version than {V1}"),
        ("answer()", "without a token and without a certificate"),
        ("answer(token='')", "without a token and without a certificate"),
        ("answer(clientKeyData='t0psecret')", "but not with both"),
        ("answer(token='a', clientCertificateData='c')", "but not with both"),
        ("answer(token='t0psecret\\nx')", "a token with a line break"),
        ("print('{}')", "is not an ExecCredential"),
        (f"print({json.dumps({'kind': 'ExecCredential'})!r})", "another version"),
        ("os.kill(os.getpid(), 9)", "failed with signal 9"),
    ],
)
async def test_a_wrong_answer_is_an_error_that_shows_no_secret(
    tmp_path: Path, body: str, complaint: str
) -> None:
    message = await refusal(plugin(program(tmp_path, body)))
    assert complaint in message
    assert f"{tmp_path}/login" in message
    assert message.startswith(SOURCE)
    assert "t0psecret" not in message
    assert "12345678" not in message


async def test_a_failure_shows_the_end_of_what_the_command_said(tmp_path: Path) -> None:
    token = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"
    body = (
        "sys.stderr.write('x' * 100000 + ' beginning-of-the-end ' + 'y' * 900)\n"
        f"sys.stderr.write(' no \\x1b[31msession {token}, Bearer opaque123\\n')\n"
        "sys.stderr.write('value-of-env argvalue99')\n"
        "sys.exit(1)"
    )
    message = await refusal(
        plugin(
            program(tmp_path, body),
            env=(("A", "value-of-env"),),
            args=("--client-secret=argvalue99", "--user=argvalue"),
        )
    )
    said = message.partition(" It said: ")[2]
    assert said.endswith("y no [31msession …, Bearer … … …")
    assert len(said.encode()) <= COMPLAINT_LIMIT
    assert not re.search(r"eyJ|c2ln|opaque|value", said)


async def test_a_token_that_the_bound_cuts_through_is_hidden_whole(
    tmp_path: Path,
) -> None:
    body = f"sys.stderr.write('eyJ' + 'a' * {COMPLAINT_LIMIT + 500})\nsys.exit(1)"
    message = await refusal(plugin(program(tmp_path, body)))
    assert "aaaa" not in message


async def test_output_is_bounded(tmp_path: Path) -> None:
    body = f"print('x' * {OUTPUT_LIMIT + 1})\nimport time; time.sleep(600)"
    message = await refusal(plugin(program(tmp_path, body)))
    assert f"printed more than {OUTPUT_LIMIT} bytes and was stopped" in message


async def test_a_command_that_hangs_is_stopped(tmp_path: Path) -> None:
    command = program(tmp_path, "import time; time.sleep(600)")
    message = await refusal(plugin(command, timeout=0.5))
    assert "did not finish within 0.5 s and was stopped; run it by hand" in message


async def test_a_command_that_is_stopped_takes_its_children_along(
    tmp_path: Path,
) -> None:
    children = tmp_path / "children"
    body = (
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(children)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} .')\n"
        "time.sleep(600)"
    )
    made = plugin(program(tmp_path, body))
    async with asyncio.TaskGroup() as group:
        call = group.create_task(made.headers())
        await until(lambda: children.exists() and children.read_text().endswith("."))
        call.cancel()
    processes = [int(each) for each in children.read_text().split()[:2]]
    await until(lambda: not any(map(alive, processes)))


async def test_a_child_that_keeps_the_pipes_open_does_not_delay_the_answer_for_long(
    tmp_path: Path,
) -> None:
    child = tmp_path / "child"
    body = (
        "import subprocess\n"
        "answer(token='abc')\n"
        "sys.stdout.flush()\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(child)!r}, 'w').write(str(child.pid))"
    )
    made = plugin(program(tmp_path, body), timeout=30)
    try:
        assert await made.headers() == {"Authorization": "Bearer abc"}
        assert alive(int(child.read_text()))
    finally:
        os.kill(int(child.read_text()), 9)


async def test_a_command_that_needs_a_person_is_refused_without_a_terminal(
    tmp_path: Path,
) -> None:
    made = plugin(program(tmp_path, "answer(token='a')"), interactive_mode="Always")
    assert await refusal(made) == (
        f"{SOURCE}.interactiveMode is Always, but standard input is not a terminal "
        "here; use credentials that need nobody to type."
    )
    assert runs(tmp_path) == 0
    made = plugin(
        program(tmp_path, "answer(token='a')"), interactive_mode="IfAvailable"
    )
    assert await made.headers() == {"Authorization": "Bearer a"}


@pytest.mark.parametrize("mode", ["Always", "IfAvailable", "Never"])
async def test_a_person_at_a_terminal_is_asked_unless_the_entry_says_never(
    tmp_path: Path, mode: str
) -> None:
    body = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive']\n"
        "sys.stderr.write('who are you? ')\n"
        "sys.stderr.flush()\n"
        "answer(token=f'{info}-{sys.stdin.readline().strip()}')"
    )
    command = program(tmp_path, body)
    script = (
        "import asyncio, os\n"
        "from trimtab.client.credentials import TlsFiles, TlsMaterial\n"
        "from trimtab.client.execplugin import ExecPlugin, ExecSpec\n"
        f"spec = ExecSpec(command={command!r}, api_version={V1!r},\n"
        f"    interactive_mode={mode!r}, source='config')\n"
        "made = ExecPlugin(spec, files=TlsFiles(TlsMaterial()), environ=os.environ)\n"
        "print(asyncio.run(made.headers())['Authorization'])\n"
    )
    outer, inner = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            stdin=inner,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        os.write(outer, b"jane\n")
        printed, complaint = await process.communicate()
    finally:
        os.close(outer)
        os.close(inner)
    if mode == "Never":
        assert (printed, complaint) == (b"Bearer False-\n", b"")
    else:
        assert (printed, complaint) == (b"Bearer True-jane\n", b"who are you? ")


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("command", "", "command is missing; name the command."),
        ("api_version", "", f"apiVersion must be {V1} or {BETA}; set it to the one"),
        ("api_version", "client.authentication.k8s.io/v1alpha1", "apiVersion must be"),
        (
            "interactive_mode",
            "",
            "interactiveMode must be Never, IfAvailable or Always",
        ),
        ("interactive_mode", "Sometimes", "interactiveMode must be Never"),
        ("env", (("A", "b"), ("", "c")), "env[1].name is missing or has a = in it"),
        ("env", (("A=B", "c"),), "env[0].name is missing or has a = in it"),
    ],
)
def test_an_entry_that_cannot_run_is_refused(
    field: str, value: Any, complaint: str
) -> None:
    right: dict[str, Any] = {
        "command": "login",
        "api_version": V1,
        "interactive_mode": "Never",
        "source": SOURCE,
    }
    ExecSpec(**right).check()
    with pytest.raises(ConfigError) as wrong:
        ExecSpec(**{**right, field: value}).check()
    assert str(wrong.value).startswith(f"{SOURCE}.{complaint}")


def test_no_repr_shows_what_a_plugin_knows() -> None:
    secret = base64.b64encode(b"hidden").decode()
    made = plugin("login", args=(secret,), env=(("A", secret),))
    assert secret not in repr(made)
