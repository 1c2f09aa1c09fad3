"""Laws of ``trimtab dev``, seen from outside by running it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.commands import refused
from trimtab.cli.reloading import files
from trimtab.client import Client, load
from trimtab.kinds import ConfigMap, Pod
from trimtab.testing import eventually

ROOT = Path(__file__).resolve().parents[2]

OPERATOR = """
import trimtab
from trimtab import Metadata, Resource, Scope
from trimtab.kinds import ConfigMap

class Stall(Resource, group="dev.example.com", version="v1"):
    pass

app = trimtab.Operator("stalls")

@app.reconciles(Stall, scope=Scope(everything=True), owns=[ConfigMap])
async def stall(site, ctx):
    data = {"sells": "WORD"}
    await ctx.apply(ConfigMap(metadata=Metadata(name=site.metadata.name), data=data))
"""


@asynccontextmanager
async def developing(folder: Path) -> AsyncIterator[tuple[bytearray, Client]]:
    """A ``trimtab dev``, what it says, and a client of its cluster."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "dev", "stalls.py"),
        *("--port=0", f"--data={folder / 'data'}", "--log=warning"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)},
    )
    said = bytearray()

    async def read() -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(4096):
            said.extend(data)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        try:
            await eventually(lambda: b"KUBECONFIG=" in said, within=40)
            found = re.search(r"KUBECONFIG=(\S+)", said.decode())
            assert found is not None
            async with Client(load(kubeconfig=found[1], environ={})) as client:
                yield said, client
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), 30)
            assert process.returncode == 0, said.decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await reading


def write(folder: Path, word: str) -> None:
    (folder / "stalls.py").write_text(OPERATOR.replace("WORD", word))


async def sells(client: Client, word: str) -> None:
    async def look() -> bool:
        found = [each async for each in client.list(ConfigMap, namespace="default")]
        return word in {each.data.get("sells") for each in found}

    await eventually(look, within=20, describe=f"it sells {word}")


async def runs(client: Client) -> None:
    """A pod comes to its end: there is a node."""
    one = {"name": "main", "image": "any", "command": ["true"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "short"}}
    spec = {"containers": [one], "restartPolicy": "Never"}
    await client.create({**body, "spec": spec})

    async def look() -> bool:
        pod = await client.get(Pod, "short", namespace="default")
        return bool(pod.status.phase == "Succeeded")

    await eventually(look, within=20, describe="the pod has ended well")


async def test_a_save_begins_anew_a_mistake_changes_nothing_and_objects_stay(
    tmp_path: Path,
) -> None:
    write(tmp_path, "fish")
    async with developing(tmp_path) as (said, client):
        await eventually(lambda: b"Running stalls.py." in said, within=20)
        await client.discovery.refresh()
        body = {"apiVersion": "dev.example.com/v1", "kind": "Stall"}
        await client.create({**body, "metadata": {"name": "first"}})
        await sells(client, "fish")
        (tmp_path / "stalls.py").write_text("def broken(:\n")
        await eventually(lambda: b"What ran goes on" in said, within=20)
        assert b"stalls.py:1 cannot be loaded: SyntaxError" in said
        write(tmp_path, "bread")
        await sells(client, "bread")
        await runs(client)


def test_files_that_are_nobody_s_source_are_not_looked_at(tmp_path: Path) -> None:
    for name in ("a.py", "below/b.py", ".venv/c.py", "__pycache__/d.py", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = {path.name for path, _ in files([tmp_path])}
    assert found == {"a.py", "b.py"}


@pytest.mark.parametrize("source", ["none.py", "no/such", "no_such_module_here"])
@pytest.mark.usefixtures("modules")
def test_a_source_that_is_not_there_is_one_sentence(
    source: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    assert "There is no file" in refused(capsys, "dev", source, f"--data={data}")
    assert not data.exists()


def test_without_what_the_embedded_cluster_needs_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(tmp_path, "fish")
    # As if what it imports could not be found.
    monkeypatch.setitem(sys.modules, "trimtab.cli.reloading", None)
    said = refused(capsys, "dev", str(tmp_path / "stalls.py"))
    assert "pip install 'trimtab[embedded]'" in said
