"""Laws of the server as a whole: what it keeps, where it listens, how it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.embedded.worlds import config_map
from tests.ports import unused_port
from trimtab.client import Client, Config, load
from trimtab.client.credentials import Static, bearer
from trimtab.client.errors import NotFound, TrimtabError, Unreachable
from trimtab.embedded.authentication import StaticToken
from trimtab.embedded.files import FileProblem
from trimtab.embedded.server import STORE, AddressProblem, Server, bind
from trimtab.embedded.store import StoreDamaged, StoreLocked
from trimtab.kinds import ConfigMap, ServiceAccount
from trimtab.testing import assets, eventually
from trimtab.testing.kubectl import Kubectl

READERS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "readers", "namespace": "default"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "view",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "default"}],
}


def config_of(server: Server) -> Config:
    return load(kubeconfig=server.kubeconfig, environ={})


async def test_a_server_is_ready_when_its_block_begins() -> None:
    async with Server() as server, Client(config_of(server)) as client:
        assert server.url.startswith("https://127.0.0.1:")
        found = await client.get(ServiceAccount, "default")
        assert found.metadata.uid


async def test_objects_credentials_and_tokens_survive_a_restart(tmp_path: Path) -> None:
    async with Server(data=tmp_path) as server:
        config, port = config_of(server), int(server.url.rpartition(":")[2])
        async with Client(config) as client:
            made = await client.create(config_map("a", n="1"))
            await client.create(READERS)
            token = (await client.token("default", seconds=3600)).token
    async with Server(data=tmp_path, port=port):
        async with Client(config) as client:
            found = await client.get(ConfigMap, "a")
            assert found.metadata.uid == made["metadata"]["uid"]
            assert found.metadata.resourceVersion == made["metadata"]["resourceVersion"]
        account = msgspec.structs.replace(
            config,
            credentials=Static(bearer(token, source="a test")),
            tls=msgspec.structs.replace(config.tls, certificate=None, key=None),
        )
        async with Client(account) as client:
            assert (await client.get(ConfigMap, "a")).data == {"n": "1"}


async def test_what_is_in_memory_is_gone_with_the_server() -> None:
    async with Server() as server:
        kubeconfig = server.kubeconfig
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert stat.S_IMODE(kubeconfig.parent.stat().st_mode) == 0o700
        async with Client(config_of(server)) as client:
            await client.create(config_map("a"))
    assert not kubeconfig.parent.exists()
    async with Server() as server, Client(config_of(server)) as client:
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a")


async def test_two_servers_in_one_process_know_nothing_of_each_other() -> None:
    async with Server() as one, Server() as two:
        async with Client(config_of(one)) as first, Client(config_of(two)) as second:
            await first.create(config_map("a"))
            with pytest.raises(NotFound):
                await second.get(ConfigMap, "a")


async def test_a_server_that_has_stopped_leaves_its_port_and_its_data(
    tmp_path: Path,
) -> None:
    async with Server(data=tmp_path) as server:
        config, port = config_of(server), int(server.url.rpartition(":")[2])
    async with Client(config) as client:
        with pytest.raises(Unreachable):
            await client.get(ConfigMap, "a")
    bind("127.0.0.1", port).close()
    async with Server(data=tmp_path, port=port):
        pass


async def test_a_second_server_on_the_same_data_is_refused_and_harms_nothing(
    tmp_path: Path,
) -> None:
    async with Server(data=tmp_path) as server:
        before = server.kubeconfig.read_bytes()
        with pytest.raises(StoreLocked, match="is in use by"):
            async with Server(data=tmp_path):
                pass
        assert server.kubeconfig.read_bytes() == before
        async with Client(config_of(server)) as client:
            await client.get(ServiceAccount, "default")


async def test_a_damaged_store_is_refused_and_left(tmp_path: Path) -> None:
    async with Server(data=tmp_path):
        pass
    path = tmp_path / STORE
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\x5a" * 4096
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match="damaged"):
        async with Server(data=tmp_path):
            pass
    assert path.read_bytes() == content


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressProblem, match=f"Port {port} of 127.0.0.1 is taken"):
            async with Server(port=port):
                pass


async def test_a_port_of_another_server_of_ours_is_taken() -> None:
    async with Server() as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(AddressProblem, match="is taken"):
            async with Server(port=port):
                pass


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
async def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    with pytest.raises(AddressProblem, match=f"of {host}"):
        bind(host, 0)


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileProblem, match="cannot be used"):
        async with Server(data=tmp_path / "file" / "data"):
            pass


async def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    """The lock and the port are free again."""
    port = unused_port()
    kubeconfig = tmp_path / "nowhere" / "kubeconfig"
    with pytest.raises(TrimtabError):
        async with Server(data=tmp_path, port=port, kubeconfig=kubeconfig):
            pass
    async with Server(data=tmp_path, port=port):
        pass


async def test_it_listens_on_the_loopback_only() -> None:
    async with Server() as server:
        port = int(server.url.rpartition(":")[2])
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        listening = [
            row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")
        ]
        assert listening == [f"0100007F:{port:04X}"]


async def test_a_static_token_comes_in() -> None:
    jo = StaticToken(token="open-sesame", user="jo", groups=("system:masters",))
    async with Server(tokens=[jo]) as server:
        content = json.loads(server.kubeconfig.read_bytes())
        content["users"][0]["user"] = {"token": "open-sesame"}
        path = server.kubeconfig.with_name("jo")
        path.write_text(json.dumps(content))
        async with Client(load(kubeconfig=path, environ={})) as client:
            await client.get(ServiceAccount, "default")


async def test_certificates_are_renewed_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Server(data=tmp_path) as server:
        before = config_of(server)
        soon = timedelta(days=400)
        monkeypatch.setattr("trimtab.embedded.identity.RENEW_BEFORE", soon)
        server._renew()
        after = config_of(server)
        assert after.tls.certificate != before.tls.certificate
        assert after.tls.ca == before.tls.ca
        for config in (before, after):
            async with Client(config) as client:
                await client.get(ServiceAccount, "default")


async def test_a_stop_takes_less_than_five_seconds_with_watches_under_way() -> None:
    loop = asyncio.get_running_loop()
    server = Server()
    async with server, Client(config_of(server)) as client:
        watches = [client.watch(ConfigMap, namespace="default") for _ in range(20)]
        for watch in watches:
            await watch.__aenter__()
            await anext(watch)
            await anext(watch)  # the mark at the end of what was there

        async def rest(number: int) -> list[object]:
            return [event async for event in watches[number]]

        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(rest(number)) for number in range(20)]
            await asyncio.sleep(0.05)
            began = loop.time()
            group.create_task(server.__aexit__(None, None, None))
        assert loop.time() - began < 5.0
        assert [each.result() for each in reading] == [[]] * 20, "they ended well"


async def test_kubectl_finds_a_cluster(tmp_path: Path) -> None:
    program = assets.find("kubectl")
    if program is None:
        pytest.skip("kubectl is not on this machine")
    async with Server() as server:
        kubectl = Kubectl(
            program=program, kubeconfig=server.kubeconfig, cache=tmp_path / "cache"
        )
        assert "v1.36.3" in await kubectl.run("version", "--output=json")
        manifest = json.dumps(config_map("a", n="1"))
        await kubectl.run("apply", "--filename=-", stdin=manifest)
        found = await kubectl.run("get", "configmap", "a", "--output=json")
        assert json.loads(found)["data"] == {"n": "1"}
        await kubectl.run("delete", "configmap", "a")
        assert "apiserver_request_total" in await kubectl.run("get", "--raw=/metrics")


async def test_metrics_tell_of_the_store() -> None:
    async with Server() as server, Client(config_of(server)) as client:
        await client.create(config_map("a"))

        def revision() -> int:
            store = server.driver._statistics
            assert store is not None
            lines = server.driver.metrics.text(store()).decode().splitlines()
            [line] = [each for each in lines if each.startswith("trimtab_store_rev")]
            return int(float(line.split()[1]))

        before = revision()
        await client.create(config_map("b"))
        await eventually(lambda: revision() > before)
