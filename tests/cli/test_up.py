"""Laws of ``trimtab up``, seen from outside by running it."""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import trimtab
from tests.cli.failing import sentence
from tests.embedded.worlds import config_map
from tests.ports import unused_port
from trimtab.cli.main import main
from trimtab.cli.up import default_data
from trimtab.client import Client, load
from trimtab.kinds import ConfigMap
from trimtab.testing import eventually

ROOT = Path(__file__).resolve().parents[2]
STOP_WITHIN = 5.0


class Running(msgspec.Struct):
    """A ``trimtab up`` that is ready."""

    process: asyncio.subprocess.Process
    facts: dict[str, Any]
    said: str = ""

    def client(self) -> Client:
        return Client(load(kubeconfig=self.facts["kubeconfig"], environ={}))

    async def stop(self, number: int = signal.SIGTERM) -> str:
        """End it; what it said besides what it said at its start."""
        self.process.send_signal(number)
        async with asyncio.timeout(STOP_WITHIN):
            out, _ = await self.process.communicate()
        return out.decode()


def environment(home: Path) -> dict[str, str]:
    """With a home, and a place for temporary files, that go with the test."""
    own = {"HOME": str(home), "TMPDIR": str(home)}
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **own}


@asynccontextmanager
async def up(folder: Path, *arguments: str) -> AsyncIterator[Running]:
    """Run it with a home of its own; killed at the end if it still runs."""
    ready = folder / "ready"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "trimtab", "up", f"--ready-file={ready}", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(folder),
        cwd=folder,
    )
    try:
        await eventually(
            lambda: ready.exists() or process.returncode is not None, within=30.0
        )
        if not ready.exists():
            out, _ = await process.communicate()
            pytest.fail(f"it ended with {process.returncode}: {out.decode()}")
        assert process.stdout is not None
        said = b""
        while not said.endswith(b"Control-C stops it.\n"):
            said += await process.stdout.readline()
        facts = json.loads(ready.read_bytes())
        yield Running(process, facts, said.decode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def fails(folder: Path, *arguments: str) -> str:
    """The one sentence that a start ends with."""
    return sentence("up", *arguments, home=folder, env=environment(folder))


async def test_it_says_what_runs_where_and_how_to_reach_it(tmp_path: Path) -> None:
    async with up(tmp_path, "--memory") as running:
        assert running.facts["server"] in running.said
        assert f"export KUBECONFIG={running.facts['kubeconfig']}\n" in running.said
        assert "in memory" in running.said
        assert running.facts["pid"] == running.process.pid
        async with running.client() as client:
            await client.create(config_map("a"))


async def test_a_signal_stops_it_with_nothing_lost_and_nothing_left(
    tmp_path: Path,
) -> None:
    """Nor is anything lost by a kill. Each start reads all that was written before."""
    endings = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    written: list[str] = []
    for number in endings:
        async with up(tmp_path, "--data=data", "--port=0") as running:
            await is_kept(running, written)
            async with running.client() as client:
                for each in range(20):
                    written.append(f"{number.name.lower()}-{each}")
                    await client.create(config_map(written[-1], n=written[-1]))
                async with client.watch(ConfigMap, namespace="default") as watch:
                    await anext(watch)
                    assert await running.stop(number) == ""
            killed = number is signal.SIGKILL
            assert running.process.returncode == (-number if killed else 0), number
        assert (tmp_path / "ready").exists() == killed, number
    (tmp_path / "ready").unlink()
    async with up(tmp_path, "--data=data", "--port=0") as running:
        await is_kept(running, written)


async def is_kept(running: Running, written: list[str]) -> None:
    async with running.client() as client:
        for name in written:
            assert (await client.get(ConfigMap, name)).data == {"n": name}


async def test_in_memory_nothing_is_left(tmp_path: Path) -> None:
    async with up(tmp_path, "--memory") as running:
        folder = Path(running.facts["kubeconfig"]).parent
        assert folder.is_dir()
        await running.stop()
    assert not folder.exists()
    assert not list(tmp_path.iterdir())


async def test_a_kubeconfig_of_the_user_s_is_not_touched(tmp_path: Path) -> None:
    own = tmp_path / ".kube" / "config"
    own.parent.mkdir()
    own.write_text("precious")
    async with up(tmp_path, "--data=data", "--port=0") as running:
        assert running.facts["kubeconfig"] == str(tmp_path / "data" / "kubeconfig")
        mode = Path(running.facts["kubeconfig"]).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    assert own.read_text() == "precious"


async def test_a_kubeconfig_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    wanted = tmp_path / "here"
    wanted.write_text('{"kind": "Config", "users": [{"name": "me", "user": {}}]}')
    async with up(tmp_path, "--memory", f"--kubeconfig={wanted}") as running:
        assert f"export KUBECONFIG={wanted}\n" in running.said
        content = json.loads(wanted.read_bytes())
        assert [each["name"] for each in content["users"]] == ["me", "trimtab"]
        async with running.client() as client:
            await client.create(config_map("a"))


async def test_a_named_port_is_taken(tmp_path: Path) -> None:
    port = unused_port()
    async with up(tmp_path, "--memory", f"--port={port}") as running:
        assert running.facts["server"] == f"https://127.0.0.1:{port}"
        said = fails(tmp_path, "--memory", f"--port={port}")
    assert f"Port {port} of 127.0.0.1 is taken" in said


async def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    async with up(tmp_path, "--data=data", "--port=0") as running:
        said = fails(tmp_path, "--data=data", "--port=0")
        assert f"is in use by process {running.process.pid}" in said


async def test_tokens_of_a_file_come_in(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text("open-sesame,jo,1,system:masters\n")
    async with up(tmp_path, "--memory", "--tokens=tokens.csv") as running:
        content = json.loads(Path(running.facts["kubeconfig"]).read_bytes())
        content["users"][0]["user"] = {"token": "open-sesame"}
        (tmp_path / "jo").write_text(json.dumps(content))
        async with Client(load(kubeconfig=tmp_path / "jo", environ={})) as client:
            await client.create(config_map("a"))
        assert "open-sesame" not in running.said + await running.stop()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = fails(tmp_path, "--data=file/data", "--port=0")
    assert f"{tmp_path}/file/data cannot be used (Not a directory)" in said


def test_a_damaged_store_is_named_and_left(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"SQLite format 3\0" + b"\x5a" * 9000)
    said = fails(tmp_path, f"--data={tmp_path}", "--port=0")
    assert str(tmp_path / "store.db") in said
    assert (tmp_path / "store.db").read_bytes()[16:] == b"\x5a" * 9000


def test_a_kubeconfig_that_is_something_else_is_named_and_left(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("- dear\n- friend\n")
    said = fails(tmp_path, "--memory", "--kubeconfig=letter")
    assert "letter is not a kubeconfig" in said
    assert (tmp_path / "letter").read_text() == "- dear\n- friend\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port=x",), "is not a port"),
        (("--port=65536",), "is not a port"),
        (("--memory", "--data=a"), "not allowed with argument"),
        (("--memory", "--host=192.0.2.1"), "of 192.0.2.1"),
        (("--memory", "--tokens=missing"), "There is no file missing"),
        (("--sideways",), "unrecognized arguments"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert said in fails(tmp_path, *arguments)


# What an interpreter loads first: from then on it knows of no such package.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("package", ["aiohttp", "cryptography"])
def test_without_its_extra_one_sentence_says_what_to_install(
    tmp_path: Path, package: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(package=package))
    environ = environment(tmp_path)
    environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environ['PYTHONPATH']}"
    said = sentence("up", "--memory", home=tmp_path, env=environ)
    assert package in said
    assert "pip install 'trimtab[embedded]'" in said


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def test_a_start_and_a_stop_take_a_second_and_a_half_of_one_processor(
    tmp_path: Path,
) -> None:
    """Not of the clock on the wall, which other tests slow down.

    They share the processor's caches, too, and the first start compiles what it
    imports: the best of some starts is nearest to what one costs.
    """
    spent = [math.inf]
    while len(spent) < 6 and min(spent) >= 1.5:
        before = children_seconds()
        async with up(tmp_path, "--memory") as running:
            await running.stop()
        (tmp_path / "ready").unlink(missing_ok=True)
        spent.append(children_seconds() - before)
    assert min(spent) < 1.5


def test_the_data_is_kept_where_the_system_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/jo")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_data() == Path("/home/jo/.local/share/trimtab")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_data() == Path("/home/jo/.local/share/trimtab")
    monkeypatch.setenv("XDG_DATA_HOME", "/srv")
    assert default_data() == Path("/srv/trimtab")


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"trimtab {trimtab.__version__}\n"


def test_without_a_command_it_says_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert "up" in capsys.readouterr().out


def test_a_failure_that_nobody_foresaw_is_one_sentence_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> int:
        raise RuntimeError("a mistake\nof ours")

    monkeypatch.setattr("trimtab.cli.up.run", broken)
    monkeypatch.delenv("TRIMTAB_TRACEBACK", raising=False)
    assert main(["up"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "RuntimeError: a mistake of ours" in said
    monkeypatch.setenv("TRIMTAB_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(["up"])


def test_asking_for_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from trimtab.cli.main import parser; parser().format_help();"
        "heavy = {'aiohttp', 'cryptography', 'sqlite3', 'ssl', 'yaml'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
