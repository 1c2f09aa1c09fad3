"""Laws of scheduling: what fits where, who leaves for whom, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kubelet.laptop import FOREVER, container, laptop
from trimtab.api.kinds import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
    WholePod,
)
from trimtab.api.quantity import Quantity
from trimtab.api.resource import Metadata
from trimtab.kubelet.fitting import Demand, choose, demand
from trimtab.testing import Cluster

Requests = dict[str, str]


def needing(requests: Requests, *, name: str = "main", **more: Any) -> Container:
    amounts = {key: Quantity(value) for key, value in requests.items()}
    return Container(
        name=name, resources=ResourceRequirements(requests=amounts), **more
    )


def pod(**spec: Any) -> WholePod:
    usual = {"containers": [needing({"cpu": "1"})]}
    metadata = Metadata(name="pod", uid="u")
    return WholePod(metadata=metadata, spec=PodSpec(**{**usual, **spec}))


def node(
    name: str = "one", *, cpu: str = "2", labels: Requests | None = None, **spec: Any
) -> Node:
    amounts = {"cpu": Quantity(cpu), "pods": Quantity("3")}
    return Node(
        metadata=Metadata(name=name, labels=labels or {}),
        spec=NodeSpec(**spec),
        status=NodeStatus(allocatable=amounts),
    )


def held(*cpus: str, priority: int = 0) -> list[Demand]:
    return [
        Demand(
            name=f"p{number}",
            uid=f"u{number}",
            amounts={"cpu": Quantity(cpu)},
            priority=priority,
        )
        for number, cpu in enumerate(cpus)
    ]


def test_a_pod_asks_for_its_containers_or_its_largest_init_container() -> None:
    asked = demand(
        pod(
            containers=[needing({"cpu": "1"}), needing({"cpu": "500m"})],
            initContainers=[
                needing({"cpu": "100m"}, name="side", restartPolicy="Always"),
                needing({"cpu": "3"}, name="big"),
            ],
        )
    )
    assert asked.amounts["cpu"] == Quantity("3100m")


def test_the_refusals_are_in_the_schedulers_words() -> None:
    taint = Taint(key="gpu", value="yes", effect="NoSchedule")
    preemption = "no new claims to deallocate, preemption: 0/1 nodes are available: 1"
    useless = f"{preemption} Preemption is not helpful for scheduling."
    cases: list[tuple[WholePod, Node, str]] = [
        (pod(), node(taints=[taint]), "node(s) had untolerated taint(s)"),
        (pod(), node(unschedulable=True), "node(s) were unschedulable"),
        (
            pod(nodeSelector={"a": "b"}),
            node(),
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ]
    for wanted, place, words in cases:
        found = choose(wanted, [place], {})
        assert found.message == f"0/1 nodes are available: 1 {words}. {useless}"
    crowded = choose(pod(), [node()], {"one": held("1500m")})
    assert crowded.message == (
        f"0/1 nodes are available: 1 Insufficient cpu. {preemption} "
        "No preemption victims found for incoming pod."
    )
    assert choose(pod(), [], {}).message == "no nodes available to schedule pods"


def test_a_taint_keeps_out_only_who_does_not_tolerate_it() -> None:
    tainted = node(taints=[Taint(key="gpu", value="yes", effect="NoSchedule")])
    ways = [
        Toleration(key="gpu", operator="Exists"),
        Toleration(operator="Exists"),
        Toleration(key="gpu", value="yes"),
        Toleration(key="gpu", value="yes", effect="NoSchedule"),
    ]
    for each in ways:
        assert choose(pod(tolerations=[each]), [tainted], {}).node == "one"
    for each in (
        Toleration(key="gpu", value="no"),
        Toleration(key="gpu", operator="Exists", effect="NoExecute"),
    ):
        assert not choose(pod(tolerations=[each]), [tainted], {}).node


@settings(max_examples=40)
@given(
    capacity=st.integers(1, 20),
    asked=st.integers(1, 20),
    present=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 5)), max_size=6),
)
def test_victims_are_lower_enough_and_no_more_than_needed(
    capacity: int, asked: int, present: list[tuple[int, int]]
) -> None:
    there = [
        Demand(name=f"p{i}", uid=f"u{i}", amounts={"cpu": Quantity(cpu)}, priority=p)
        for i, (cpu, p) in enumerate(present)
    ]
    place = node(cpu=str(capacity))
    place = Node(
        metadata=place.metadata,
        status=NodeStatus(allocatable={"cpu": Quantity(capacity)}),
    )
    wanted = pod(containers=[needing({"cpu": str(asked)})], priority=3)
    found = choose(wanted, [place], {"one": there})
    leaving = {each.uid for each in found.victims}
    assert all(each.priority < 3 for each in found.victims)
    stay = [each for each in there if each.uid not in leaving]
    if found.victims:
        assert choose(wanted, [place], {"one": stay}).node
        for back in found.victims:
            assert not choose(wanted, [place], {"one": [*stay, back]}).node
    elif not found.node:
        important = [each for each in there if each.priority >= 3]
        assert not choose(wanted, [place], {"one": important}).node


async def test_a_pod_that_does_not_fit_waits_until_a_higher_one_would_not(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    half = {"requests": {"cpu": "1500m"}}
    async with laptop(cluster, namespace, tmp_path, capacity={"cpu": "2"}) as node:
        await node.client.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": namespace},
                "value": 1000,
            }
        )
        await node.create("first", container(FOREVER, resources=half))
        await node.ready("first")
        await node.create("second", container(FOREVER, resources=half))
        waits = await node.until("second", lambda pod: pod["status"].get("conditions"))
        [scheduled] = waits["status"]["conditions"]
        assert scheduled["reason"] == "Unschedulable"
        assert "1 Insufficient cpu" in scheduled["message"]
        await node.create(
            "vip", container(FOREVER, resources=half), priorityClassName=namespace
        )
        await node.ready("vip")
        await node.gone("first")
        assert (await node.get("second"))["status"]["phase"] == "Pending"
        await node.event("second", "FailedScheduling")
        await node.delete("vip")
        await node.ready("second")


async def test_the_node_is_ready_and_keeps_its_lease(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    from trimtab.api.kinds import Lease
    from trimtab.testing.waiting import eventually

    async with laptop(cluster, namespace, tmp_path, heartbeat=0.05) as node:
        found = await node.client.get(Node, node.name)
        assert found.status.conditions.is_true("Ready")
        assert int(found.status.capacity["cpu"]) >= 1
        first = await node.client.get(Lease, node.name, namespace="kube-node-lease")

        async def renewed() -> bool:
            lease = await node.client.get(Lease, node.name, namespace="kube-node-lease")
            return lease.spec.renewTime != first.spec.renewTime

        await eventually(renewed)
