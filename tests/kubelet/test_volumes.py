"""Laws of volumes, environments and limits: what a container sees, and may take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kubelet.laptop import Laptop, laptop, marked, shell, state
from trimtab.kubelet import limits
from trimtab.kubelet.environment import expanded
from trimtab.kubelet.volumes import write_files
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]
HOG = "import time; held = b'x' * (200 << 20); time.sleep(1000)"


async def give(node: Laptop, kind: str, name: str, data: Plain) -> None:
    metadata = {"name": name, "namespace": node.namespace}
    field = "stringData" if kind == "Secret" else "data"
    body = {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: data}
    await node.client.create(body)


async def test_an_environment_has_what_the_spec_says(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    def of(field: str) -> Plain:
        return {"fieldRef": {"fieldPath": field}}

    env = [
        {"name": "NAME", "valueFrom": of("metadata.name")},
        {"name": "COLOR", "valueFrom": of("metadata.labels['color']")},
        {"name": "ADDRESS", "valueFrom": of("status.podIP")},
        {
            "name": "MEMORY",
            "valueFrom": {
                "resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}
            },
        },
        {
            "name": "WORD",
            "valueFrom": {"configMapKeyRef": {"name": "words", "key": "one"}},
        },
        {"name": "TWICE", "value": "$(WORD)-$(WORD) $$(WORD) $(NOBODY)"},
    ]
    script = 'echo "$NAME $COLOR $MEMORY $TWICE $P_TWO"; [ $ADDRESS = $POD_IP ]'
    async with laptop(cluster, namespace, tmp_path) as node:
        await give(node, "ConfigMap", "words", {"one": "w"})
        await give(node, "Secret", "more", {"TWO": "hidden"})
        await node.create(
            "env",
            shell(
                script,
                env=env,
                envFrom=[{"prefix": "P_", "secretRef": {"name": "more"}}],
                resources={"limits": {"memory": "64Mi"}},
            ),
            metadata={"labels": {"color": "red"}},
        )
        await node.phase("env", "Succeeded")
        said = await node.logs("env")
        assert said == "env red 64 w-w $(WORD) $(NOBODY) hidden\n"


def test_only_what_is_known_is_expanded() -> None:
    known = {"A": "1", "B": "$(A)"}
    cases = {
        "$(A)": "1",
        "$(B)": "$(A)",
        "$$(A)": "$(A)",
        "$$$(A)": "$1",
        "$(C)": "$(C)",
        "$A $": "$A $",
    }
    for text, wanted in cases.items():
        assert expanded(text, known) == wanted


def test_a_volumes_files_change_all_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    write_files(folder, {"a": (b"1", 0o644), "sub/b": (b"2", 0o600)})
    first = (folder / "..data").resolve()
    assert (folder / "a").read_text() == "1"
    assert (folder / "sub" / "b").stat().st_mode & 0o777 == 0o600
    write_files(folder, {"a": (b"1", 0o644), "sub/b": (b"2", 0o600)})
    assert (folder / "..data").resolve() == first, "the same is not written again"
    write_files(folder, {"a": (b"3", 0o644)})
    assert (folder / "a").read_text() == "3"
    assert not (folder / "sub").exists()
    assert not first.exists()


async def test_volumes_are_at_their_paths_and_nothing_stays_on_the_machine(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "host").mkdir()
    volumes: list[Plain] = [
        {"name": "words", "configMap": {"name": "words"}},
        {"name": "more", "secret": {"secretName": "more", "defaultMode": 0o400}},
        {"name": "shared", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": str(tmp_path / "host")}},
        {
            "name": "facts",
            "downwardAPI": {
                "items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
                ]
            },
        },
    ]
    paths = {
        "words": "/trimtab-test/words",
        "more": "/trimtab-test/more",
        "shared": "/trimtab-test/shared",
        "host": "/trimtab-test/host",
        "facts": "/run/trimtab-test/facts",
    }
    mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
    script = (
        "cd /trimtab-test; cat words/one more/two shared/from-init "
        "/run/trimtab-test/facts/labels; echo seen > host/file; hostname; "
        "touch words/x 2>/dev/null || echo read-only"
    )
    async with laptop(cluster, namespace, tmp_path) as node:
        await give(node, "ConfigMap", "words", {"one": "w "})
        await give(node, "Secret", "more", {"two": "s "})
        await node.create(
            "volumes",
            shell(script, volumeMounts=mounts),
            initContainers=[
                shell(
                    "echo i > /trimtab-test/shared/from-init",
                    name="init",
                    volumeMounts=mounts,
                )
            ],
            volumes=volumes,
            metadata={"labels": {"color": "red"}},
        )
        await node.phase("volumes", "Succeeded")
        said = await node.logs("volumes")
        assert said == 'w s i\ncolor="red"volumes\nread-only\n'
    assert (tmp_path / "host" / "file").read_text() == "seen\n"
    assert not Path("/trimtab-test").exists()
    assert not Path("/run/trimtab-test").exists()


async def test_a_volume_may_hide_the_folder_that_the_node_keeps_its_pods_in(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    above = str(tmp_path)
    volumes: list[Plain] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "words", "configMap": {"name": "words"}},
    ]
    mounts: list[Plain] = [
        {"name": "scratch", "mountPath": above},
        {"name": "words", "mountPath": f"{above}/words"},
        {"name": "words", "mountPath": "/run/trimtab-test/words"},
    ]
    script = f"cat {above}/words/one /run/trimtab-test/words/one; cd {above}; ls"
    async with laptop(cluster, namespace, tmp_path) as node:
        await give(node, "ConfigMap", "words", {"one": "w "})
        await node.create("hides", shell(script, volumeMounts=mounts), volumes=volumes)
        await node.phase("hides", "Succeeded")
        assert await node.logs("hides") == "w w words\n"
    assert not Path("/run/trimtab-test").exists()


async def test_a_missing_volume_is_waited_for(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    volumes = [{"name": "words", "configMap": {"name": "later"}}]
    async with laptop(cluster, namespace, tmp_path) as node:
        await node.create("waits", shell("true"), volumes=volumes)
        message = await node.event("waits", "FailedMount")
        assert message == (
            'MountVolume.SetUp failed for volume "words" : configmap "later" not found'
        )
        await give(node, "ConfigMap", "later", {"one": "w"})
        await node.phase("waits", "Succeeded")


async def test_without_mounts_a_pod_is_told_where_its_volumes_are(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, mounts=False) as node:
        await give(node, "ConfigMap", "words", {"one": "w"})
        await node.create(
            "told",
            shell("cat $TRIMTAB_VOLUME_MY_WORDS/one"),
            volumes=[{"name": "my-words", "configMap": {"name": "words"}}],
        )
        await node.phase("told", "Succeeded")
        assert await node.logs("told") == "w\n"
        assert "$TRIMTAB_VOLUME_NAME" in await node.event("told", "NoMounts")


@pytest.mark.parametrize("cgroups", [True, False])
async def test_a_container_that_takes_too_much_memory_is_killed_for_it(
    cluster: Cluster, namespace: str, tmp_path: Path, cgroups: bool
) -> None:
    limit = {"limits": {"memory": "64Mi"}}
    async with laptop(
        cluster, namespace, tmp_path, cgroups=cgroups, watch_memory=0.02
    ) as node:
        hog = {"name": "main", "image": "x", "resources": limit}
        await node.create("hog", {**hog, "command": ["python3", "-c", HOG]})
        pod = await node.phase("hog", "Failed")
        ended = state(pod)["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        assert not marked(pod["metadata"]["uid"])


def throttled(pid: int) -> int:
    """How often the kernel held a process's group to its CPU limit."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if limits.NAME in path and controllers in ("cpu", "cpu,cpuacct", ""):
            group = limits.ROOT / (controllers and "cpu") / path.lstrip("/")
            said = (group / "cpu.stat").read_text().splitlines()
            facts = dict(line.split() for line in said)
            return int(facts.get("nr_throttled", 0))
    return 0


