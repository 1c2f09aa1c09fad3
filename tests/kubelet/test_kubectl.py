"""Laws of pods seen through the real kubectl: logs, exec, ports, top, rollouts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kubelet.laptop import laptop
from tests.kubelet.machine import machine
from trimtab.kubelet.assembly import Parts
from trimtab.testing import KubectlFailed, cluster
from trimtab.testing.kubectl import Kubectl
from trimtab.testing.options import Options
from trimtab.testing.waiting import eventually

SERVER = """
import http.server, os
class Say(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(b"from " + os.environ["HOSTNAME"].encode() * 3000)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((os.environ["POD_IP"], 8417), Say).serve_forever()
"""
TALKER = (
    "trap 'exit 0' TERM; echo one; echo two >&2; echo three; "
    "while :; do sleep 0.05; done"
)


@asynccontextmanager
async def speaking(
    kubectl: Kubectl, *arguments: str
) -> AsyncIterator[tuple[str, asyncio.StreamReader]]:
    """A kubectl that goes on: its first line, and what it says after that."""
    process = await asyncio.create_subprocess_exec(
        str(kubectl.program),
        f"--kubeconfig={kubectl.kubeconfig}",
        f"--cache-dir={kubectl.cache}",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            line = (await process.stdout.readline()).decode()
        yield line, process.stdout
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def forwarding(kubectl: Kubectl, pod: str) -> AsyncIterator[int]:
    async with speaking(kubectl, "port-forward", f"pod/{pod}", ":8417") as (line, _):
        found = re.search(r":(\d+) -> 8417", line)
        assert found, line
        yield int(found[1])


async def fetched(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


async def talk(kubectl: Kubectl) -> None:
    """What anybody does with a pod."""
    run = kubectl.run
    await run("run", "sh", "--image=x", "--command", "--", "sh", "-c", TALKER)
    serve = ("python3", "-S", "-c", SERVER)
    await run("run", "web", "--image=x", "--command", "--", *serve)
    await run("wait", "--for=condition=Ready", "pod/sh", "pod/web", "--timeout=20s")

    async def said() -> bool:
        return sorted((await run("logs", "sh")).split()) == ["one", "three", "two"]

    await eventually(said)
    assert len((await run("logs", "sh", "--tail=1")).split()) == 1
    stamped = await run("logs", "sh", "--timestamps", "--limit-bytes=10")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stamped)
    assert await run("exec", "sh", "--", "sh", "-c", "echo $HOSTNAME") == "sh\n"
    with pytest.raises(KubectlFailed, match="failed with exit code 3"):
        await run("exec", "sh", "--", "sh", "-c", "exit 3")
    text = "in" * 100_000
    assert await run("exec", "-i", "sh", "--", "cat", stdin=text) == text
    async with forwarding(kubectl, "web") as port:

        async def answers() -> bytes:
            try:
                return await fetched(port)
            except OSError:
                return b""

        await eventually(answers)
        pages = await asyncio.gather(*(fetched(port) for _ in range(3)))
        assert all(page.endswith(b"web" * 3000) for page in pages)
    await enter(kubectl)
    async with speaking(kubectl, "logs", "--follow", "sh") as (first, more):
        await run("delete", "pod", "sh", "web", "--grace-period=3")
        async with asyncio.timeout(20):
            rest = (await more.read()).decode()
    assert sorted([*first.split(), *rest.split()]) == ["one", "three", "two"]


async def enter(kubectl: Kubectl) -> None:
    """What anybody does inside of a pod: with its own input, and as a guest."""
    run = kubectl.run
    said = await run(
        *("run", "cat", "--image=x", "-i", "--rm", "--restart=Never", "--quiet"),
        *("--command", "--", "sh", "-c", "read -r word; echo got $word"),
        stdin="through the input\n",
    )
    assert "got through the input" in said
    await run(
        *("run", "term", "--image=x", "-t", "--stdin", "--attach=false"),
        *("--command", "--", "sh", "-c", "tty; read -r word; echo got $word"),
    )
    await run("wait", "--for=condition=Ready", "pod/term", "--timeout=20s")
    assert "got it" in await run("attach", "term", "-i", stdin="it\n")
    assert "/dev/pts/" in await run("logs", "term")
    await run("delete", "pod", "term", "--grace-period=1")
    await run(
        *("debug", "sh", "--image=x", "--container=guest", "--target=sh", "--"),
        *("sh", "-c", "echo beside $HOSTNAME"),
    )

    async def heard() -> bool:
        return await run("logs", "sh", "--container=guest") == "beside sh\n"

    await eventually(heard)


async def roll(kubectl: Kubectl) -> None:
    """What anybody does with a Deployment."""
    run = kubectl.run
    await run("create", "deployment", "shop", "--image=web:1", "--replicas=2")
    done = await run("rollout", "status", "deployment/shop", "--timeout=20s")
    assert 'deployment "shop" successfully rolled out' in done
    await run("set", "image", "deployment/shop", "web=new:1")
    await run("rollout", "status", "deployment/shop", "--timeout=20s")
    await run("rollout", "undo", "deployment/shop")
    await run("rollout", "status", "deployment/shop", "--timeout=20s")
    found = json.loads(await run("get", "deployment", "shop", "-o", "json"))
    [container] = found["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "web:1"
    history = await run("rollout", "history", "deployment/shop")
    assert re.findall(r"^\d+", history, re.MULTILINE) == ["2", "3"]
    table = (await run("top", "pod")).splitlines()
    assert table[0].split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert len(table) == 3
    assert "Mi" in table[1]
    described = await run("describe", "deployment", "shop")
    assert "Scaled up replica set shop-" in described


@pytest.mark.cluster("embedded")
async def test_kubectl_does_with_pods_here_what_it_does_elsewhere(
    tmp_path: Path,
) -> None:
    images = ("--image=web=sleep 1000", "--image=new=sleep 2000")
    async with machine(tmp_path, *images) as here:
        await talk(here.kubectl)
        await roll(here.kubectl)


@pytest.mark.cluster("real")
async def test_kubectl_reaches_pods_through_a_real_server(tmp_path: Path) -> None:
    options = Options(
        apiserver_flags=(
            "--kubelet-client-certificate=admin.crt",
            "--kubelet-client-key=admin.key",
            "--kubelet-preferred-address-types=InternalIP",
        )
    )
    parts = Parts(workloads=False, services=False, endpoint=True)
    async with cluster("real", options=options) as real:
        async with laptop(real, "default", tmp_path, parts=parts):
            await talk(real.tool)
