"""Laws of node sets: the size that is wished, and busy nodes go last."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kubelet.laptop import Laptop, laptop
from tests.operators.vmafx import clips
from tests.operators.vmafx.platform import Platform, platform
from trimtab.api import Metadata
from trimtab.client import Invalid
from trimtab.kinds import Pod
from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode, VmafxNodeSpec
from trimtab.operators.vmafx.scaling import podspec, sizing
from trimtab.operators.vmafx.scaling.kinds import (
    LABEL_SET,
    VmafxNodeSet,
    VmafxNodeSetSpec,
)
from trimtab.operators.vmafx.scaling.reconciling import COST
from trimtab.operators.vmafx.scaling.sizing import Member
from trimtab.testing import Cluster, eventually

MEMBERS = st.lists(
    st.builds(
        Member,
        name=st.integers(0, 99).map("s-{}".format),
        jobs=st.integers(0, 3),
        ready=st.booleans(),
        current=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda each: each.name,
)


@given(members=MEMBERS, replicas=st.integers(0, 12), leaving=st.integers(0, 3))
@settings(max_examples=100)
def test_a_set_has_the_size_that_is_wished_and_idle_nodes_go_first(
    members: list[Member], replicas: int, leaving: int
) -> None:
    going = {f"s-{100 + number}" for number in range(leaving)}
    plan = sizing.plan("s", members, replicas=replicas, leaving=going)
    names = {each.name for each in members}
    jobs = {each.name: each.jobs for each in members}
    assert not (set(plan.make) & (names | going))
    assert set(plan.remove) <= names
    if len(members) != replicas:
        assert len(members) + len(plan.make) - len(plan.remove) == replicas
    left = names - set(plan.remove)
    if plan.remove and left and len(members) > replicas:
        dearest = max(jobs[each] for each in plan.remove)
        assert dearest <= min(jobs[each] for each in left)


@given(members=MEMBERS)
@settings(max_examples=50)
def test_an_older_template_goes_one_at_a_time_until_none_is_left(
    members: list[Member],
) -> None:
    size = len(members)
    for _ in range(2 * size + 1):
        plan = sizing.plan("s", members, replicas=size)
        assert len(plan.remove) <= 1
        if not (plan.remove or plan.make):
            break
        members = [each for each in members if each.name not in plan.remove]
        members += [Member(name=each) for each in plan.make]
    waits = any(not each.ready for each in members if each.current)
    assert waits or all(each.current for each in members)


def nodes(name: str = "nodes", namespace: str = "", **spec: Any) -> VmafxNodeSet:
    template = spec.pop("template", {"spec": {"containers": [{"name": "node"}]}})
    return VmafxNodeSet(
        metadata=Metadata(name=name, namespace=namespace),
        spec=VmafxNodeSetSpec(template=template, **spec),
    )


def test_a_pod_is_the_template_with_what_a_node_needs() -> None:
    container = {
        "name": "node",
        "image": "i",
        "env": [{"name": "VMAFX_NODE_ID", "value": "x"}, {"name": "A", "value": "b"}],
        "somethingNew": 1,
    }
    template = {
        "metadata": {"labels": {"pool": "gpu"}, "annotations": {"note": "x"}},
        "spec": {"containers": [container, {"name": "side"}]},
    }
    made = podspec.pod(nodes(template=template, drainSeconds=300), "nodes-7")
    node, side = made.spec["containers"]
    env = {each["name"]: each for each in node["env"]}
    assert env["VMAFX_NODE_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert env["VMAFX_NODE_PATIENCE"]["value"] == "300"
    assert (env["A"]["value"], node["somethingNew"]) == ("b", 1)
    assert side == {"name": "side"}
    assert made.spec["terminationGracePeriodSeconds"] == 340
    assert made.metadata.labels["pool"] == "gpu"
    assert made.metadata.labels[LABEL_SET] == "nodes"
    assert made.metadata.annotations == {"note": "x"}


@pytest.mark.parametrize(
    "template",
    [{}, {"spec": "x"}, {"spec": {"containers": "x"}}, {"spec": {"containers": ["x"]}}],
)
def test_what_could_be_no_pod_is_told(template: dict[str, Any]) -> None:
    with pytest.raises(podspec.BadTemplate, match=r"spec\.template"):
        podspec.pod(nodes(template=template), "nodes-0")


def test_a_revision_is_of_what_the_template_says_and_not_how() -> None:
    one = nodes(template={"spec": {"a": 1, "b": {"c": 1, "d": 2}}})
    same = nodes(template={"spec": {"b": {"d": 2, "c": 1}, "a": 1}})
    other = nodes(template={"spec": {"a": 2, "b": {"c": 1, "d": 2}}})
    longer = nodes(template=one.spec.template, drainSeconds=21)
    assert podspec.revision(one) == podspec.revision(same)
    assert len({podspec.revision(each) for each in (one, other, longer)}) == 3


class Shop:
    """A platform with a kubelet, and a set of nodes that are real programs."""

    def __init__(self, here: Platform, kubelet: Laptop, cluster: Cluster) -> None:
        self.here = here
        self.kubelet = kubelet
        self.cluster = cluster

    async def create(self, port: int, **spec: Any) -> None:
        token = await self.here.token("node")
        command = [sys.executable, "-m", "trimtab", "vmafx", "node", "--threads=1"]
        node = {
            "name": "node",
            "image": "local",
            "command": [*command, f"--gateway=127.0.0.1:{port}", f"--token={token}"],
        }
        place = {"kubernetes.io/hostname": self.kubelet.name}
        template = {"spec": {"containers": [node], "nodeSelector": place}}
        where = self.here.namespace
        await self.here.client.create(nodes(namespace=where, template=template, **spec))

    async def scale(self, replicas: int) -> None:
        """As a person does it."""
        await self.cluster.kubectl(
            "scale",
            "vmnodeset/nodes",
            f"--replicas={replicas}",
            f"--namespace={self.here.namespace}",
        )

    async def until(self, **wanted: int) -> VmafxNodeSet:
        """The set when its status says these numbers."""
        last: VmafxNodeSet | None = None

        async def look() -> VmafxNodeSet | None:
            nonlocal last
            last = await self.here.client.get(
                VmafxNodeSet, "nodes", namespace=self.here.namespace
            )
            said = {name: getattr(last.status, name) for name in wanted}
            return last if said == wanted else None

        try:
            found = await eventually(look, within=45.0, every=0.1)
        except AssertionError as error:
            raise AssertionError(f"never {wanted}: {last and last.status}") from error
        assert found is not None
        return found


@asynccontextmanager
async def shop(cluster: Cluster, namespace: str, folder: Path) -> AsyncIterator[Shop]:
    async with (
        laptop(cluster, namespace, folder / namespace) as kubelet,
        platform(cluster, namespace, folder) as here,
    ):
        yield Shop(here, kubelet, cluster)


@pytest.fixture
def long(reference: Path) -> Path:
    """A clip that takes longer to score than the test waits."""
    return clips.made(
        reference.with_name("long-scaling.mp4"),
        *("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-frames:v", "900"),
        *("-c:v", "libx264", "-preset", "ultrafast"),
    )


@pytest.mark.cluster("real")
@pytest.mark.timeout(120)
async def test_scale_to_zero_and_back_loses_no_job_and_busy_nodes_go_last(
    cluster: Cluster, namespace: str, reference: Path, distorted: Path, long: Path
) -> None:
    async with shop(cluster, namespace, reference.parent) as here:
        port = await here.here.gateway()
        await here.create(port, replicas=0, drainSeconds=0)
        await here.here.submit("first", reference, distorted)
        await here.scale(2)
        await here.until(replicas=2, readyReplicas=2)
        assert (await here.here.ended("first")).status.phase == "Succeeded"
        await here.here.submit("long", long, long)
        busy = await runs(here.here, "long")
        await here.scale(1)
        await here.until(replicas=1, leaving=0, busy=1)
        assert await named(here.here, {busy})
        await here.scale(0)
        await here.until(replicas=0, leaving=0)
        given_back = (await here.here.job("long")).status.run
        assert (given_back.outcome, given_back.lost) == ("released", 0)
        shown = here.here.client.list(VmafxNode, namespace=namespace)
        assert [each.metadata.name async for each in shown] == []
        await here.scale(1)
        await runs(here.here, "long")
        await here.here.client.patch(
            VmafxJob, "long", {"spec": {"cancel": True}}, namespace=namespace
        )
        assert (await here.here.ended("long")).status.attempts == 2
        await here.scale(0)
        await here.until(replicas=0, leaving=0)


async def runs(here: Platform, name: str) -> str:
    """The node that a job is on, when it is on one."""

    async def is_running() -> str:
        run = (await here.job(name)).status.run
        return run.node if run.outcome == "" else ""

    found = await eventually(is_running, within=30.0)
    assert found
    return found


@pytest.mark.cluster("embedded", "real")
async def test_kubectl_scales_a_set_and_what_a_node_would_cost_is_on_its_pod(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with platform(cluster, namespace, tmp_path) as here:
        container = {"name": "node", "image": "example.com/node"}
        made = nodes(
            namespace=namespace, template={"spec": {"containers": [container]}}
        )
        await here.client.create(made)
        there = f"--namespace={namespace}"
        await cluster.kubectl("scale", "vmnodeset/nodes", "--replicas=3", there)
        await eventually(lambda: named(here, {"nodes-0", "nodes-1", "nodes-2"}))
        await works(here, "nodes-2")
        await eventually(lambda: costs(here, "nodes-2"))
        await cluster.kubectl("scale", "vmnodeset/nodes", "--replicas=1", there)
        await eventually(lambda: named(here, {"nodes-2"}))
        shown = await cluster.kubectl("get", "vmnodeset", there)
        assert shown.splitlines()[1].split()[:4] == ["nodes", "1", "1", "0"]
        changed = {"spec": {"template": {"spec": {"priorityClassName": ""}}}}
        await here.client.patch(VmafxNodeSet, "nodes", changed, namespace=namespace)
        await eventually(lambda: named(here, {"nodes-0"}))
        await cluster.kubectl("scale", "vmnodeset/nodes", "--replicas=0", there)
        await eventually(lambda: named(here, set()))
        broken = {"spec": {"template": {"spec": {"containers": []}}, "replicas": 1}}
        await here.client.patch(VmafxNodeSet, "nodes", broken, namespace=namespace)

        async def says_so() -> bool:
            found = await here.client.get(VmafxNodeSet, "nodes", namespace=namespace)
            ready = found.status.conditions.get("Ready")
            return ready is not None and ready.reason == "Refused"

        await eventually(says_so)


async def works(here: Platform, name: str) -> None:
    """Let a node have a job, as a gateway would write it and the node would tell."""
    where = here.namespace
    await here.submit("job", here.folder / "a.mp4", here.folder / "b.mp4")
    run = {"attempt": 1, "node": name, "session": "s"}
    node = VmafxNode(
        metadata=Metadata(name=name, namespace=where),
        spec=VmafxNodeSpec(gpuVendor="cpu"),
    )
    await here.client.create(node)
    for kind, about, status in (
        (VmafxJob, "job", {"run": run}),
        (VmafxNode, name, {"assignedJobs": 1}),
    ):
        await here.client.patch(
            kind, about, {"status": status}, namespace=where, subresource="status"
        )


async def pods_of(here: Platform) -> dict[str, Pod]:
    listed = here.client.list(Pod, namespace=here.namespace)
    return {each.metadata.name: each async for each in listed}


async def named(here: Platform, names: set[str]) -> bool:
    return (await pods_of(here)).keys() == names


async def costs(here: Platform, name: str) -> bool:
    """Whether its pod says what it would cost to lose it."""
    return (await pods_of(here))[name].metadata.annotations.get(COST) == "1"


@pytest.mark.cluster("embedded", "real")
async def test_a_set_whose_nodes_could_not_be_named_is_refused(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with platform(cluster, namespace, tmp_path) as here:
        for name in ("two.parts", "a" * 53):
            with pytest.raises(Invalid, match="named after it"):
                await here.client.create(nodes(name, namespace))
