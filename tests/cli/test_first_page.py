"""The first page, as a new user goes through it, with a clock beside it.

Its commands are typed as they stand there; only what would download something finds
that it is here already. They run where kubectl, helm and a real server are.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml

from tests.client.clusters import client_of
from tests.ports import unused_port
from trimtab.client import Client, NotFound
from trimtab.kinds import Deployment
from trimtab.testing import Cluster, assets, eventually

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0
"""What either half may take on a slow machine, with other work; the types of a project
are the longest part."""
pytestmark = [pytest.mark.cluster("real"), pytest.mark.timeout(180)]


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "index.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def environ(tmp_path: Path, cluster: Cluster) -> dict[str, str]:
    """A shell in which the tools of the page are found, and pip has nothing to do."""
    tools = tmp_path / "tools"
    tools.mkdir()
    python = shlex.quote(sys.executable)
    programs = {name: str(path) for name, path in found().items()}
    commands = {
        **{name: f"{python} -m {name}" for name in ("trimtab", "ruff", "mypy")},
        **{name: shlex.quote(path) for name, path in programs.items()},
        "pytest": f"{python} -m pytest -p no:cacheprovider",
        "pip": "true",
    }
    for name, command in commands.items():
        file = tools / name
        file.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        file.chmod(0o755)
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "KUBECONFIG": str(cluster.kubeconfig),
        "HOME": str(tmp_path),
    }


def found() -> dict[str, Path]:
    return assets.require("kubectl", "helm")


def shell(script: str, *, folder: Path, environ: dict[str, str]) -> str:
    """Type something; what was printed."""
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def typed(script: str, folder: Path, environ: dict[str, str]) -> str:
    return await asyncio.to_thread(shell, script, folder=folder, environ=environ)


def test_whatever_the_page_has_typed_is_typed_here() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    fences = re.findall(r"^```(\w+)$", text, re.MULTILINE)
    assert fences == ["python", "sh", "sh", "sh"]
    commands = [line.split()[0] for each in blocks("sh") for line in each.splitlines()]
    tools = {"pip", "trimtab", "kubectl", "make", "helm", "cd"}
    assert set(commands) - {'{"apiVersion":', "EOF"} == tools


async def test_a_file_becomes_an_operator_that_can_be_asked_why(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (code,), (start, use, _) = blocks("python"), blocks("sh")
    (tmp_path / "greetings.py").write_text(code)
    began = monotonic()
    port = unused_port()
    start = start.replace("greetings.py", f"greetings.py --port={port}")
    async with typing(start, tmp_path, environ) as said:
        await eventually(lambda: b"Running greetings.py." in said, within=30)
        (kubeconfig,) = re.findall(r"export KUBECONFIG=(\S+)", said.decode())
        greeted = "until kubectl get configmap mine -o yaml; do sleep 0.2; done\n"
        use = use.replace("kubectl get configmap mine -o yaml\n", greeted)
        use = use.replace("trimtab why", f"trimtab why --url=http://127.0.0.1:{port}")
        told = await typed(use, tmp_path, {**environ, "KUBECONFIG": kubeconfig})
        gone = "kubectl delete configmap mine\n" + greeted  # "and it is back"
        await typed(gone, tmp_path, {**environ, "KUBECONFIG": kubeconfig})
    assert "text: hello" in told
    assert "Greeting default/mine, by the controller greet:" in told
    print(f"From a file to an operator that was asked why: {monotonic() - began:.1f} s")


@asynccontextmanager
async def typing(
    script: str, folder: Path, environ: dict[str, str]
) -> AsyncIterator[bytearray]:
    """Something that goes on until it is interrupted, and what it says."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", script.replace("trimtab dev", "exec trimtab dev")),
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = bytearray()

    async def read() -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(4096):
            said.extend(data)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        try:
            yield said
        finally:
            if process.returncode is None:
                process.terminate()
                await asyncio.wait_for(process.wait(), 15)
            await reading


async def test_a_project_passes_its_tests_and_helm_installs_it(
    cluster: Cluster, tmp_path: Path, environ: dict[str, str]
) -> None:
    began = monotonic()
    await typed(blocks("sh")[2], tmp_path, environ)
    taken = monotonic() - began
    print(f"From trimtab new to an operator that is installed: {taken:.1f} s")
    assert taken < SECONDS
    folder = tmp_path / "book-shop"
    async with client_of(cluster, namespace="book-shop") as admin:
        token = (await admin.token("book-shop", namespace="book-shop")).token
        async with operating(folder, cluster, token, environ):
            await works(admin, folder)
        await typed("helm uninstall book-shop -n book-shop", folder, environ)
        await typed("kubectl delete ns book-shop --wait=false", folder, environ)


@asynccontextmanager
async def operating(
    folder: Path, cluster: Cluster, token: str, environ: dict[str, str]
) -> AsyncIterator[None]:
    """The container's own command, with the token of the chart's service account."""
    text = cluster.kubeconfig.read_text()
    text = re.sub(r'"client-certificate-data": "[^"]*",?', "", text)
    text = re.sub(r'"client-key-data": "[^"]*"', f'"token": "{token}"', text)
    (folder / "kubeconfig").write_text(text)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "run", "book_shop.operator", "--port=0"),
        *("--kubeconfig=kubeconfig", "--namespace=book-shop", "--log=warning"),
        cwd=folder,
        env={**environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{folder / 'src'}"},
        stdin=subprocess.DEVNULL,
    )
    try:
        yield
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def works(admin: Client, folder: Path) -> None:
    """The example of the project becomes a Deployment."""
    example: Any = yaml.safe_load((folder / "example.yaml").read_text())

    async def made() -> bool:
        try:
            await admin.discovery.refresh()
            await admin.apply(example, manager="somebody")
            found = await admin.get(Deployment, "mine")
        except NotFound:
            return False
        return found.spec.replicas == 2

    await eventually(made, within=20, every=0.2)
