"""Laws of the embedded cluster that a test is given."""

import asyncio
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from tests.testing.helpers import is_alive, start_python, until
from trimtab.client import Client, load
from trimtab.client.errors import NotFound
from trimtab.kinds import ConfigMap, Namespace, ServiceAccount
from trimtab.testing import (
    AssetsMissing,
    Cluster,
    ClusterError,
    Options,
    Token,
    cluster,
    eventually,
)
from trimtab.testing.embedded import EmbeddedPlane, embedded_namespace
from trimtab.testing.options import ADMIN


def client_of(ready: Cluster, context: str = ADMIN) -> Client:
    return Client(load(kubeconfig=ready.kubeconfig, context=context, environ={}))


def config_map(name: str) -> dict[str, object]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def test_it_is_ready_for_use_and_gone_without_a_trace() -> None:
    async with cluster("embedded") as ready:
        assert ready.kind == "embedded"
        assert ready.controllers
        assert stat.S_IMODE(ready.kubeconfig.stat().st_mode) == 0o600
        async with client_of(ready) as client:
            await client.get(ServiceAccount, "default")
        [pid] = ready.pids.values()
        assert is_alive(pid)
    assert not is_alive(pid)
    assert not ready.kubeconfig.parent.exists()


async def test_it_restarts_with_the_same_port_objects_and_credentials() -> None:
    async with cluster("embedded") as ready, client_of(ready) as client:
        await client.create(config_map("kept"))
        before = ready.pids
        await ready.restart_apiserver()
        assert ready.pids != before
        assert (await client.get(ConfigMap, "kept")).metadata.name == "kept"


async def test_any_number_of_them_run_side_by_side() -> None:
    async with cluster("embedded") as one, cluster("embedded") as two:
        assert one.server != two.server
        async with client_of(one) as first, client_of(two) as second:
            await first.create(config_map("mine"))
            with pytest.raises(NotFound):
                await second.get(ConfigMap, "mine")


async def test_tokens_have_contexts_of_their_own() -> None:
    token = Token(token="open-sesame", user="jo", groups=("system:masters",))
    async with cluster("embedded", options=Options(tokens=[token])) as ready:
        content = json.loads(ready.kubeconfig.read_bytes())
        assert [each["name"] for each in content["contexts"]] == [ADMIN, "jo"]
        assert content["current-context"] == ADMIN
        async with client_of(ready, "jo") as client:
            await client.get(ServiceAccount, "default")


async def test_it_dies_with_the_process_that_started_it() -> None:
    code = """
import asyncio
from trimtab.testing import cluster
async def main():
    async with cluster("embedded") as ready:
        print(*ready.pids.values(), ready.kubeconfig.parent, flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""
    process = start_python(code)
    assert process.stdout is not None
    pid, folder = process.stdout.readline().split()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert until(lambda: not is_alive(int(pid)))
    assert until(lambda: not Path(folder).exists())


async def test_a_server_that_was_killed_is_started_again() -> None:
    async with cluster("embedded") as ready:
        os.kill(ready.pids["trimtab"], signal.SIGKILL)
        await ready.restart_apiserver()
        async with client_of(ready) as client:
            await client.get(ServiceAccount, "default")


async def test_a_start_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(ClusterError, match=r"was not ready within 0\.01 s"):
        async with cluster("embedded", options=Options(ready_within=0.01)):
            pytest.fail("it cannot be ready")


async def test_flags_of_real_programs_are_refused() -> None:
    options = Options(apiserver_flags=["--event-ttl=1s"])
    with pytest.raises(ClusterError, match="takes no flags"):
        async with cluster("embedded", options=options):
            pytest.fail("it cannot be ready")


async def test_a_namespace_is_made_with_its_account_and_deleted() -> None:
    async with cluster("embedded") as ready, client_of(ready) as client:
        assert isinstance(ready.plane, EmbeddedPlane)
        with embedded_namespace(ready.plane, "team"):
            await client.get(ServiceAccount, "default", namespace="team")

        async def gone() -> bool:
            try:
                await client.get(Namespace, "team")
            except NotFound:
                return True
            return False

        await eventually(gone)


async def test_kubectl_is_needed_by_those_who_call_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("KUBEBUILDER_ASSETS", "XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, "/nowhere")
    async with cluster("embedded") as ready:
        with pytest.raises(AssetsMissing, match="kubectl not found"):
            await ready.kubectl("version")


async def test_a_start_that_is_cancelled_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    async def start() -> None:
        async with cluster("embedded"):
            pytest.fail("it was cancelled before it was ready")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(start())
        await eventually(lambda: any(tmp_path.glob("*/trimtab.log")))
        task.cancel()
    assert task.cancelled()
    assert not list(tmp_path.iterdir())
