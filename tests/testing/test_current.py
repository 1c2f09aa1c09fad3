"""The user's own cluster is used only as the kubeconfig says, and never harmed."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.testing.helpers import script
from trimtab.testing import Cluster, ClusterError, cluster


def entry(name: str, server: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": f"{name}-token"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def write(path: Path, content: dict[str, Any], *, current: str = "") -> Path:
    head = {"apiVersion": "v1", "kind": "Config", "current-context": current}
    path.write_text(json.dumps({**head, **content}))
    return path


@pytest.mark.parametrize("value", [None, "/nowhere/config", "/nowhere/a:/nowhere/b"])
async def test_without_a_kubeconfig_it_refuses(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    if value:
        monkeypatch.setenv("KUBECONFIG", value)
    looked = (value or f"{tmp_path}/.kube/config").replace(":", ", ")
    with pytest.raises(ClusterError, match=f"{looked} does not exist: set KUBECONFIG"):
        async with cluster("current"):
            pytest.fail("there is none")


async def test_a_kubeconfig_that_kubectl_cannot_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path / "config", {})))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    script(tmp_path / "kubectl", "echo error: it is not YAML >&2; exit 1")
    with pytest.raises(
        ClusterError, match=r"cannot read the kubeconfig.*it is not YAML"
    ):
        async with cluster("current"):
            pytest.fail("there is none")


@pytest.mark.cluster("real")
async def test_without_a_current_context_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", entry("one", "https://one.example"))
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(ClusterError, match=r"current.context"):
        async with cluster("current"):
            pytest.fail("there is none")


@pytest.mark.cluster("real")
async def test_a_run_stays_on_the_context_that_was_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write(tmp_path / "1", entry("one", "https://one.example"), current="two")
    two = write(tmp_path / "2", entry("two", "https://two.example"))
    monkeypatch.setenv("KUBECONFIG", f"{one}:{two}")
    async with cluster("current") as mine:
        write(one, entry("one", "https://one.example"), current="one")
        view = await mine.kubectl("config", "view", "--raw", "-o", "json")
        assert (mine.name, mine.server) == ("two", "https://two.example")
        assert json.loads(view)["users"][0]["user"] == {"token": "two-token"}
        assert stat.S_IMODE(mine.kubeconfig.stat().st_mode) == 0o600
        assert mine.pids == {}
        with pytest.raises(ClusterError, match="was not started by this test run"):
            await mine.restart_apiserver()
    assert not mine.kubeconfig.exists()
    assert "two-token" not in repr(mine)


@pytest.mark.cluster("real")
async def test_the_current_cluster_is_the_one_of_the_kubeconfig(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimtab.testing import cluster as open_cluster

    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    async with open_cluster("current") as mine:
        assert mine.server == cluster.server
        assert await mine.kubectl("get", "--raw", "/readyz") == "ok"
    assert await cluster.kubectl("get", "--raw", "/readyz") == "ok"
