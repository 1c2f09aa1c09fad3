"""A real control plane starts, answers, restarts, and leaves nothing behind."""

import asyncio
import json
import re
import signal
import stat
from pathlib import Path

import pytest

from tests.testing.helpers import is_alive, start_python, until
from trimtab.testing import (
    Cluster,
    KubectlFailed,
    Options,
    Token,
    assets,
    cluster,
    eventually,
)

pytestmark = pytest.mark.cluster("real")

POD = """
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {containers: [{name: main, image: nowhere}]}
"""

# Starts a cluster, tells about it, and waits.
PARENT = """
import asyncio, json
from trimtab.testing import cluster
async def main():
    async with cluster("real") as mine:
        facts = {"folder": str(mine.kubeconfig.parent), "pids": mine.pids}
        print(json.dumps(facts), flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""

open_cluster = cluster


async def test_it_answers_kubectl(cluster: Cluster) -> None:
    assert await cluster.kubectl("get", "--raw", "/readyz") == "ok"
    version = json.loads(await cluster.kubectl("version", "--output=json"))
    assert version["serverVersion"]["major"] == "1"
    apiserver = assets.find("kube-apiserver")
    assert apiserver
    if apiserver.parent == assets.cache_folder():
        assert version["serverVersion"]["gitVersion"] == assets.KUBERNETES_VERSION


async def test_a_namespace_is_fresh_and_a_pod_can_be_made_in_it(
    cluster: Cluster, namespace: str
) -> None:
    assert re.fullmatch(r"a-namespace-is-fresh[a-z0-9-]+-[0-9a-f]{8}", namespace)
    await cluster.kubectl("apply", f"--namespace={namespace}", "-f-", stdin=POD)
    pods = await cluster.kubectl(
        "get", "pods", "-o", "name", f"--namespace={namespace}"
    )
    assert pods == "pod/one\n"


async def test_a_failure_carries_what_kubectl_said(cluster: Cluster) -> None:
    with pytest.raises(KubectlFailed, match=r"`kubectl get pod nobody`.*NotFound"):
        await cluster.kubectl("get", "pod", "nobody")


async def test_secrets_are_for_this_user_only(cluster: Cluster) -> None:
    folder = cluster.kubeconfig.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [*folder.glob("*.key"), *folder.glob("*.kubeconfig"), folder / "tokens.csv"]
    assert len(files) > 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert "data" not in repr(cluster)


def test_it_listens_on_loopback_only(cluster: Cluster) -> None:
    port = f":{int(cluster.server.rpartition(':')[2]):04X}"
    lines = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(port)
    ]
    assert lines == [f"0100007F{port}"]


async def test_two_clusters_at_once_are_two(cluster: Cluster) -> None:
    token = Token(token="s3cret", user="bob", groups=["readers"])
    options = Options(tokens=[token], apiserver_flags=["--event-ttl=17s"])
    async with open_cluster("real", options=options) as other:
        assert other.server != cluster.server
        assert not set(other.pids.values()) & set(cluster.pids.values())
        await other.kubectl("create", "namespace", "only-here")
        with pytest.raises(KubectlFailed, match="NotFound"):
            await cluster.kubectl("get", "namespace", "only-here")
        await assert_rbac_decides(other)
        command = command_line(other.pids["kube-apiserver"])
        assert "--event-ttl=17s" in command
        assert "s3cret" not in command
    assert "s3cret" not in repr(options)
    assert not any(is_alive(pid) for pid in other.pids.values())
    assert not other.kubeconfig.parent.exists()
    assert await cluster.kubectl("get", "--raw", "/readyz") == "ok"


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def assert_rbac_decides(mine: Cluster) -> None:
    """A token's user may do what a role says, and nothing else."""
    bob = ("--context=bob", "get", "namespaces", "-o", "name")
    with pytest.raises(KubectlFailed, match=r'Forbidden.*User "bob"'):
        await mine.kubectl(*bob)
    role = ("create", "clusterrole", "readers", "--verb=list", "--resource=namespaces")
    await mine.kubectl(*role)
    binding = ("create", "clusterrolebinding", "readers", "--clusterrole=readers")
    await mine.kubectl(*binding, "--group=readers")
    await eventually(lambda: succeeds(mine, *bob), describe="bob lists namespaces")


async def succeeds(mine: Cluster, *arguments: str) -> bool:
    try:
        await mine.kubectl(*arguments)
    except KubectlFailed:
        return False
    return True


async def test_a_restarted_api_server_has_kept_everything() -> None:
    async with open_cluster("real") as mine:
        await mine.kubectl("create", "configmap", "kept")
        before = mine.pids
        await mine.restart_apiserver()
        assert mine.pids["etcd"] == before["etcd"]
        assert mine.pids["kube-apiserver"] != before["kube-apiserver"]
        assert not is_alive(before["kube-apiserver"])
        found = await mine.kubectl("get", "configmap", "kept", "-o", "name")
        assert found == "configmap/kept\n"


async def test_controllers_finish_what_is_deleted() -> None:
    async with open_cluster("real", options=Options(controllers=True)) as mine:
        assert mine.controllers
        await mine.kubectl("apply", "-f-", stdin=POD)  # needs the service account
        await mine.kubectl("create", "namespace", "brief")
        await mine.kubectl("delete", "namespace", "brief", within=30.0)
        assert not await succeeds(mine, "get", "namespace", "brief")


async def test_the_event_loop_goes_on_while_a_cluster_starts() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        async with open_cluster("real"):
            assert ticks > 20
        ticking.cancel()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "int"])
def test_nothing_outlives_a_run_that_a_signal_ended(number: signal.Signals) -> None:
    parent = start_python(PARENT)
    assert parent.stdout
    with parent.stdout:
        facts = json.loads(parent.stdout.readline())
    pids, folder = facts["pids"].values(), Path(facts["folder"])
    assert len(pids) == 2
    assert all(is_alive(pid) for pid in pids)
    parent.send_signal(number)
    parent.wait(20)
    assert until(lambda: not any(is_alive(pid) for pid in pids))
    assert until(lambda: not folder.exists())
