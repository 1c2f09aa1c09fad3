"""What the operator does for a training: its pod, its Service, and what it is told.

The trainer here is a script, so that it can be silent, repeat itself, and refuse.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.operators.vmafx.platform import platform
from tests.operators.vmafx.school import ENVIRONMENT, Films, School
from tests.operators.vmafx.trainers import play_kubelet, script
from trimtab.client import NotFound
from trimtab.kinds import Service
from trimtab.operators.vmafx.kinds import VmafxNode
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training import podspec
from trimtab.operators.vmafx.training.kinds import PORT
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.testing import Cluster, eventually

pytestmark = pytest.mark.cluster("embedded", "real")


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path, ffmpeg: Ffmpeg
) -> AsyncIterator[School]:
    async with platform(cluster, namespace, tmp_path, environment=ENVIRONMENT) as made:
        yield School(made, Films(tmp_path, ffmpeg))


async def test_a_trainer_is_mirrored_and_nothing_is_written_without_a_change(
    here: School, namespace: str
) -> None:
    async with script(namespace) as trainer:
        await here.begin("model", b"a model")
        starting = await here.until("model", lambda it: it.status.phase)
        assert starting.status.phase == "Initializing"
        await play_kubelet(here, "model", trainer.host)
        found = await here.until("model", lambda it: it.status.phase == "Running")
        assert found.status.currentSamples == 5
        assert found.status.address == f"{trainer.host}:{PORT}"
        assert found.status.conditions.is_true("Ready")
        assert not found.status.conditions.is_true("Published")
        await trainer.asked_again()
        settled = await here.get("model")
        await trainer.asked_again()
        assert (await here.get("model")).metadata == settled.metadata
        trainer.says["current_samples"] = 6
        await here.until("model", lambda it: it.status.currentSamples == 6)
        service = await here.here.client.get(
            Service, "vmafx-trainer-model", namespace=namespace
        )
        pod = await here.pod("model")
        wanted = service.spec.selector.items()
        assert wanted <= pod.metadata.labels.items()


async def test_a_wish_to_pause_or_to_go_back_is_told_once(
    here: School, namespace: str
) -> None:
    async with script(namespace) as trainer:
        await here.begin("model", b"a model", paused=True)
        await play_kubelet(here, "model", trainer.host)
        await here.until("model", lambda it: it.status.phase == "Paused")
        await trainer.asked_again()
        assert trainer.told == ["/pause"]
        await here.change("model", paused=False)
        await here.until("model", lambda it: it.status.phase == "Running")
        await here.change("model", rollbackTo="v000001")
        await here.until("model", lambda it: it.status.rolledBackTo == "v000001")
        await trainer.asked_again()
        assert trainer.told == ["/pause", "/resume", "/rollback v000001"]
        await here.change("model", rollbackTo="v000009")

        def is_refused(it: Any) -> bool:
            found = it.status.conditions.get("RolledBack")
            return found is not None and "no version v000009" in found.message

        await here.until("model", is_refused)
        await here.change("model", rollbackTo=None)
        await here.until("model", lambda it: not it.status.rolledBackTo)


async def test_another_wish_is_another_pod_and_nonsense_is_none(
    here: School, namespace: str
) -> None:
    async with script(namespace) as trainer:
        await here.begin("model", b"a model")
        first = await play_kubelet(here, "model", trainer.host)
        await here.runs("model")
        await here.change("model", checkpoint={"minSamples": 7})

        async def another() -> bool:
            try:
                found = await here.pod("model")
            except NotFound:
                return False
            return found.metadata.uid != first.metadata.uid

        await eventually(another)
        mark = (await here.pod("model")).metadata.annotations[podspec.SPEC_HASH]
        assert mark != first.metadata.annotations[podspec.SPEC_HASH]
        await here.change("model", baseModel="vmaf_tiny_v2")
        failed = await here.until("model", lambda it: it.status.phase == "Failed")
        assert "configmap://NAME/KEY" in failed.status.message

        async def gone() -> bool:
            try:
                await here.pod("model")
            except NotFound:
                return True
            return False

        await eventually(gone)


async def test_a_node_is_told_with_each_job_who_learns_from_it(
    here: School, namespace: str
) -> None:
    async with script(namespace) as trainer:
        selector = {"nodeSelector": {"pool": "film"}}
        await here.begin("model", b"a model", dataSource=selector)
        port = await here.here.gateway()
        await play_kubelet(here, "model", trainer.host)
        await here.runs("model")
        async with here.here.caller(port, "node") as caller:

            async def pulled(name: str, **labels: str) -> list[tuple[str, str]]:
                """The trainers that a node hears of, with a job of its own."""
                session = await caller.register(
                    wire.RegisterNodeRequest(name=name, labels=labels)
                )
                await here.here.submit(name, Path("/a"), Path("/b"))
                answer = await caller.pull(
                    wire.PullWorkRequest(
                        node_id=session.node_id,
                        session_token=session.session_token,
                        wait_seconds=10.0,
                    )
                )
                assert answer.job.name == name
                return [(each.name, each.address) for each in answer.trainers]

            expected = [(f"{namespace}/model", f"{trainer.host}:{PORT}")]
            numbers = count()

            async def is_told() -> bool:  # as soon as the gateway has heard of it
                labels = {"pool": "film", "no label": "x"}
                return await pulled(f"film-{next(numbers)}", **labels) == expected

            await eventually(is_told)
            assert await pulled("games", pool="games") == []
            assert await pulled("plain") == []
        node = await here.here.client.get(VmafxNode, "film-0", namespace=namespace)
        assert node.metadata.labels == {"pool": "film"}