@pytest.mark.parametrize("cgroups", [True, False])
async def test_a_container_is_held_to_its_cpu_limit_or_an_event_says_why_not(
    cluster: Cluster, namespace: str, tmp_path: Path, cgroups: bool
) -> None:
    limit = {"limits": {"cpu": "100m"}}
    async with laptop(cluster, namespace, tmp_path, cgroups=cgroups) as node:
        await node.create("busy", shell("while :; do :; done", resources=limit))
        uid = (await node.ready("busy"))["metadata"]["uid"]
        if node.kubelet.site.cgroups:
            await eventually(lambda: throttled(*marked(uid)) > 0, every=0.1)
        else:
            said = await node.event("busy", "NoCPULimit")
            assert "CPU limit of 100m" in said


async def test_a_pod_whose_volume_grows_past_its_size_is_evicted(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    volumes = [{"name": "small", "emptyDir": {"sizeLimit": "1Mi"}}]
    mounts = [{"name": "small", "mountPath": "/trimtab-small"}]
    script = "dd if=/dev/zero of=/trimtab-small/x bs=1M count=3; sleep 1000"
    async with laptop(cluster, namespace, tmp_path, housekeeping=0.1) as node:
        await node.create("big", shell(script, volumeMounts=mounts), volumes=volumes)
        pod = await node.phase("big", "Failed")
        assert pod["status"]["reason"] == "Evicted"
        assert pod["status"]["message"] == (
            'Usage of EmptyDir volume "small" exceeds the limit "1Mi". '
        )
