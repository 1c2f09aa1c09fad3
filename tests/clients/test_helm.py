"""Helm installs, changes, tests and removes a chart here as it does anywhere.

Collected where helm is: ``hack/cluster/build.py`` builds it, before the tier of the
real cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trimtab.testing import Cluster, KubectlFailed, assets
from trimtab.testing.waiting import eventually

CHART = Path(__file__).with_name("chart")
PROGRAM = assets.find("helm")
CRD = "crd/offers.helm.example.com"
FINISHED = {
    "status": {
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:00:01Z",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": None}
            for kind in ("SuccessCriteriaMet", "Complete")
        ],
    }
}

Run = Callable[..., Coroutine[Any, Any, str]]


class HelmFailed(Exception):
    """Helm ended with an error, and said this."""


async def run_helm(environment: dict[str, str], *arguments: str) -> str:
    """What helm printed."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode:
        raise HelmFailed(errors.decode())
    return output.decode()


@pytest.fixture
def helm(cluster: Cluster, namespace: str, tmp_path: Path) -> Run:
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "HELM_NAMESPACE": namespace,
        "HOME": str(tmp_path),
    }
    return partial(run_helm, environment)


class Shop:
    """What the chart made, as kubectl sees it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._kubectl = partial(cluster.kubectl, f"--namespace={namespace}")

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """The object; empty if it is not there."""
        text = await self._kubectl("get", kind, name, "-o=json", "--ignore-not-found")
        return dict(json.loads(text or "{}"))

    async def offer(self) -> tuple[int, int]:
        """How many sell, and at which price."""
        deployment = await self.get("deployment", "corner")
        offer = await self.get("offers.helm.example.com", "corner")
        return deployment["spec"]["replicas"], offer["spec"]["price"]

    async def finish(self, job: str) -> None:
        """What no node does here: end a job well, once it is there."""
        await eventually(partial(self.get, "job", job), within=20, every=0.1)
        patch = ("--type=merge", f"--patch={json.dumps(FINISHED)}")
        await self._kubectl("patch", "job", job, "--subresource=status", *patch)


async def revisions(helm: Run) -> list[tuple[int, str]]:
    """The history of the release."""
    told = json.loads(await helm("history", "corner", "--output=json"))
    return [(each["revision"], each["status"]) for each in told]


async def live(helm: Run, shop: Shop, mode: str) -> None:
    """A release's life, until it is removed."""
    installed = await helm("install", "corner", str(CHART), mode)
    assert "the server is v1.36" in installed
    assert "Offers are served." in installed
    assert await shop.offer() == (2, 10)
    service = await shop.get("service", "corner")
    assert service["spec"]["clusterIP"]
    assert service["metadata"]["annotations"]["meta.helm.sh/release-name"] == "corner"
    assert (await shop.get("configmap", "corner-opened"))["data"] == {"revision": "1"}

    upgrade = partial(helm, "upgrade", "corner", str(CHART), mode)
    await upgrade("--set=replicas=5,price=12")
    assert await shop.offer() == (5, 12)
    assert (await shop.get("configmap", "corner-opened"))["data"] == {"revision": "2"}
    with pytest.raises(HelmFailed, match=r"spec\.price in body should be greater"):
        await upgrade("--set=replicas=7,price=0")
    assert await revisions(helm) == [(1, "superseded"), (2, "deployed"), (3, "failed")]

    await helm("rollback", "corner", "1", mode)
    assert await shop.offer() == (2, 10)
    assert await shop.get("service", "corner") != {}
    listed = json.loads(await helm("list", "--output=json"))
    assert [(each["name"], each["revision"]) for each in listed] == [("corner", "4")]
    status = await helm("status", "corner")
    assert "STATUS: deployed" in status
    assert "deployment.apps/corner" in status or "==> v1/Deployment" in status

    async with asyncio.TaskGroup() as tasks:
        tested = tasks.create_task(helm("test", "corner"))
        tasks.create_task(shop.finish("corner-test"))
    assert "Phase:          Succeeded" in tested.result()

    await helm("uninstall", "corner")
    for kind in ("deployment", "service", "offers.helm.example.com"):
        assert await shop.get(kind, "corner") == {}
    assert await shop.get("configmap", "corner-closed") != {}
    assert json.loads(await helm("list", "--output=json")) == []


if PROGRAM is not None:

    @pytest.mark.parametrize("mode", ["--server-side=true", "--server-side=false"])
    async def test_a_release_lives_from_install_to_uninstall(
        mode: str, helm: Run, cluster: Cluster, namespace: str
    ) -> None:
        try:
            await live(helm, Shop(cluster, namespace), mode)
        finally:
            await cluster.kubectl("delete", CRD, "--ignore-not-found")
        with pytest.raises(KubectlFailed):
            await cluster.kubectl("get", CRD)
