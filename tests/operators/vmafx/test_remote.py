"""Remote mode: jobs are done by a controller elsewhere, and what fails is told."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest
from aiohttp import web

import trimtab
from tests.operators.vmafx.controllers import CODES, FakeController, controller
from tests.operators.vmafx.platform import Platform, node, platform
from tests.ports import unused_port
from trimtab.api import Metadata
from trimtab.api.times import rfc3339
from trimtab.cache import Scope
from trimtab.client import ConfigError
from trimtab.operators.vmafx import remote
from trimtab.operators.vmafx.following import Rhythm
from trimtab.operators.vmafx.kinds import (
    VmafxJob,
    VmafxJobSpec,
    VmafxNode,
    VmafxNodeSpec,
)
from trimtab.operators.vmafx.links import Links
from trimtab.operators.vmafx.operator import make
from trimtab.operators.vmafx.settings import Settings, settings_of
from trimtab.operators.vmafx.tools import Ffmpeg
from trimtab.operators.vmafx.training.kinds import (
    VmafxModelTraining,
    VmafxModelTrainingSpec,
)
from trimtab.operators.vmafx.wire import controller_pb2 as wire
from trimtab.testing import Cluster, eventually, running
from trimtab.testing.operating import Running

QUICK = Rhythm(poll=0.1, mended=0.1, missing=0.5, given_up=0.5)


def operator(settings: Settings, **changes: Any) -> trimtab.Operator:
    app = trimtab.Operator("vmafx")
    links = Links(settings, budget=changes.pop("budget", 5.0))
    rhythm = changes.pop("rhythm", QUICK)
    remote.declare(app, links, scope=Scope(everything=True), rhythm=rhythm)
    return app


class Desk:
    """An operator in front of a controller, and jobs for it."""

    def __init__(self, running: Running, namespace: str) -> None:
        self.running = running
        self.client = running.client
        self.namespace = namespace

    async def submit(self, name: str = "job", **spec: Any) -> None:
        metadata = Metadata(name=name, namespace=self.namespace)
        given = VmafxJobSpec(reference="/a.mp4", distorted="/b.mp4", **spec)
        await self.client.create(VmafxJob(metadata=metadata, spec=given))

    async def phase(self, phase: str, name: str = "job") -> VmafxJob:
        return await self.running.until(
            VmafxJob, name, lambda job: job.status.phase == phase
        )

    async def reason(self, type: str, reason: str, name: str = "job") -> VmafxJob:
        def has(job: VmafxJob) -> bool:
            found = job.status.conditions.get(type)
            return found is not None and found.reason == reason

        return await self.running.until(VmafxJob, name, has)


@asynccontextmanager
async def desk(
    cluster: Cluster, namespace: str, settings: Settings, **changes: Any
) -> AsyncIterator[Desk]:
    async with running(operator(settings, **changes), cluster, namespace) as run:
        yield Desk(run, namespace)


def at(port: int, **more: Any) -> Settings:
    return Settings(address=f"127.0.0.1:{port}", **more)


@pytest.mark.cluster("embedded", "real")
async def test_a_job_is_scored_by_a_controller_elsewhere(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    ffmpeg: Ffmpeg,
    reference: Path,
    distorted: Path,
) -> None:
    # The gateway keeps its jobs in its own namespace, as a controller does.
    async with platform(cluster, namespace, reference.parent) as there:
        port = await there.gateway()
        own = f"{namespace[:50]}-own"
        await there.client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}}
        )
        settings = at(port, token_file=await there.token("writer"))
        async with (
            node(there, port, "one", ffmpeg=ffmpeg),
            desk(cluster, own, settings) as here,
        ):
            await here.client.create(
                VmafxJob(
                    metadata=Metadata(name="job", namespace=own),
                    spec=VmafxJobSpec(
                        reference=str(reference), distorted=str(distorted)
                    ),
                )
            )
            done = await here.phase("Succeeded")
        found = there.client.list(VmafxJob, namespace=namespace)
        (theirs,) = [job async for job in found]
    assert done.status.controllerJobID == theirs.metadata.uid
    assert done.status.score == theirs.status.run.score
    assert done.status.features == theirs.status.run.features
    assert done.status.assignedNode == "one"
    assert done.status.finishedAt == theirs.status.run.ended
    assert done.status.conditions.is_true("Succeeded")


async def test_what_a_gateway_made_is_not_submitted_to_it_again(
    cluster: Cluster, namespace: str, reference: Path
) -> None:
    # The worst of wirings: the controller keeps its jobs where the operator looks.
    async with desk(cluster, namespace, at(1)) as here:
        there = Platform(here.client, namespace, reference.parent)
        async with there._stack:
            port = await there.gateway()
            async with there.caller(port, "writer") as writer:
                clip = str(reference)
                pair = wire.ScoringParams(reference=clip, distorted=clip)
                await writer.submit(
                    wire.SubmitJobRequest(scoring=pair, idempotency_key="key")
                )
            found = here.client.list(VmafxJob, namespace=namespace)
            (made,) = [job async for job in found]
            await here.reason("Submitted", "MadeByGateway", made.metadata.name)
            await here.client.delete(VmafxJob, made.metadata.name, namespace=namespace)
            await here.running.gone(VmafxJob, made.metadata.name)


async def test_a_job_is_submitted_once_by_its_uid_over_one_channel(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    made.lost_answers = 2
    async with (
        controller(made) as port,
        desk(cluster, namespace, at(port)) as here,
    ):
        await here.submit(priority=3, model="vmaf_4k_v0.6.1")
        pending = await here.reason("Submitted", "Accepted")
        assert made.keys == {pending.metadata.uid: "remote-0"}
        assert made.job().scoring.model == "vmaf_4k_v0.6.1"
        made.job().status = wire.RUNNING
        made.job().assigned_node = "gpu-1"
        runs = await here.phase("Running")
        assert runs.status.assignedNode == "gpu-1"
        made.job().updated_at = 1_700_000_000
        made.job().status = wire.COMPLETED
        done = await here.phase("Succeeded")
        calls = len(made.calls)
        await here.submit("another")
        await here.reason("Submitted", "Accepted", "another")
    assert done.status.score == 0.0
    assert done.status.finishedAt == datetime.fromtimestamp(1_700_000_000, UTC)
    assert made.calls[calls] == "SubmitJob"  # what is over is not asked for any more
    assert len(made.peers) == 1


@pytest.mark.parametrize(
    ("method", "code", "reason"),
    [
        ("SubmitJob", CODES.UNAUTHENTICATED, "Unauthenticated"),
        ("SubmitJob", CODES.UNIMPLEMENTED, "OtherVersion"),
        ("GetJob", CODES.PERMISSION_DENIED, "Denied"),
        ("GetJob", None, "Unreachable"),
        ("GetJob", CODES.INTERNAL, "Failing"),
    ],
)
async def test_what_goes_wrong_is_a_condition_and_passes_when_it_is_mended(
    cluster: Cluster,
    namespace: str,
    method: str,
    code: grpc.StatusCode | None,
    reason: str,
) -> None:
    made = FakeController()
    made.fails = {method: code}
    async with (
        controller(made) as port,
        desk(cluster, namespace, at(port), budget=0.5) as here,
    ):
        await here.submit()
        told = await here.reason("Reachable", reason)
        assert told.status.phase == "Pending"
        made.fails.clear()
        await here.reason("Reachable", "Answered")
        made.job().status = wire.COMPLETED
        await here.phase("Succeeded")


async def test_what_only_a_person_can_mend_is_asked_for_slowly(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    made.fails = {"GetJob": CODES.PERMISSION_DENIED}
    slow = Rhythm(poll=0.05)
    async with (
        controller(made) as port,
        desk(cluster, namespace, at(port), rhythm=slow) as here,
    ):
        await here.submit("denied")
        await here.reason("Reachable", "Denied", "denied")
        made.fails.clear()
        await here.submit("other")
        await eventually(lambda: made.calls.count("GetJob") > 5)
        denied = await here.client.get(VmafxJob, "denied", namespace=namespace)
    assert denied.status.conditions["Reachable"].reason == "Denied"


async def test_a_controller_that_is_away_is_found_when_it_comes(
    cluster: Cluster, namespace: str
) -> None:
    port, made = unused_port(), FakeController()
    async with desk(cluster, namespace, at(port)) as here:
        await here.submit()
        told = await here.reason("Reachable", "Unreachable")
        assert "does not answer" in told.status.conditions["Reachable"].message
        async with controller(made, port=port):
            await here.reason("Submitted", "Accepted")


async def test_a_job_that_the_controller_forgot_fails_and_is_asked_for_no_more(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    async with controller(made) as port, desk(cluster, namespace, at(port)) as here:
        await here.submit()
        await here.reason("Submitted", "Accepted")
        made.jobs.clear()
        failed = await here.phase("Failed")
        asked = len(made.calls)
        await here.submit("another")
        await here.reason("Submitted", "Accepted", "another")
    assert "knows no such job" in failed.status.message
    assert "GetJob" not in made.calls[asked : asked + 1]


async def test_what_the_controller_finds_wrong_is_final(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    made.fails = {"SubmitJob": CODES.INVALID_ARGUMENT}
    async with controller(made) as port, desk(cluster, namespace, at(port)) as here:
        await here.submit()
        failed = await here.phase("Failed")
    assert failed.status.message == "SubmitJob is refused here."
    assert made.calls == ["SubmitJob"]


async def test_cancelled_deleted_and_late_jobs_are_cancelled_there(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    async with controller(made) as port, desk(cluster, namespace, at(port)) as here:
        for name in ("unwanted", "deleted"):
            await here.submit(name)
            await here.reason("Submitted", "Accepted", name)
        await here.submit("late", deadlineSeconds=3)
        await here.reason("Submitted", "Accepted", "late")
        cancel = {"spec": {"cancel": True}}
        await here.client.patch(VmafxJob, "unwanted", cancel, namespace=namespace)
        await here.client.delete(VmafxJob, "deleted", namespace=namespace)
        await here.phase("Cancelled", "unwanted")
        await here.running.gone(VmafxJob, "deleted")
        late = await here.phase("Failed", "late")
    assert {job.status for job in made.jobs.values()} == {wire.CANCELLED}
    assert len(made.jobs) == 3
    assert "deadline of 3 s" in late.status.message


async def test_who_knows_no_cancelled_jobs_is_shown_failed_ones(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    async with (
        controller(made) as port,
        desk(cluster, namespace, at(port, cancelled_as_failed=True)) as here,
    ):
        await here.submit(cancel=True)
        failed = await here.phase("Failed")
    assert failed.status.message == "cancelled by controller"
    assert not made.calls  # it was cancelled before it was submitted


async def test_a_deleted_job_does_not_wait_for_ever_for_its_controller(
    cluster: Cluster, namespace: str
) -> None:
    made = FakeController()
    async with controller(made) as port, desk(cluster, namespace, at(port)) as here:
        await here.submit()
        await here.reason("Submitted", "Accepted")
        made.fails = {"CancelJob": CODES.PERMISSION_DENIED}
        await here.client.delete(VmafxJob, "job", namespace=namespace)
        await here.running.gone(VmafxJob, "job")


def jwt(*, ends: datetime) -> str:
    body = json.dumps({"exp": int(ends.timestamp())}).encode()
    return f"head.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.signature"


async def sent(made: FakeController, token: str) -> None:
    await eventually(lambda: f"Bearer {token}" in made.tokens)


async def test_the_token_is_read_for_each_call_and_not_sent_when_it_has_expired(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    made, file = FakeController(), tmp_path / "token"
    expired = jwt(ends=datetime.now(UTC) - timedelta(seconds=5))
    file.write_text(expired)
    async with (
        controller(made) as port,
        desk(cluster, namespace, at(port, token_file=file)) as here,
    ):
        await here.submit()
        told = await here.reason("Reachable", "NoToken")
        message = told.status.conditions["Reachable"].message
        assert str(file) in message
        assert expired not in message
        assert not made.calls
        for text in ("first", jwt(ends=datetime.now(UTC) + timedelta(hours=1))):
            file.write_text(f"{text}\n")
            await sent(made, text)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"VMAFX_CONTROLLER_CA_FILE": "/ca.pem"}, "needs VMAFX_CONTROLLER_TLS=true"),
        ({"VMAFX_CONTROLLER_SERVER_NAME": "a"}, "needs VMAFX_CONTROLLER_TLS=true"),
        ({"VMAFX_CONTROLLER_TLS": "perhaps"}, "is true or false"),
        (
            {"VMAFX_CONTROLLER_TOKEN": "a", "VMAFX_CONTROLLER_TOKEN_FILE": "/b"},
            "are both set",
        ),
        (
            {"VMAFX_CONTROLLER_TLS": "true", "VMAFX_CONTROLLER_CA_FILE": "/no/ca"},
            "cannot be read",
        ),
    ],
)
def test_settings_that_make_no_sense_stop_the_operator_at_its_start(
    more: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make(
            random=Random(1),
            environment={"VMAFX_CONTROLLER_GRPC_ADDR": "127.0.0.1:1", **more},
        )


def test_the_environment_chooses_the_mode() -> None:
    named = {"VMAFX_CONTROLLER_GRPC_ADDR": "a:1", "VMAFX_CONTROLLER_TOKEN": "secret"}
    here = make(random=Random(1), environment={})
    there = make(random=Random(1), environment=named)
    assert here.opened != there.opened
    # Elsewhere, somebody else runs the trainers.
    owned = [[kind.owns for kind in app.controllers()] for app in (here, there)]
    assert any(owned[0])
    assert not any(owned[1])
    assert "secret" not in repr(settings_of(named))


# Nodes and trainers


class Place:
    """A controller's HTTP, and a trainer's."""

    def __init__(self) -> None:
        self.health = 200
        self.training = b""
        self.connections: set[object] = set()

    async def healthz(self, request: web.Request) -> web.Response:
        self.connections.add(request.transport)
        return web.Response(status=self.health, text="x" * 1000)

    async def status(self, request: web.Request) -> web.Response:
        return web.Response(body=self.training)


@asynccontextmanager
async def serving(place: Place) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/healthz", place.healthz)
    application.router.add_get("/status", place.status)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_node_is_as_healthy_as_its_controller_unless_it_fell_silent(
    cluster: Cluster, namespace: str
) -> None:
    place = Place()
    async with (
        serving(place) as url,
        desk(cluster, namespace, at(1, web=url)) as here,
    ):

        async def change(name: str, status: dict[str, Any], capacity: int) -> None:
            await here.client.patch(
                VmafxNode,
                name,
                {"status": status},
                namespace=namespace,
                subresource="status",
            )
            spec = {"spec": {"capacity": capacity}}
            await here.client.patch(VmafxNode, name, spec, namespace=namespace)

        async def healthy(name: str, *, is_so: bool) -> VmafxNode:
            return await here.running.until(
                VmafxNode, name, lambda node: node.status.healthy == is_so
            )

        now = datetime.now(UTC).replace(microsecond=0)
        for name in ("new", "beating"):
            metadata = Metadata(name=name, namespace=namespace)
            spec = VmafxNodeSpec(gpuVendor="nvidia")
            await here.client.create(VmafxNode(metadata=metadata, spec=spec))
            await healthy(name, is_so=True)
        old = now - timedelta(seconds=90)
        await change("beating", {"lastHeartbeat": rfc3339(old)}, 2)
        silent = await healthy("beating", is_so=False)
        assert silent.status.lastHeartbeat == old
        await change("beating", {"lastHeartbeat": rfc3339(now)}, 3)
        await healthy("beating", is_so=True)
        place.health = 503
        await change("new", {}, 2)
        new = await healthy("new", is_so=False)
        assert new.status.lastHeartbeat is None
    assert len(place.connections) == 1


async def test_a_trainer_is_heard_and_its_checkpoints_are_told(
    cluster: Cluster, namespace: str
) -> None:
    place = Place()
    said = {"phase": "running", "current_samples": 1200, "model_version": "v2"}
    async with (
        serving(place) as url,
        desk(cluster, namespace, at(1, trainer=url)) as here,
    ):
        spec = VmafxModelTrainingSpec(
            baseModel="tiny", algorithm="online-sgd-ema", outputRegistry="oci://r/m"
        )
        metadata = Metadata(name="model", namespace=namespace)
        await here.client.create(VmafxModelTraining(metadata=metadata, spec=spec))
        await here.running.until(
            VmafxModelTraining, "model", lambda it: it.status.phase == "Initializing"
        )
        written = "2026-01-02T03:04:05Z"
        place.training = json.dumps({**said, "last_checkpoint_time": written}).encode()
        change = {"spec": {"baseModel": "other"}}
        await here.client.patch(
            VmafxModelTraining, "model", change, namespace=namespace
        )
        trained = await here.running.until(
            VmafxModelTraining, "model", lambda it: it.status.phase == "Running"
        )
    assert (trained.status.currentSamples, trained.status.modelVersion) == (1200, "v2")
    assert trained.status.lastCheckpoint == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
