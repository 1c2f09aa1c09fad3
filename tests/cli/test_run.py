"""Laws of ``trimtab run``, seen from outside by running it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.cli.failing import sentence
from tests.client.clusters import client_of, defines
from trimtab import Client, Metadata, Resource, crd
from trimtab.cli.loading import NotAnOperator, operator_in
from trimtab.cli.main import main
from trimtab.kinds import ConfigMap, Lease
from trimtab.testing import Cluster, eventually

ROOT = Path(__file__).resolve().parents[2]
STOP_WITHIN = 5.0

OPERATOR = """
import trimtab
from trimtab import Metadata, Resource, Scope
from trimtab.kinds import ConfigMap

class Stall(Resource, group="run.example.com", version="v1"):
    pass

app = trimtab.Operator("stalls")

@app.reconciles(Stall, scope=Scope(everything=True), owns=[ConfigMap])
async def stall(site, ctx):
    await ctx.apply(ConfigMap(metadata=Metadata(name=site.metadata.name)))
"""


class Stall(Resource, group="run.example.com", version="v1"):
    """The kind that the operator above has."""


@pytest.fixture
async def client(cluster: Cluster, namespace: str) -> AsyncIterator[Client]:
    async with client_of(cluster, namespace=namespace) as client:
        yield client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "stalls.py").write_text(OPERATOR)
    return tmp_path / "stalls.py"


def environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}


class Running(msgspec.Struct):
    """A ``trimtab run``, and what it has said so far."""

    process: asyncio.subprocess.Process
    said: bytearray

    async def says(self, pattern: str, *, within: float = 45.0) -> str:
        """What matches in what it has said."""
        await eventually(
            lambda: re.search(pattern, self.said.decode()),
            within=within,
            describe=f"it says {pattern}",
        )
        found = re.search(pattern, self.said.decode())
        assert found is not None
        return found[found.lastindex or 0]

    async def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), STOP_WITHIN)


@asynccontextmanager
async def ran(file: Path, cluster: Cluster, *arguments: str) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "run"),
        *("--kubeconfig", str(cluster.kubeconfig), str(file), *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(file.parent),
        cwd=file.parent,
    )
    running = Running(process, bytearray())

    async def read() -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(4096):
            running.said.extend(data)

    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            yield running
            if process.returncode is None:
                process.kill()
            await reading
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def fails(folder: Path, *arguments: str) -> str:
    """The one sentence that a start ends with."""
    return sentence("run", *arguments, home=folder, env=environment(folder))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The same without a process, for what fails before anything runs."""
    assert main(["run", *arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    assert "nobody foresaw" not in said.err
    return said.err


TWO = "import trimtab\na = trimtab.Operator('a')\nb = trimtab.Operator('b')\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x = 5\n", "declares no operator; write app = trimtab.Operator('NAME')"),
        (TWO, "declares 'a', 'b'; choose one with --operator."),
        ("x = 5\ndef broken(:\n", "mine.py:2 cannot be loaded: SyntaxError: invalid"),
        ("x = 5\n\n1 / 0\n", "mine.py:3 cannot be loaded: ZeroDivisionError: division"),
        ("import nowhere\n", "mine.py:1 cannot be loaded: ModuleNotFoundError: No mod"),
        ("raise SystemExit(3)\n", "mine.py:1 cannot be loaded: SystemExit: 3"),
        (
            "import trimtab\napp = trimtab.Operator('a')\n",
            "The operator a reconciles nothing; decorate a function",
        ),
        (
            "import trimtab\napp = trimtab.Operator('My App')\n",
            "mine.py:2 cannot be loaded: ValueError: 'My App' cannot be the name of",
        ),
    ],
)
@pytest.mark.usefixtures("modules")
def test_a_file_that_is_no_operator_is_answered_with_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(content)
    assert said in refused(capsys, str(tmp_path / "mine.py"))


@pytest.mark.usefixtures("modules")
def test_a_file_that_is_not_there_or_not_python_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert "There is no file none.py; name" in refused(capsys, "none.py")
    assert "There is no file" in refused(capsys, str(tmp_path))
    assert "is not a Python file" in refused(capsys, str(tmp_path / "notes.txt"))


@pytest.mark.usefixtures("modules")
def test_the_line_is_told_also_for_a_file_beside_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("x = 5\n1 / 0\n")
    with pytest.raises(NotAnOperator, match=r"^mine.py:2 cannot be loaded"):
        operator_in(Path("mine.py"))


