"""Laws of workloads: as many pods as are wished for, and a way from old to new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kubelet.laptop import FOREVER, Laptop, container, laptop, shell
from trimtab.api.kinds import Deployment as AnyDeployment
from trimtab.api.kinds import Job as AnyJob
from trimtab.api.kinds import Pod
from trimtab.kubelet.assembly import Parts
from trimtab.kubelet.workloads.cron import Schedule
from trimtab.kubelet.workloads.deployments import template_hash
from trimtab.kubelet.workloads.kinds import CronJob, ReplicaSet
from trimtab.kubelet.workloads.policies import spans
from trimtab.kubelet.workloads.rolling import Group, bounds, step
from trimtab.testing import Cluster
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]
ALL = Parts(services=False)


def deployment(node: Laptop, *, replicas: int, word: str) -> Plain:
    labels = {"app": "web"}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node.name},
        "terminationGracePeriodSeconds": 0,
        "containers": [container(FOREVER, env=[{"name": "WORD", "value": word}])],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": node.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


async def pods_of(node: Laptop) -> list[Pod]:
    found = node.client.list(Pod, namespace=node.namespace)
    return [each async for each in found if each.metadata.deletionTimestamp is None]


async def rolled_out(node: Laptop, *, generation: int, replicas: int) -> AnyDeployment:
    async def look() -> AnyDeployment | None:
        found = await node.client.get(AnyDeployment, "web", namespace=node.namespace)
        status = found.status
        counts = (status.updatedReplicas, status.replicas, status.availableReplicas)
        done = counts == (replicas,) * 3
        return found if done and status.observedGeneration >= generation else None

    found = await eventually(look, within=20)
    assert found is not None
    return found


async def test_a_deployment_rolls_out_and_back(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        await node.client.create(deployment(node, replicas=3, word="one"))
        first = await rolled_out(node, generation=1, replicas=3)
        assert first.status.conditions["Available"].reason == "MinimumReplicasAvailable"
        assert first.status.conditions["Progressing"].reason == "NewReplicaSetAvailable"
        before = {each.metadata.name for each in await pods_of(node)}
        assert len(before) == 3
        template = deployment(node, replicas=3, word="two")["spec"]["template"]
        await node.client.patch(
            AnyDeployment,
            "web",
            {"spec": {"template": template, "replicas": 2}},
            namespace=namespace,
        )
        second = await rolled_out(node, generation=2, replicas=2)
        revision = "deployment.kubernetes.io/revision"
        assert second.metadata.annotations[revision] == "2"
        after = {each.metadata.name for each in await pods_of(node)}
        assert len(after) == 2
        assert not before & after
        owned = node.client.list(ReplicaSet, namespace=namespace)
        sizes = sorted([each.spec.replicas or 0 async for each in owned])
        assert sizes == [0, 2]
        await node.event("web", "ScalingReplicaSet", "Scaled up replica set web-")


async def test_a_pod_that_goes_is_replaced(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        await node.client.create(deployment(node, replicas=1, word="one"))
        await rolled_out(node, generation=1, replicas=1)
        [pod] = await pods_of(node)
        await node.delete(pod.metadata.name)

        async def replaced() -> bool:
            found = await pods_of(node)
            names = {each.metadata.name for each in found}
            return len(names) == 1 and pod.metadata.name not in names

        await eventually(replaced)


def job(node: Laptop, name: str, script: str, **spec: Any) -> Plain:
    template = {
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node.name},
            "restartPolicy": "Never",
            "containers": [shell(script)],
        }
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": node.namespace},
        "spec": {"template": template, **spec},
    }


async def job_until(node: Laptop, name: str, condition: str) -> AnyJob:
    async def look() -> AnyJob | None:
        found = await node.client.get(AnyJob, name, namespace=node.namespace)
        return found if found.status.conditions.is_true(condition) else None

    found = await eventually(look)
    assert found is not None
    return found


async def test_a_job_ends_when_enough_pods_succeeded_or_too_many_failed(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        said = tmp_path / "said"
        script = f"echo $JOB_COMPLETION_INDEX >> {said}"
        indexed = {"completions": 3, "parallelism": 2, "completionMode": "Indexed"}
        await node.client.create(job(node, "good", script, **indexed))
        await node.client.create(job(node, "bad", "exit 1", backoffLimit=1))
        done = await job_until(node, "good", "Complete")
        assert (done.status.succeeded, done.status.completedIndexes) == (3, "0-2")
        assert done.status.completionTime is not None
        assert sorted(said.read_text().split()) == ["0", "1", "2"]
        failed = await job_until(node, "bad", "Failed")
        assert failed.status.conditions["Failed"].reason == "BackoffLimitExceeded"
        assert failed.status.failed == 2
        await node.event("good", "Completed")
        await node.event("bad", "BackoffLimitExceeded")


async def test_a_cron_job_makes_what_it_missed_once(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with laptop(cluster, namespace, tmp_path, parts=ALL) as node:
        made = job(node, "unused", "true")
        await node.client.create(
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "tick", "namespace": namespace},
                "spec": {
                    "schedule": "* * * * *",
                    "suspend": True,
                    "jobTemplate": {"spec": made["spec"]},
                },
            }
        )
        now = datetime.now(UTC)
        late = (now - timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        await node.client.patch(
            CronJob,
            "tick",
            {"status": {"lastScheduleTime": late}},
            namespace=namespace,
            subresource="status",
        )
        await node.client.patch(
            CronJob, "tick", {"spec": {"suspend": False}}, namespace=namespace
        )

        async def complete() -> bool:
            found = node.client.list(AnyJob, namespace=namespace)
            jobs = [each async for each in found]
            return bool(jobs) and all(
                each.status.conditions.is_true("Complete") for each in jobs
            )

        await eventually(complete)
        await node.event("tick", "SuccessfulCreate", "Created job tick-")
        jobs = [each async for each in node.client.list(AnyJob, namespace=namespace)]
        # Two if a minute began meanwhile; never one for each minute that was missed.
        assert len(jobs) <= 2


@settings(max_examples=40)
@given(
    replicas=st.integers(0, 10),
    surge=st.integers(0, 5),
    missing=st.integers(0, 5),
    new=st.tuples(st.integers(0, 10), st.integers(0, 10)),
    old=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), max_size=3),
)
def test_a_step_keeps_within_its_bounds(
    replicas: int,
    surge: int,
    missing: int,
    new: tuple[int, int],
    old: list[tuple[int, int]],
) -> None:
    if not surge and not missing:
        missing = 1
    fresh = Group(name="new", wanted=new[0], available=min(new))
    olds = [
        Group(name=f"old{i}", wanted=wanted, available=min(wanted, there))
        for i, (wanted, there) in enumerate(old)
    ]
    targets = step(replicas, new=fresh, olds=olds, surge=surge, missing=missing)
    before = fresh.wanted + sum(each.wanted for each in olds)
    assert sum(targets.values()) <= max(before, replicas + surge)
    available = fresh.available + sum(each.available for each in olds)
    if fresh.wanted <= replicas:
        kept = min(fresh.available, targets["new"]) + sum(
            min(each.available, targets[each.name]) for each in olds
        )
        assert kept >= min(available, replicas - missing)
    assert all(count >= 0 for count in targets.values())


@settings(max_examples=40)
@given(
    replicas=st.integers(0, 12),
    old=st.integers(0, 12),
    surge=st.sampled_from([0, 1, 3]),
)
def test_a_rollout_comes_to_its_end(replicas: int, old: int, surge: int) -> None:
    extra, missing = bounds(replicas, surge, 0 if surge else 1)
    groups = {"new": 0, "old": old}
    for _ in range(60):
        groups = step(
            replicas,
            new=Group(name="new", wanted=groups["new"], available=groups["new"]),
            olds=[Group(name="old", wanted=groups["old"], available=groups["old"])],
            surge=extra,
            missing=missing,
        )
    assert groups == {"new": replicas, "old": 0}


def test_shares_are_rounded_so_that_something_can_move() -> None:
    assert bounds(10, "25%", "25%") == (3, 2)
    assert bounds(1, None, None) == (1, 0)
    assert bounds(3, 0, "10%") == (0, 1)


def test_a_template_has_one_hash_however_it_is_written() -> None:
    one = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": None}}
    other = {"spec": {}, "metadata": {"labels": {"b": "2", "a": "1"}}}
    assert template_hash(one) == template_hash(other)
    assert template_hash(one) != template_hash({"spec": {"y": 1}})


@pytest.mark.parametrize(
    ("text", "after", "wanted"),
    [
        ("*/15 * * * *", "2026-01-01T00:00", "2026-01-01T00:15"),
        ("0 9 * * mon-fri", "2026-01-02T09:00", "2026-01-05T09:00"),
        ("@monthly", "2026-01-31T12:00", "2026-02-01T00:00"),
        ("30 4 1,15 * 5", "2026-01-01T05:00", "2026-01-02T04:30"),
        ("0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("59 23 * * 7", "2026-01-01T00:00", "2026-01-04T23:59"),
    ],
)
def test_a_schedule_knows_its_next_time(text: str, after: str, wanted: str) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = Schedule.of(text).next(moment, UTC)
    assert found == datetime.fromisoformat(wanted).replace(tzinfo=UTC)


def test_a_schedule_has_a_time_zone_and_a_last_time() -> None:
    schedule = Schedule.of("0 6 * * *")
    zone = ZoneInfo("Europe/Berlin")
    after = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedule.next(after, zone) == datetime(2026, 1, 1, 5, tzinfo=UTC)
    until = datetime(2026, 3, 1, tzinfo=UTC)
    assert schedule.last(after, until, UTC) == datetime(2026, 2, 28, 6, tzinfo=UTC)
    for wrong in ("* * * *", "60 * * * *", "a * * * *", "*/0 * * * *"):
        with pytest.raises(ValueError):
            Schedule.of(wrong)


def test_indexes_are_told_as_spans() -> None:
    assert spans([0, 1, 2, 4, 6, 7]) == "0-2,4,6,7"
    assert spans([]) == ""
