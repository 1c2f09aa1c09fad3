"""Laws of `trimtab kubelet`: this machine is a node of any cluster while it runs."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.kubelet.laptop import PODS, Plain, condition, marked
from trimtab import Client, load
from trimtab.api.kinds import Node
from trimtab.cli.main import main
from trimtab.cli.node import node_name
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]


async def until_ready(client: Client, namespace: str) -> Plain:
    async def look() -> Plain | None:
        pod = await client.get(PODS, "web", namespace=namespace)
        return pod if condition(pod, "Ready") == "True" else None

    found = await eventually(look, every=0.05)
    assert found is not None
    return found


@pytest.mark.cluster("real")
async def test_a_machine_is_a_node_while_the_command_runs(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    name = f"command-{os.getpid()}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trimtab", "kubelet", "--alone", f"--name={name}"),
        *(f"--folder={tmp_path}", "--image=web=sleep 1000"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "PYTHONPATH": str(ROOT / "src"),
        },
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        assert line == f"The node {name} is ready. Control-C stops it.\n"
        async with Client(load(kubeconfig=cluster.kubeconfig)) as client:
            spec = {
                "containers": [{"name": "main", "image": "web:1"}],
                "nodeSelector": {"kubernetes.io/hostname": name},
            }
            metadata = {"name": "web", "namespace": namespace}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            await client.create({**pod, "spec": spec})
            uid = (await until_ready(client, namespace))["metadata"]["uid"]
            assert len(marked(uid)) == 1
            process.terminate()
            async with asyncio.timeout(10):
                assert await process.wait() == 0
            assert not marked(uid)
            await client.delete(PODS, "web", namespace=namespace, grace=0)
            await client.delete(Node, name)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_a_mistake_in_an_image_is_answered_with_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["up", "--memory", "--image=web"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "'web' does not say what an image is: write NAME=COMMAND" in said


def test_a_machines_name_is_a_name() -> None:
    assert node_name() == node_name().lower().strip("-.")
