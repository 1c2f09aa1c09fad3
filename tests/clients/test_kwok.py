"""KWOK, an operator in Go that somebody else wrote, plays nodes and kubelets here.

It lists and watches nodes and Pods, renews leases, adds and removes finalizers, writes
status and events. Collected where kwok is: ``hack/cluster/build.py`` builds it, before
the tier of the real cluster.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from trimtab.testing import Cluster, assets
from trimtab.testing.waiting import eventually

PROGRAM = assets.find("kwok")
STAGES = Path(__file__).with_name("kwok.yaml")
PODS = 50
FINALIZER = "kwok.example.com/pod"


@contextlib.contextmanager
def running(cluster: Cluster, node: str, *, log: Path) -> Iterator[None]:
    """KWOK at work on one node."""
    assert PROGRAM is not None
    command = [str(PROGRAM), f"--kubeconfig={cluster.kubeconfig}", f"--config={STAGES}"]
    command += [f"--manage-single-node={node}", "--node-ip=10.1.0.1"]
    command += ["--cidr=10.2.0.0/16", "--node-lease-duration-seconds=40"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield
        except BaseException:
            print(log.read_text()[-20_000:])
            raise
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
async def node(cluster: Cluster, namespace: str) -> AsyncIterator[str]:
    """The name of a node that nobody has looked after yet."""
    name = f"node-of-{namespace[-8:]}"
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    await cluster.kubectl("create", "--filename=-", stdin=json.dumps(made))
    yield name
    await cluster.kubectl("delete", f"node/{name}", "--wait=false")


def pod(number: int, node: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/main:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:02d}"},
        "spec": {"nodeName": node, "containers": containers},
    }


async def items(cluster: Cluster, kind: str, namespace: str) -> list[dict[str, Any]]:
    listed = await cluster.kubectl("get", kind, f"--namespace={namespace}", "-o=json")
    return list(json.loads(listed)["items"])


async def check_node(cluster: Cluster, node: str) -> None:
    async def ready() -> bool:
        return " Ready " in await cluster.kubectl("get", f"node/{node}")

    await eventually(ready, within=20, every=0.1)
    lease = f"lease/{node}"
    held = await cluster.kubectl("get", lease, "--namespace=kube-node-lease", "-o=json")
    assert json.loads(held)["spec"]["leaseDurationSeconds"] == 40


async def check_pods(cluster: Cluster, namespace: str) -> None:
    async def phases() -> bool:
        pods = await items(cluster, "pods", namespace)
        told = Counter(each["status"]["phase"] for each in pods)
        assert told == {"Running": PODS}
        return True

    await eventually(phases, within=40, every=0.2)
    pods = await items(cluster, "pods", namespace)
    assert all(each["metadata"]["finalizers"] == [FINALIZER] for each in pods)
    assert len({each["status"]["podIP"] for each in pods}) == PODS
    shown = await cluster.kubectl("get", "pods", f"--namespace={namespace}")
    assert shown.count("1/1     Running") == PODS

    async def events() -> bool:
        told = Counter(e["reason"] for e in await items(cluster, "events", namespace))
        assert told["Started"] == PODS
        return True

    await eventually(events, within=20, every=0.2)


if PROGRAM is not None:

    async def test_nodes_get_ready_and_their_pods_run_and_go(
        cluster: Cluster, namespace: str, node: str, tmp_path: Path
    ) -> None:
        with running(cluster, node, log=tmp_path / "kwok.log"):
            await check_node(cluster, node)
            pods = [pod(number, node) for number in range(PODS)]
            made = {"apiVersion": "v1", "kind": "List", "items": pods}
            create = ("create", "--filename=-", f"--namespace={namespace}")
            await cluster.kubectl(*create, stdin=json.dumps(made))
            await check_pods(cluster, namespace)
            path = f"/api/v1/namespaces/{namespace}/pods"
            await cluster.kubectl("delete", f"--raw={path}")

            async def gone() -> bool:
                return await items(cluster, "pods", namespace) == []

            await eventually(gone, within=40, every=0.2)
