"""Laws of addresses and Services: each pod has its own, a Service finds its pods."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from tests.kubelet.laptop import Laptop, container, laptop
from tests.ports import unused_port
from trimtab.api.kinds import Service, ServicePort, ServiceSpec
from trimtab.kubelet.assembly import Parts
from trimtab.kubelet.services import EndpointSlice, reached_at
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]
ALL = Parts(workloads=False)
ECHO = """
import os, socketserver, sys
host = os.environ["POD_IP"] if sys.argv[2:] == ["own"] else "0.0.0.0"
class Say(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(os.environ["HOSTNAME"].encode())
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer((host, int(sys.argv[1])), Say).serve_forever()
"""


def echo(port: int, *more: str) -> Plain:
    ports = [{"name": "say", "containerPort": port}]
    return container(["python3", "-S", "-c", ECHO, str(port), *more], ports=ports)


async def said(host: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


async def serve(node: Laptop, name: str, port: int) -> Service:
    metadata = {"name": name, "namespace": node.namespace}
    spec = {
        "selector": {"app": "echo"},
        "ports": [{"port": port, "targetPort": "say"}],
    }
    await node.client.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    )
    return await node.client.get(Service, name, namespace=node.namespace)


async def answered(host: str, port: int) -> str:
    try:
        return await said(host, port)
    except OSError:
        return ""


async def test_twenty_pods_listen_on_one_port(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    port = unused_port()
    async with laptop(cluster, namespace, tmp_path) as node:
        names = [f"echo-{number}" for number in range(20)]
        for name in names:
            await node.create(name, echo(port, "own"))
        addresses = set()
        for name in names:
            pod = await node.ready(name)
            address = pod["status"]["podIP"]
            addresses.add(address)
            found = await eventually(partial(answered, address, port), every=0.05)
            assert found == name
        assert len(addresses) == 20


async def test_a_port_that_is_taken_is_told_with_its_holder(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    port = unused_port()
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("first", echo(port))
        await node.ready("first")
        await eventually(lambda: answered("127.0.0.1", port))
        await node.create("second", echo(port))
        await node.phase("second", "Failed")
        message = await node.event("second", "PortTaken")
        assert f"port {port} is held by the pod first (process" in message


async def test_a_service_is_reached_by_its_name_and_its_variables(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    inside, outside = unused_port(), unused_port()
    ask = (
        "import os, socket\n"
        "def ask(host, port):\n"
        "    with socket.create_connection((host, int(port)), 5) as there:\n"
        "        return there.recv(100).decode()\n"
        f"name = ask('shop.{namespace}.svc', {outside})\n"
        "host = os.environ['SHOP_SERVICE_HOST']\n"
        "print(name, ask(host, os.environ['SHOP_SERVICE_PORT']))\n"
    )
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        service = await serve(node, "shop", outside)
        labels = {"labels": {"app": "echo"}}
        for name in ("one", "two"):
            await node.create(name, echo(inside, "own"), metadata=labels)
            await node.ready(name)
        place = (reached_at(service), outside)
        heard: set[str] = set()

        async def both() -> bool:
            heard.add(await answered(*place))
            return {"one", "two"} <= heard

        await eventually(both)
        await node.create("asks", container(["python3", "-S", "-c", ask]))
        await node.phase("asks", "Succeeded")
        assert set((await node.logs("asks")).split()) <= {"one", "two"}

        async def slices() -> list[EndpointSlice]:
            found = node.client.list(EndpointSlice, namespace=namespace)
            return [each async for each in found if len(each.endpoints or ()) == 2]

        [found] = await eventually(slices)
        assert [each["port"] for each in found.ports or ()] == [inside]
        assert all(each["conditions"]["ready"] for each in found.endpoints or ())
        await node.delete("one", grace=0)
        await eventually(lambda: answered(*place))

        async def only_two() -> bool:
            return {await answered(*place) for _ in range(3)} == {"two"}

        await eventually(only_two)
        await node.delete("two", grace=0)

        async def none() -> bool:
            [found] = [
                each
                async for each in node.client.list(EndpointSlice, namespace=namespace)
            ]
            return not found.endpoints

        await eventually(none)


async def test_a_pod_that_listens_everywhere_has_the_port_of_its_own_service(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    port = unused_port()
    probe = {"tcpSocket": {"port": "say"}, "periodSeconds": 1}
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        service = await serve(node, "shop", port)

        async def seen_to() -> list[EndpointSlice]:
            slices = node.client.list(EndpointSlice, namespace=namespace)
            return [each async for each in slices]

        await eventually(seen_to)
        pod = {**echo(port), "readinessProbe": probe}
        await node.create("only", pod, metadata={"labels": {"app": "echo"}})
        await node.ready("only")
        assert await said(reached_at(service), port) == "only"


def test_a_service_is_reached_on_the_loopback_and_nowhere_else() -> None:
    def at(address: str) -> str:
        spec = ServiceSpec(clusterIP=address, ports=[ServicePort(port=1)])
        return reached_at(Service(spec=spec))

    assert at("10.0.3.7") == "127.96.3.7"
    assert at("127.96.0.9") == "127.96.0.9"
    assert at("None") == at("") == at("fd00::1") == ""