@pytest.mark.usefixtures("modules")
def test_a_mistake_in_another_file_is_not_blamed_on_a_line_of_this_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "neighbour.py").write_text("\n\n\n\ndef broken(:\n")
    (tmp_path / "mine.py").write_text("import neighbour\n")
    with pytest.raises(NotAnOperator, match=r"mine.py:1 .*neighbour.py, line 5"):
        operator_in(tmp_path / "mine.py")


@pytest.mark.parametrize("name", ["operator.py", "queue.py", "trimtab.py", "my-app.py"])
@pytest.mark.usefixtures("modules")
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    before = {each: sys.modules.get(each) for each in ("operator", "queue", "trimtab")}
    (tmp_path / name).write_text(OPERATOR)
    assert operator_in(tmp_path / name).name == "stalls"
    assert before == {each: sys.modules.get(each) for each in before}


@pytest.mark.usefixtures("modules")
def test_one_of_several_is_chosen_by_its_name(tmp_path: Path) -> None:
    other = OPERATOR.replace("app =", "other = trimtab.Operator('others')\napp =")
    (tmp_path / "mine.py").write_text(other)
    assert operator_in(tmp_path / "mine.py", name="stalls").name == "stalls"
    with pytest.raises(NotAnOperator, match="no operator 'x'; it has 'others', 'stal"):
        operator_in(tmp_path / "mine.py", name="x")


def test_without_a_kubeconfig_it_says_what_to_do(file: Path) -> None:
    said = fails(file.parent, str(file))
    assert "kubeconfig" in said
    assert "nobody foresaw" not in said
    said = fails(file.parent, str(file), "--kubeconfig=none")
    assert "none" in said
    assert "nobody foresaw" not in said


def test_a_port_that_is_taken_is_named(file: Path, cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = fails(
            file.parent,
            *(str(file), f"--port={port}", f"--kubeconfig={cluster.kubeconfig}"),
        )
    assert f"127.0.0.1:{port}: another program has that port" in said


async def test_it_waits_for_its_kind_says_so_once_works_and_stops(
    file: Path, cluster: Cluster, client: Client, namespace: str
) -> None:
    async with ran(file, cluster, "--port=0", f"--namespace={namespace}") as running:
        await running.says("stalls.*(not find|no such kind)")
        # The pauses between its attempts are shorter than this wait.
        await asyncio.sleep(1)
        said = running.said.decode()
        assert len(re.findall("stalls.*(?:not find|no such kind)", said)) == 1, said
        await defines(client, crd(Stall))
        await client.create(Stall(metadata=Metadata(name="fish")))

        async def is_made() -> bool:
            found = [each async for each in client.list(ConfigMap, namespace=namespace)]
            return "fish" in {each.metadata.name for each in found}

        await eventually(is_made, within=20)
        assert await running.stop(signal.SIGTERM) == 0
    assert "Stopping on SIGTERM" in running.said.decode()
    assert "Traceback" not in running.said.decode()
    assert not (await client.get(Lease, "stalls")).spec.holderIdentity


async def test_an_interrupt_ends_it_well_too(
    file: Path, cluster: Cluster, client: Client, namespace: str
) -> None:
    await defines(client, crd(Stall))
    arguments = ("--port=-1", "--no-leader", f"--namespace={namespace}")
    async with ran(file, cluster, *arguments) as running:
        await running.says("stalls runs")
        assert await running.stop(signal.SIGINT) == 0
    assert "Traceback" not in running.said.decode()


@pytest.mark.cluster("real")
async def test_another_takes_over_when_one_is_killed(
    file: Path, cluster: Cluster, client: Client, namespace: str
) -> None:
    await defines(client, crd(Stall))
    lease = 3
    arguments = ("--port=-1", f"--lease={lease}", f"--namespace={namespace}")

    async def is_made(name: str) -> bool:
        found = [each async for each in client.list(ConfigMap, namespace=namespace)]
        return name in {each.metadata.name for each in found}

    async with ran(file, cluster, *arguments) as first:
        await client.create(Stall(metadata=Metadata(name="fish")))
        await eventually(lambda: is_made("fish"), within=20)
        before = (await client.get(Lease, "stalls")).spec
        assert before.leaseDurationSeconds == lease
        async with ran(file, cluster, *arguments) as second:
            await second.says("stalls runs")
            assert await first.stop(signal.SIGKILL) == -signal.SIGKILL
            await client.create(Stall(metadata=Metadata(name="fruit")))
            # A retry period is a fifth of the lease or less; the rest is the machine's.
            await eventually(lambda: is_made("fruit"), within=2 * lease + 2)
            after = (await client.get(Lease, "stalls")).spec
            assert after.holderIdentity != before.holderIdentity
            assert await second.stop(signal.SIGTERM) == 0
    assert not (await client.get(Lease, "stalls")).spec.holderIdentity
