"""Laws of probes and hooks: when a container counts as well, and what it does last."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kubelet.laptop import FOREVER, condition, container, laptop, shell
from trimtab.api.kinds import HTTPGetAction, Probe
from trimtab.kubelet import checks, grpc
from trimtab.kubelet.checks import Checked
from trimtab.kubelet.probing import Prober
from trimtab.testing import Cluster

HOST = "127.0.0.1"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """A server that says the same to everybody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_request_is_well_from_200_to_399() -> None:
    for code, ok in ((200, True), (302, True), (404, False), (500, False)):
        answer = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % code
        async with answering(answer) as port:
            found = await checks.by_request(HTTPGetAction(port=port), HOST, port)
        assert found.ok is ok
        if not ok:
            assert found.output == f"HTTP probe failed with statuscode: {code}"
    found = await checks.by_request(HTTPGetAction(port=port), HOST, port)
    url = f"http://{HOST}:{port}/"
    refused = f"dial tcp {HOST}:{port}: connect: connection refused"
    assert found == Checked(False, f'Get "{url}": {refused}')
    assert await checks.by_connection(HOST, port) == Checked(False, refused)


@pytest.mark.parametrize(
    ("message", "output"),
    [
        (b"\x08\x01", ""),
        (b"\x08\x02", 'service unhealthy (responded with "NOT_SERVING")'),
        (b"", 'service unhealthy (responded with "UNKNOWN")'),
    ],
)
async def test_a_grpc_server_says_how_it_is(message: bytes, output: str) -> None:
    body = struct.pack(">BI", 0, len(message)) + message
    answer = (
        grpc.frame(grpc.SETTINGS, 0, 0, b"")
        + grpc.frame(grpc.HEADERS, grpc.END_HEADERS, 1, b"\x88")
        + grpc.frame(grpc.DATA, 0, 1, body)
    )
    async with answering(answer) as port:
        found = await checks.by_grpc(HOST, port, "shop", within=5)
    assert found == Checked(not output, output)


async def test_a_verdict_changes_only_after_so_many_looks() -> None:
    looks = iter([True, False, False, True, False, False, False, True, True])
    verdicts: list[bool] = []
    over = asyncio.Event()

    async def look() -> Checked:
        ok = next(looks, None)
        if ok is None:
            over.set()
            await asyncio.sleep(60)
        return Checked(bool(ok), "no")

    probe = Probe(failureThreshold=3, successThreshold=2)
    warned: list[str] = []
    prober = Prober(
        "Readiness",
        probe,
        look=look,
        tell=verdicts.append,
        warn=warned.append,
        period=0.0,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(prober.run())
        await over.wait()
        task.cancel()
    assert verdicts == [False, True]
    assert warned[0] == "Readiness probe failed: no"


async def test_a_pod_is_ready_when_its_probe_says_so(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    flag = tmp_path / "ready"
    probe = {"exec": {"command": ["test", "-e", str(flag)]}, "periodSeconds": 1}
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("slow", container(FOREVER, readinessProbe=probe))
        pod = await node.phase("slow", "Running")
        assert condition(pod, "Ready") == "False"
        await node.event("slow", "Unhealthy", "Readiness probe failed: ")
        flag.touch()
        await node.ready("slow")


async def test_a_container_that_fails_its_liveness_probe_is_restarted(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    flag = tmp_path / "alive"
    flag.touch()
    probe = {
        "exec": {"command": ["test", "-e", str(flag)]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    begun = container(FOREVER, startupProbe=probe, livenessProbe=probe)
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("frail", begun, restartPolicy="Always")
        await node.ready("frail")
        flag.unlink()
        # The next one fails its startup probe at once, and has such an Event, too.
        words = "Container main failed liveness probe, will be restarted"
        await node.event("frail", "Killing", words)
        await node.until(
            "frail",
            lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 1,
        )


async def test_hooks_run_after_the_start_and_before_the_end(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"

    def says(word: str) -> dict[str, object]:
        return {"exec": {"command": ["sh", "-c", f"echo {word} >> {said}"]}}

    hooks = {"postStart": says("begin"), "preStop": says("end")}
    script = f"trap 'echo term >> {said}; exit 0' TERM; while :; do sleep 0.05; done"
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("hooked", shell(script, lifecycle=hooks))
        await node.ready("hooked")
        assert said.read_text() == "begin\n"
        await node.delete("hooked")
        await node.gone("hooked")
        assert said.read_text().split() == ["begin", "end", "term"]
