"""Laws of pods as processes: what runs, in which order, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubelet.laptop import (
    FOREVER,
    container,
    laptop,
    marked,
    shell,
    state,
    waiting_for,
)
from trimtab.kubelet.images import Image, Images
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually


async def test_a_pod_runs_and_ends_with_its_program(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("good", shell("echo hello; echo oh >&2"))
        await node.create("bad", shell("exit 3"))
        good = await node.phase("good", "Succeeded")
        assert state(good)["terminated"]["reason"] == "Completed"
        assert sorted((await node.logs("good")).split()) == ["hello", "oh"]
        bad = await node.phase("bad", "Failed")
        assert state(bad)["terminated"]["exitCode"] == 3
        assert state(bad)["terminated"]["reason"] == "Error"
        await node.event("good", "Scheduled")
        assert await node.event("good", "Started") == "Container started"


async def test_a_deleted_pod_gets_its_time_and_leaves_no_process(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        out = tmp_path / "said"
        tidy = f"trap 'echo bye > {out}; exit 0' TERM; while :; do sleep 0.05; done"
        stubborn = "trap '' TERM; setsid sleep 1000 & while :; do sleep 0.05; done"
        await node.create("tidy", shell(tidy))
        await node.create("stubborn", shell(stubborn), terminationGracePeriodSeconds=1)
        pods = [await node.ready("tidy"), await node.ready("stubborn")]
        uids = [each["metadata"]["uid"] for each in pods]
        await eventually(lambda: len(marked(uids[1])) >= 2, every=0.1)
        await node.delete("tidy")
        await node.delete("stubborn")
        await node.gone("tidy")
        await node.gone("stubborn")
        assert out.read_text() == "bye\n"
        assert not any(map(marked, uids))
        assert await node.event("tidy", "Killing") == "Stopping container main"


async def test_a_container_that_fails_backs_off_in_the_kubelets_words(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("again", shell("exit 7"), restartPolicy="Always")
        pod = await node.until(
            "again",
            lambda pod: (
                waiting_for(pod) == "CrashLoopBackOff"
                and pod["status"]["containerStatuses"][0]["restartCount"] >= 2
            ),
        )
        [status] = pod["status"]["containerStatuses"]
        assert status["lastState"]["terminated"]["exitCode"] == 7
        assert pod["status"]["phase"] == "Running"
        message = status["state"]["waiting"]["message"]
        assert message.startswith("back-off ")
        assert "restarting failed container=main pod=again_" in message
        await node.event("again", "BackOff")


async def test_init_containers_run_in_order_and_sidecars_beside(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    beside = f"echo side >> {said}; trap 'echo end >> {said}; exit' TERM; "
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create(
            "ordered",
            shell(f"echo main >> {said}"),
            initContainers=[
                shell(f"echo one >> {said}", name="one"),
                shell(
                    beside + "while :; do sleep 0.05; done",
                    name="side",
                    restartPolicy="Always",
                ),
                shell(
                    f"while ! grep -q side {said}; do sleep 0.02; done; "
                    f"echo two >> {said}",
                    name="two",
                ),
            ],
        )
        pod = await node.phase("ordered", "Succeeded")
        assert said.read_text().split() == ["one", "side", "two", "main", "end"]
        words = {each["type"]: each for each in pod["status"]["conditions"]}
        assert words["Ready"]["reason"] == "PodCompleted"
        assert words["Initialized"]["status"] == "True"


async def test_a_failed_init_container_fails_a_pod_that_never_restarts(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("stuck", initContainers=[shell("exit 1", name="init")])
        pod = await node.phase("stuck", "Failed")
        assert waiting_for(pod) == "PodInitializing"


async def test_what_is_not_there_is_waited_for_in_the_kubelets_words(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("image", {"name": "main", "image": "nobody/knows:1"})
        secret = {"secretKeyRef": {"name": "later", "key": "word"}}
        env = [{"name": "WORD", "valueFrom": secret}]
        await node.create("config", shell("echo $WORD", env=env))
        await node.until("image", lambda pod: waiting_for(pod) == "ImagePullBackOff")
        await node.event("image", "Failed", 'Failed to pull image "nobody/knows:1"')
        pod = await node.until(
            "config", lambda pod: waiting_for(pod) == "CreateContainerConfigError"
        )
        assert state(pod)["waiting"]["message"] == 'secret "later" not found'
        assert pod["status"]["phase"] == "Pending"
        await node.client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "later", "namespace": namespace},
                "stringData": {"word": "found"},
            }
        )
        await node.phase("config", "Succeeded")
        assert await node.logs("config") == "found\n"


async def test_a_program_that_is_not_there_is_a_start_error(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    images = Images({"broken": Image(command=["/nowhere/at-all"])})
    async with laptop(cluster, namespace, tmp_path, images=images) as node:
        await node.create("broken", {"name": "main", "image": "broken:2"})
        pod = await node.phase("broken", "Failed")
        assert state(pod)["terminated"]["reason"] == "StartError"
        assert state(pod)["terminated"]["exitCode"] == 128


async def test_a_pod_that_is_active_for_too_long_fails(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("long", activeDeadlineSeconds=1)
        pod = await node.phase("long", "Failed")
        assert pod["status"]["reason"] == "DeadlineExceeded"
        assert not marked(pod["metadata"]["uid"])


@pytest.mark.cluster("real")
async def test_a_server_that_restarts_does_not_disturb_pods(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, heartbeat=0.2) as node:
        await node.create("steady", container(FOREVER))
        uid = (await node.ready("steady"))["metadata"]["uid"]
        before = marked(uid)
        await cluster.restart_apiserver()
        await node.ready("steady")
        assert marked(uid) == before
        await node.delete("steady")
        await node.gone("steady")
        assert not marked(uid)


async def test_an_evicted_pod_gets_its_time(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    out = tmp_path / "said"
    script = f"trap 'echo bye > {out}; exit 0' TERM; while :; do sleep 0.05; done"
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("asked", shell(script))
        await node.ready("asked")
        await node.client.evict("asked", namespace=namespace)
        await node.gone("asked")
        assert out.read_text() == "bye\n"


async def test_a_forced_deletion_leaves_no_process(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("forced", container(FOREVER))
        uid = (await node.ready("forced"))["metadata"]["uid"]
        assert marked(uid)
        await node.delete("forced", grace=0)
        await eventually(lambda: not marked(uid), every=0.1)


@pytest.mark.parametrize("policy", ["Never", "Always"])
async def test_a_kubelet_that_comes_back_goes_on_where_it_may(
    cluster: Cluster, namespace: str, tmp_path: Path, policy: str
) -> None:
    name = f"node-{policy.lower()}"
    async with laptop(cluster, namespace, tmp_path, name=name) as node:
        await node.create("kept", restartPolicy=policy)
        before = await node.ready("kept")
    uid = before["metadata"]["uid"]
    assert not marked(uid)
    async with laptop(cluster, namespace, tmp_path, name=name) as node:
        if policy == "Never":
            pod = await node.phase("kept", "Failed")
            assert state(pod)["terminated"]["reason"] == "ContainerStatusUnknown"
            return
        pod = await node.until(
            "kept",
            lambda pod: (
                "running" in state(pod)
                and pod["status"]["containerStatuses"][0]["restartCount"] == 1
            ),
        )
        assert len(marked(uid)) == 1
